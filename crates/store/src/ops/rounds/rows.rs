//! Rows of rounds and their replicas.

use std::borrow::Cow;

use jurat_core::{
    account::ledger::{Balance, CreditHold, Movement},
    id::{AccountId, NodeId, RoundId},
    round::{
        ClosingSummary, OpenRound, RetainedRequest, Round, RoundClosing, RoundSummary,
        TaskCallTicket,
        consensus::{Basis, Consensus, Outcome},
        job::{JobKind, Toggle},
        replica::{FailureCode, Label, Replica, ReplicaAnswer, ReplicaFailure, ReplicaVote},
    },
    verifier::run::{RoundSettlement, VerifierRunTicket},
    webhook::WebhookEvent,
};

use super::RoundOpening;
use crate::{
    Result, StoreError, StoreErrorKind,
    db::row::{DbRow, RowReader, json, to_bigint},
    ops::{
        documents::{
            AnswerDocument, ConsensusDocument, ReplicaDocument, SeatDocument, TaskCallDocument,
            VerifierRunDocument,
        },
        ledger::{DayReservation, Posting, day_of},
        peers::book::BookedJobs,
        verifier_runs::{VerifierRunEndRow, VerifierRunRow},
    },
};

/// The columns of an open round.
pub(crate) const OPEN_COLUMNS: &str = "\
    rounds.account_id, rounds.id, rounds.kind, rounds.node_id, rounds.lease_token, \
    rounds.lease_until, rounds.request_digest, rounds.policy_id, rounds.policy_hash, \
    rounds.disagreement, rounds.traces, rounds.seats, rounds.opened_at, rounds.deadline_at, \
    rounds.run, rounds.verifier_id, rounds.step, rounds.held_micros, rounds.most_micros, \
    rounds.is_limited, rounds.day_cap_micros";
pub(super) const REPLICA_COLUMNS: &str = "\
    round_id, position, session_id, executor, label, failure, latency_ms, cost_micros, document";

/// The state of a round that has not ended; every other state says how it ended.
const OPEN: &str = "open";

pub(super) struct RoundRow {
    pub(super) account_id: String,
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) node_id: String,
    pub(super) lease_token: i64,
    pub(super) lease_until: i64,
    pub(super) request_digest: String,
    pub(super) policy_id: String,
    pub(super) policy_hash: String,
    pub(super) disagreement: &'static str,
    pub(super) traces: i64,
    pub(super) seats: String,
    pub(super) opened_at: i64,
    pub(super) deadline_at: i64,
    /// The document of the run.
    pub(super) run: Option<String>,
    pub(super) verifier_id: Option<String>,
    /// The document of the task call.
    pub(super) step: Option<String>,
    pub(super) held_micros: Option<i64>,
    pub(super) most_micros: Option<i64>,
    pub(super) is_limited: Option<i64>,
    pub(super) day_cap_micros: Option<i64>,
    /// The verifier run of the round.
    pub(super) run_row: Option<VerifierRunRow>,
    /// The hold that is wanted; the balance decides how much of it is held.
    hold: Option<CreditHold>,
    pub(super) posting: Option<Posting>,
    /// The request in one line; `request` is the full one.
    pub(super) asked: Option<String>,
    pub(super) request: Option<String>,
}

impl RoundRow {
    pub(super) fn new(round: &OpenRound) -> Result<Self> {
        let seats: Vec<SeatDocument<'_>> = round.seats.iter().map(Into::into).collect();
        let ticket = round.run.as_ref().map(VerifierRunDocument::from);
        let held = round.hold.map(|hold| {
            let posting = Posting::of_round(&round.account, &round.id, round.opened_at)
                .with(Movement::Hold, hold.micros.max(0));
            if hold.is_limited { posting } else { posting.owing(NOT_LIMITED) }
        });
        Ok(Self {
            account_id: round.account.to_string(),
            id: round.id.to_string(),
            kind: round.kind.as_str(),
            node_id: round.node.to_string(),
            lease_token: round.lease_token.cast_signed(),
            lease_until: round.lease_until.micros(),
            request_digest: round.request_digest.clone(),
            policy_id: round.policy_id.clone(),
            policy_hash: round.policy_hash.clone(),
            disagreement: round.disagreement.as_str(),
            traces: i64::from(round.traces == Toggle::On),
            seats: json(&seats)?,
            opened_at: round.opened_at.micros(),
            deadline_at: round.deadline_at.micros(),
            run: ticket.as_ref().map(json).transpose()?,
            verifier_id: round.verifier.clone(),
            step: round.step.as_ref().map(TaskCallDocument::from).as_ref().map(json).transpose()?,
            held_micros: round.hold.map(|hold| hold.micros),
            most_micros: round.hold.map(|hold| hold.most_micros),
            hold: round.hold,
            is_limited: round.hold.map(|hold| i64::from(hold.is_limited)),
            day_cap_micros: round.hold.and_then(|hold| hold.day_cap_micros),
            run_row: VerifierRunRow::of(round)?,
            posting: held.filter(Posting::moves_something),
            asked: round.kept.asked.as_ref().map(|asked| asked.line.clone()),
            request: round.kept.asked.as_ref().and_then(|asked| asked.request.clone()),
        })
    }

    /// Whether only the round itself is written.
    pub(super) fn is_alone(&self) -> bool {
        self.run_row.is_none() && self.posting.is_none() && self.reserved().is_none()
    }

    /// The part of the daily limit that the round reserves: its maximum cost, so that the limit is
    /// never exceeded.
    pub(super) fn reserved(&self) -> Option<DayReservation> {
        let (micros, cap) = (reserve_of(&self.hold?), self.day_cap_micros?);
        (0 < micros).then(|| DayReservation { day: day_of(self.opened_at), micros, cap })
    }

    /// The hold of an account that must be able to pay for it.
    pub(super) fn limited(&self) -> Option<CreditHold> {
        self.hold.filter(|hold| hold.is_limited && 0 < hold.micros)
    }

    /// Holds the amount that the account can pay, and lets the account owe the rest up to a limit.
    pub(super) fn hold_only(&mut self, held_micros: i64, may_owe_micros: i64) {
        if let Some(posting) = self.posting.take() {
            let posting = Posting { lines: Vec::new(), change: Balance::default(), ..posting };
            self.posting = Some(posting.with(Movement::Hold, held_micros).owing(may_owe_micros));
        }
        self.held_micros = Some(held_micros);
    }

    /// The hold with which the round was opened.
    pub(super) fn opened(&self) -> RoundOpening {
        match (self.hold, self.held_micros) {
            (Some(hold), Some(held_micros)) if held_micros < hold.micros => {
                RoundOpening::WithLess { held_micros }
            }
            _ => RoundOpening::Whole,
        }
    }
}

/// The `may_owe` of an account that may owe any amount.
const NOT_LIMITED: i64 = -1;

/// The amount that a round reserves from the daily limit.
fn reserve_of(hold: &CreditHold) -> i64 {
    hold.micros.max(hold.most_micros)
}

/// A round that was taken over, or `None` if it is unreadable: such a round must not keep a node
/// from starting or from taking over other rounds.
pub(super) fn read_taken_over(cells: &dyn DbRow) -> Result<Option<OpenRound>> {
    let read = RowReader::new(cells, "rounds", "id").and_then(|columns| open_of(&columns));
    match read {
        Ok(open) => Ok(Some(open)),
        Err(error) if matches!(error.kind, StoreErrorKind::Corrupt { .. }) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot read an abandoned round; it stays open"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The account of a round, and its identifier.
pub(crate) fn read_key(cells: &dyn DbRow) -> Result<(AccountId, RoundId)> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    Ok((columns.id("account_id", AccountId::parse)?, columns.id("id", RoundId::parse)?))
}

/// The identifier of a round.
pub(super) fn read_id(cells: &dyn DbRow) -> Result<RoundId> {
    RowReader::new(cells, "rounds", "id")?.id("id", RoundId::parse)
}

fn open_of(columns: &RowReader<'_>) -> Result<OpenRound> {
    let seats: Vec<SeatDocument<'_>> = columns.document("seats")?;
    Ok(OpenRound {
        id: columns.id("id", RoundId::parse)?,
        account: columns.id("account_id", AccountId::parse)?,
        kind: columns.word("kind")?,
        node: columns.id("node_id", NodeId::parse)?,
        lease_token: columns.number("lease_token")?.cast_unsigned(),
        lease_until: columns.time("lease_until")?,
        request_digest: columns.text("request_digest")?,
        policy_id: columns.text("policy_id")?,
        policy_hash: columns.text("policy_hash")?,
        disagreement: columns.word("disagreement")?,
        traces: if columns.number("traces")? == 0 { Toggle::Off } else { Toggle::On },
        seats: seats.into_iter().map(Into::into).collect(),
        opened_at: columns.time("opened_at")?,
        deadline_at: columns.time("deadline_at")?,
        run: ticket_of(columns)?,
        verifier: columns.maybe_text("verifier_id")?,
        step: task_call_of(columns)?,
        hold: hold_of(columns)?,
        kept: RetainedRequest::default(),
    })
}

fn ticket_of(columns: &RowReader<'_>) -> Result<Option<VerifierRunTicket>> {
    if columns.maybe_text("run")?.is_none() {
        return Ok(None);
    }
    let document: VerifierRunDocument<'_> = columns.document("run")?;
    let purpose = columns.parse("run", &document.purpose)?;
    Ok(Some(document.into_ticket(purpose)))
}

fn task_call_of(columns: &RowReader<'_>) -> Result<Option<TaskCallTicket>> {
    if columns.maybe_text("step")?.is_none() {
        return Ok(None);
    }
    let document: TaskCallDocument<'_> = columns.document("step")?;
    Ok(Some(document.into()))
}

fn hold_of(columns: &RowReader<'_>) -> Result<Option<CreditHold>> {
    let Some(micros) = columns.maybe_number("held_micros")? else { return Ok(None) };
    Ok(Some(CreditHold {
        micros,
        // Earlier versions stored no maximum, because they held all of it.
        most_micros: columns.maybe_number("most_micros")?.unwrap_or(micros),
        least_micros: micros,
        is_limited: columns.number("is_limited")? != 0,
        day_cap_micros: columns.maybe_number("day_cap_micros")?,
    }))
}

pub(super) struct ClosingRow {
    pub(super) account_id: String,
    pub(super) id: String,
    pub(super) lease_token: i64,
    pub(super) state: &'static str,
    pub(super) closed_at: i64,
    pub(super) outcome: &'static str,
    pub(super) verdict: Option<&'static str>,
    pub(super) agreement_bp: i64,
    pub(super) confidence_bp: i64,
    pub(super) consensus: String,
    pub(super) receipt_id: String,
    pub(super) entry: String,
    pub(super) replicas: Vec<ReplicaRow>,
    /// The end of the round's verifier run.
    pub(super) run_end: Option<VerifierRunEndRow>,
    /// The settlement of the credit that the round holds.
    pub(super) posting: Option<Posting>,
    /// The part of the daily limit that the round returns.
    pub(super) returned: Option<DayReservation>,
    /// The execution whose cost is captured once.
    pub(super) capture: Option<CaptureRow>,
    /// The location of the judges' texts, whose verifier may have been deleted in the meantime.
    pub(super) words: Option<JudgeTextLocation>,
    /// The announcement of the round or its verifier run.
    pub(super) event: Option<WebhookEvent>,
    /// The jobs for peers and of peers.
    pub(super) booked: Option<BookedJobs>,
}

/// The location of the texts of a verifier's judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JudgeTextLocation {
    /// In the answers.
    Answers,
    /// Beside the answers of executors, which stay.
    BesideAnswers,
}

impl JudgeTextLocation {
    fn of(round: &OpenRound) -> Option<Self> {
        let words = match round.kind {
            JobKind::Validate => Self::Answers,
            JobKind::Delegate | JobKind::Factcheck => Self::BesideAnswers,
        };
        (round.verifier.is_some() || round.run.is_some()).then_some(words)
    }
}

/// The execution of a task call whose cost a round captures.
pub(super) struct CaptureRow {
    pub(super) execution_id: String,
    /// The end of the round if another round captured the cost.
    pub(super) unpaid: Box<ClosingRow>,
}

impl ClosingRow {
    pub(super) fn new(round: &OpenRound, closing: &RoundClosing) -> Result<Self> {
        let RoundSettlement { run, captured_micros, released_micros } =
            RoundSettlement::of(round, closing);
        let settled = Posting::of_round(&round.account, &round.id, closing.closed_at)
            .with(Movement::Capture, captured_micros)
            .with(Movement::Release, released_micros);
        let run_end = round.run.as_ref().zip(run);
        let run_end = run_end.map(|(ticket, end)| VerifierRunEndRow::new(&ticket.id, end));
        let run_verdict = run_end.as_ref().map(|end| end.verdict);
        let capture = match &round.step {
            Some(step) if 0 < captured_micros => Some(CaptureRow {
                execution_id: step.execution_id.clone(),
                unpaid: Box::new(Self::new(round, &closing.unpaid())?),
            }),
            Some(_) | None => None,
        };
        let returned = round.hold.and_then(|hold| {
            let (micros, cap) = (reserve_of(&hold) - captured_micros, hold.day_cap_micros?);
            let day = day_of(round.opened_at.micros());
            (0 < micros).then_some(DayReservation { day, micros, cap })
        });
        Ok(Self {
            returned,
            capture,
            words: JudgeTextLocation::of(round),
            account_id: round.account.to_string(),
            id: round.id.to_string(),
            lease_token: round.lease_token.cast_signed(),
            state: closing.ending.as_str(),
            closed_at: closing.closed_at.micros(),
            outcome: closing.consensus.outcome.as_str(),
            verdict: closing.consensus.verdict.map(Label::as_str),
            agreement_bp: to_bp(closing.consensus.agreement),
            confidence_bp: to_bp(closing.consensus.confidence),
            consensus: json(&ConsensusDocument::from(&closing.consensus))?,
            receipt_id: closing.receipt_id.clone(),
            entry: closing.entry.clone(),
            replicas: closing.replicas.iter().map(ReplicaRow::new).collect::<Result<_>>()?,
            event: WebhookEvent::of_round(round, closing, run_verdict),
            booked: BookedJobs::of(round, closing),
            run_end,
            posting: Some(settled).filter(Posting::moves_something),
        })
    }

    /// Whether only the round itself is written.
    pub(super) fn is_alone(&self) -> bool {
        let is_settled = self.posting.is_none() && self.returned.is_none() && self.booked.is_none();
        is_settled && self.run_end.is_none() && self.words.is_none()
    }

    /// Leaves out the texts of judges: their verifier was deleted while the round was open.
    pub(super) fn erase(&mut self, words: JudgeTextLocation) -> Result<()> {
        self.run_end = None;
        if words == JudgeTextLocation::BesideAnswers {
            return self.replicas.iter_mut().try_for_each(ReplicaRow::erase_words);
        }
        let mut consensus: ConsensusDocument<'_> = parsed(&self.consensus)?;
        consensus.output = None;
        self.consensus = json(&consensus)?;
        self.replicas.iter_mut().try_for_each(ReplicaRow::erase)
    }
}

/// Reads a document that was just written.
fn parsed<'a, D: serde::Deserialize<'a>>(text: &'a str) -> Result<D> {
    serde_json::from_str(text).map_err(StoreError::unavailable)
}

/// A share in ten-thousandths, the precision to which these numbers are rounded anyway.
#[expect(clippy::cast_possible_truncation, reason = "it lies between 0 and 10,000")]
fn to_bp(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * 10_000.0).round() as i64
}

/// A line of a list.
pub(crate) fn read_summary(cells: &dyn DbRow) -> Result<RoundSummary> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    let open = open_of(&columns)?;
    if columns.text("state")? == OPEN {
        return Ok(RoundSummary { open, closing: None });
    }
    let share = |column| columns.count::<i16>(column).map(|bp| f64::from(bp) / 10_000.0);
    let closing = ClosingSummary {
        ending: columns.word("state")?,
        outcome: columns.word("outcome")?,
        verdict: columns.maybe_word("verdict")?,
        agreement: share("agreement_bp")?,
        confidence: share("confidence_bp")?,
        closed_at: columns.time("closed_at")?,
        receipt_id: columns.text("receipt_id")?,
    };
    Ok(RoundSummary { open, closing: Some(closing) })
}

/// A round without its replicas.
pub(crate) fn read_round(cells: &dyn DbRow) -> Result<Round> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    let open = open_of(&columns)?;
    if columns.text("state")? == OPEN {
        return Ok(Round { open, closing: None });
    }
    let closing = RoundClosing {
        ending: columns.word("state")?,
        replicas: Vec::with_capacity(open.seats.len()),
        consensus: consensus_of(&columns)?,
        closed_at: columns.time("closed_at")?,
        receipt_id: columns.text("receipt_id")?,
        entry: columns.text("entry")?,
        bookings: Vec::new(),
    };
    Ok(Round { open, closing: Some(closing) })
}

fn consensus_of(columns: &RowReader<'_>) -> Result<Consensus> {
    let outcome: Outcome = columns.word("outcome")?;
    let document: ConsensusDocument<'_> = columns.document("consensus")?;
    let label = |text: &Cow<'_, str>| columns.parse::<Label>("consensus", text);
    Ok(Consensus {
        outcome,
        verdict: document.verdict.as_ref().map(label).transpose()?,
        output: document.output.map(Cow::into_owned),
        verdicts: document.verdicts.iter().map(label).collect::<Result<_>>()?,
        groups: document.groups.into_owned(),
        winner: document.winner,
        asked: document.asked,
        started: document.started,
        answered: document.answered,
        cancelled: document.cancelled,
        agreement: document.agreement,
        agreement_answered: document.agreement_answered,
        strategy: document.strategy.into_owned(),
        equivalence: document.equivalence.into_owned(),
        score: document.score.map(Into::into),
        confidence: document.confidence,
        effective_votes: document.effective_votes,
        disagreed: document.disagreed,
        tie_broken: document.tie_broken,
        basis: document.basis.map(|text| columns.parse::<Basis>("consensus", &text)).transpose()?,
    })
}

pub(super) struct ReplicaRow {
    pub(super) position: i64,
    pub(super) session_id: String,
    pub(super) executor: String,
    pub(super) label: Label,
    pub(super) failure: Option<&'static str>,
    pub(super) latency_ms: i64,
    pub(super) cost_micros: i64,
    pub(super) document: String,
}

impl ReplicaRow {
    fn new(replica: &Replica) -> Result<Self> {
        let document = ReplicaDocument {
            independence: (&replica.independence).into(),
            reliability: replica.reliability,
            answer: (&replica.answer).into(),
            usage: replica.usage.map(Into::into),
            seat: Some(replica.seat).filter(|seat| *seat != replica.index),
            replaced_by: replica.replaced_by,
        };
        Ok(Self {
            position: i64::try_from(replica.index).unwrap_or(i64::MAX),
            session_id: replica.session_id.clone(),
            executor: replica.executor.clone(),
            label: replica.answer.label(),
            failure: replica.answer.failure().map(|failure| failure.code.as_str()),
            latency_ms: to_bigint(replica.latency_ms),
            cost_micros: to_bigint(replica.cost_micros),
            document: json(&document)?,
        })
    }

    fn erase(&mut self) -> Result<()> {
        let mut document: ReplicaDocument<'_> = parsed(&self.document)?;
        document.answer = AnswerDocument::erased(self.label, self.failure.is_some());
        self.document = json(&document)?;
        Ok(())
    }

    fn erase_words(&mut self) -> Result<()> {
        let mut document: ReplicaDocument<'_> = parsed(&self.document)?;
        document.answer.erase_words();
        self.document = json(&document)?;
        Ok(())
    }
}

pub(super) fn read_replica(cells: &dyn DbRow) -> Result<Replica> {
    let columns = RowReader::new(cells, "replicas", "round_id")?;
    let document: ReplicaDocument<'_> = columns.document("document")?;
    let index = columns.count("position")?;
    Ok(Replica {
        index,
        seat: document.seat.unwrap_or(index),
        replaced_by: document.replaced_by,
        session_id: columns.text("session_id")?,
        executor: columns.text("executor")?,
        independence: document.independence.into(),
        reliability: document.reliability,
        answer: answer_of(&columns, document.answer)?,
        latency_ms: columns.count("latency_ms")?,
        cost_micros: columns.count("cost_micros")?,
        usage: document.usage.map(Into::into),
    })
}

fn answer_of(columns: &RowReader<'_>, document: AnswerDocument<'_>) -> Result<ReplicaAnswer> {
    let label = columns.word("label")?;
    Ok(match document {
        AnswerDocument::Vote(said) => ReplicaAnswer::Vote(ReplicaVote { label, said: said.into() }),
        AnswerDocument::Abstained(said) => ReplicaAnswer::Abstained { label, said: said.into() },
        AnswerDocument::Nothing { detail, said } => {
            let code: FailureCode = columns.word("failure")?;
            let failure = ReplicaFailure { code, detail: detail.into_owned() };
            ReplicaAnswer::Nothing { label, failure, said: said.map(Into::into) }
        }
    })
}

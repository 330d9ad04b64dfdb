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
};

use super::{
    DbRow, RowReader,
    documents::{
        AnswerDocument, ConsensusDocument, ReplicaDocument, SeatDocument, TaskCallDocument,
        VerifierRunDocument,
    },
    json,
    ledger::Posting,
    to_bigint,
    verifier_runs::{VerifierRunEndRow, VerifierRunRow},
};
use crate::{Result, RoundOpenOutcome, StoreError, StoreErrorKind};

/// The state of an open round; every other state is how it ended.
pub(crate) const OPEN: &str = "open";

/// Greater than any identifier, so that a list without a start begins at its end.
pub(crate) const AFTER_ALL: &str = "\u{7f}";
/// Less than any identifier.
pub(crate) const BEFORE_ALL: &str = "";

/// How many times a takeover that found only unreadable rounds looks for others. Each try leases
/// the rounds it finds, so the next try finds others.
pub(crate) const TAKEOVER_TRIES: usize = 16;

pub(crate) struct RoundRow {
    pub(crate) account_id: String,
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) node_id: String,
    pub(crate) lease_token: i64,
    pub(crate) lease_until: i64,
    pub(crate) request_digest: String,
    pub(crate) policy_id: String,
    pub(crate) policy_hash: String,
    pub(crate) disagreement: &'static str,
    pub(crate) traces: i16,
    pub(crate) seats: String,
    pub(crate) opened_at: i64,
    pub(crate) deadline_at: i64,
    /// The document of the verifier run.
    pub(crate) run: Option<String>,
    pub(crate) verifier_id: Option<String>,
    /// The document of the task call.
    pub(crate) step: Option<String>,
    pub(crate) held_micros: Option<i64>,
    pub(crate) most_micros: Option<i64>,
    pub(crate) is_limited: Option<i16>,
    pub(crate) day_cap_micros: Option<i64>,
    /// The row of the verifier run.
    pub(crate) run_row: Option<VerifierRunRow>,
    /// The requested hold; how much is held depends on the balance.
    hold: Option<CreditHold>,
    pub(crate) posting: Option<Posting>,
    /// The request, in one line and in full.
    pub(crate) asked: Option<String>,
    pub(crate) request: Option<String>,
}

impl RoundRow {
    pub(crate) fn new(round: &OpenRound) -> Result<Self> {
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
            traces: i16::from(round.traces == Toggle::On),
            seats: json(&seats)?,
            opened_at: round.opened_at.micros(),
            deadline_at: round.deadline_at.micros(),
            run: ticket.as_ref().map(json).transpose()?,
            verifier_id: round.verifier.clone(),
            step: round.step.as_ref().map(TaskCallDocument::from).as_ref().map(json).transpose()?,
            held_micros: round.hold.map(|hold| hold.micros),
            most_micros: round.hold.map(|hold| hold.most_micros),
            hold: round.hold,
            is_limited: round.hold.map(|hold| i16::from(hold.is_limited)),
            day_cap_micros: round.hold.and_then(|hold| hold.day_cap_micros),
            run_row: VerifierRunRow::of(round)?,
            posting: held.filter(Posting::moves_something),
            asked: round.kept.asked.as_ref().map(|asked| asked.line.clone()),
            request: round.kept.asked.as_ref().and_then(|asked| asked.request.clone()),
        })
    }

    /// Whether only the round itself is written.
    pub(crate) fn is_alone(&self) -> bool {
        self.run_row.is_none() && self.posting.is_none()
    }

    /// The reservation of the daily limit: the maximum cost of the round, so that the limit is
    /// never exceeded.
    pub(crate) fn reserved(&self) -> Option<DayReservation> {
        let (micros, cap) = (reserve_of(&self.hold?), self.day_cap_micros?);
        (0 < micros).then(|| DayReservation { day: day_of(self.opened_at), micros, cap })
    }

    /// The hold of a limited account.
    pub(crate) fn limited(&self) -> Option<CreditHold> {
        self.hold.filter(|hold| hold.is_limited && 0 < hold.micros)
    }

    /// Reduces the hold to the balance of the account, which may owe this much in the end.
    pub(crate) fn hold_only(&mut self, held_micros: i64, may_owe_micros: i64) {
        if let Some(posting) = self.posting.take() {
            let posting = Posting { lines: Vec::new(), change: Balance::default(), ..posting };
            self.posting = Some(posting.with(Movement::Hold, held_micros).owing(may_owe_micros));
        }
        self.held_micros = Some(held_micros);
    }

    /// How the round was opened.
    pub(crate) fn opened(&self) -> RoundOpenOutcome {
        match (self.hold, self.held_micros) {
            (Some(hold), Some(held_micros)) if held_micros < hold.micros => {
                RoundOpenOutcome::WithLess { held_micros }
            }
            _ => RoundOpenOutcome::Opened,
        }
    }
}

/// In a posting: the account may owe any amount.
const NOT_LIMITED: i64 = -1;

/// How much of the daily limit a round reserves.
fn reserve_of(hold: &CreditHold) -> i64 {
    hold.micros.max(hold.most_micros)
}

/// A part of the daily limit of visitors.
pub(crate) struct DayReservation {
    pub(crate) day: i64,
    pub(crate) micros: i64,
    pub(crate) cap: i64,
}

/// The day of a time, since 1970 in UTC.
pub(crate) fn day_of(micros: i64) -> i64 {
    micros.div_euclid(86_400_000_000)
}

/// A round that was taken over; `None` if it is unreadable, because one such round must not keep a
/// node from starting or from taking over the others.
pub(crate) fn read_taken_over(cells: &impl DbRow) -> Result<Option<OpenRound>> {
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

/// A cancelled round with its account.
pub(crate) fn read_cancelled(cells: &impl DbRow) -> Result<(AccountId, RoundId)> {
    let columns = RowReader::new(cells, "rounds", "id")?;
    Ok((columns.id("account_id", AccountId::parse)?, columns.id("id", RoundId::parse)?))
}

/// The id of a round.
pub(crate) fn read_id(cells: &impl DbRow) -> Result<RoundId> {
    RowReader::new(cells, "rounds", "id")?.id("id", RoundId::parse)
}

fn open_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<OpenRound> {
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

fn ticket_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Option<VerifierRunTicket>> {
    if columns.maybe_text("run")?.is_none() {
        return Ok(None);
    }
    let document: VerifierRunDocument<'_> = columns.document("run")?;
    let purpose = columns.parse("run", &document.purpose)?;
    Ok(Some(document.into_ticket(purpose)))
}

fn task_call_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Option<TaskCallTicket>> {
    if columns.maybe_text("step")?.is_none() {
        return Ok(None);
    }
    let document: TaskCallDocument<'_> = columns.document("step")?;
    Ok(Some(document.into()))
}

fn hold_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Option<CreditHold>> {
    let Some(micros) = columns.maybe_number("held_micros")? else { return Ok(None) };
    Ok(Some(CreditHold {
        micros,
        // A program without a maximum cost held it.
        most_micros: columns.maybe_number("most_micros")?.unwrap_or(micros),
        least_micros: micros,
        is_limited: columns.number("is_limited")? != 0,
        day_cap_micros: columns.maybe_number("day_cap_micros")?,
    }))
}

pub(crate) struct ClosingRow {
    pub(crate) account_id: String,
    pub(crate) id: String,
    pub(crate) lease_token: i64,
    pub(crate) state: &'static str,
    pub(crate) closed_at: i64,
    pub(crate) outcome: &'static str,
    pub(crate) verdict: Option<&'static str>,
    pub(crate) agreement_bp: i16,
    pub(crate) confidence_bp: i16,
    pub(crate) consensus: String,
    pub(crate) receipt_id: String,
    pub(crate) entry: String,
    pub(crate) replicas: Vec<ReplicaRow>,
    /// The end of the round's verifier run.
    pub(crate) run_end: Option<VerifierRunEndRow>,
    /// The posting for the credit that the round holds.
    pub(crate) posting: Option<Posting>,
    /// The part of the daily limit that is returned.
    pub(crate) returned: Option<DayReservation>,
    /// The execution whose cost is captured once.
    pub(crate) capture: Option<CaptureRow>,
    /// The answers of a verifier's judges, in case the verifier was deleted meanwhile.
    pub(crate) words: Option<JudgeTextLocation>,
}

/// Where the answers of a verifier's judges are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JudgeTextLocation {
    /// They are the answers of the replicas.
    Answers,
    /// They come with the answers of executors, which stay.
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
pub(crate) struct CaptureRow {
    pub(crate) execution_id: String,
    /// How the round ends if another one captured the cost.
    pub(crate) unpaid: Box<ClosingRow>,
}

impl ClosingRow {
    pub(crate) fn new(round: &OpenRound, closing: &RoundClosing) -> Result<Self> {
        let RoundSettlement { run, captured_micros, released_micros } =
            RoundSettlement::of(round, closing);
        let settled = Posting::of_round(&round.account, &round.id, closing.closed_at)
            .with(Movement::Capture, captured_micros)
            .with(Movement::Release, released_micros);
        let run_end = round.run.as_ref().zip(run);
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
            run_end: run_end.map(|(ticket, end)| VerifierRunEndRow::new(&ticket.id, end)),
            posting: Some(settled).filter(Posting::moves_something),
        })
    }

    /// Whether only the round itself is written.
    pub(crate) fn is_alone(&self) -> bool {
        self.run_end.is_none() && self.posting.is_none() && self.words.is_none()
    }

    /// Removes the answers of judges: their verifier was deleted while the round was in progress.
    pub(crate) fn erase(&mut self, words: JudgeTextLocation) -> Result<()> {
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

/// Parses a document that was just written.
fn parsed<'a, D: serde::Deserialize<'a>>(text: &'a str) -> Result<D> {
    serde_json::from_str(text).map_err(StoreError::unavailable)
}

/// A share in ten-thousandths, to which these numbers are rounded anyway.
#[expect(clippy::cast_possible_truncation, reason = "it lies between 0 and 10,000")]
fn to_bp(share: f64) -> i16 {
    (share.clamp(0.0, 1.0) * 10_000.0).round() as i16
}

/// A round in a list.
pub(crate) fn read_summary(cells: &impl DbRow) -> Result<RoundSummary> {
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

/// A round; if it has ended, its replicas are still to be read.
pub(crate) fn read_round(cells: &impl DbRow) -> Result<Round> {
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
    };
    Ok(Round { open, closing: Some(closing) })
}

fn consensus_of<C: DbRow>(columns: &RowReader<'_, C>) -> Result<Consensus> {
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

pub(crate) struct ReplicaRow {
    pub(crate) position: i16,
    pub(crate) session_id: String,
    pub(crate) executor: String,
    pub(crate) label: Label,
    pub(crate) failure: Option<&'static str>,
    pub(crate) latency_ms: i64,
    pub(crate) cost_micros: i64,
    pub(crate) document: String,
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
            position: i16::try_from(replica.index).unwrap_or(i16::MAX),
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

pub(crate) fn read_replica(cells: &impl DbRow) -> Result<Replica> {
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

fn answer_of<C: DbRow>(
    columns: &RowReader<'_, C>,
    document: AnswerDocument<'_>,
) -> Result<ReplicaAnswer> {
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

//! A verifier run: a round under `vp.semantic.v1` with a row of its own in the registry.

use std::str::FromStr;

use serde_json::Value;

use crate::{
    account::ledger::settle,
    id::{AccountId, RoundId},
    round::{
        OpenRound, RoundClosing,
        consensus::Outcome,
        job::words,
        replica::{FailureCode, Label, Replica},
    },
    time::Timestamp,
};

words!(
    /// The purpose of a run.
    VerifierRunPurpose {
        /// A caller wants a verdict.
        Run => "run",
        /// An example with a known label, to measure the verifier.
        Test => "test",
        /// A known injection, to measure the verifier.
        Attack => "attack",
    }
);

words!(
    /// Why a run has no verdict.
    VerifierRunError {
        /// The judge answered, but not with a verdict.
        RuntimeError => "runtime_error",
        /// The judge could not be asked.
        VerifierUnavailable => "verifier_unavailable",
        /// The judge did not answer in time.
        Timeout => "timeout",
    }
);

words!(
    /// The verdicts by which a list of runs can be filtered.
    VerifierRunVerdict { Passed => "passed", Failed => "failed", Error => "error", Running => "running" }
);

/// Selects runs for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifierRunFilter {
    /// A UUID, or `system:` and a name.
    pub verifier_id: Option<String>,
    pub version: Option<u32>,
    pub verdict: Option<VerifierRunVerdict>,
    pub purpose: Option<VerifierRunPurpose>,
    /// Begun at this time or later.
    pub since: Option<Timestamp>,
    /// Begun before this time.
    pub until: Option<Timestamp>,
    /// Starts after this run, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

/// The origin of a run, as its caller states it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provenance {
    pub workflow_id: Option<String>,
    pub workflow_version: Option<u32>,
    pub workflow_ref: Option<String>,
    /// The caller's own name for the work that the run belongs to.
    pub run_id: Option<String>,
}

/// The record of a run when its round opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRunTicket {
    /// A UUID.
    pub id: String,
    /// A UUID, or `system:` and a name.
    pub verifier_id: String,
    pub version: u32,
    pub purpose: VerifierRunPurpose,
    pub provenance: Provenance,
    /// The SHA-256 of the canonical inputs, in hex.
    pub inputs_digest: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifierRunEnd {
    pub verdict: Result<bool, (VerifierRunError, String)>,
    pub reasoning: Option<String>,
    pub duration_ms: u64,
    pub cost_micros: i64,
}

/// A run as it is read back.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifierRun {
    pub account: AccountId,
    pub ticket: VerifierRunTicket,
    pub round: RoundId,
    pub created_at: Timestamp,
    /// `None` while it is in progress.
    pub end: Option<VerifierRunEnd>,
}

/// The member of a judge's output that holds its reasoning.
pub const REASONING: &str = "reasoning";

impl VerifierRunEnd {
    /// The end of a run, given the decision of its round. Its cost is the captured credit.
    pub fn of(open: &OpenRound, closing: &RoundClosing) -> Self {
        let consensus = &closing.consensus;
        let verdict = match (consensus.outcome, consensus.verdict) {
            (Outcome::Agreed, Some(Label::Valid)) => Ok(true),
            (Outcome::Agreed, Some(Label::Invalid)) => Ok(false),
            _ => Err(undecided(closing)),
        };
        let speaks = |replica: &&Replica| Some(replica.answer.label()) == consensus.verdict;
        let speaker = closing.replicas.iter().find(speaks);
        let has_verdict = verdict.is_ok();
        Self {
            verdict,
            reasoning: speaker.filter(|_| has_verdict).and_then(reasoning),
            duration_ms: closing.closed_at.millis_since(open.opened_at),
            cost_micros: settled(open, closing).0,
        }
    }

    /// The verdict in one word.
    pub const fn word(&self) -> VerifierRunVerdict {
        match self.verdict {
            Ok(true) => VerifierRunVerdict::Passed,
            Ok(false) => VerifierRunVerdict::Failed,
            Err(_) => VerifierRunVerdict::Error,
        }
    }
}

/// The effects of a closed round on its verifier run and on its hold.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSettlement {
    pub run: Option<VerifierRunEnd>,
    pub captured_micros: i64,
    pub released_micros: i64,
}

impl RoundSettlement {
    /// The settlement of a round with this closing.
    pub fn of(open: &OpenRound, closing: &RoundClosing) -> Self {
        let run = open.run.as_ref().map(|_| VerifierRunEnd::of(open, closing));
        let (captured_micros, released_micros) = settled(open, closing);
        Self { run, captured_micros, released_micros }
    }
}

/// The captured and the released part of a round's hold.
fn settled(open: &OpenRound, closing: &RoundClosing) -> (i64, i64) {
    open.hold.map_or((0, 0), |hold| settle(&hold, cost(&closing.replicas)))
}

/// The cost of all replicas of a round together.
pub fn cost(replicas: &[Replica]) -> i64 {
    let cost: u64 = replicas.iter().map(|replica| replica.cost_micros).sum();
    i64::try_from(cost).unwrap_or(i64::MAX)
}

fn reasoning(replica: &Replica) -> Option<String> {
    let output = replica.answer.content()?.output.as_ref()?;
    output.get(REASONING).and_then(Value::as_str).map(str::to_owned)
}

/// Why there is no verdict: the failure that all judges share, or their disagreement.
fn undecided(closing: &RoundClosing) -> (VerifierRunError, String) {
    let counted: Vec<&Replica> = closing.replicas.iter().filter(|it| it.is_counted()).collect();
    let failures: Vec<_> = counted.iter().filter_map(|it| it.answer.failure()).collect();
    if let (true, Some(first)) = (failures.len() == counted.len(), failures.first()) {
        return (error_of(first.code), first.detail.clone());
    }
    let labels: Vec<&str> = closing.consensus.verdicts.iter().map(|it| it.as_str()).collect();
    if let [one] = counted.as_slice()
        && let Some(said) = one.answer.content()
    {
        let why = said.notes.join("; ");
        return (VerifierRunError::RuntimeError, format!("the judge did not decide: {why}"));
    }
    (VerifierRunError::RuntimeError, format!("the judges do not agree: {}", labels.join(", ")))
}

/// The run error for the failure of a replica.
pub fn error_of(code: FailureCode) -> VerifierRunError {
    match code {
        FailureCode::Timeout | FailureCode::Busy => VerifierRunError::Timeout,
        FailureCode::Unavailable
        | FailureCode::Unreachable
        | FailureCode::Disconnected
        | FailureCode::HttpStatus
        | FailureCode::Redirect
        | FailureCode::PeerRefused
        | FailureCode::JudgeUnavailable
        | FailureCode::NodeStopped
        | FailureCode::Cancelled => VerifierRunError::VerifierUnavailable,
        FailureCode::NotJson
        | FailureCode::BadShape
        | FailureCode::TooLarge
        | FailureCode::EncodedReply
        | FailureCode::HashMismatch
        | FailureCode::StatusContradicts
        | FailureCode::ForgedAnswer
        | FailureCode::ForeignAnswer
        | FailureCode::ReplayedAnswer
        | FailureCode::Overpriced
        | FailureCode::PolicyContradicted
        | FailureCode::InvalidOutput
        | FailureCode::OutputUnchecked
        | FailureCode::JudgeUnreadable
        | FailureCode::MediaUnavailable
        | FailureCode::Internal => VerifierRunError::RuntimeError,
    }
}

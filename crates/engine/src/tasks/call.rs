//! A step of a task: a round with one seat, whose executor proposes or verifies.

mod job;
mod result;

use std::sync::Arc;

use jurat_core::{
    account::caller::Caller,
    id::{AccountId, RoundId},
    policy::EvaluationStatus,
    round::{candidate::Candidate, evidence::EvidenceFinding},
    time::Timestamp,
};
use serde_json::Value;

pub(crate) use crate::access::submitting_key;
use crate::{
    Engine, EngineError, RoundWatcher,
    rounds::{in_flight::StopReason, walk::RoundStart},
};

/// What one executor is asked to do for a task.
#[derive(Debug, Clone)]
pub struct TaskCallOrder {
    pub task_id: String,
    /// Executors are idempotent on it: whoever asks again for the same uses the same.
    pub execution_id: String,
    /// Which try of this executor it is, from 1.
    pub attempt: u32,
    /// The contract as it was given.
    pub contract: Arc<Value>,
    pub target: TaskCallTarget,
    pub timeout_ms: u64,
    pub work: TaskCallWork,
}

/// Who does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskCallTarget {
    /// An executor by its name. A name such as `judge:provider/model` is a judge of this node, for
    /// verdicts under `vp.semantic.v1`.
    Executor { name: String, profile: String },
    /// This node, for verdicts that need nobody else.
    Node,
}

#[derive(Debug, Clone)]
pub enum TaskCallWork {
    Propose {
        seed_bundle: Option<Value>,
    },
    Vote {
        /// With the identifiers of its proposal.
        candidate: Box<Candidate>,
        proposed_at: Timestamp,
        /// Who proposed it.
        producer: String,
        /// Which time votes are committed on it.
        turn: u32,
        /// Other answers to the same task, for a policy that compares: their identifiers and
        /// outputs.
        others: Vec<(String, Value)>,
        /// Whether its references are fetched and checked.
        fetch_evidence: bool,
    },
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCallResult {
    /// `None` where no round was opened, because the executor cannot take the step.
    pub round_id: Option<RoundId>,
    pub receipt_id: Option<String>,
    /// As the round names it: the executor, `builtin:policies` or a provider of judges.
    pub executor: String,
    /// What the executor shares with others, such as a model.
    pub independence: String,
    /// Probability that it is right, as assumed or measured beforehand.
    pub reliability: f64,
    pub outcome: TaskCallOutcome,
    /// What was found where the candidate refers to; empty where nobody looked.
    pub evidence: Vec<EvidenceFinding>,
    /// Digests of what was there for this verifier, which did not miss any of it itself.
    pub available: Vec<String>,
    pub latency_ms: u64,
    pub cost_micros: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskCallOutcome {
    Candidate(Candidate),
    Verdict(TaskCallVerdict),
    /// Neither, for the reason given; never a verdict.
    Failed {
        /// A word: that of a failure, or that of an error.
        code: &'static str,
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskCallVerdict {
    pub status: EvaluationStatus,
    /// Confidence in the verdict, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    /// Digest of what the verifier answered, without what this node found out about evidence.
    pub result_hash: String,
    pub notes: Vec<String>,
}

impl Engine {
    /// Makes one step of a task, as a round with one seat: opened, paid, signed, recorded and
    /// counted like any other. Dropping the future calls the round off.
    ///
    /// A step that was answered under the same `execution_id` before, and whose answer is on record,
    /// is neither asked for nor paid for again. Where several rounds ask for it at once, because
    /// nobody knew what came of the first, the one that captures first is the one that is paid for.
    ///
    /// What the executor cannot do or does wrong is the outcome. An error is what this node cannot
    /// do: the account is suspended or has no credit, the node is full or about to end.
    pub async fn task_call(
        &self,
        caller: &Caller,
        order: TaskCallOrder,
    ) -> Result<TaskCallResult, EngineError> {
        let job = match job::task_call_job(&order) {
            Ok(job) => job,
            Err(error) => return result::refused_result(&order, error),
        };
        let account = caller.account().clone();
        let before = self.inner.store.round_of_task_call(&account, &order.execution_id).await?;
        if let Some(done) =
            before.map_or(Ok(None), |round| result::earlier_result(&order, round))?
        {
            return Ok(done);
        }
        let (caller, watcher) = (caller.clone(), RoundWatcher::nobody());
        let begun = match self
            .begin_round(RoundStart {
                caller,
                job,
                watcher,
                idempotency_key: None,
                verifier_run: None,
            })
            .await
        {
            Ok(begun) => begun,
            Err(error) => return result::refused_result(&order, error),
        };
        let round = begun.round.open.id.clone();
        let _call_off = CancelOnDrop { engine: self.clone(), account, round };
        result::task_call_result(&order, begun.wait().await?)
    }
}

/// Calls a round off whose step nobody waits for any more. One that has ended is not on the list.
struct CancelOnDrop {
    engine: Engine,
    account: AccountId,
    round: RoundId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.engine.inner.rounds_in_flight.find(&self.account, &self.round) {
            // A step that the node gives up is no wish of its account.
            running.stop(if self.engine.is_stopping() {
                StopReason::Node
            } else {
                StopReason::Caller
            });
        }
    }
}

//! Makes a task call: a round with one seat, whose executor proposes or votes.

mod failure;
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
use jurat_store::Behalf;
use serde_json::Value;

pub use self::failure::TaskCallFailure;
pub(crate) use crate::access::submitting_key;
use crate::{
    Engine, EngineError, RoundWatcher,
    rounds::{in_flight::StopReason, walk::RoundStart},
};

/// The work that one executor does for a task.
#[derive(Debug, Clone)]
pub struct TaskCallOrder {
    pub task_id: String,
    /// Executors are idempotent on it: repeating the same work uses the same id.
    pub execution_id: String,
    /// The number of this executor's try, from 1.
    pub attempt: u32,
    /// The contract as it was submitted.
    pub contract: Arc<Value>,
    pub target: TaskCallTarget,
    pub timeout_ms: u64,
    pub work: TaskCallWork,
}

/// Who does the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskCallTarget {
    /// An executor by name. A name such as `judge:provider/model` is a judge of this node, for
    /// votes under `vp.semantic.v1`.
    Executor { name: String, profile: String },
    /// This node, for votes that need nobody else.
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
        /// The executor that proposed it.
        producer: String,
        /// The number of the vote on it.
        turn: u32,
        /// Other answers to the same task, for a policy that compares: their identifiers and
        /// outputs.
        others: Vec<(String, Value)>,
        /// Whether its references are fetched and checked.
        fetch_evidence: bool,
    },
}

/// The result of a task call.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCallResult {
    /// `None` if no round was opened, because the executor cannot do the work.
    pub round_id: Option<RoundId>,
    pub receipt_id: Option<String>,
    /// As the round names it: the executor, `builtin:policies` or a provider of judges.
    pub executor: String,
    /// The properties that the executor shares with others, such as a model.
    pub independence: String,
    /// The probability that it is right, as assumed or measured in advance.
    pub reliability: f64,
    pub outcome: TaskCallOutcome,
    /// The findings about the candidate's references; empty if they were not fetched.
    pub evidence: Vec<EvidenceFinding>,
    /// Digests of the evidence that this voter could see.
    pub available: Vec<String>,
    pub latency_ms: u64,
    pub cost_micros: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TaskCallOutcome {
    Candidate(Candidate),
    Verdict(TaskCallVerdict),
    /// Neither, for this reason; never a verdict.
    Failed {
        code: TaskCallFailure,
        detail: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct TaskCallVerdict {
    pub status: EvaluationStatus,
    /// Confidence in the verdict, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    /// The digest of the voter's answer, without this node's findings about evidence.
    pub result_hash: String,
    pub notes: Vec<String>,
}

impl Engine {
    /// Makes one task call, as a round with one seat: opened, paid, signed, recorded and counted
    /// like any other. Dropping the future cancels the round.
    ///
    /// A call that was answered under the same `execution_id` before, and whose answer is recorded,
    /// is neither made nor paid again. If several rounds ask concurrently, because the result of
    /// the first was unknown, the one that captures first is paid.
    ///
    /// Faults of the executor are the outcome. An error is a fault of this node: the account is
    /// suspended or has no credit, or the node is full or shutting down.
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
        let before = self
            .inner
            .store
            .rounds()
            .of_task_call(&Behalf::from(&account), &account, &order.execution_id)
            .await?;
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

/// Cancels a round whose call nobody waits for any more. An ended round is not on the list.
struct CancelOnDrop {
    engine: Engine,
    account: AccountId,
    round: RoundId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.engine.inner.rounds_in_flight.find(&self.account, &self.round) {
            // If the node gives the call up, that is not a wish of its account.
            running.stop(if self.engine.is_stopping() {
                StopReason::Node
            } else {
                StopReason::Caller
            });
        }
    }
}

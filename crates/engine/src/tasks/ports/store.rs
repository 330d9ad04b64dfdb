//! The port to the store of tasks, which the simulation replaces.

use std::future::Future;

use jurat_core::{
    id::RoundId,
    round::candidate::{ArtifactRef, Candidate},
    task::{Ballot, TakenTasks, Task, TaskEvent, TaskKey, TaskTake, VoterReliability},
    time::Timestamp,
};
use jurat_store::{IdempotencyRecord, StoreError};

use crate::{EngineError, tasks::TaskSnapshot};

/// The store of tasks. Each method is one transaction.
pub trait TaskStorePort: Send + Sync {
    fn load(
        &self,
        key: &TaskKey,
    ) -> impl Future<Output = Result<Option<TaskSnapshot>, TaskPortError>> + Send;

    /// Writes events and their documents, if the task has as many events as the writer knew.
    ///
    /// After an error it is unknown whether they were written.
    fn append(
        &self,
        append: TaskWrite,
    ) -> impl Future<Output = Result<TaskWriteOutcome, TaskPortError>> + Send;

    /// A candidate of a task in full.
    fn candidate(
        &self,
        key: &TaskKey,
        id: &str,
    ) -> impl Future<Output = Result<Option<Candidate>, TaskPortError>> + Send;

    /// The references of all candidates of a task whose output has this digest. Equal outputs are
    /// one candidate, and each proposer may add references.
    fn references(
        &self,
        key: &TaskKey,
        digest: &str,
    ) -> impl Future<Output = Result<Vec<ArtifactRef>, TaskPortError>> + Send;

    /// The secret ballots in one vote on a candidate.
    fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> impl Future<Output = Result<Vec<SecretBallot>, TaskPortError>> + Send;

    /// Earlier decisions for the same inputs, schema and policy, the newest first.
    fn prior_decisions(
        &self,
        key: &TaskKey,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Vec<PriorDecision>, TaskPortError>> + Send;

    /// Takes due tasks and postpones them, so that no other node looks at them before.
    fn take_due(
        &self,
        take: TaskTake,
    ) -> impl Future<Output = Result<DueTasks, TaskPortError>> + Send;
}

/// The store did not answer, or not as expected.
#[derive(Debug, thiserror::Error)]
pub enum TaskPortError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("there is no such task")]
    Missing,
    #[error("other writers keep changing the task")]
    Contended,
    /// Whether it was written is unknown.
    #[error("the store does not answer")]
    NoAnswer,
}

impl From<StoreError> for TaskPortError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// A write in one transaction.
#[derive(Debug, Clone)]
pub struct TaskWrite {
    pub key: TaskKey,
    /// The task as the writer knew it.
    pub before: Box<TaskSnapshot>,
    pub at: Timestamp,
    pub events: Vec<TaskEvent>,
    /// The task after the events.
    pub task: Task,
    /// When a node must look at it if the writer is gone; `None` if it has ended.
    pub due_at: Option<Timestamp>,
    pub candidate: Option<NewCandidate>,
    pub ballot: Option<SecretBallot>,
    /// How often each voter is right, as far as that is known.
    pub weigher: VoterReliability,
    /// The idempotency record for a caller who repeats the request.
    pub idempotency: Option<IdempotencyRecord<()>>,
}

/// A candidate that is written with its event.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCandidate {
    /// The executor that proposed it, even if it is remembered.
    pub proposer: String,
    pub candidate: Candidate,
    /// The digest of the output.
    pub digest: String,
    /// The round that produced it.
    pub round_id: Option<RoundId>,
}

/// An earlier decision that can be tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorDecision {
    /// `knowledge:<task>#<epoch>`.
    pub source: String,
    pub candidate: Candidate,
    /// The executors that proposed it for the earlier decision.
    pub proposers: Vec<String>,
}

/// A ballot that stays hidden until the reveal.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretBallot {
    pub candidate: String,
    pub turn: u32,
    pub voter: String,
    pub ballot: Ballot,
    pub salt: String,
    /// The round in which it was cast.
    pub round_id: Option<RoundId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskWriteOutcome {
    Written,
    /// The task changed meanwhile, or the decision to reuse was disputed, and nothing was written.
    Stale,
    /// It was written before under the same idempotency record.
    Repeated,
}

/// Due tasks.
#[derive(Debug, Clone)]
pub struct DueTasks {
    pub taken: TakenTasks,
    /// When the next task is due that was not taken, if known.
    pub next: Option<Timestamp>,
}

//! Where tasks are kept: the store, or the one of the simulation.

use std::future::Future;

use jurat_core::{
    id::RoundId,
    round::candidate::{ArtifactRef, Candidate},
    task::{Ballot, Task, TaskEvent, VoterReliability},
    time::Timestamp,
};
use jurat_store::{IdempotencyRecord, TakenTasks, TaskTake};

use crate::tasks::{TaskKey, TaskSnapshot};

/// Where tasks are kept. Each method is one transaction.
pub trait TaskStorePort: Send + Sync {
    fn load(
        &self,
        key: &TaskKey,
    ) -> impl Future<Output = Result<Option<TaskSnapshot>, TaskPortError>> + Send;

    /// Writes events and what came with them, if the task has as many as the writer knew of.
    ///
    /// After an error nobody knows whether it was written.
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

    /// What all candidates of a task refer to whose output has this digest. Equal outputs are one
    /// candidate, and each who made it may refer to something else.
    fn references(
        &self,
        key: &TaskKey,
        digest: &str,
    ) -> impl Future<Output = Result<Vec<ArtifactRef>, TaskPortError>> + Send;

    /// The sealed ballots on a candidate in one turn of its verification.
    fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> impl Future<Output = Result<Vec<SecretBallot>, TaskPortError>> + Send;

    /// What was decided before for the same inputs, schema and policy, the newest first.
    fn prior_decisions(
        &self,
        key: &TaskKey,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Vec<PriorDecision>, TaskPortError>> + Send;

    /// Takes tasks that are due and moves them to a later time, so that nobody else looks at them
    /// before.
    fn take_due(
        &self,
        take: TaskTake,
    ) -> impl Future<Output = Result<DueTasks, TaskPortError>> + Send;
}

/// The desk did not answer, or not as it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TaskPortError(pub String);

/// What is to be written in one transaction.
#[derive(Debug, Clone)]
pub struct TaskWrite {
    pub key: TaskKey,
    /// The task as the writer knew it.
    pub before: Box<TaskSnapshot>,
    pub at: Timestamp,
    pub events: Vec<TaskEvent>,
    /// The task that they make.
    pub task: Task,
    /// When somebody must look at it, should the writer be gone; never, when it is over.
    pub due_at: Option<Timestamp>,
    pub candidate: Option<NewCandidate>,
    pub ballot: Option<SecretBallot>,
    /// How often each voter is right, as far as that is known.
    pub weigher: VoterReliability,
    /// What is kept for a caller who asks for the same again.
    pub idempotency: Option<IdempotencyRecord>,
}

/// A candidate that comes with its event.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCandidate {
    /// The executor that made it, also where it is remembered.
    pub proposer: String,
    pub candidate: Candidate,
    /// Of the output.
    pub digest: String,
    /// The round in which it was made.
    pub round_id: Option<RoundId>,
}

/// A decision that can be tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorDecision {
    /// `knowledge:<task>#<epoch>`.
    pub source: String,
    pub candidate: Candidate,
    /// Who proposed it then.
    pub proposers: Vec<String>,
}

/// A ballot that nobody may see before votes are revealed.
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
    /// Others wrote meanwhile, or complained of what was to be taken over, and nothing was written.
    Stale,
    /// The same was written before under the same note.
    Repeated,
}

/// Tasks that are due.
#[derive(Debug, Clone)]
pub struct DueTasks {
    pub taken: TakenTasks,
    /// When the next one is due of those that were not taken, where that is known.
    pub next: Option<Timestamp>,
}

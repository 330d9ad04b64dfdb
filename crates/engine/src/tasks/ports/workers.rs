//! Who does the work of a task: executors, or those of the simulation.

use std::{future::Future, time::Duration};

use jurat_core::{
    id::RoundId,
    round::candidate::Candidate,
    task::{Ballot, VoterReliability},
};

use crate::tasks::{TaskKey, TaskPortError, TaskSnapshot, TaskWorker};

/// Who does the work. A call that fails is no verdict: it says why, and that is all.
pub trait WorkerPort: Send + Sync {
    /// Why nothing more may be done for a task, if so: it is then cancelled for this reason.
    fn objection(
        &self,
        _task: &TaskKey,
        _filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Option<String>, TaskPortError>> + Send {
        std::future::ready(Ok(None))
    }

    /// How often each of the panel is right, as far as that is known. Nobody is asked for it.
    fn weights(
        &self,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<VoterReliability, TaskPortError>> + Send;

    /// All of the panel, as they are now. They may be asked how they are, which takes its time, so
    /// this is for when there is work to give out. An error says nothing about them.
    fn workers(
        &self,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Vec<TaskWorker>, TaskPortError>> + Send;

    /// Lets an executor propose.
    fn propose(
        &self,
        order: ProposeOrder,
    ) -> impl Future<Output = Result<ProposerAnswer, WorkerFailure>> + Send;

    /// Lets an executor, or this node, verify.
    fn vote(
        &self,
        order: VoteOrder,
    ) -> impl Future<Output = Result<VoterAnswer, WorkerFailure>> + Send;
}

/// What somebody is to propose.
#[derive(Debug, Clone)]
pub struct ProposeOrder {
    pub key: TaskKey,
    pub snapshot: TaskSnapshot,
    pub executor: String,
    /// The same for the same work, so that an executor that is asked again does it once.
    pub execution_id: String,
    pub within: Duration,
}

/// What somebody is to verify.
#[derive(Debug, Clone)]
pub struct VoteOrder {
    pub key: TaskKey,
    pub snapshot: TaskSnapshot,
    pub voter: String,
    pub execution_id: String,
    pub candidate: Candidate,
    pub within: Duration,
}

/// What an executor proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposerAnswer {
    pub candidate: Candidate,
    /// The round in which it was made.
    pub round_id: Option<RoundId>,
}

/// Why nothing came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerFailure {
    /// A word: that of a failure, or that of an error.
    pub code: String,
    pub detail: String,
    /// Whether this node failed, and not who was asked.
    pub is_ours: bool,
}

/// What a verifier said.
#[derive(Debug, Clone, PartialEq)]
pub struct VoterAnswer {
    pub ballot: Ballot,
    /// Digests of the evidence that was found.
    pub available: Vec<String>,
    pub round_id: Option<RoundId>,
}

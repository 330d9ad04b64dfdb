//! The port to the workers of a task, which the simulation replaces.

use std::{future::Future, time::Duration};

use jurat_core::{
    id::RoundId,
    round::candidate::Candidate,
    task::{Ballot, TaskKey, VoterReliability},
};

use crate::{
    TaskCallFailure,
    tasks::{TaskPortError, TaskSnapshot, TaskWorker},
};

/// The workers. A failed call is not a verdict: it only carries its reason.
pub trait WorkerPort: Send + Sync {
    /// Why a task may not continue, if so: it is then cancelled for this reason.
    fn objection(
        &self,
        _task: &TaskKey,
        _filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Option<String>, TaskPortError>> + Send {
        std::future::ready(Ok(None))
    }

    /// How often each worker is right, as far as that is known. No executor is asked.
    fn weights(
        &self,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<VoterReliability, TaskPortError>> + Send;

    /// All workers on the roster in their current state. They may be probed, which takes time, so
    /// this is called only if there is work. An error says nothing about them.
    fn workers(
        &self,
        filed: &TaskSnapshot,
    ) -> impl Future<Output = Result<Vec<TaskWorker>, TaskPortError>> + Send;

    /// Lets an executor propose.
    fn propose(
        &self,
        order: ProposeOrder,
    ) -> impl Future<Output = Result<ProposerAnswer, WorkerFailure>> + Send;

    /// Lets an executor, or this node, vote.
    fn vote(
        &self,
        order: VoteOrder,
    ) -> impl Future<Output = Result<VoterAnswer, WorkerFailure>> + Send;
}

/// An order to propose.
#[derive(Debug, Clone)]
pub struct ProposeOrder {
    pub key: TaskKey,
    pub snapshot: TaskSnapshot,
    pub executor: String,
    /// Equal for the same work, so that an executor that is asked again does it once.
    pub execution_id: String,
    pub within: Duration,
}

/// An order to vote.
#[derive(Debug, Clone)]
pub struct VoteOrder {
    pub key: TaskKey,
    pub snapshot: TaskSnapshot,
    pub voter: String,
    pub execution_id: String,
    pub candidate: Candidate,
    pub within: Duration,
}

/// The proposal of an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct ProposerAnswer {
    pub candidate: Candidate,
    /// The round that produced it.
    pub round_id: Option<RoundId>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerFailure {
    pub code: TaskCallFailure,
    pub detail: String,
}

/// The answer of a voter.
#[derive(Debug, Clone, PartialEq)]
pub struct VoterAnswer {
    pub ballot: Ballot,
    /// Digests of the evidence that was found.
    pub available: Vec<String>,
    pub round_id: Option<RoundId>,
}

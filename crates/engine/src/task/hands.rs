//! Who does the work of a task: executors, or those of the simulation.

use std::{future::Future, time::Duration};

use jurat_core::{
    candidate::Candidate,
    id::RoundId,
    task::{Ballot, Weigher},
};

use super::{DeskError, Filed, TaskKey, Worker};

/// Who does the work. A call that fails is no verdict: it says why, and that is all.
pub trait Hands: Send + Sync {
    /// Why nothing more may be done for a task, if so: it is then cancelled for this reason.
    fn objection(
        &self,
        _task: &TaskKey,
        _filed: &Filed,
    ) -> impl Future<Output = Result<Option<String>, DeskError>> + Send {
        std::future::ready(Ok(None))
    }

    /// How often each of the panel is right, as far as that is known. Nobody is asked for it.
    fn weights(&self, filed: &Filed) -> impl Future<Output = Result<Weigher, DeskError>> + Send;

    /// All of the panel, as they are now. They may be asked how they are, which takes its time, so
    /// this is for when there is work to give out. An error says nothing about them.
    fn workers(&self, filed: &Filed)
    -> impl Future<Output = Result<Vec<Worker>, DeskError>> + Send;

    /// Lets an executor propose.
    fn propose(&self, order: ProposeOrder) -> impl Future<Output = Result<Made, Failure>> + Send;

    /// Lets an executor, or this node, verify.
    fn verify(&self, order: VerifyOrder) -> impl Future<Output = Result<Verdict, Failure>> + Send;
}

/// What somebody is to propose.
#[derive(Debug, Clone)]
pub struct ProposeOrder {
    pub key: TaskKey,
    pub filed: Filed,
    pub executor: String,
    /// The same for the same work, so that an executor that is asked again does it once.
    pub execution_id: String,
    pub within: Duration,
}

/// What somebody is to verify.
#[derive(Debug, Clone)]
pub struct VerifyOrder {
    pub key: TaskKey,
    pub filed: Filed,
    pub verifier: String,
    pub execution_id: String,
    pub candidate: Candidate,
    pub within: Duration,
}

/// What an executor proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    pub candidate: Candidate,
    /// The round in which it was made.
    pub round_id: Option<RoundId>,
}

/// Why nothing came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A word: that of a failure, or that of an error.
    pub code: String,
    pub detail: String,
    /// Whether this node failed, and not who was asked.
    pub is_ours: bool,
}

/// What a verifier said.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub ballot: Ballot,
    /// Digests of the evidence that was found.
    pub available: Vec<String>,
    pub round_id: Option<RoundId>,
}

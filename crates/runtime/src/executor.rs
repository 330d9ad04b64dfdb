//! What an executor is to its author: one trait.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use jurat_core::executor::Capabilities;
use jurat_core::policy::{Evaluation, PolicyBinding};
use jurat_core::round::candidate::{Candidate, Evidence};

/// A job to do: the body of `POST /execute`.
pub use jurat_wire::executor::ExecuteRequest as Execute;
/// What the executor is told besides its work, and what it may decide: `POST /agent-events`.
pub use jurat_wire::executor::{AgentDecision, AgentEvent};

#[async_trait]
pub trait ExecutorService: Send + Sync + 'static {
    /// What `GET /capabilities` says. Jobs of other task types and profiles are refused with it.
    fn capabilities(&self) -> Capabilities;

    /// Does the job. The runtime calls this once per `execution_id` and remembers the answer.
    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError>;

    /// Judges what only a judge can decide: `vp.claim.v1`, or a policy of the executor's own that
    /// its capabilities name. The runtime has already checked the binding and the schema.
    async fn judge(&self, request: &JudgeRequest) -> Result<Evaluation, ExecutorError> {
        let policy = &request.policy.policy_id;
        Err(ExecutorError::NotSupported(format!("this executor does not judge `{policy}`")))
    }

    /// Has the last word on a verdict that the runtime computed; by default it stands.
    ///
    /// An executor may be stricter than the policy. A pass that the policy does not give is found
    /// by the kernel, which evaluates the same policy itself.
    async fn review(
        &self,
        request: &JudgeRequest,
        evaluation: Evaluation,
    ) -> Result<Evaluation, ExecutorError> {
        let _ = request;
        Ok(evaluation)
    }

    /// Hears of an event, and may decide about it; by default it is only taken.
    ///
    /// The runtime calls this once per `dedupe_key`, as long as it remembers, and answers the same
    /// again.
    async fn on_event(&self, event: &AgentEvent) -> Result<Option<AgentDecision>, ExecutorError> {
        let _ = event;
        Ok(None)
    }
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Must satisfy `task_contract.output_schema`.
    pub output: Value,
    pub evidence: Evidence,
}

/// A candidate to judge: the body of `POST /verify`.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeRequest {
    pub candidate: Arc<Candidate>,
    pub output_schema: Value,
    pub policy: PolicyBinding,
}

/// Why there is no answer. None of these is a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutorError {
    /// Answered with 422; of a policy it makes the kernel say that more must be specified.
    #[error("{0}")]
    NotSupported(String),
    /// The request makes no sense to this executor. Answered with 422.
    #[error("{problem}")]
    Refused { field: String, problem: String },
    /// There is too much to do. Answered with 503.
    #[error("too many concurrent requests; try again in a second")]
    Overloaded,
    /// Something else that the executor needs did not answer properly. Answered with 502.
    #[error("{0}")]
    Upstream(String),
    /// Answered with 504.
    #[error("no answer within the time limit")]
    Timeout,
    /// Answered with 500.
    #[error("{0}")]
    Failed(String),
}

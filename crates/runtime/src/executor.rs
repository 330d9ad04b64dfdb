//! The trait that the author of an executor implements.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use jurat_core::executor::Capabilities;
use jurat_core::policy::{Evaluation, PolicyBinding};
use jurat_core::round::candidate::{Candidate, Evidence};

/// A job to do: the body of `POST /execute`.
pub use jurat_wire::executor::ExecuteRequest as Execute;
/// Events for the executor besides its work, and its possible decisions: `POST /agent-events`.
pub use jurat_wire::executor::{AgentDecision, AgentEvent};

/// A program or a model that does jobs and judges candidates.
#[async_trait]
pub trait ExecutorService: Send + Sync + 'static {
    /// The reply of `GET /capabilities`. The runtime refuses jobs of other task types and profiles.
    fn capabilities(&self) -> Capabilities;

    /// Does the job. The runtime calls this once per `execution_id` and caches the answer.
    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError>;

    /// Judges a candidate that only a judge can decide: under `vp.claim.v1`, or under a policy of
    /// the executor's own that its capabilities name. The runtime has already checked the binding
    /// and the schema.
    async fn judge(&self, request: &JudgeRequest) -> Result<Evaluation, ExecutorError> {
        let policy = &request.policy.policy_id;
        Err(ExecutorError::NotSupported(format!("this executor does not judge `{policy}`")))
    }

    /// Reviews a verdict that the runtime computed; by default the verdict is kept.
    ///
    /// An executor may be stricter than the policy. The kernel evaluates the same policy itself and
    /// detects a pass that the policy does not give.
    async fn review(
        &self,
        request: &JudgeRequest,
        evaluation: Evaluation,
    ) -> Result<Evaluation, ExecutorError> {
        let _ = request;
        Ok(evaluation)
    }

    /// Handles an agent event, and may decide about it; by default the event is only accepted.
    ///
    /// The runtime calls this once per `dedupe_key`, as long as its cache holds the answer, and
    /// repeats the answer after that.
    async fn on_event(&self, event: &AgentEvent) -> Result<Option<AgentDecision>, ExecutorError> {
        let _ = event;
        Ok(None)
    }
}

/// The result of a job.
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
    /// Answered with 422; for a policy, the kernel reports that more must be specified.
    #[error("{0}")]
    NotSupported(String),
    /// The request is invalid for this executor. Answered with 422.
    #[error("{problem}")]
    Refused { field: String, problem: String },
    /// Too much work is in progress. Answered with 503.
    #[error("too many concurrent requests; try again in a second")]
    Overloaded,
    /// A service that the executor needs failed. Answered with 502.
    #[error("{0}")]
    Upstream(String),
    /// Answered with 504.
    #[error("no answer within the time limit")]
    Timeout,
    /// Answered with 500.
    #[error("{0}")]
    Failed(String),
}

//! Checks one candidate under a policy, in a span of its own.

use std::sync::Arc;

use jurat_core::{
    id::AccountId,
    policy::{Evaluation, Policy},
    round::candidate::Candidate,
    schema::Schema,
};
use jurat_guard::sandbox::SandboxError;

use crate::{Engine, trace};

impl Engine {
    /// Evaluates a candidate within the work limits, and counts the verdict.
    pub(crate) async fn check_candidate(
        &self,
        account: &AccountId,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Result<Evaluation, SandboxError> {
        let bounded = self.inner.bounded.of(account);
        let checking = bounded.try_evaluate(Arc::clone(&policy), candidate, schema);
        let evaluation = trace::trace_check(&policy, checking).await?;
        self.inner.metrics.verdict(&policy, &evaluation);
        Ok(evaluation)
    }
}

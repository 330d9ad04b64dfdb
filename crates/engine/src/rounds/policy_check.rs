//! One check of a candidate under a policy, in the sight of those who watch.

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
    /// Decides a candidate within the bounds on work, and counts the verdict.
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

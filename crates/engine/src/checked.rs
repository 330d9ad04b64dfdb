//! One check of a candidate under a policy, in the sight of those who watch.

use std::sync::Arc;

use jurat_core::{
    candidate::Candidate,
    id::AccountId,
    policy::{Evaluation, Policy},
    schema::Schema,
};
use jurat_guard::bounded::NotDone;

use crate::{Engine, trace};

impl Engine {
    /// Decides a candidate within the bounds on work, and counts the verdict.
    pub(crate) async fn checked(
        &self,
        account: &AccountId,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Result<Evaluation, NotDone> {
        let bounded = self.inner.bounded.of(account);
        let checking = bounded.try_evaluate(Arc::clone(&policy), candidate, schema);
        let evaluation = trace::checked(&policy, checking).await?;
        self.inner.metrics.verdict(&policy, &evaluation);
        Ok(evaluation)
    }
}

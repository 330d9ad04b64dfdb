//! Revokes verifiers, which keeps their runs, and deletes them, which keeps nothing.

use jurat_core::{
    account::caller::{Caller, Scope},
    verifier::{Verifier, VerifierRef, VerifierSelector},
};
use jurat_store::{Behalf, VerifierRemoval, VerifierRemoveRefusal, WriteOutcome};

use super::{require_unpinned, unknown_verifier};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

impl Engine {
    /// Deactivates a verifier permanently; its name stays taken and its runs stay readable.
    pub async fn verifier_revoke(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        keyed: Option<IdempotentWrite<Verifier>>,
    ) -> Result<IdempotentOutcome<Verifier>, EngineError> {
        require_scope(caller, Scope::VerifiersWrite)?;
        require_unpinned(reference)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.result_record(caller, keyed);
        let removal = self.removal_of(caller, reference);
        match self
            .inner
            .store
            .verifiers()
            .revoke(&Behalf::from(&removal.account), &removal, once.as_ref())
            .await?
        {
            WriteOutcome::Done(verifier) => {
                tracing::info!(verifier.id = %verifier.id, by = %caller.key().id, "revoked a verifier");
                Ok(IdempotentOutcome::Now(verifier))
            }
            WriteOutcome::Refused(
                VerifierRemoveRefusal::Unknown | VerifierRemoveRefusal::Serving(_),
            ) => Err(unknown_verifier(reference)),
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
        }
    }

    /// Erases a verifier with its versions, measurements and runs, even if it was revoked. It must
    /// be named by id, so that nobody erases the wrong one by a reused name.
    pub async fn verifier_delete(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        keyed: Option<IdempotentWrite<Verifier>>,
    ) -> Result<IdempotentOutcome<Verifier>, EngineError> {
        require_scope(caller, Scope::VerifiersWrite)?;
        require_unpinned(reference)?;
        if let VerifierSelector::Name(_) | VerifierSelector::Of { .. } = reference.which {
            let reason = "must be the id of the verifier: a name is not enough to delete one";
            return Err(EngineError::invalid("verifier_id", reason));
        }
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.result_record(caller, keyed);
        let removal = self.removal_of(caller, reference);
        match self
            .inner
            .store
            .verifiers()
            .delete(&Behalf::Platform, &removal, once.as_ref())
            .await?
        {
            WriteOutcome::Done(verifier) => {
                tracing::info!(verifier.id = %verifier.id, by = %caller.key().id, "deleted a verifier");
                Ok(IdempotentOutcome::Now(verifier))
            }
            WriteOutcome::Refused(VerifierRemoveRefusal::Unknown) => {
                Err(unknown_verifier(reference))
            }
            WriteOutcome::Refused(VerifierRemoveRefusal::Serving(templates)) => {
                Err(EngineError::Conflict(format!(
                    "the verifier is part of published templates: {}; unpublish those versions first",
                    templates.join(", ")
                )))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
        }
    }

    fn removal_of(&self, caller: &Caller, reference: &VerifierRef) -> VerifierRemoval {
        VerifierRemoval {
            account: caller.account().clone(),
            which: reference.which.clone(),
            at: self.inner.clock.now(),
        }
    }
}

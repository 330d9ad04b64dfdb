//! Revoking, which keeps the runs, and deleting, which keeps nothing.

use std::sync::Arc;

use jurat_core::{
    caller::{Caller, Scope},
    verifier::{Verifier, VerifierRef, Which},
};
use jurat_store::{Once, OnceAnswer, Removal, VerifierGone};

use super::{unknown, whole};
use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require};

impl Engine {
    /// Deactivates a verifier for ever; its name stays taken and its runs can be read.
    pub async fn verifier_revoke(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        keyed: Option<Keyed<Verifier>>,
    ) -> Result<Done<Verifier>, EngineError> {
        require(caller, Scope::VerifiersWrite)?;
        whole(reference)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            return Ok(Done::Before(answer));
        }
        let once = self.removal_note(caller, keyed);
        let removal = self.removal_of(caller, reference);
        match self.inner.store.verifier_revoke(&removal, once.as_ref()).await? {
            VerifierGone::Gone(verifier) => {
                tracing::info!(verifier.id = %verifier.id, by = %caller.key().id, "revoked a verifier");
                Ok(Done::Now(*verifier))
            }
            VerifierGone::Unknown | VerifierGone::Serving(_) => Err(unknown(reference)),
            VerifierGone::Repeated => self.answered_meanwhile(caller, keyed).await,
        }
    }

    /// Erases a verifier with its versions, measurements and runs, also one that was revoked. Only
    /// an id can mean it, so that nobody erases the wrong one by a name that moved.
    pub async fn verifier_delete(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        keyed: Option<Keyed<Verifier>>,
    ) -> Result<Done<Verifier>, EngineError> {
        require(caller, Scope::VerifiersWrite)?;
        whole(reference)?;
        if let Which::Name(_) | Which::Of { .. } = reference.which {
            let reason = "must be the id of the verifier: a name is not enough to delete one";
            return Err(EngineError::Invalid { field: "verifier_id", reason: reason.to_owned() });
        }
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            return Ok(Done::Before(answer));
        }
        let once = self.removal_note(caller, keyed);
        let removal = self.removal_of(caller, reference);
        match self.inner.store.verifier_delete(&removal, once.as_ref()).await? {
            VerifierGone::Gone(verifier) => {
                tracing::info!(verifier.id = %verifier.id, by = %caller.key().id, "deleted a verifier");
                Ok(Done::Now(*verifier))
            }
            VerifierGone::Unknown => Err(unknown(reference)),
            VerifierGone::Serving(templates) => Err(EngineError::Conflict(format!(
                "the verifier is part of published templates: {}; unpublish those versions first",
                templates.join(", ")
            ))),
            VerifierGone::Repeated => self.answered_meanwhile(caller, keyed).await,
        }
    }

    fn removal_of(&self, caller: &Caller, reference: &VerifierRef) -> Removal {
        Removal {
            account: caller.account().clone(),
            which: reference.which.clone(),
            at: self.inner.clock.now(),
        }
    }

    fn removal_note(&self, caller: &Caller, keyed: Option<&Keyed<Verifier>>) -> Option<Once> {
        self.note_for(caller, keyed, |saving| {
            OnceAnswer::OfVerifier(Arc::new(move |verifier| saving.of(verifier)))
        })
    }
}

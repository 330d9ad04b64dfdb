//! Reads verifier runs.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::AccountId,
    round::Round,
    verifier::{
        SYSTEM_PREFIX, VerifierRef, VerifierSelector,
        registry::Measurement,
        run::{VerifierRun, VerifierRunFilter},
        system::{self, SystemVerifier},
    },
    workflow::VerifierRole,
};
use jurat_store::{Behalf, VersionKey};

use crate::{Engine, EngineError, access::require_scope};

/// A run with its round, which holds the judges.
#[derive(Debug, Clone)]
pub struct VerifierRunRecord {
    pub run: VerifierRun,
    pub round: Round,
    pub measured: Vec<Measurement>,
}

impl Engine {
    pub async fn verifier_run_get(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<VerifierRunRecord, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let (store, account) = (&self.inner.store, caller.account());
        let run = store.verifier_runs().get(&Behalf::from(account), account, id).await?;
        let run = run.ok_or_else(|| {
            let id = id.chars().take(80).collect();
            EngineError::NotFound { what: "run", id }
        })?;
        let round = self.round_of(account, &run.round).await?;
        let ticket = &run.ticket;
        let owner = self.owner_of(caller, &ticket.verifier_id).await?;
        let measured = store
            .measurements()
            .list(
                &Behalf::from(&owner),
                &VersionKey {
                    account: owner.clone(),
                    verifier_id: ticket.verifier_id.clone(),
                    version: ticket.version,
                },
            )
            .await?;
        Ok(VerifierRunRecord { run, round, measured })
    }

    /// The account's runs, newest first, of a verifier or of all. An id finds the runs of a verifier
    /// even if it was revoked.
    pub async fn verifier_run_list(
        &self,
        caller: &Caller,
        verifier: Option<&VerifierRef>,
        filter: VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let verifier_id = match verifier {
            None => None,
            Some(reference) => Some(self.id_of(caller, reference).await?),
        };
        self.verifier_runs_page(caller, &VerifierRunFilter { verifier_id, ..filter }).await
    }

    /// The account's runs of a verifier that it can run, newest first.
    pub async fn verifier_runs(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        filter: VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let version = self.verifier_resolve(caller, reference).await?;
        let verifier_id = Some(version.verifier.id);
        self.verifier_runs_page(caller, &VerifierRunFilter { verifier_id, ..filter }).await
    }

    async fn verifier_runs_page(
        &self,
        caller: &Caller,
        filter: &VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        let (runs, account) = (self.inner.store.verifier_runs(), caller.account());
        Ok(runs.list(&Behalf::from(account), account, filter).await?)
    }

    /// The owner of a verifier that the caller ran: the caller itself if the verifier is no longer
    /// reachable.
    async fn owner_of(&self, caller: &Caller, id: &str) -> Result<AccountId, EngineError> {
        let reference = VerifierRef { which: VerifierSelector::Id(id.to_owned()), version: None };
        match self.verifier_reached(caller, &reference, VerifierRole::Exec).await {
            Ok(version) => Ok(version.verifier.account),
            Err(EngineError::NotFound { .. }) => Ok(caller.account().clone()),
            Err(error) => Err(error),
        }
    }

    /// The id in the rows of runs; only a name must be looked up.
    async fn id_of(&self, caller: &Caller, reference: &VerifierRef) -> Result<String, EngineError> {
        Ok(match &reference.which {
            VerifierSelector::Id(id) => id.clone(),
            VerifierSelector::System(name) => {
                let known = system::find(name).map(SystemVerifier::id);
                known.unwrap_or_else(|| format!("{SYSTEM_PREFIX}{name}"))
            }
            VerifierSelector::Name(_) | VerifierSelector::Of { .. } => {
                let current = VerifierRef { version: None, ..reference.clone() };
                self.verifier_resolve(caller, &current).await?.verifier.id
            }
        })
    }
}

//! Reads verifier runs.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::AccountId,
    round::Round,
    time::Timestamp,
    verifier::{
        SYSTEM_PREFIX, VerifierRef, VerifierSelector,
        registry::Measurement,
        run::{VerifierRun, VerifierRunPurpose, VerifierRunVerdict},
        system::{self, SystemVerifier},
    },
    workflow::VerifierRole,
};
use jurat_store::{Behalf, VerifierRunFilter, VersionKey};

use crate::{Engine, EngineError, access::require_scope};

/// Selects runs.
#[derive(Debug, Clone, Default)]
pub struct VerifierRunQuery {
    pub verifier: Option<VerifierRef>,
    pub verdict: Option<VerifierRunVerdict>,
    pub version: Option<u32>,
    pub purpose: Option<VerifierRunPurpose>,
    /// Started at this time or later.
    pub since: Option<Timestamp>,
    /// Started before this time.
    pub until: Option<Timestamp>,
    /// Starts after this run, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

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

    /// The account's runs, newest first. An id finds the runs of a verifier even if it was revoked.
    pub async fn verifier_run_list(
        &self,
        caller: &Caller,
        query: VerifierRunQuery,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let verifier_id = match &query.verifier {
            None => None,
            Some(reference) => Some(self.id_of(caller, reference).await?),
        };
        self.verifier_runs_of(caller, verifier_id, query).await
    }

    /// The account's runs of a verifier that it can run, newest first.
    pub async fn verifier_runs(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        query: VerifierRunQuery,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let version = self.verifier_resolve(caller, reference).await?;
        self.verifier_runs_of(caller, Some(version.verifier.id), query).await
    }

    async fn verifier_runs_of(
        &self,
        caller: &Caller,
        verifier_id: Option<String>,
        query: VerifierRunQuery,
    ) -> Result<Vec<VerifierRun>, EngineError> {
        let filter = VerifierRunFilter {
            verifier_id,
            version: query.version,
            verdict: query.verdict,
            purpose: query.purpose,
            since: query.since,
            until: query.until,
            limit: query.limit,
            before: query.before,
        };
        Ok(self
            .inner
            .store
            .verifier_runs()
            .list(&Behalf::from(caller.account()), caller.account(), &filter)
            .await?)
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

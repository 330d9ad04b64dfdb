//! Operations on verifiers. They belong to an account, which may share them through workflows; an
//! unreachable verifier does not exist for a caller.

mod default_judge;
mod deploy;
mod measure;
mod removal;
mod run;
mod runs;

use jurat_core::{
    account::caller::{Caller, Scope},
    verifier::{
        Verifier, VerifierRef, VerifierSelector, VerifierVersion,
        registry::{Measurement, ReachedVerifier, VersionSummary},
        system,
    },
    workflow::VerifierRole,
};
use jurat_store::{
    Behalf, NameMatch, PublishedVerifierLookup, VerifierLookup, VerifierQuery, VersionKey,
    VersionQuery,
};

pub use self::{
    measure::{
        CaseProgress, CaseWatcher, ExpectedCase, MeasureData, MeasureReport, MeasureRequest,
        MeasuredCase, VersionComparison,
    },
    run::{VerifierRunHandle, VerifierRunOrder, VerifierRunView},
    runs::VerifierRunRecord,
};
use crate::{
    Engine, EngineError,
    access::{behalf_of, require_scope},
};

/// A version with its latest measurement of each purpose.
#[derive(Debug, Clone)]
pub struct VerifierView {
    pub version: VerifierVersion,
    pub measured: Vec<Measurement>,
}

/// A page of the list of verifiers.
#[derive(Debug, Clone)]
pub struct VerifierListQuery {
    /// Starts after this name and id.
    pub after: Option<(String, String)>,
    pub limit: u32,
}

/// The versions of a verifier, newest first.
#[derive(Debug, Clone)]
pub struct VerifierVersionList {
    pub verifier: Verifier,
    pub versions: Vec<VersionSummary>,
}

impl Engine {
    /// The active verifiers that the caller can reach, by name.
    pub async fn verifier_list(
        &self,
        caller: &Caller,
        page: &VerifierListQuery,
    ) -> Result<Vec<ReachedVerifier>, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let query = VerifierQuery {
            caller: caller.account().clone(),
            after: page.after.clone(),
            limit: page.limit,
        };
        Ok(self.inner.store.verifiers().list(&behalf_of(caller), &query).await?)
    }

    /// A version in full: the pinned one, or the current one.
    pub async fn verifier_get(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierView, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        let version = self.verifier_reached(caller, reference, VerifierRole::Tune).await?;
        let (account, id) = (&version.verifier.account, &version.verifier.id);
        let measured = self
            .inner
            .store
            .measurements()
            .list(
                &Behalf::from(account),
                &VersionKey {
                    account: account.clone(),
                    verifier_id: id.to_owned(),
                    version: version.version,
                },
            )
            .await?;
        Ok(VerifierView { version, measured })
    }

    /// The versions of a verifier, newest first; `before` starts after a version.
    pub async fn verifier_versions(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        before: Option<u32>,
        limit: u32,
    ) -> Result<VerifierVersionList, EngineError> {
        require_scope(caller, Scope::VerifiersRead)?;
        require_unpinned(reference)?;
        let found = self.verifier_reached(caller, reference, VerifierRole::Tune).await?;
        let verifier = found.verifier;
        let query = VersionQuery {
            caller: caller.account().clone(),
            verifier_id: verifier.id.clone(),
            before,
            limit,
        };
        let versions = self.inner.store.verifiers().versions(&behalf_of(caller), &query).await?;
        Ok(VerifierVersionList { verifier, versions })
    }

    /// The version that a run or a policy names: of a built-in verifier, or of one that the caller
    /// may run. Everything unreachable gives the same error.
    pub(crate) async fn verifier_resolve(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        if let Some(version) = self.system_version(reference) {
            return Ok(version);
        }
        match self.verifier_reached(caller, reference, VerifierRole::Exec).await {
            Err(EngineError::NotFound { .. }) => self.verifier_published(caller, reference).await,
            other => other,
        }
    }

    /// A version that a live template was published with: everybody may run exactly that version.
    async fn verifier_published(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        let VerifierSelector::Id(id) = &reference.which else {
            return Err(unknown_verifier(reference));
        };
        let behalf = Behalf::Account(caller.account().clone());
        let templates = self.inner.store.templates();
        let pair = PublishedVerifierLookup { verifier: id.clone(), version: reference.version };
        let found = templates.published_verifier(&behalf, &pair).await?;
        found.ok_or_else(|| unknown_verifier(reference))
    }

    fn system_version(&self, reference: &VerifierRef) -> Option<VerifierVersion> {
        let VerifierSelector::System(name) = &reference.which else { return None };
        let is_there = reference.version.is_none_or(|version| version == system::VERSION);
        let known = system::find(name).filter(|_| is_there)?;
        Some(known.version(self.judge_of_platform()))
    }

    /// A version of a verifier on which the caller has this role. Absent, revoked, foreign and
    /// system verifiers are looked up by the same query. Using a shared verifier accepts it.
    pub(crate) async fn verifier_reached(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        needs: VerifierRole,
    ) -> Result<VerifierVersion, EngineError> {
        let VerifierRef { which, version } = reference.clone();
        let asked = VerifierLookup { caller: caller.account().clone(), which, version, needs };
        match self.inner.store.verifiers().get(&behalf_of(caller), &asked).await? {
            NameMatch::One(reached) => {
                if let Some(shared) = &reached.shared {
                    let owner = &reached.version.verifier.account;
                    self.share_used(caller, owner, &shared.workflow, &shared.by).await?;
                }
                Ok(reached.version)
            }
            NameMatch::Nothing => Err(unknown_verifier(reference)),
            NameMatch::Elsewhere(names) => {
                let id = reference.to_string();
                Err(EngineError::named_elsewhere("verifier", id, names))
            }
        }
    }
}

/// Refuses a pinned version if the operation concerns the whole verifier.
fn require_unpinned(reference: &VerifierRef) -> Result<(), EngineError> {
    match reference.version {
        None => Ok(()),
        Some(version) => Err(EngineError::invalid(
            "verifier_id",
            format!("must name the whole verifier; leave `@{version}` out"),
        )),
    }
}

fn unknown_verifier(reference: &VerifierRef) -> EngineError {
    EngineError::NotFound { what: "verifier", id: reference.to_string() }
}

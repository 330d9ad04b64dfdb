//! Operations on verifiers. They belong to an account; what it cannot reach does not exist for it.

mod deploy;
mod judged_by;
mod measure;
mod removal;
mod run;
mod runs;

use jurat_core::{
    caller::{Caller, Scope},
    verifier::{Verifier, VerifierRef, VerifierVersion, Which, system},
};
use jurat_store::{Behalf, Measurement, Page, VersionSummary};

pub use self::{
    measure::{
        CaseDone, CaseWatcher, Compared, Data, Labelled, MeasureReport, MeasureRequest,
        MeasuredCase,
    },
    run::{RunRequest, RunView},
    runs::{RunQuery, RunRecord},
};
use crate::{Engine, EngineError, executors::require};

/// A version with what was found when it was measured, the newest of each purpose.
#[derive(Debug, Clone)]
pub struct VerifierView {
    pub version: VerifierVersion,
    pub measured: Vec<Measurement>,
}

/// The versions of a verifier, newest first.
#[derive(Debug, Clone)]
pub struct VersionList {
    pub verifier: Verifier,
    pub versions: Vec<VersionSummary>,
}

impl Engine {
    /// The account's active verifiers by name.
    pub async fn verifier_list(
        &self,
        caller: &Caller,
        page: &Page,
    ) -> Result<Vec<Verifier>, EngineError> {
        require(caller, Scope::VerifiersRead)?;
        Ok(self.inner.store.verifier_list(caller.account(), page).await?)
    }

    /// A version in full: the one that is pinned, or the current one.
    pub async fn verifier_get(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierView, EngineError> {
        require(caller, Scope::VerifiersRead)?;
        let version = self.verifier_owned(caller, reference).await?;
        let (account, id) = (caller.account(), &version.verifier.id);
        let measured = self.inner.store.measurements(account, id, version.version).await?;
        Ok(VerifierView { version, measured })
    }

    /// The versions of a verifier, newest first; `before` starts behind a version.
    pub async fn verifier_versions(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
        before: Option<u32>,
        limit: u32,
    ) -> Result<VersionList, EngineError> {
        require(caller, Scope::VerifiersRead)?;
        whole(reference)?;
        let verifier = self.verifier_owned(caller, reference).await?.verifier;
        let store = &self.inner.store;
        let versions =
            store.verifier_versions(caller.account(), &verifier.id, before, limit).await?;
        Ok(VersionList { verifier, versions })
    }

    /// The version that a run or a policy means: of a verifier that comes with the program, or of
    /// one of the account. All that cannot be reached is missing in the same words.
    pub(crate) async fn verifier_resolve(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        if let Some(version) = self.system_version(reference) {
            return Ok(version);
        }
        match self.verifier_owned(caller, reference).await {
            Err(EngineError::NotFound { .. }) => self.verifier_published(caller, reference).await,
            other => other,
        }
    }

    /// A version that a live template was published with: everybody may run exactly that.
    async fn verifier_published(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        let Which::Id(id) = &reference.which else { return Err(unknown(reference)) };
        let behalf = Behalf::Account(caller.account().clone());
        let sharing = self.inner.store.sharing();
        let found = sharing.published_verifier(&behalf, id, &reference.version).await?;
        found.ok_or_else(|| unknown(reference))
    }

    fn system_version(&self, reference: &VerifierRef) -> Option<VerifierVersion> {
        let Which::System(name) = &reference.which else { return None };
        let is_there = reference.version.is_none_or(|version| version == system::VERSION);
        let known = system::find(name).filter(|_| is_there)?;
        Some(known.version(self.judge_of_platform()))
    }

    /// A version of the account's own. Absent, revoked, foreign and system verifiers are looked for
    /// by the same query.
    async fn verifier_owned(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        let VerifierRef { which, version } = reference;
        let found = self.inner.store.verifier_get(caller.account(), which, *version).await?;
        found.ok_or_else(|| unknown(reference))
    }
}

/// Refuses a pinned version where only the whole verifier can be meant.
fn whole(reference: &VerifierRef) -> Result<(), EngineError> {
    match reference.version {
        None => Ok(()),
        Some(version) => Err(EngineError::Invalid {
            field: "verifier_id",
            reason: format!("means the whole verifier here; leave `@{version}` out"),
        }),
    }
}

fn unknown(reference: &VerifierRef) -> EngineError {
    EngineError::NotFound { what: "verifier", id: reference.to_string() }
}

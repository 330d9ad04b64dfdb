//! Measures a version of a verifier: on examples with known labels, or on known injections.

mod cases;
mod parallel;
mod report;

use jurat_core::{
    account::caller::{Caller, Scope},
    canonical::{canonical, digest},
    verifier::{
        ModelRef, VerifierRef, VerifierSelector, VerifierVersion,
        registry::Measurement,
        run::{Provenance, VerifierRunPurpose},
    },
    workflow::VerifierRole,
};
use jurat_store::Behalf;
use tokio::sync::mpsc;

use self::parallel::WatchedCases;
pub use self::{
    cases::{ExpectedCase, MeasureData},
    report::{MeasureReport, MeasuredCase, VersionComparison},
};
use super::run::VerifierRunOrder;
use crate::{Engine, EngineError, RoundWatcher, access::require_scope};

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct MeasureRequest {
    pub reference: VerifierRef,
    pub data: MeasureData,
    pub judges: Vec<ModelRef>,
    /// 1, 3 or 5 judges for each case.
    pub replicas: u8,
    /// Whether the verdict cache is skipped.
    pub is_fresh: bool,
    /// Whether the previous version is measured on the same cases, if it was not.
    pub compare: bool,
    /// The timeout of each case.
    pub timeout_ms: u64,
}

impl MeasureRequest {
    /// Whether only the judge of the version decides.
    fn has_no_judges(&self) -> bool {
        self.judges.is_empty() && self.replicas == 1
    }
}

/// Receives each judged case.
pub type CaseWatcher = mpsc::UnboundedSender<CaseProgress>;

#[derive(Debug, Clone)]
pub struct CaseProgress {
    pub index: usize,
    pub total: usize,
    pub case: MeasuredCase,
}

impl Engine {
    /// Lets the judges of a version decide cases with known answers, and stores the result. Every
    /// case is a run, and costs as much as a run.
    pub async fn verifier_measure(
        &self,
        caller: &Caller,
        request: MeasureRequest,
        watcher: Option<CaseWatcher>,
    ) -> Result<MeasureReport, EngineError> {
        require_scope(caller, Scope::VerifiersRun)?;
        let version = self.measurable(caller, &request.reference).await?;
        let cases = self.cases(&version, &request.data).await?;
        let before = match request.data.purpose() {
            VerifierRunPurpose::Attack => None,
            VerifierRunPurpose::Test | VerifierRunPurpose::Run => {
                self.measured_before(caller, &version, &request, &cases).await?
            }
        };
        let watched = WatchedCases { cases: &cases, watcher };
        let report = self.judge_cases(caller, &version, &request, watched).await?;
        let report = report.compared_with(before);
        self.store_measurement(&version, &report).await?;
        Ok(report)
    }

    /// A version that the caller may tune. Built-in verifiers are private, and a measurement would
    /// reveal them.
    async fn measurable(
        &self,
        caller: &Caller,
        reference: &VerifierRef,
    ) -> Result<VerifierVersion, EngineError> {
        self.verifier_reached(caller, reference, VerifierRole::Tune).await
    }

    async fn judge_case(
        &self,
        caller: &Caller,
        version: &VerifierVersion,
        request: &MeasureRequest,
        case: &ExpectedCase,
    ) -> Result<MeasuredCase, EngineError> {
        let pinned = VerifierRef {
            which: VerifierSelector::Id(version.verifier.id.clone()),
            version: Some(version.version),
        };
        let run = VerifierRunOrder {
            reference: pinned,
            inputs: case.inputs.clone(),
            media_url: case.media_url.clone(),
            replicas: request.replicas,
            judges: request.judges.clone(),
            is_fresh: request.is_fresh,
            commit_first: None,
            timeout_ms: request.timeout_ms,
            provenance: Provenance::default(),
            request_digest: digest(&canonical(&case.document())),
            notes: serde_json::Map::new(),
            purpose: request.data.purpose(),
            leave_out: case.shown_as(version),
        };
        let view = self.verifier_run(caller, run, RoundWatcher::nobody(), None).await?;
        Ok(MeasuredCase::new(case, &view))
    }

    async fn store_measurement(
        &self,
        version: &VerifierVersion,
        report: &MeasureReport,
    ) -> Result<(), EngineError> {
        let measurement = Measurement {
            id: report.id.clone(),
            verifier_id: report.verifier_id.clone(),
            version: report.version,
            purpose: report.purpose,
            data_digest: report.data_digest.clone(),
            document: report.summary(),
            cases: report.cases_document(),
            at: report.at,
        };
        // It belongs to the verifier, whoever measured it.
        Ok(self
            .inner
            .store
            .measurements()
            .add(&Behalf::from(&version.verifier.account), &version.verifier.account, &measurement)
            .await?)
    }
}

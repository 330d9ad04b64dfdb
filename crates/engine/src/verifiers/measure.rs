//! Measures a version of a verifier: on examples whose label is known, or on known injections.

mod cases;
mod parallel;
mod report;

use jurat_core::{
    account::caller::{Caller, Scope},
    canonical::{canonical, digest},
    verifier::{
        ModelRef, VerifierRef, VerifierSelector, VerifierVersion,
        run::{Provenance, VerifierRunPurpose},
    },
    workflow::VerifierRole,
};
use jurat_store::Measurement;
use tokio::sync::mpsc;

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
    /// Whether verdicts that are known from before do not count.
    pub is_fresh: bool,
    /// Whether the version before is measured on the same cases, if it was not.
    pub compare: bool,
    /// Of each case.
    pub timeout_ms: u64,
}

impl MeasureRequest {
    /// Whether the judge of the version decides, and it alone.
    fn has_no_judges(&self) -> bool {
        self.judges.is_empty() && self.replicas == 1
    }
}

/// Told of each case that is judged.
pub type CaseWatcher = mpsc::UnboundedSender<CaseProgress>;

#[derive(Debug, Clone)]
pub struct CaseProgress {
    pub index: usize,
    pub total: usize,
    pub case: MeasuredCase,
}

impl Engine {
    /// Lets the judges of a version decide cases whose answer is known, and keeps what was found.
    /// Every case is a run, and costs what a run costs.
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
        let report = self.judge_cases(caller, &version, &request, (&cases, watcher)).await?;
        let report = report.compared_with(before);
        self.store_measurement(&version, &report).await?;
        Ok(report)
    }

    /// A version that the caller may tune. Those that come with the program are never shown, and a
    /// measurement would show them.
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
        Ok(self.inner.store.measurement_add(&version.verifier.account, &measurement).await?)
    }
}

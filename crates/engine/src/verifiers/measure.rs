//! Measures a version of a verifier: on examples whose label is known, or on known injections.

mod at_once;
mod cases;
mod report;

use jurat_core::{
    caller::{Caller, Scope},
    canonical::{canonical, digest},
    run::{Provenance, Purpose},
    verifier::{ModelRef, VerifierRef, VerifierVersion, Which},
    workflow::VerifierRole,
};
use jurat_store::Measurement;
use tokio::sync::mpsc;

pub use self::{
    cases::{Data, Labelled},
    report::{Compared, MeasureReport, MeasuredCase},
};
use super::run::RunRequest;
use crate::{Engine, EngineError, Watcher, executors::require};

/// What is measured, and how.
#[derive(Debug, Clone)]
pub struct MeasureRequest {
    pub reference: VerifierRef,
    pub data: Data,
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
pub type CaseWatcher = mpsc::UnboundedSender<CaseDone>;

#[derive(Debug, Clone)]
pub struct CaseDone {
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
        require(caller, Scope::VerifiersRun)?;
        let version = self.measurable(caller, &request.reference).await?;
        let cases = self.cases(&version, &request.data).await?;
        let before = match request.data.purpose() {
            Purpose::Attack => None,
            Purpose::Test | Purpose::Run => {
                self.measured_before(caller, &version, &request, &cases).await?
            }
        };
        let report = self.judge_cases(caller, &version, &request, (&cases, watcher)).await?;
        let report = report.compared_with(before);
        self.keep(&version, &report).await?;
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
        case: &Labelled,
    ) -> Result<MeasuredCase, EngineError> {
        let pinned = VerifierRef {
            which: Which::Id(version.verifier.id.clone()),
            version: Some(version.version),
        };
        let run = RunRequest {
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
        let view = self.verifier_run(caller, run, Watcher::nobody(), None).await?;
        Ok(MeasuredCase::new(case, &view))
    }

    async fn keep(
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

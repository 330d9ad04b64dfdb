//! Screens a workflow before it is published: judges of the platform look at what readers would
//! run, at the caller's cost.

use std::collections::BTreeMap;

use jurat_core::{
    account::caller::Caller,
    canonical::sha256_hex,
    code::ProblemCode,
    verifier::{
        VerifierRef, VerifierSelector,
        run::{Provenance, VerifierRunPurpose},
    },
    workflow::{
        ContentKind, WorkflowRef,
        authoring::{ScreeningText, screening_text},
        operation::WorkflowView,
        template::{DesignChecks, SafetyStatus, TemplateRef, TemplateSafety, TemplateVersion},
    },
};
use jurat_store::{Behalf, PublishableWorkflow, TemplateFileLookup};

use crate::{Engine, EngineError, RefusalContext, RoundWatcher, VerifierRunOrder, access};

/// The timeout of one screening judge.
const TIMEOUT_MS: u64 = 60_000;
const BLOCK: &str = "safety-block";
const ADVISORY: &str = "safety-advisory";
const DESIGN: &str = "workflow-design-qa";

/// The result of a screening judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenResult {
    pub verifier_id: String,
    pub verifier_version: u32,
    pub run_id: String,
    pub verdict: ScreenVerdict,
    pub reasoning: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenVerdict {
    Passed,
    Failed,
    /// No judge could decide.
    Error,
}

/// The screening result of a workflow or a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafetyReport {
    /// `workflow` or `template`.
    pub what: &'static str,
    pub id: String,
    pub version: u32,
    pub status: SafetyStatus,
    pub block: ScreenResult,
    pub advisory: ScreenResult,
    /// The parts that were too long to be shown in full.
    pub cut: Vec<String>,
}

/// The version that a report is about.
struct ScreenedVersion {
    what: &'static str,
    id: String,
    version: u32,
}

impl Engine {
    /// Screens a version of a template; anybody may ask, and pays for it.
    pub async fn template_check_safety(
        &self,
        caller: &Caller,
        wanted: &TemplateRef,
    ) -> Result<SafetyReport, EngineError> {
        let found = self.template_get(Some(caller), wanted).await?.found;
        let seen = self.screened_template(caller, &found).await?;
        let (id, version) = (found.template.id.clone(), found.release.version);
        let of = ScreenedVersion { what: "template", id, version };
        self.check_safety(caller, of, &seen).await
    }

    /// Screens a version of a workflow that the caller can see.
    pub async fn workflow_check_safety(
        &self,
        caller: &Caller,
        wanted: &WorkflowRef,
    ) -> Result<SafetyReport, EngineError> {
        let WorkflowView { reached, version } = self.workflow_get(caller, wanted).await?;
        let mut parts = vec![
            ("name".to_owned(), version.name.clone()),
            ("description".to_owned(), version.description.clone()),
            ("outcome".to_owned(), version.outcome.clone()),
            ("body".to_owned(), version.body.clone()),
        ];
        let texts = version.files.iter().filter(|file| file.kind == ContentKind::Text);
        let paths: Vec<String> = texts.map(|file| file.path.clone()).collect();
        if !paths.is_empty() {
            let pinned = WorkflowRef { version: Some(version.version), ..wanted.clone() };
            for file in self.workflow_files_found(caller, &pinned, paths).await? {
                let text = String::from_utf8_lossy(&file.content).into_owned();
                parts.push((file.entry.path, text));
            }
        }
        let (id, version) = (reached.workflow.id, version.version);
        let of = ScreenedVersion { what: "workflow", id, version };
        self.check_safety(caller, of, &screened_parts(&parts)).await
    }

    async fn check_safety(
        &self,
        caller: &Caller,
        of: ScreenedVersion,
        seen: &ScreeningText,
    ) -> Result<SafetyReport, EngineError> {
        let from = Provenance::default();
        let block = self.screen_run(caller, BLOCK, content(seen), &from).await?;
        let advisory = self.screen_run(caller, ADVISORY, content(seen), &from).await?;
        let status = match (block.verdict, advisory.verdict) {
            (ScreenVerdict::Failed, _) => SafetyStatus::Blocked,
            (ScreenVerdict::Error, _) | (_, ScreenVerdict::Error) => SafetyStatus::Error,
            (ScreenVerdict::Passed, ScreenVerdict::Failed) => SafetyStatus::Flagged,
            (ScreenVerdict::Passed, ScreenVerdict::Passed) => SafetyStatus::Clean,
        };
        let cut = seen.cut.clone();
        let ScreenedVersion { what, id, version } = of;
        Ok(SafetyReport { what, id, version, status, block, advisory, cut })
    }

    /// The conditions for publishing. If a judge cannot decide, it is not published.
    pub(super) async fn screen(
        &self,
        caller: &Caller,
        seen: &ScreeningText,
        from: &Provenance,
    ) -> Result<TemplateSafety, EngineError> {
        if !seen.cut.is_empty() {
            let cut = seen.cut.join(", ");
            let reason = format!("is too long to be screened completely; shorten these: {cut}");
            return Err(EngineError::invalid("workflow_id", reason));
        }
        let block = self.screen_run(caller, BLOCK, content(seen), from).await?;
        let said = block.reasoning.unwrap_or_default();
        match block.verdict {
            ScreenVerdict::Passed => {}
            ScreenVerdict::Failed => {
                let detail = format!("the template is not published: {said}");
                let context = RefusalContext::Judgment { reasoning: said, run_id: block.run_id };
                return Err(EngineError::refused(ProblemCode::SafetyVerificationFailed, detail)
                    .with(context));
            }
            ScreenVerdict::Error => return Err(screen_unavailable(&said)),
        }
        let advisory = self.screen_run(caller, ADVISORY, content(seen), from).await?;
        let status = match advisory.verdict {
            ScreenVerdict::Passed => SafetyStatus::Clean,
            ScreenVerdict::Failed => SafetyStatus::Flagged,
            ScreenVerdict::Error => {
                let said = advisory.reasoning.unwrap_or_default();
                return Err(screen_unavailable(&said));
            }
        };
        let (advisory_run_id, advisory_reasoning) = (Some(advisory.run_id), advisory.reasoning);
        Ok(TemplateSafety { status, advisory_run_id, advisory_reasoning })
    }

    /// The judge's view of the design. Without a judge it is not checked, which does not prevent
    /// publishing.
    pub(super) async fn check_design(
        &self,
        caller: &Caller,
        workflow: &PublishableWorkflow,
        from: &Provenance,
    ) -> Result<DesignChecks, EngineError> {
        if self.judges_config().default_model.is_none() {
            return Ok(DesignChecks::not_checked("the installation has no default judge."));
        }
        // A field cannot be empty, and the judge must see that a part is absent.
        let given =
            |text: &str| if text.trim().is_empty() { "(none)".to_owned() } else { text.to_owned() };
        let inputs = BTreeMap::from([
            ("name".to_owned(), given(&workflow.name)),
            ("description".to_owned(), given(&workflow.description)),
            ("outcome".to_owned(), given(&workflow.outcome)),
            ("body".to_owned(), given(&workflow.body)),
        ]);
        let run = self.screen_run(caller, DESIGN, inputs, from).await?;
        let said = run.reasoning.unwrap_or_default();
        Ok(match run.verdict {
            ScreenVerdict::Passed => DesignChecks::judged(true, &said),
            ScreenVerdict::Failed => DesignChecks::judged(false, &said),
            ScreenVerdict::Error => DesignChecks::not_checked("the judge could not decide."),
        })
    }

    async fn screen_run(
        &self,
        caller: &Caller,
        name: &str,
        inputs: BTreeMap<String, String>,
        provenance: &Provenance,
    ) -> Result<ScreenResult, EngineError> {
        let digest = sha256_hex(format!("{name} {inputs:?}").as_bytes());
        let request = VerifierRunOrder {
            reference: VerifierRef {
                which: VerifierSelector::System(name.to_owned()),
                version: None,
            },
            inputs,
            media_url: None,
            replicas: 1,
            judges: Vec::new(),
            is_fresh: false,
            commit_first: None,
            timeout_ms: TIMEOUT_MS,
            provenance: provenance.clone(),
            request_digest: format!("sha256:{digest}"),
            notes: serde_json::Map::new(),
            purpose: VerifierRunPurpose::Run,
            leave_out: None,
        };
        let view = self.verifier_run(caller, request, RoundWatcher::nobody(), None).await?;
        let end = view.run.end.ok_or(EngineError::Bug("a run of the screen has no end"))?;
        let (verdict, reasoning) = match end.verdict {
            Ok(true) => (ScreenVerdict::Passed, end.reasoning),
            Ok(false) => (ScreenVerdict::Failed, end.reasoning),
            Err((_, message)) => (ScreenVerdict::Error, Some(message)),
        };
        let ticket = view.run.ticket;
        Ok(ScreenResult {
            verifier_id: ticket.verifier_id,
            verifier_version: ticket.version,
            run_id: ticket.id,
            verdict,
            reasoning,
        })
    }

    /// Everything that a reader of a version would run.
    async fn screened_template(
        &self,
        caller: &Caller,
        found: &TemplateVersion,
    ) -> Result<ScreeningText, EngineError> {
        let summary = &found.summary;
        let mut parts = vec![
            ("name".to_owned(), summary.name.clone()),
            ("description".to_owned(), summary.description.clone()),
            ("outcome".to_owned(), summary.outcome.clone()),
            ("body".to_owned(), found.content.body.clone()),
        ];
        for snapshot in &found.content.snapshots {
            let name = format!("criterion of {}", snapshot.name);
            parts.push((name, snapshot.config.criterion.clone()));
        }
        let viewer = access::viewer(Some(caller));
        let templates = self.inner.store.templates();
        let behalf = Behalf::Account(caller.account().clone());
        for file in found.files.iter().filter(|file| file.content_kind == "text") {
            let asked = TemplateFileLookup {
                template: found.template.id.clone(),
                version: found.release.version,
                path: file.path.clone(),
                viewer: viewer.clone(),
            };
            if let Some((_, bytes)) = templates.file(&behalf, &asked).await? {
                parts.push((file.path.clone(), String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        Ok(screened_parts(&parts))
    }
}

/// Everything that a reader of a workflow would run.
pub(crate) fn screened_workflow(
    workflow: &PublishableWorkflow,
    criteria: &[(String, String)],
) -> ScreeningText {
    let mut parts = vec![
        ("name".to_owned(), workflow.name.clone()),
        ("description".to_owned(), workflow.description.clone()),
        ("outcome".to_owned(), workflow.outcome.clone()),
        ("body".to_owned(), workflow.body.clone()),
    ];
    let criteria =
        criteria.iter().map(|(name, text)| (format!("criterion of {name}"), text.clone()));
    parts.extend(criteria);
    for it in workflow.files.iter().filter(|it| it.file.content_kind == "text") {
        let text = String::from_utf8_lossy(&it.content).into_owned();
        parts.push((it.file.path.clone(), text));
    }
    screened_parts(&parts)
}

fn screened_parts(parts: &[(String, String)]) -> ScreeningText {
    let parts: Vec<(String, &str)> =
        parts.iter().map(|(name, text)| (name.clone(), text.as_str())).collect();
    screening_text(&parts)
}

fn content(seen: &ScreeningText) -> BTreeMap<String, String> {
    BTreeMap::from([("content".to_owned(), seen.content.clone())])
}

fn screen_unavailable(reasoning: &str) -> EngineError {
    EngineError::refused(
        ProblemCode::SafetyVerificationUnavailable,
        format!("the safety of the template could not be judged: {reasoning}"),
    )
}

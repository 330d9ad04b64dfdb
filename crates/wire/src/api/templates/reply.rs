//! Templates as replies and lists show them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    account::team::Invitation,
    time::Timestamp,
    workflow::template::{
        DesignChecks, Template, TemplateFile, TemplateLine, TemplateSafety, TemplateVersion,
        banner, run_guidance,
    },
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::{
    kit::{time::Time, words},
    verifiers::SnapshotBody,
};

/// A template in a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct TemplateSummary<'a> {
    id: &'a str,
    slug: &'a str,
    name: &'a str,
    /// The current handle of its owner.
    handle: &'a str,
    /// The account that owns it.
    owner_user_id: &'a str,
    /// The newest version that the caller can see.
    latest_version: u32,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
    /// The handle under which the latest version was published.
    publishing_handle: &'a str,
    safety_verification_status: words::SafetyStatus,
    design_checks: DesignChecksBody<'a>,
    published_at: Time,
    #[schema(required = true)]
    archived_at: Option<Time>,
}

/// A judge's assessment of the design.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesignChecks)]
struct DesignChecksBody<'a> {
    outcome: words::CheckState,
    runnable: words::CheckState,
    well_formed: words::CheckState,
    criteria: Vec<CriterionBody<'a>>,
    #[schema(required = true)]
    guidance: Option<&'a str>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesignCheckCriterion)]
struct CriterionBody<'a> {
    criterion: &'a str,
    passed: bool,
    reason: &'a str,
}

/// Result of the safety screen before publication.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateSafety)]
struct SafetyBody<'a> {
    status: words::SafetyStatus,
    #[schema(required = true)]
    advisory_run_id: Option<&'a str>,
    #[schema(required = true)]
    advisory_reasoning: Option<&'a str>,
}

/// One version of a template in full.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Template)]
pub struct TemplateBody<'a> {
    id: &'a str,
    slug: &'a str,
    name: &'a str,
    /// The current handle of its owner.
    handle: &'a str,
    owner_user_id: &'a str,
    version: u32,
    /// Markdown; for anyone but the owner it begins with a warning.
    body: String,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
    #[schema(required = true)]
    release_notes: Option<&'a str>,
    /// The handle under which the latest version was published.
    publishing_handle: &'a str,
    safety_verification_status: words::SafetyStatus,
    safety_verification: SafetyBody<'a>,
    design_checks: DesignChecksBody<'a>,
    published_at: Time,
    #[schema(required = true)]
    unpublished_at: Option<Time>,
    #[schema(required = true)]
    archived_at: Option<Time>,
    #[schema(required = true)]
    deprecated_at: Option<Time>,
    #[schema(required = true)]
    deprecation_message: Option<&'a str>,
    /// The verifiers as published with the version.
    verifier_snapshots: Vec<SnapshotBody<'a>>,
    /// Always empty: there are no image generators.
    #[schema(value_type = Vec<String>)]
    image_generator_snapshots: [&'a str; 0],
    files: Vec<TemplateFileBody<'a>>,
    /// How to run its checks; null if it has none.
    #[schema(required = true)]
    run_guidance: Option<String>,
}

/// A file of a version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateFile)]
pub struct TemplateFileBody<'a> {
    path: &'a str,
    sha256: &'a str,
    size_bytes: u64,
    executable: bool,
    /// `text` or `binary`.
    content_kind: &'a str,
    purpose: &'a str,
    /// Whether it is small enough to be read through an MCP tool.
    fetchable_over_mcp: bool,
}

/// A file of a version with its content, as text or base64.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateFileContent)]
pub struct TemplateFileEnvelope<'a> {
    path: &'a str,
    sha256: &'a str,
    size_bytes: u64,
    executable: bool,
    content_kind: &'a str,
    purpose: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    content_base64: Option<String>,
}

/// What tools of models are given at the most.
pub const MOST_OVER_MCP: u64 = 256 * 1024;

pub fn envelope<'a>(file: &'a TemplateFile, content: &'a [u8]) -> TemplateFileEnvelope<'a> {
    let text = Some(file).filter(|file| file.content_kind == "text");
    let text = text.and_then(|_| std::str::from_utf8(content).ok());
    TemplateFileEnvelope {
        path: &file.path,
        sha256: &file.sha256,
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: &file.content_kind,
        purpose: &file.purpose,
        content_base64: text.is_none().then(|| STANDARD.encode(content)),
        content: text,
    }
}

pub fn body_of(file: &TemplateFile) -> TemplateFileBody<'_> {
    TemplateFileBody {
        path: &file.path,
        sha256: &file.sha256,
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: &file.content_kind,
        purpose: &file.purpose,
        fetchable_over_mcp: file.size_bytes <= MOST_OVER_MCP,
    }
}

fn checks(design: &DesignChecks) -> DesignChecksBody<'_> {
    DesignChecksBody {
        outcome: words::CheckState(design.outcome),
        runnable: words::CheckState(design.runnable),
        well_formed: words::CheckState(design.well_formed),
        criteria: design
            .criteria
            .iter()
            .map(|it| CriterionBody {
                criterion: &it.criterion,
                passed: it.passed,
                reason: &it.reason,
            })
            .collect(),
        guidance: design.guidance.as_deref(),
    }
}

fn safety(it: &TemplateSafety) -> SafetyBody<'_> {
    SafetyBody {
        status: words::SafetyStatus(it.status),
        advisory_run_id: it.advisory_run_id.as_deref(),
        advisory_reasoning: it.advisory_reasoning.as_deref(),
    }
}

pub fn listed(line: &TemplateLine) -> TemplateSummary<'_> {
    let TemplateLine { template, release, summary } = line;
    TemplateSummary {
        id: &template.id,
        slug: &template.slug,
        name: &summary.name,
        handle: &template.handle,
        owner_user_id: template.account.as_str(),
        latest_version: release.version,
        description: &summary.description,
        outcome: &summary.outcome,
        tags: &summary.tags,
        publishing_handle: &template.publishing_handle,
        safety_verification_status: words::SafetyStatus(summary.safety.status),
        design_checks: checks(&summary.design),
        published_at: Time(release.published_at),
        archived_at: template.archived_at.map(Time),
    }
}

/// The body as it is read: with a warning before it for those who did not write it.
pub fn markdown(found: &TemplateVersion, is_owner: bool) -> String {
    let body = &found.content.body;
    if is_owner {
        return body.clone();
    }
    let guidance = run_guidance(found).map(|text| {
        let quoted: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
        format!(">\n{}\n", quoted.join("\n"))
    });
    format!("{}{}\n{body}", banner(found), guidance.unwrap_or_default())
}

pub fn shown(found: &TemplateVersion, is_owner: bool) -> TemplateBody<'_> {
    let TemplateVersion { template, release, summary, content, files, .. } = found;
    let snapshot = |it| SnapshotBody::of(it, found.is_revoked(it));
    TemplateBody {
        id: &template.id,
        slug: &template.slug,
        name: &summary.name,
        handle: &template.handle,
        owner_user_id: template.account.as_str(),
        version: release.version,
        body: markdown(found, is_owner),
        description: &summary.description,
        outcome: &summary.outcome,
        tags: &summary.tags,
        release_notes: content.release_notes.as_deref(),
        publishing_handle: &template.publishing_handle,
        safety_verification_status: words::SafetyStatus(summary.safety.status),
        safety_verification: safety(&summary.safety),
        design_checks: checks(&summary.design),
        published_at: Time(release.published_at),
        unpublished_at: release.unpublished_at.map(Time),
        archived_at: template.archived_at.map(Time),
        deprecated_at: release.deprecated_at.map(Time),
        deprecation_message: release.deprecation_message.as_deref(),
        verifier_snapshots: content.snapshots.iter().map(snapshot).collect(),
        image_generator_snapshots: [],
        files: files.iter().map(body_of).collect(),
        run_guidance: run_guidance(found),
    }
}

/// A published version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PublishedTemplate)]
pub struct PublishedTemplateBody<'a> {
    template_id: &'a str,
    version: u32,
    publishing_handle: &'a str,
    slug: &'a str,
    safety_verification: SafetyBody<'a>,
    design_checks: DesignChecksBody<'a>,
    /// Notes for the author.
    authoring_notes: &'a [String],
    /// What is now public; null if the version has no verifiers.
    #[schema(required = true)]
    verifier_exposure_notice: Option<String>,
}

pub fn published<'a>(
    (template_id, slug, publishing_handle): (&'a str, &'a str, &'a str),
    version: u32,
    (found, design): (&'a TemplateSafety, &'a DesignChecks),
    (notes, exposed): (&'a [String], &'a [String]),
) -> PublishedTemplateBody<'a> {
    let notice = || {
        format!(
            "Anyone can now read the criterion, examples and judge of these verifiers, and run exactly the published versions: {}. Unpublish the version to end this.",
            exposed.join(", ")
        )
    };
    PublishedTemplateBody {
        template_id,
        version,
        publishing_handle,
        slug,
        safety_verification: safety(found),
        design_checks: checks(design),
        authoring_notes: notes,
        verifier_exposure_notice: (!exposed.is_empty()).then(notice),
    }
}

/// Search results.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateSearch)]
pub struct TemplateSearchBody<'a> {
    items: Vec<TemplateHitBody<'a>>,
    query: &'a str,
    limit: usize,
    /// Search method: `lexical` compares words.
    search_mode: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TemplateHit)]
struct TemplateHitBody<'a> {
    id: &'a str,
    /// Rank, from 1 for the best match.
    rank: usize,
    match_reason: &'a str,
    slug: &'a str,
    name: &'a str,
    handle: &'a str,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
}

pub fn searched<'a>(
    query: &'a str,
    limit: usize,
    found: &'a [(TemplateLine, String)],
) -> TemplateSearchBody<'a> {
    let items = (1..).zip(found).map(|(rank, (line, reason))| TemplateHitBody {
        id: &line.template.id,
        rank,
        match_reason: reason,
        slug: &line.template.slug,
        name: &line.summary.name,
        handle: &line.template.handle,
        description: &line.summary.description,
        outcome: &line.summary.outcome,
        tags: &line.summary.tags,
    });
    TemplateSearchBody { items: items.collect(), query, limit, search_mode: "lexical" }
}

/// A template offered to another owner, or already owned by the caller.
#[derive(Debug, Serialize, ToSchema)]
pub struct OfferedTemplate<'a> {
    template_id: &'a str,
    /// The invitation to accept; left out if the caller already owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    invitation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::InvitationKind)]
    kind: Option<words::InvitationKind>,
    /// The template.
    target_id: &'a str,
    target_label: String,
    /// When the offer expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    expires_at: Option<Time>,
    /// The current owner.
    owner_user_id: &'a str,
    /// Ownership changes when the offer is accepted.
    transferred: bool,
}

pub fn offered(invitation: &Invitation) -> OfferedTemplate<'_> {
    OfferedTemplate {
        template_id: &invitation.target_id,
        invitation_id: Some(&invitation.id),
        kind: Some(words::InvitationKind(invitation.kind)),
        target_id: &invitation.target_id,
        target_label: invitation.target_label.clone(),
        expires_at: Some(Time(invitation.expires_at)),
        owner_user_id: invitation.from.as_str(),
        transferred: false,
    }
}

pub fn already_owned(template: &Template) -> OfferedTemplate<'_> {
    OfferedTemplate {
        template_id: &template.id,
        invitation_id: None,
        kind: None,
        target_id: &template.id,
        target_label: format!("@{}/{}", template.handle, template.slug),
        expires_at: None,
        owner_user_id: template.account.as_str(),
        transferred: false,
    }
}

/// A workflow forked from a template.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForkedTemplate<'a> {
    /// The workflow; `skill_id` and `id` are aliases.
    workflow_id: &'a str,
    skill_id: &'a str,
    id: &'a str,
    slug: &'a str,
    name: &'a str,
    parent_template_id: &'a str,
    parent_template_version: u32,
    /// Required to save the next version.
    version_token: &'a str,
    /// Whether the template was found under an old name.
    redirected: bool,
    #[schema(required = true)]
    redirected_from_handle: Option<&'a str>,
    #[schema(required = true)]
    redirected_to_handle: Option<&'a str>,
    #[schema(required = true)]
    deprecation_warning: Option<&'a str>,
    /// The caller's own verifiers, created from the snapshots.
    verifiers: Vec<ForkedVerifierBody<'a>>,
    next_step: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ForkedVerifier)]
struct ForkedVerifierBody<'a> {
    name: &'a str,
    verifier_id: &'a str,
    /// Always null: it is not pinned.
    #[schema(required = true)]
    version: Option<u32>,
}

pub fn forked<'a>(
    (workflow_id, slug, name): (&'a str, &'a str, &'a str),
    (parent_template_id, parent_template_version): (&'a str, u32),
    version_token: &'a str,
    verifiers: &'a [(String, String)],
    (moved, deprecation_warning): (Option<(&'a str, &'a str)>, Option<&'a str>),
) -> ForkedTemplate<'a> {
    let verifiers = verifiers.iter().map(|(name, verifier_id)| ForkedVerifierBody {
        name,
        verifier_id,
        version: None,
    });
    ForkedTemplate {
        workflow_id,
        skill_id: workflow_id,
        id: workflow_id,
        slug,
        name,
        parent_template_id,
        parent_template_version,
        version_token,
        redirected: moved.is_some(),
        redirected_from_handle: moved.map(|(from, _)| from),
        redirected_to_handle: moved.map(|(_, to)| to),
        deprecation_warning,
        verifiers: verifiers.collect(),
        next_step: "Read the workflow; it names your own verifiers instead of the template's. Measure them with `jurat verifiers test` before you rely on them.",
    }
}

/// An unpublished version.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnpublishedVersion<'a> {
    pub template_id: &'a str,
    pub version: u32,
    pub unpublished: bool,
}

/// A deleted version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeletedTemplateVersion)]
pub struct DeletedVersion<'a> {
    template_id: &'a str,
    version: u32,
    deleted: bool,
}

pub fn deleted_version(template_id: &str, version: u32) -> DeletedVersion<'_> {
    DeletedVersion { template_id, version, deleted: true }
}

/// A deprecated version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeprecatedTemplateVersion)]
pub struct DeprecatedVersion<'a> {
    template_id: &'a str,
    version: u32,
    deprecated_at: Time,
    #[schema(required = true)]
    deprecation_message: Option<&'a str>,
}

pub fn deprecated<'a>(
    template_id: &'a str,
    version: u32,
    at: Timestamp,
    message: Option<&'a str>,
) -> DeprecatedVersion<'a> {
    DeprecatedVersion {
        template_id,
        version,
        deprecated_at: Time(at),
        deprecation_message: message,
    }
}

/// An archived template.
#[derive(Debug, Serialize, ToSchema)]
pub struct ArchivedTemplate<'a> {
    pub template_id: &'a str,
    pub archived: bool,
}

/// An unarchived template.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnarchivedTemplate<'a> {
    pub template_id: &'a str,
    pub archived: bool,
}

/// A deleted template.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedTemplate<'a> {
    pub template_id: &'a str,
    pub slug: &'a str,
    pub deleted: bool,
}

/// What the screen found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SafetyCheck)]
pub struct SafetyCheckBody<'a> {
    /// `workflow` or `template`.
    pub resource_type: &'a str,
    pub resource_id: &'a str,
    pub resource_version: u32,
    pub status: words::SafetyStatus,
    pub block: ScreenRunBody<'a>,
    pub advisory: ScreenRunBody<'a>,
    /// Whether some content was too long to be screened completely.
    pub truncated: bool,
    pub truncated_fields: &'a [String],
}

/// The verdict of one screening judge.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScreenRun)]
pub struct ScreenRunBody<'a> {
    verifier_id: &'a str,
    verifier_version: u32,
    verifier_run_id: &'a str,
    /// `passed`, `failed`, or `error` if there is no verdict.
    verdict: &'static str,
    #[schema(required = true)]
    reasoning: Option<&'a str>,
}

pub fn screen_run_body<'a>(
    (verifier_id, verifier_version): (&'a str, u32),
    verifier_run_id: &'a str,
    passed: Option<bool>,
    reasoning: Option<&'a str>,
) -> ScreenRunBody<'a> {
    let verdict = match passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "error",
    };
    ScreenRunBody { verifier_id, verifier_version, verifier_run_id, verdict, reasoning }
}

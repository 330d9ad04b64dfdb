//! Templates as replies and lists show them.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    account::team::Invitation,
    time::Timestamp,
    workflow::template::{
        DesignChecks, Template, TemplateFile, TemplateLine, TemplateSafety, TemplateVersion,
        banner, run_guidance,
    },
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::{
    kit::{time::Time, words},
    verifiers::SnapshotBody,
};

/// A template in a list.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct TemplateSummary<'a> {
    pub id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The current handle of its owner.
    pub handle: Cow<'a, str>,
    /// The account that owns it.
    pub owner_user_id: Cow<'a, str>,
    /// The newest version that the caller can see.
    pub latest_version: u32,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
    /// The handle under which the latest version was published.
    pub publishing_handle: Cow<'a, str>,
    pub safety_verification_status: words::SafetyStatus,
    pub design_checks: DesignChecksBody<'a>,
    pub published_at: Time,
    #[schema(required = true)]
    pub archived_at: Option<Time>,
}

/// A judge's assessment of the design.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DesignChecks)]
pub struct DesignChecksBody<'a> {
    pub outcome: words::CheckState,
    pub runnable: words::CheckState,
    pub well_formed: words::CheckState,
    pub criteria: Vec<CriterionBody<'a>>,
    #[schema(required = true)]
    pub guidance: Option<Cow<'a, str>>,
}

/// One criterion of the design checks.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DesignCheckCriterion)]
pub struct CriterionBody<'a> {
    pub criterion: Cow<'a, str>,
    pub passed: bool,
    pub reason: Cow<'a, str>,
}

/// Result of the safety screen before publication.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TemplateSafety)]
pub struct SafetyBody<'a> {
    pub status: words::SafetyStatus,
    #[schema(required = true)]
    pub advisory_run_id: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub advisory_reasoning: Option<Cow<'a, str>>,
}

/// One version of a template in full.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Template)]
pub struct TemplateBody<'a> {
    pub id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The current handle of its owner.
    pub handle: Cow<'a, str>,
    pub owner_user_id: Cow<'a, str>,
    pub version: u32,
    /// Markdown; for anyone but the owner it begins with a warning.
    pub body: String,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
    #[schema(required = true)]
    pub release_notes: Option<Cow<'a, str>>,
    /// The handle under which the latest version was published.
    pub publishing_handle: Cow<'a, str>,
    pub safety_verification_status: words::SafetyStatus,
    pub safety_verification: SafetyBody<'a>,
    pub design_checks: DesignChecksBody<'a>,
    pub published_at: Time,
    #[schema(required = true)]
    pub unpublished_at: Option<Time>,
    #[schema(required = true)]
    pub archived_at: Option<Time>,
    #[schema(required = true)]
    pub deprecated_at: Option<Time>,
    #[schema(required = true)]
    pub deprecation_message: Option<Cow<'a, str>>,
    /// The verifiers as published with the version.
    pub verifier_snapshots: Vec<SnapshotBody<'a>>,
    /// Always empty: there are no image generators.
    #[schema(value_type = Vec<String>)]
    pub image_generator_snapshots: Vec<Cow<'a, str>>,
    pub files: Vec<TemplateFileBody<'a>>,
    /// How to run its checks; null if it has none.
    #[schema(required = true)]
    pub run_guidance: Option<String>,
}

/// A file of a version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TemplateFile)]
pub struct TemplateFileBody<'a> {
    pub path: Cow<'a, str>,
    pub sha256: Cow<'a, str>,
    pub size_bytes: u64,
    pub executable: bool,
    /// `text` or `binary`.
    pub content_kind: Cow<'a, str>,
    pub purpose: Cow<'a, str>,
    /// Whether it is small enough to be read through an MCP tool.
    pub fetchable_over_mcp: bool,
}

/// A file of a version with its content, as text or base64.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TemplateFileContent)]
pub struct TemplateFileEnvelope<'a> {
    pub path: Cow<'a, str>,
    pub sha256: Cow<'a, str>,
    pub size_bytes: u64,
    pub executable: bool,
    pub content_kind: Cow<'a, str>,
    pub purpose: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub content_base64: Option<String>,
}

/// Maximum size of a file that an MCP tool returns, in bytes.
pub const MOST_OVER_MCP: u64 = 256 * 1024;

/// A file with its content, as text or base64.
pub fn envelope<'a>(file: &'a TemplateFile, content: &'a [u8]) -> TemplateFileEnvelope<'a> {
    let text = Some(file).filter(|file| file.content_kind == "text");
    let text = text.and_then(|_| std::str::from_utf8(content).ok());
    TemplateFileEnvelope {
        path: Cow::Borrowed(&file.path),
        sha256: Cow::Borrowed(&file.sha256),
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: Cow::Borrowed(&file.content_kind),
        purpose: Cow::Borrowed(&file.purpose),
        content_base64: text.is_none().then(|| STANDARD.encode(content)),
        content: text.map(Cow::Borrowed),
    }
}

/// A file of a version.
pub fn body_of(file: &TemplateFile) -> TemplateFileBody<'_> {
    TemplateFileBody {
        path: Cow::Borrowed(&file.path),
        sha256: Cow::Borrowed(&file.sha256),
        size_bytes: file.size_bytes,
        executable: file.is_executable,
        content_kind: Cow::Borrowed(&file.content_kind),
        purpose: Cow::Borrowed(&file.purpose),
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
                criterion: Cow::Borrowed(&it.criterion),
                passed: it.passed,
                reason: Cow::Borrowed(&it.reason),
            })
            .collect(),
        guidance: design.guidance.as_deref().map(Cow::Borrowed),
    }
}

fn safety(it: &TemplateSafety) -> SafetyBody<'_> {
    SafetyBody {
        status: words::SafetyStatus(it.status),
        advisory_run_id: it.advisory_run_id.as_deref().map(Cow::Borrowed),
        advisory_reasoning: it.advisory_reasoning.as_deref().map(Cow::Borrowed),
    }
}

/// A template in a list.
pub fn listed(line: &TemplateLine) -> TemplateSummary<'_> {
    let TemplateLine { template, release, summary } = line;
    TemplateSummary {
        id: Cow::Borrowed(&template.id),
        slug: Cow::Borrowed(&template.slug),
        name: Cow::Borrowed(&summary.name),
        handle: Cow::Borrowed(&template.handle),
        owner_user_id: Cow::Borrowed(template.account.as_str()),
        latest_version: release.version,
        description: Cow::Borrowed(&summary.description),
        outcome: Cow::Borrowed(&summary.outcome),
        tags: Cow::Borrowed(&summary.tags),
        publishing_handle: Cow::Borrowed(&template.publishing_handle),
        safety_verification_status: words::SafetyStatus(summary.safety.status),
        design_checks: checks(&summary.design),
        published_at: Time(release.published_at),
        archived_at: template.archived_at.map(Time),
    }
}

/// The body of a template; for anyone but the owner it begins with a warning.
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

/// One version of a template in full.
pub fn shown(found: &TemplateVersion, is_owner: bool) -> TemplateBody<'_> {
    let TemplateVersion { template, release, summary, content, files, .. } = found;
    let snapshot = |it| SnapshotBody::of(it, found.is_revoked(it));
    TemplateBody {
        id: Cow::Borrowed(&template.id),
        slug: Cow::Borrowed(&template.slug),
        name: Cow::Borrowed(&summary.name),
        handle: Cow::Borrowed(&template.handle),
        owner_user_id: Cow::Borrowed(template.account.as_str()),
        version: release.version,
        body: markdown(found, is_owner),
        description: Cow::Borrowed(&summary.description),
        outcome: Cow::Borrowed(&summary.outcome),
        tags: Cow::Borrowed(&summary.tags),
        release_notes: content.release_notes.as_deref().map(Cow::Borrowed),
        publishing_handle: Cow::Borrowed(&template.publishing_handle),
        safety_verification_status: words::SafetyStatus(summary.safety.status),
        safety_verification: safety(&summary.safety),
        design_checks: checks(&summary.design),
        published_at: Time(release.published_at),
        unpublished_at: release.unpublished_at.map(Time),
        archived_at: template.archived_at.map(Time),
        deprecated_at: release.deprecated_at.map(Time),
        deprecation_message: release.deprecation_message.as_deref().map(Cow::Borrowed),
        verifier_snapshots: content.snapshots.iter().map(snapshot).collect(),
        image_generator_snapshots: Vec::new(),
        files: files.iter().map(body_of).collect(),
        run_guidance: run_guidance(found),
    }
}

/// A published version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PublishedTemplate)]
pub struct PublishedTemplateBody<'a> {
    pub template_id: Cow<'a, str>,
    pub version: u32,
    pub publishing_handle: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub safety_verification: SafetyBody<'a>,
    pub design_checks: DesignChecksBody<'a>,
    /// Notes for the author.
    pub authoring_notes: Cow<'a, [String]>,
    /// What is now public; null if the version has no verifiers.
    #[schema(required = true)]
    pub verifier_exposure_notice: Option<String>,
}

/// A published version; `exposed` names the verifiers that are now public.
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
        template_id: Cow::Borrowed(template_id),
        version,
        publishing_handle: Cow::Borrowed(publishing_handle),
        slug: Cow::Borrowed(slug),
        safety_verification: safety(found),
        design_checks: checks(design),
        authoring_notes: Cow::Borrowed(notes),
        verifier_exposure_notice: (!exposed.is_empty()).then(notice),
    }
}

/// Search results.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TemplateSearch)]
pub struct TemplateSearchBody<'a> {
    pub items: Vec<TemplateHitBody<'a>>,
    pub query: Cow<'a, str>,
    pub limit: usize,
    /// Search method: `lexical` compares words.
    pub search_mode: Cow<'static, str>,
}

/// A matching template.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = TemplateHit)]
pub struct TemplateHitBody<'a> {
    pub id: Cow<'a, str>,
    /// Rank, from 1 for the best match.
    pub rank: usize,
    pub match_reason: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub handle: Cow<'a, str>,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
}

/// Search results, best match first.
pub fn searched<'a>(
    query: &'a str,
    limit: usize,
    found: &'a [(TemplateLine, String)],
) -> TemplateSearchBody<'a> {
    let items = (1..).zip(found).map(|(rank, (line, reason))| TemplateHitBody {
        id: Cow::Borrowed(&line.template.id),
        rank,
        match_reason: Cow::Borrowed(reason),
        slug: Cow::Borrowed(&line.template.slug),
        name: Cow::Borrowed(&line.summary.name),
        handle: Cow::Borrowed(&line.template.handle),
        description: Cow::Borrowed(&line.summary.description),
        outcome: Cow::Borrowed(&line.summary.outcome),
        tags: Cow::Borrowed(&line.summary.tags),
    });
    TemplateSearchBody {
        items: items.collect(),
        query: Cow::Borrowed(query),
        limit,
        search_mode: Cow::Borrowed("lexical"),
    }
}

/// A template offered to another owner, or already owned by the caller.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct OfferedTemplate<'a> {
    pub template_id: Cow<'a, str>,
    /// The invitation to accept; left out if the caller already owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub invitation_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::InvitationKind)]
    pub kind: Option<words::InvitationKind>,
    /// The template.
    pub target_id: Cow<'a, str>,
    pub target_label: String,
    /// When the offer expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    pub expires_at: Option<Time>,
    /// The current owner.
    pub owner_user_id: Cow<'a, str>,
    /// Ownership changes when the offer is accepted.
    pub transferred: bool,
}

/// A template offered to another owner.
pub fn offered(invitation: &Invitation) -> OfferedTemplate<'_> {
    OfferedTemplate {
        template_id: Cow::Borrowed(&invitation.target_id),
        invitation_id: Some(Cow::Borrowed(&invitation.id)),
        kind: Some(words::InvitationKind(invitation.kind)),
        target_id: Cow::Borrowed(&invitation.target_id),
        target_label: invitation.target_label.clone(),
        expires_at: Some(Time(invitation.expires_at)),
        owner_user_id: Cow::Borrowed(invitation.from.as_str()),
        transferred: false,
    }
}

/// The reply to an offer of a template to its own owner.
pub fn already_owned(template: &Template) -> OfferedTemplate<'_> {
    OfferedTemplate {
        template_id: Cow::Borrowed(&template.id),
        invitation_id: None,
        kind: None,
        target_id: Cow::Borrowed(&template.id),
        target_label: format!("@{}/{}", template.handle, template.slug),
        expires_at: None,
        owner_user_id: Cow::Borrowed(template.account.as_str()),
        transferred: false,
    }
}

/// A workflow forked from a template.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ForkedTemplate<'a> {
    /// The workflow; `skill_id` and `id` are aliases.
    pub workflow_id: Cow<'a, str>,
    pub skill_id: Cow<'a, str>,
    pub id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub parent_template_id: Cow<'a, str>,
    pub parent_template_version: u32,
    /// Required to save the next version.
    pub version_token: Cow<'a, str>,
    /// Whether the template was found under an old name.
    pub redirected: bool,
    #[schema(required = true)]
    pub redirected_from_handle: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub redirected_to_handle: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub deprecation_warning: Option<Cow<'a, str>>,
    /// The caller's own verifiers, created from the snapshots.
    pub verifiers: Vec<ForkedVerifierBody<'a>>,
    pub next_step: Cow<'static, str>,
}

/// A verifier created from a snapshot.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ForkedVerifier)]
pub struct ForkedVerifierBody<'a> {
    pub name: Cow<'a, str>,
    pub verifier_id: Cow<'a, str>,
    /// Always null: it is not pinned.
    #[schema(required = true)]
    pub version: Option<u32>,
}

/// A workflow forked from a template; `moved` is the old and the new handle of the template.
pub fn forked<'a>(
    (workflow_id, slug, name): (&'a str, &'a str, &'a str),
    (parent_template_id, parent_template_version): (&'a str, u32),
    version_token: &'a str,
    verifiers: &'a [(String, String)],
    (moved, deprecation_warning): (Option<(&'a str, &'a str)>, Option<&'a str>),
) -> ForkedTemplate<'a> {
    let verifiers = verifiers.iter().map(|(name, verifier_id)| ForkedVerifierBody {
        name: Cow::Borrowed(name),
        verifier_id: Cow::Borrowed(verifier_id),
        version: None,
    });
    ForkedTemplate {
        workflow_id: Cow::Borrowed(workflow_id),
        skill_id: Cow::Borrowed(workflow_id),
        id: Cow::Borrowed(workflow_id),
        slug: Cow::Borrowed(slug),
        name: Cow::Borrowed(name),
        parent_template_id: Cow::Borrowed(parent_template_id),
        parent_template_version,
        version_token: Cow::Borrowed(version_token),
        redirected: moved.is_some(),
        redirected_from_handle: moved.map(|(from, _)| from).map(Cow::Borrowed),
        redirected_to_handle: moved.map(|(_, to)| to).map(Cow::Borrowed),
        deprecation_warning: deprecation_warning.map(Cow::Borrowed),
        verifiers: verifiers.collect(),
        next_step: Cow::Borrowed(
            "Read the workflow; it names your own verifiers instead of the template's. Measure them with `jurat verifiers test` before you rely on them.",
        ),
    }
}

/// An unpublished version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct UnpublishedVersion<'a> {
    pub template_id: Cow<'a, str>,
    pub version: u32,
    pub unpublished: bool,
}

/// A deleted version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DeletedTemplateVersion)]
pub struct DeletedVersion<'a> {
    pub template_id: Cow<'a, str>,
    pub version: u32,
    pub deleted: bool,
}

/// A deleted version.
pub fn deleted_version(template_id: &str, version: u32) -> DeletedVersion<'_> {
    DeletedVersion { template_id: Cow::Borrowed(template_id), version, deleted: true }
}

/// A deprecated version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DeprecatedTemplateVersion)]
pub struct DeprecatedVersion<'a> {
    pub template_id: Cow<'a, str>,
    pub version: u32,
    pub deprecated_at: Time,
    #[schema(required = true)]
    pub deprecation_message: Option<Cow<'a, str>>,
}

/// A deprecated version.
pub fn deprecated<'a>(
    template_id: &'a str,
    version: u32,
    at: Timestamp,
    message: Option<&'a str>,
) -> DeprecatedVersion<'a> {
    DeprecatedVersion {
        template_id: Cow::Borrowed(template_id),
        version,
        deprecated_at: Time(at),
        deprecation_message: message.map(Cow::Borrowed),
    }
}

/// An archived template.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ArchivedTemplate<'a> {
    pub template_id: Cow<'a, str>,
    pub archived: bool,
}

/// An unarchived template.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct UnarchivedTemplate<'a> {
    pub template_id: Cow<'a, str>,
    pub archived: bool,
}

/// A deleted template.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeletedTemplate<'a> {
    pub template_id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub deleted: bool,
}

/// What the screen found.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = SafetyCheck)]
pub struct SafetyCheckBody<'a> {
    /// `workflow` or `template`.
    pub resource_type: Cow<'a, str>,
    pub resource_id: Cow<'a, str>,
    pub resource_version: u32,
    pub status: words::SafetyStatus,
    pub block: ScreenRunBody<'a>,
    pub advisory: ScreenRunBody<'a>,
    /// Whether some content was too long to be screened completely.
    pub truncated: bool,
    pub truncated_fields: Cow<'a, [String]>,
}

/// The verdict of one screening judge.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ScreenRun)]
pub struct ScreenRunBody<'a> {
    pub verifier_id: Cow<'a, str>,
    pub verifier_version: u32,
    pub verifier_run_id: Cow<'a, str>,
    /// `passed`, `failed`, or `error` if there is no verdict.
    pub verdict: Cow<'static, str>,
    #[schema(required = true)]
    pub reasoning: Option<Cow<'a, str>>,
}

/// The verdict of one screening judge.
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
    ScreenRunBody {
        verifier_id: Cow::Borrowed(verifier_id),
        verifier_version,
        verifier_run_id: Cow::Borrowed(verifier_run_id),
        verdict: Cow::Borrowed(verdict),
        reasoning: reasoning.map(Cow::Borrowed),
    }
}

//! Verifiers as lists and replies show them.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{
    time::Timestamp,
    verifier::{
        JudgeSettings, REASONING_FIELD, Verifier, VerifierExample, VerifierRef, VerifierVersion,
    },
    workflow::{ShareOrigin, VerifierRole, template::VerifierSnapshot},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::measurement::NewestMeasurements;
use crate::api::kit::{time::Time, words};

/// A verifier in a list.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = VerifierSummary)]
pub struct ListedVerifier<'a> {
    pub verifier_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    pub current_version: u32,
    pub status: words::VerifierStatus,
    /// Send it as `expected_version_token` to deploy the next version.
    pub version_token: Cow<'a, str>,
    pub created_at: Time,
    pub updated_at: Time,
    /// The caller's role: `exec` to run it; `tune` to also see it fully, measure it and deploy its
    /// next version; `owner` for everything.
    pub role: words::VerifierRole,
    /// The workflow that gives the caller access; null for the owner.
    #[schema(required = true)]
    pub source_workflow_id: Option<Cow<'a, str>>,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the verifier by its id or as `@owner/name`.
    #[schema(required = true)]
    pub owner: Option<Cow<'a, str>>,
}

/// A verifier in the list of a caller who owns it or has access through a workflow.
pub fn listed<'a>(
    verifier: &'a Verifier,
    role: VerifierRole,
    shared: Option<(&'a str, &'a ShareOrigin)>,
) -> ListedVerifier<'a> {
    ListedVerifier {
        verifier_id: Cow::Borrowed(&verifier.id),
        name: Cow::Borrowed(&verifier.name),
        description: Cow::Borrowed(&verifier.description),
        current_version: verifier.current_version,
        status: words::VerifierStatus(verifier.standing),
        version_token: Cow::Borrowed(&verifier.version_token),
        created_at: Time(verifier.created_at),
        updated_at: Time(verifier.updated_at),
        role: words::VerifierRole(role),
        source_workflow_id: shared.map(|(workflow, _)| workflow).map(Cow::Borrowed),
        owner: shared.map(|(_, by)| by.owner.as_str()).map(Cow::Borrowed),
    }
}

/// One version of a verifier in full.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Verifier)]
pub struct VerifierBody<'a> {
    /// Followed by `@` and the version if it was requested that way.
    pub verifier_id: String,
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    /// The version shown.
    pub version: u32,
    /// The version that runs when none is pinned.
    pub current_version: u32,
    pub status: words::VerifierStatus,
    /// Send it as `expected_version_token` to deploy the next version.
    pub version_token: Cow<'a, str>,
    pub criterion: Cow<'a, str>,
    pub input_contract: words::InputContract,
    /// Empty for the contract `image`.
    pub input_fields: Cow<'a, [String]>,
    pub few_shot_examples: Vec<ExampleBody<'a>>,
    pub judge_model_config: JudgeModelConfig,
    /// What the judge is asked to write in addition to its verdict.
    pub reasoning_field_description: Cow<'static, str>,
    /// SHA-256 of the canonical JSON of the configuration, in hex: equal for equal configurations.
    pub config_hash: Cow<'a, str>,
    /// When the verifier was first deployed.
    pub created_at: Time,
    /// When its current version was deployed.
    pub updated_at: Time,
    /// When this version was deployed.
    pub deployed_at: Time,
    /// Measurements of this version; null if it was never measured.
    #[schema(required = true)]
    pub measured: Option<NewestMeasurements<'a>>,
}

/// A labelled example.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = FewShotExample)]
pub struct ExampleBody<'a> {
    pub inputs: Cow<'a, BTreeMap<String, String>>,
    #[schema(required = true)]
    pub media_url: Option<Cow<'a, str>>,
    pub passed: bool,
    #[schema(required = true)]
    pub reasoning: Option<Cow<'a, str>>,
}

/// The judge and its settings.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct JudgeModelConfig {
    /// `provider/model`.
    pub model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::ReasoningEffort)]
    pub reasoning_effort: Option<words::ReasoningEffort>,
    /// Whether the judge writes its own answer before it sees the candidate.
    pub commit_first: bool,
}

/// A verifier as published with a template version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = VerifierSnapshot)]
pub struct SnapshotBody<'a> {
    /// The name under which the workflow binds it.
    pub name: Cow<'a, str>,
    pub verifier_id: Cow<'a, str>,
    pub verifier_version: u32,
    pub config_hash: Cow<'a, str>,
    pub criterion: Cow<'a, str>,
    pub input_contract: words::InputContract,
    /// Empty for the contract `image`.
    pub input_fields: Cow<'a, [String]>,
    pub few_shot_examples: Vec<ExampleBody<'a>>,
    pub judge_model_config: JudgeModelConfig,
    /// What the judge is asked to write in addition to its verdict.
    pub reasoning_field_description: Cow<'static, str>,
    /// Whether its owner has since revoked it; then it can no longer be run.
    pub revoked: bool,
}

impl<'a> SnapshotBody<'a> {
    /// A verifier as published, and whether its owner has since revoked it.
    pub fn of(snapshot: &'a VerifierSnapshot, is_revoked: bool) -> Self {
        let config = &snapshot.config;
        Self {
            name: Cow::Borrowed(&snapshot.name),
            verifier_id: Cow::Borrowed(&snapshot.verifier_id),
            verifier_version: snapshot.version,
            config_hash: Cow::Borrowed(&snapshot.config_hash),
            criterion: Cow::Borrowed(&config.criterion),
            input_contract: words::InputContract(config.contract),
            input_fields: Cow::Borrowed(&config.fields),
            few_shot_examples: config.examples.iter().map(ExampleBody::of).collect(),
            judge_model_config: JudgeModelConfig::of(&config.judge),
            reasoning_field_description: Cow::Borrowed(REASONING_FIELD),
            revoked: is_revoked,
        }
    }
}

impl JudgeModelConfig {
    fn of(judge: &JudgeSettings) -> Self {
        Self {
            model: judge.model.to_string(),
            reasoning_effort: judge.effort.map(words::ReasoningEffort),
            commit_first: judge.commit_first,
        }
    }
}

/// One version in full. Its id keeps the pinned version of the request.
pub fn shown<'a>(
    asked: &VerifierRef,
    version: &'a VerifierVersion,
    measured: Option<NewestMeasurements<'a>>,
) -> VerifierBody<'a> {
    let VerifierVersion { verifier, config, .. } = version;
    let id = &verifier.id;
    VerifierBody {
        verifier_id: asked.version.map_or_else(|| id.clone(), |pin| format!("{id}@{pin}")),
        name: Cow::Borrowed(&verifier.name),
        description: Cow::Borrowed(&version.description),
        version: version.version,
        current_version: verifier.current_version,
        status: words::VerifierStatus(verifier.standing),
        version_token: Cow::Borrowed(&verifier.version_token),
        criterion: Cow::Borrowed(&config.criterion),
        input_contract: words::InputContract(config.contract),
        input_fields: Cow::Borrowed(&config.fields),
        few_shot_examples: config.examples.iter().map(ExampleBody::of).collect(),
        judge_model_config: JudgeModelConfig::of(&config.judge),
        reasoning_field_description: Cow::Borrowed(REASONING_FIELD),
        config_hash: Cow::Borrowed(&version.config_hash),
        created_at: Time(verifier.created_at),
        updated_at: Time(verifier.updated_at),
        deployed_at: Time(version.deployed_at),
        measured,
    }
}

impl<'a> ExampleBody<'a> {
    fn of(example: &'a VerifierExample) -> Self {
        Self {
            inputs: Cow::Borrowed(&example.inputs),
            media_url: example.media_url.as_deref().map(Cow::Borrowed),
            passed: example.passed,
            reasoning: example.reasoning.as_deref().map(Cow::Borrowed),
        }
    }
}

/// A version in a list.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = VerifierVersion)]
pub struct VersionBody<'a> {
    pub verifier_id: Cow<'a, str>,
    pub version: u32,
    pub description: Cow<'a, str>,
    pub config_hash: Cow<'a, str>,
    pub created_at: Time,
    /// Whether it runs when no version is pinned.
    pub is_current: bool,
}

/// A version in a list.
pub fn version_line<'a>(
    verifier: &'a Verifier,
    version: u32,
    (description, config_hash): (&'a str, &'a str),
    deployed_at: Timestamp,
) -> VersionBody<'a> {
    VersionBody {
        verifier_id: Cow::Borrowed(&verifier.id),
        version,
        description: Cow::Borrowed(description),
        config_hash: Cow::Borrowed(config_hash),
        created_at: Time(deployed_at),
        is_current: version == verifier.current_version,
    }
}

/// A revoked verifier.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RevokedVerifier<'a> {
    pub verifier_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub revoked: bool,
}

/// A revoked verifier.
pub fn revoked(verifier: &Verifier) -> RevokedVerifier<'_> {
    RevokedVerifier {
        verifier_id: Cow::Borrowed(&verifier.id),
        name: Cow::Borrowed(&verifier.name),
        revoked: true,
    }
}

/// A deleted verifier.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeletedVerifier<'a> {
    pub verifier_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub deleted: bool,
}

/// A deleted verifier.
pub fn deleted(verifier: &Verifier) -> DeletedVerifier<'_> {
    DeletedVerifier {
        verifier_id: Cow::Borrowed(&verifier.id),
        name: Cow::Borrowed(&verifier.name),
        deleted: true,
    }
}

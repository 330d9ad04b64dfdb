//! A verifier as lists and replies show it.

use std::collections::BTreeMap;

use jurat_core::{
    time::Timestamp,
    verifier::{
        JudgeSettings, REASONING_FIELD, Verifier, VerifierExample, VerifierRef, VerifierVersion,
    },
    workflow::{ShareOrigin, VerifierRole, template::VerifierSnapshot},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::measurement::NewestMeasurements;
use crate::api::kit::{time::Time, words};

/// A verifier in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VerifierSummary)]
pub struct ListedVerifier<'a> {
    verifier_id: &'a str,
    name: &'a str,
    description: &'a str,
    current_version: u32,
    status: words::VerifierStatus,
    /// Send it as `expected_version_token` to deploy the next version.
    version_token: &'a str,
    created_at: Time,
    updated_at: Time,
    /// The caller's role.
    role: words::VerifierRole,
    /// The workflow that gives the caller access; null for the owner.
    #[schema(required = true)]
    source_workflow_id: Option<&'a str>,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the verifier by its id or as `@owner/name`.
    #[schema(required = true)]
    owner: Option<&'a str>,
}

/// A verifier as somebody reaches it: as its owner, or through a workflow.
pub fn listed<'a>(
    verifier: &'a Verifier,
    role: VerifierRole,
    shared: Option<(&'a str, &'a ShareOrigin)>,
) -> ListedVerifier<'a> {
    ListedVerifier {
        verifier_id: &verifier.id,
        name: &verifier.name,
        description: &verifier.description,
        current_version: verifier.current_version,
        status: words::VerifierStatus(verifier.standing),
        version_token: &verifier.version_token,
        created_at: Time(verifier.created_at),
        updated_at: Time(verifier.updated_at),
        role: words::VerifierRole(role),
        source_workflow_id: shared.map(|(workflow, _)| workflow),
        owner: shared.map(|(_, by)| by.owner.as_str()),
    }
}

/// One version of a verifier in full.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Verifier)]
pub struct VerifierBody<'a> {
    /// Followed by `@` and the version if it was requested that way.
    verifier_id: String,
    name: &'a str,
    description: &'a str,
    /// The version shown.
    version: u32,
    /// The version that runs when none is pinned.
    current_version: u32,
    status: words::VerifierStatus,
    /// Send it as `expected_version_token` to deploy the next version.
    version_token: &'a str,
    criterion: &'a str,
    input_contract: words::InputContract,
    /// Empty for the contract `image`.
    input_fields: &'a [String],
    few_shot_examples: Vec<ExampleBody<'a>>,
    judge_model_config: JudgeModelConfig,
    /// What the judge is asked to write in addition to its verdict.
    reasoning_field_description: &'static str,
    /// SHA-256 of the canonical JSON of the configuration, in hex: equal for equal configurations.
    config_hash: &'a str,
    /// When the verifier was first deployed.
    created_at: Time,
    /// When its current version was deployed.
    updated_at: Time,
    /// When this version was deployed.
    deployed_at: Time,
    /// Measurements of this version; null if it was never measured.
    #[schema(required = true)]
    measured: Option<NewestMeasurements<'a>>,
}

/// A labelled example.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FewShotExample)]
struct ExampleBody<'a> {
    inputs: &'a BTreeMap<String, String>,
    #[schema(required = true)]
    media_url: Option<&'a str>,
    passed: bool,
    #[schema(required = true)]
    reasoning: Option<&'a str>,
}

/// The judge and its settings.
#[derive(Debug, Serialize, ToSchema)]
struct JudgeModelConfig {
    /// `provider/model`.
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = words::ReasoningEffort)]
    reasoning_effort: Option<words::ReasoningEffort>,
    /// Whether the judge writes its own answer before it sees the candidate.
    commit_first: bool,
}

/// A verifier as published with a template version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VerifierSnapshot)]
pub struct SnapshotBody<'a> {
    /// The name under which the workflow binds it.
    name: &'a str,
    verifier_id: &'a str,
    verifier_version: u32,
    config_hash: &'a str,
    criterion: &'a str,
    input_contract: words::InputContract,
    /// Empty for the contract `image`.
    input_fields: &'a [String],
    few_shot_examples: Vec<ExampleBody<'a>>,
    judge_model_config: JudgeModelConfig,
    /// What the judge is asked to write in addition to its verdict.
    reasoning_field_description: &'static str,
    /// Whether its owner has since revoked it; then it can no longer be run.
    revoked: bool,
}

impl<'a> SnapshotBody<'a> {
    pub fn of(snapshot: &'a VerifierSnapshot, is_revoked: bool) -> Self {
        let config = &snapshot.config;
        Self {
            name: &snapshot.name,
            verifier_id: &snapshot.verifier_id,
            verifier_version: snapshot.version,
            config_hash: &snapshot.config_hash,
            criterion: &config.criterion,
            input_contract: words::InputContract(config.contract),
            input_fields: &config.fields,
            few_shot_examples: config.examples.iter().map(ExampleBody::of).collect(),
            judge_model_config: JudgeModelConfig::of(&config.judge),
            reasoning_field_description: REASONING_FIELD,
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

/// A version, named as it was asked for: a pin stays.
pub fn shown<'a>(
    asked: &VerifierRef,
    version: &'a VerifierVersion,
    measured: Option<NewestMeasurements<'a>>,
) -> VerifierBody<'a> {
    let VerifierVersion { verifier, config, .. } = version;
    let id = &verifier.id;
    VerifierBody {
        verifier_id: asked.version.map_or_else(|| id.clone(), |pin| format!("{id}@{pin}")),
        name: &verifier.name,
        description: &version.description,
        version: version.version,
        current_version: verifier.current_version,
        status: words::VerifierStatus(verifier.standing),
        version_token: &verifier.version_token,
        criterion: &config.criterion,
        input_contract: words::InputContract(config.contract),
        input_fields: &config.fields,
        few_shot_examples: config.examples.iter().map(ExampleBody::of).collect(),
        judge_model_config: JudgeModelConfig::of(&config.judge),
        reasoning_field_description: REASONING_FIELD,
        config_hash: &version.config_hash,
        created_at: Time(verifier.created_at),
        updated_at: Time(verifier.updated_at),
        deployed_at: Time(version.deployed_at),
        measured,
    }
}

impl<'a> ExampleBody<'a> {
    fn of(example: &'a VerifierExample) -> Self {
        Self {
            inputs: &example.inputs,
            media_url: example.media_url.as_deref(),
            passed: example.passed,
            reasoning: example.reasoning.as_deref(),
        }
    }
}

/// A version in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VerifierVersion)]
pub struct VersionBody<'a> {
    verifier_id: &'a str,
    version: u32,
    description: &'a str,
    config_hash: &'a str,
    created_at: Time,
    /// Whether it runs when no version is pinned.
    is_current: bool,
}

pub fn version_line<'a>(
    verifier: &'a Verifier,
    version: u32,
    (description, config_hash): (&'a str, &'a str),
    deployed_at: Timestamp,
) -> VersionBody<'a> {
    VersionBody {
        verifier_id: &verifier.id,
        version,
        description,
        config_hash,
        created_at: Time(deployed_at),
        is_current: version == verifier.current_version,
    }
}

/// A revoked verifier.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedVerifier<'a> {
    verifier_id: &'a str,
    name: &'a str,
    revoked: bool,
}

pub fn revoked(verifier: &Verifier) -> RevokedVerifier<'_> {
    RevokedVerifier { verifier_id: &verifier.id, name: &verifier.name, revoked: true }
}

/// A deleted verifier.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedVerifier<'a> {
    verifier_id: &'a str,
    name: &'a str,
    deleted: bool,
}

pub fn deleted(verifier: &Verifier) -> DeletedVerifier<'_> {
    DeletedVerifier { verifier_id: &verifier.id, name: &verifier.name, deleted: true }
}

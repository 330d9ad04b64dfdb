//! The request that deploys a version of a verifier, and its reply.

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::{
    code::ProblemCode,
    verifier::{InputContract, Verifier, VerifierDraft, VerifierExample},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::problem_of;
use crate::{
    api::kit::{
        request::{
            self, ListOf, request, text, values,
            values::{JudgeModel, PLAIN, filled, list_of, texts},
        },
        words,
    },
    problem::Problem,
};

request! {
    /// A version to deploy: the first version of a new verifier, or the next version of the verifier
    /// with this name. Unknown fields are ignored.
    pub open struct DeployVerifierRequest {
        /// Name of the verifier in its account.
        name: NewVerifierName,
        /// What it checks, for people.
        description: VerifierDescription,
        /// Instructions for the judge: when the inputs pass and when they fail. For the judge
        /// `builtin/rules` it is a document of rules.
        criterion: VerifierCriterion,
        input_contract: words::InputContract,
        /// The text fields of the contract, in the order in which the judge reads them; none for
        /// `image`.
        input_fields: Option<InputFieldList>,
        /// Labelled examples, shown to the judge as demonstrations. Each must match the contract.
        few_shot_examples: Option<ListOf<ExampleRequest, 0, 50>>,
        model_settings: Option<ModelSettings>,
        /// The current `version_token`; leave it out for a new verifier, required afterwards.
        expected_version_token: Option<String>,
    }

    /// A labelled example.
    pub open struct ExampleRequest as "FewShotExampleRequest" {
        /// Every field of the contract with its text.
        inputs: Option<BTreeMap<String, String>>,
        /// An image, if the contract has one.
        media_url: Option<String>,
        /// Whether these inputs pass.
        passed: bool,
        /// Reason.
        reasoning: Option<String>,
    }

    /// The judge and its settings. Unknown keys are ignored.
    pub open struct ModelSettings {
        /// Defaults to the installation's default judge, or `builtin/rules` if there is none.
        model: Option<JudgeModel>,
        reasoning_effort: Option<words::ReasoningEffort>,
        /// Whether the judge writes its own answer before it sees the candidate.
        commit_first: Option<bool>,
    }
}

// The draft enforces the other limits that these schemas describe, for requests and files alike.
values! {
    /// The name of a verifier.
    pub struct NewVerifierName(String): text().pattern(Some("^[a-z0-9-]{1,128}$")) => filled;

    /// The description of a verifier, for people.
    pub struct VerifierDescription(String):
        text().pattern(Some(PLAIN)).max_length(Some(1024)) => filled;

    /// Instructions for a judge.
    pub struct VerifierCriterion(String):
        text().pattern(Some(PLAIN)).max_length(Some(20000)) => filled;

    /// The name of a text field that a judge reads.
    pub(crate) named struct InputFieldName(String):
        text()
            .pattern(Some("^[A-Za-z0-9_-]{1,64}$"))
            .description(Some("The name of a text field that a judge reads."))
        => filled;

    /// The text fields that a judge reads.
    pub struct InputFieldList(Vec<String>):
        list_of::<InputFieldName>().max_items(Some(32)) => texts, with InputFieldName;
}

/// Reads a version to deploy.
pub fn decode_deploy(body: &Value) -> Result<VerifierDraft, Problem> {
    let request: DeployVerifierRequest = request::read(body, ProblemCode::ValidationError)?;
    let settings = request.model_settings.unwrap_or(ModelSettings {
        model: None,
        reasoning_effort: None,
        commit_first: None,
    });
    let examples = request.few_shot_examples.map(|examples| examples.0).unwrap_or_default();
    let new = VerifierDraft {
        name: request.name.0,
        description: request.description.0,
        criterion: request.criterion.0,
        contract: request.input_contract.0,
        fields: request.input_fields.map(|fields| fields.0).unwrap_or_default(),
        examples: examples.into_iter().map(Into::into).collect(),
        model: settings.model.map(|model| model.0),
        effort: settings.reasoning_effort.map(|effort| effort.0),
        commit_first: settings.commit_first == Some(true),
        expected_token: request.expected_version_token,
    };
    new.check().map_err(|error| problem_of(&error))?;
    Ok(new)
}

impl From<ExampleRequest> for VerifierExample {
    fn from(example: ExampleRequest) -> Self {
        Self {
            inputs: example.inputs.unwrap_or_default(),
            media_url: example.media_url,
            passed: example.passed,
            reasoning: example.reasoning,
        }
    }
}

/// The added version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeployedVerifier<'a> {
    pub verifier_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// The added version, which is now the current one.
    pub current_version: u32,
    /// Alias of `current_version`.
    pub version: u32,
    /// Send it as `expected_version_token` to deploy the next version.
    pub version_token: Cow<'a, str>,
    pub status: words::VerifierStatus,
    pub input_contract: words::InputContract,
    /// SHA-256 of the canonical JSON of the configuration, in hex.
    pub config_hash: Cow<'a, str>,
    /// Why the version cannot run yet, such as an unconfigured provider; left out if there is no
    /// problem.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    pub warnings: Cow<'a, [String]>,
}

impl<'a> DeployedVerifier<'a> {
    /// The reply to a deployed version.
    pub fn new(
        verifier: &'a Verifier,
        contract: InputContract,
        config_hash: &'a str,
        warnings: &'a [String],
    ) -> Self {
        Self {
            warnings: Cow::Borrowed(warnings),
            verifier_id: Cow::Borrowed(&verifier.id),
            name: Cow::Borrowed(&verifier.name),
            current_version: verifier.current_version,
            version: verifier.current_version,
            version_token: Cow::Borrowed(&verifier.version_token),
            status: words::VerifierStatus(verifier.standing),
            input_contract: words::InputContract(contract),
            config_hash: Cow::Borrowed(config_hash),
        }
    }
}

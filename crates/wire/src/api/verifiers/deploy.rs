//! What is sent to deploy a version, and what comes back.

use std::collections::BTreeMap;

use jurat_core::{
    code::ProblemCode,
    verifier::{Effort, InputContract, Verifier, VerifierDraft, VerifierExample},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::problem_of;
use crate::{
    api::kit::{
        choices::{InputFieldName, JudgeModel},
        fields::RequestFields,
        words,
    },
    problem::Problem,
};

/// A version to deploy: the first version of a new verifier, or the next version of the verifier
/// with this name. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
pub struct DeployVerifierRequest {
    /// Name of the verifier in its account.
    #[schema(pattern = "^[a-z0-9-]{1,128}$")]
    pub name: String,
    /// What it checks, for people.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 1024)]
    pub description: String,
    /// Instructions for the judge: when the inputs pass and when they fail. For the judge
    /// `builtin/rules` it is a document of rules.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 20000)]
    pub criterion: String,
    pub input_contract: words::InputContract,
    /// The text fields of the contract, in the order in which the judge reads them; none for
    /// `image`.
    #[schema(max_items = 32)]
    pub input_fields: Option<Vec<InputFieldName>>,
    /// Labelled examples, shown to the judge as demonstrations. Each must match the contract.
    #[schema(max_items = 50)]
    pub few_shot_examples: Option<Vec<ExampleRequest>>,
    pub model_settings: Option<ModelSettings>,
    /// The current `version_token`; leave it out for a new verifier, required afterwards.
    pub expected_version_token: Option<String>,
}

/// A labelled example.
#[derive(Debug, ToSchema)]
#[schema(as = FewShotExampleRequest)]
pub struct ExampleRequest {
    /// Every field of the contract with its text.
    pub inputs: Option<BTreeMap<String, String>>,
    /// An image, if the contract has one.
    pub media_url: Option<String>,
    /// Whether these inputs pass.
    pub passed: bool,
    /// Reason.
    pub reasoning: Option<String>,
}

/// The judge and its settings. Unknown keys are ignored.
#[derive(Debug, ToSchema)]
pub struct ModelSettings {
    /// Defaults to the installation's default judge, or `builtin/rules` if there is none.
    pub model: Option<JudgeModel>,
    pub reasoning_effort: Option<words::ReasoningEffort>,
    /// Whether the judge writes its own answer before it sees the candidate.
    pub commit_first: Option<bool>,
}

pub fn decode_deploy(body: &Value) -> Result<VerifierDraft, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let settings = body.object("model_settings")?;
    let settings = settings.as_ref();
    let model = match settings {
        Some(settings) => model(settings)?,
        None => None,
    };
    let contract = body.word("input_contract", CONTRACTS)?;
    let new = VerifierDraft {
        name: body.required_text("name")?.to_owned(),
        description: body.required_text("description")?.to_owned(),
        criterion: body.required_text("criterion")?.to_owned(),
        contract: contract.ok_or_else(|| body.wrong("input_contract", "is required"))?,
        fields: body.texts("input_fields")?.into_iter().map(str::to_owned).collect(),
        examples: body
            .objects("few_shot_examples")?
            .iter()
            .map(example)
            .collect::<Result<_, _>>()?,
        model,
        effort: settings
            .map(|it| it.word::<Effort>("reasoning_effort", EFFORTS))
            .transpose()?
            .flatten(),
        commit_first: settings.map(|it| it.flag("commit_first")).transpose()?.flatten()
            == Some(true),
        expected_token: body.text("expected_version_token")?.map(str::to_owned),
    };
    new.check().map_err(|error| problem_of(&error))?;
    Ok(new)
}

const CONTRACTS: &[&str] = &["text", "text_image", "image"];
const EFFORTS: &[&str] = &["low", "medium", "high", "xhigh"];

fn model(settings: &RequestFields<'_>) -> Result<Option<jurat_core::verifier::ModelRef>, Problem> {
    let Some(text) = settings.text("model")? else { return Ok(None) };
    let model = text.parse();
    model.map(Some).map_err(|()| {
        settings.wrong("model", "must be `provider/model`, such as `anthropic/claude-sonnet-4-6`")
    })
}

fn example(example: &RequestFields<'_>) -> Result<VerifierExample, Problem> {
    let passed = example.flag("passed")?;
    Ok(VerifierExample {
        inputs: example.text_map("inputs")?,
        media_url: example.text("media_url")?.map(str::to_owned),
        passed: passed.ok_or_else(|| example.wrong("passed", "is required"))?,
        reasoning: example.text("reasoning")?.map(str::to_owned),
    })
}

/// The added version.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeployedVerifier<'a> {
    verifier_id: &'a str,
    name: &'a str,
    /// The added version, which is now the current one.
    current_version: u32,
    /// Alias of `current_version`.
    version: u32,
    /// Send it as `expected_version_token` to deploy the next version.
    version_token: &'a str,
    status: words::VerifierStatus,
    input_contract: words::InputContract,
    /// SHA-256 of the canonical JSON of the configuration, in hex.
    config_hash: &'a str,
    /// Why the version cannot run yet, such as an unconfigured provider; left out if there is no
    /// problem.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    warnings: &'a [String],
}

impl<'a> DeployedVerifier<'a> {
    pub fn new(
        verifier: &'a Verifier,
        contract: InputContract,
        config_hash: &'a str,
        warnings: &'a [String],
    ) -> Self {
        Self {
            warnings,
            verifier_id: &verifier.id,
            name: &verifier.name,
            current_version: verifier.current_version,
            version: verifier.current_version,
            version_token: &verifier.version_token,
            status: words::VerifierStatus(verifier.standing),
            input_contract: words::InputContract(contract),
            config_hash,
        }
    }
}

//! The executor contract: the JSON of `/health`, `/capabilities`, `/execute` and `/verify`.

mod agent_event;
mod contract;
mod shape;
mod submission;
mod terms;
mod verify;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use jurat_core::{canonical, executor, policy, policy::PolicyRules, round::candidate};

pub use self::agent_event::{
    AgentDecision, AgentEvent, AgentEventCallbackRequest, AgentEventCallbackResponse,
    decode_agent_event, decode_agent_event_response,
};
pub use self::contract::{
    Acceptance, Assignment, BadPenalty, ContractBudget, ContractClaim, ContractExplore,
    ContractFeedback, ContractFinalize, ContractSettlement, ContractVerify, ContractVote,
    DiminishingReturns, EvidencePolicy, ExploreStop, JobContract, MaxConcurrency, TaskContract,
};
pub use self::shape::ShapeError;
pub use self::submission::{TaskSubmission, step_submission};
pub(crate) use self::submission::{step_contract, step_voters};
pub use self::terms::{USUAL_BACKOFF_MS, USUAL_REPEATS, USUAL_RETRIES};
pub use self::verify::{VerificationStatus, VerifyRequest, VerifyResponse, verify_request_bytes};

/// The reply of `GET /health`. Any 2xx status means healthy; the body is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthResponse {
    pub status: String,
}

/// The capabilities that an executor declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CapabilitiesResponse {
    pub task_types: Vec<String>,
    pub profiles: Vec<String>,
    pub provider_family: String,
    pub model_id: String,
    /// Policies beyond the built-in ones. An addition of Jurat; other kernels ignore it.
    #[serde(
        default,
        deserialize_with = "shape::null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub policies: Vec<String>,
}

/// The body of `POST /execute`. `C` is the contract, which a kernel that passes it on unchanged
/// keeps as a JSON value; `I` is the inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecuteRequest<C = TaskContract, I = Value> {
    pub task_id: String,
    /// Makes the call idempotent: the same id gets the same answer.
    pub execution_id: String,
    pub task_type: String,
    pub inputs: I,
    pub profile: String,
    pub task_contract: C,
    pub stage: TaskStage,
    pub attempt_id: String,
    /// Earlier decisions on the same and on similar tasks, or null.
    #[serde(default)]
    pub seed_bundle: Option<Value>,
}

impl ExecuteRequest {
    /// The rules that the answer will be verified under.
    pub fn rules(&self) -> PolicyRules {
        let policy = &self.task_contract.acceptance.verifier_policy;
        PolicyRules::by_hash(&policy.policy_id, &policy.policy_hash)
    }
}

/// The reply of `POST /execute`: a candidate's output with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecuteResponse {
    pub candidate_output: Value,
    #[serde(default, deserialize_with = "shape::null_is_default")]
    pub evidence_inline: Vec<WireInlineEvidence>,
    #[serde(default, deserialize_with = "shape::null_is_default")]
    pub evidence_refs: Vec<WireArtifactRef>,
}

/// The stage of a task that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStage {
    Explore,
    Verify,
    Finalize,
}

impl TaskStage {
    /// The stage as requests write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Explore => "explore",
            Self::Verify => "verify",
            Self::Finalize => "finalize",
        }
    }

    /// Reads a stage, ignoring case. `decide` and `diverge_mode` are WattSwarm's names for explore.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "explore" | "decide" | "diverge_mode" => Some(Self::Explore),
            "verify" => Some(Self::Verify),
            "finalize" => Some(Self::Finalize),
            _ => None,
        }
    }
}

impl Serialize for TaskStage {
    fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TaskStage {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = String::deserialize(reader)?;
        Self::parse(&text).ok_or_else(|| {
            let text: String = text.chars().take(40).collect();
            serde::de::Error::custom(format!(
                "`{text}` is not a stage; use `explore`, `verify` or `finalize`"
            ))
        })
    }
}

/// An output being verified, in its wire form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Candidate)]
pub struct WireCandidate {
    pub candidate_id: String,
    pub execution_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<WireArtifactRef>,
    #[serde(default)]
    pub output: Value,
    #[serde(default, deserialize_with = "shape::null_is_default")]
    pub evidence_inline: Vec<WireInlineEvidence>,
    #[serde(default, deserialize_with = "shape::null_is_default")]
    pub evidence_refs: Vec<WireArtifactRef>,
}

/// Inline evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = InlineEvidence)]
pub struct WireInlineEvidence {
    pub mime: String,
    pub content: String,
}

/// Evidence stored elsewhere. It is fetched if a policy or a task requires it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ArtifactRef)]
pub struct WireArtifactRef {
    pub uri: String,
    pub digest: String,
    #[schema(maximum = 9_007_199_254_740_991u64)]
    pub size_bytes: u64,
    pub mime: String,
    /// Milliseconds since 1970.
    #[schema(maximum = 9_007_199_254_740_991u64)]
    pub created_at: u64,
    pub producer: String,
}

/// A policy with its version, hash and parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PolicyBinding)]
pub struct WirePolicyBinding {
    pub policy_id: String,
    pub policy_version: String,
    /// `sha256:` and the digest of `policy_id` followed by the canonical `policy_params`.
    pub policy_hash: String,
    pub policy_params: Value,
}

/// Reads the body of `POST /execute`.
///
/// An executor needs only the output schema and the budget of the task contract. Defaults fill in
/// other members that a handwritten request leaves out; members that are present must be valid.
pub fn decode_execute_request(mut body: Value) -> Result<ExecuteRequest, ShapeError> {
    contract::complete(&mut body);
    shape::decode(body)
}

/// Reads a complete task contract, such as one that was checked when its task was submitted.
pub fn read_task_contract(document: &Value) -> Result<TaskContract, ShapeError> {
    TaskContract::deserialize(document).map_err(|error| ShapeError::new("body", error.to_string()))
}

/// Reads the reply of `POST /execute`.
pub fn decode_execute_response(body: Value) -> Result<ExecuteResponse, ShapeError> {
    shape::decode(body)
}

/// Reads the body of `POST /verify`.
pub fn decode_verify_request(body: Value) -> Result<VerifyRequest, ShapeError> {
    shape::decode(body)
}

/// Reads the reply of `POST /verify`. Its status and hash are checked separately.
pub fn decode_verify_response(body: Value) -> Result<VerifyResponse, ShapeError> {
    let response: VerifyResponse = shape::decode(body)?;
    if (0.0..=1.0).contains(&response.score) {
        Ok(response)
    } else {
        Err(ShapeError::new("score", format!("{} is not between 0 and 1", response.score)))
    }
}

/// Reads the reply of `GET /capabilities`. Its size is limited, because every reply repeats its
/// content.
pub fn decode_capabilities(body: Value) -> Result<CapabilitiesResponse, ShapeError> {
    const MOST_NAMES: usize = 256;
    const LONGEST_NAME: usize = 200;
    let read: CapabilitiesResponse = shape::decode(body)?;
    let is_short =
        |name: &String| name.len() <= LONGEST_NAME && !name.chars().any(char::is_control);
    for (field, names) in [
        ("task_types", read.task_types.as_slice()),
        ("profiles", read.profiles.as_slice()),
        ("policies", read.policies.as_slice()),
        ("provider_family", std::slice::from_ref(&read.provider_family)),
        ("model_id", std::slice::from_ref(&read.model_id)),
    ] {
        if MOST_NAMES < names.len() || !names.iter().all(is_short) {
            let problem = format!(
                "must have at most {MOST_NAMES} names of at most {LONGEST_NAME} bytes without control characters"
            );
            return Err(ShapeError::new(field, problem));
        }
    }
    for (field, text) in [("provider_family", &read.provider_family), ("model_id", &read.model_id)]
    {
        if text.trim().is_empty() {
            return Err(ShapeError::new(field, "must not be blank"));
        }
    }
    Ok(read)
}

impl WireArtifactRef {
    /// The reference of a candidate to its own output.
    pub fn to_output(output: &Value, created_at_ms: u64, producer: &str) -> Self {
        let bytes = canonical::canonical(output);
        let digest = canonical::digest(&bytes);
        Self {
            uri: format!("artifact://reference/{digest}"),
            digest,
            size_bytes: bytes.len() as u64,
            mime: "application/json".to_owned(),
            created_at: created_at_ms,
            producer: producer.to_owned(),
        }
    }
}

impl WireCandidate {
    /// Converts a candidate to its wire form, with a reference to its output.
    pub fn new(candidate: candidate::Candidate, created_at_ms: u64, producer: &str) -> Self {
        let output_ref = WireArtifactRef::to_output(&candidate.output, created_at_ms, producer);
        let (evidence_inline, evidence_refs) = split(candidate.evidence);
        Self {
            candidate_id: candidate.candidate_id,
            execution_id: candidate.execution_id,
            output_ref: Some(output_ref),
            output: candidate.output,
            evidence_inline,
            evidence_refs,
        }
    }
}

impl From<WireCandidate> for candidate::Candidate {
    fn from(outer: WireCandidate) -> Self {
        Self {
            candidate_id: outer.candidate_id,
            execution_id: outer.execution_id,
            output: outer.output,
            evidence: join(outer.evidence_inline, outer.evidence_refs),
        }
    }
}

impl ExecuteResponse {
    /// A reply with this output and its evidence.
    pub fn new(output: Value, evidence: candidate::Evidence) -> Self {
        let (evidence_inline, evidence_refs) = split(evidence);
        Self { candidate_output: output, evidence_inline, evidence_refs }
    }

    /// The output and its evidence.
    pub fn into_parts(self) -> (Value, candidate::Evidence) {
        (self.candidate_output, join(self.evidence_inline, self.evidence_refs))
    }
}

fn split(evidence: candidate::Evidence) -> (Vec<WireInlineEvidence>, Vec<WireArtifactRef>) {
    let inline = evidence.inline.into_iter().map(WireInlineEvidence::from).collect();
    (inline, evidence.refs.into_iter().map(WireArtifactRef::from).collect())
}

fn join(inline: Vec<WireInlineEvidence>, refs: Vec<WireArtifactRef>) -> candidate::Evidence {
    candidate::Evidence {
        inline: inline.into_iter().map(Into::into).collect(),
        refs: refs.into_iter().map(Into::into).collect(),
    }
}

/// Implements the conversions between a wire type and the domain type with the same fields.
macro_rules! same_fields {
    ($outer:ty, $inner:ty { $($field:ident),+ }) => {
        impl From<$outer> for $inner {
            fn from(outer: $outer) -> Self {
                Self { $($field: outer.$field),+ }
            }
        }

        impl From<$inner> for $outer {
            fn from(inner: $inner) -> Self {
                Self { $($field: inner.$field),+ }
            }
        }
    };
}

same_fields!(WireInlineEvidence, candidate::InlineEvidence { mime, content });
same_fields!(
    WireArtifactRef,
    candidate::ArtifactRef { uri, digest, size_bytes, mime, created_at, producer }
);
same_fields!(
    WirePolicyBinding,
    policy::PolicyBinding { policy_id, policy_version, policy_hash, policy_params }
);
same_fields!(
    CapabilitiesResponse,
    executor::Capabilities { task_types, profiles, provider_family, model_id, policies }
);

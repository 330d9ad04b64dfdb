//! Requests of `/api/v3/{delegate,validate,factcheck}`, decoded into jobs.

use jurat_core::{
    canonical::{canonical, digest},
    executor::session::Tier,
    policy::PolicyBinding,
    round::{
        candidate::Evidence,
        job::{AgreementTerms, FactcheckMode, Job, JobWork},
    },
};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    kit::{
        choices::{Claim, FactClaim, FactcheckPolicyChoice, JsonSchema, PolicyChoice, SessionRef},
        fields::{RequestFields, kind},
        known_fields::DescribedRequest,
        terms::{self, ConsensusTerms},
        words,
    },
    policy_request::{self, PolicyRequest},
};
use crate::{executor, problem::Problem};

pub const DEFAULT_TIMEOUT_MS: u64 = 60_000;

/// A request to delegate a job. Unknown fields are refused, except names that begin with `x_`,
/// which are reserved for the caller.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegateRequest {
    /// The job to do.
    #[schema(pattern = r"\S")]
    pub objective: String,
    /// The input of the job; defaults to `{}`.
    pub input: Option<Value>,
    pub policy: Option<PolicyChoice>,
    /// Additional context for the executors.
    pub context: Option<Value>,
    /// Tools that the executors may use; passed on to them.
    pub tools: Option<Value>,
    /// The workflow that the job belongs to; passed on to the executors.
    pub workflow: Option<Value>,
    /// The person or system the job is done for; passed on to the executors.
    pub actor: Option<Value>,
    /// The caller's notes; ignored.
    pub metadata: Option<Value>,
    pub execution: Option<ExecutionLimits>,
    pub consensus: Option<ConsensusTerms>,
    /// Used as a pool of one session if there is no `session_pool`.
    pub session_id: Option<SessionRef>,
}

/// A request to validate a candidate. Unknown fields are refused, except names that begin with
/// `x_`, which are reserved for the caller.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ValidateRequest {
    pub claim: Claim,
    /// Schema that the output must match; takes precedence over `execution.output_schema`.
    pub output_schema: Option<JsonSchema>,
    /// Evidence for the candidate, as text.
    pub evidence_inline: Option<Vec<EvidenceText>>,
    /// Evidence for the candidate, stored elsewhere.
    pub evidence_refs: Option<Vec<EvidenceRef>>,
    pub policy: Option<PolicyChoice>,
    /// Additional context for the executors.
    pub context: Option<Value>,
    /// Tools that the executors may use; passed on to them.
    pub tools: Option<Value>,
    /// The workflow that the job belongs to; passed on to the executors.
    pub workflow: Option<Value>,
    /// The person or system the job is done for; passed on to the executors.
    pub actor: Option<Value>,
    /// The caller's notes; ignored.
    pub metadata: Option<Value>,
    pub execution: Option<ExecutionLimits>,
    pub consensus: Option<ConsensusTerms>,
    /// Used as a pool of one session if there is no `session_pool`.
    pub session_id: Option<SessionRef>,
}

/// A request to fact-check a claim. Unknown fields are refused, except names that begin with `x_`,
/// which are reserved for the caller.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FactcheckRequest {
    pub claim: FactClaim,
    /// Defaults to `standard`.
    pub mode: Option<words::FactcheckMode>,
    pub policy: Option<FactcheckPolicyChoice>,
    /// Additional context for the executors.
    pub context: Option<Value>,
    /// Tools that the executors may use; passed on to them.
    pub tools: Option<Value>,
    /// The workflow that the job belongs to; passed on to the executors.
    pub workflow: Option<Value>,
    /// The person or system the job is done for; passed on to the executors.
    pub actor: Option<Value>,
    /// The caller's notes; ignored.
    pub metadata: Option<Value>,
    pub execution: Option<ExecutionLimits>,
    pub consensus: Option<ConsensusTerms>,
    /// Used as a pool of one session if there is no `session_pool`.
    pub session_id: Option<SessionRef>,
}

/// A version 2 request to delegate a job. Unknown fields are ignored and named in the `warnings` of
/// the reply.
#[derive(Debug, ToSchema)]
pub struct DelegateRequestV2 {
    /// The job to do.
    #[schema(pattern = r"\S")]
    pub objective: String,
    /// The input of the job; defaults to `{}`.
    pub input: Option<Value>,
    pub policy: Option<PolicyChoice>,
    /// Additional context for the executors.
    pub context: Option<Value>,
    /// Tools that the executors may use; passed on to them.
    pub tools: Option<Value>,
    /// The workflow that the job belongs to; passed on to the executors.
    pub workflow: Option<Value>,
    /// The person or system the job is done for; passed on to the executors.
    pub actor: Option<Value>,
    /// The caller's notes; ignored.
    pub metadata: Option<Value>,
    pub execution: Option<ExecutionLimits>,
    /// The session to call; routing chooses one if it is left out.
    pub session_id: Option<SessionRef>,
}

/// A version 2 request to validate a candidate. Unknown fields are ignored and named in the
/// `warnings` of the reply.
#[derive(Debug, ToSchema)]
pub struct ValidateRequestV2 {
    pub claim: Claim,
    /// Schema that the output must match; takes precedence over `execution.output_schema`.
    pub output_schema: Option<JsonSchema>,
    /// Evidence for the candidate, as text.
    pub evidence_inline: Option<Vec<EvidenceText>>,
    /// Evidence for the candidate, stored elsewhere.
    pub evidence_refs: Option<Vec<EvidenceRef>>,
    pub policy: Option<PolicyChoice>,
    /// Additional context for the executors.
    pub context: Option<Value>,
    /// Tools that the executors may use; passed on to them.
    pub tools: Option<Value>,
    /// The workflow that the job belongs to; passed on to the executors.
    pub workflow: Option<Value>,
    /// The person or system the job is done for; passed on to the executors.
    pub actor: Option<Value>,
    /// The caller's notes; ignored.
    pub metadata: Option<Value>,
    pub execution: Option<ExecutionLimits>,
    /// The session to call; routing chooses one if it is left out.
    pub session_id: Option<SessionRef>,
}

/// Evidence as text.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceText {
    pub mime: String,
    pub content: String,
}

/// Evidence stored elsewhere. It is fetched if a policy or a task requires it.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvidenceRef {
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

/// How to do the job.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Execution)]
pub struct ExecutionLimits {
    /// Deadline of the whole round; defaults to 60000.
    #[schema(minimum = 1, maximum = 600_000)]
    pub timeout_ms: Option<u64>,
    /// The deadline in seconds, if there is no `timeout_ms`.
    #[schema(minimum = 0.001, maximum = 600)]
    pub timeout: Option<f64>,
    /// Passed on in the task contract; defaults to 10.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_steps: Option<u64>,
    /// Schema that the output must match; not used by factcheck.
    pub output_schema: Option<JsonSchema>,
}

/// What all three requests have in common.
struct CommonFields<'a> {
    body: RequestFields<'a>,
    policy: PolicyRequest,
    terms: AgreementTerms,
    timeout_ms: u64,
    max_steps: Option<u32>,
    execution_schema: Option<&'a Value>,
    request_digest: String,
    request: Option<String>,
}

pub fn delegate(body: &Value) -> Result<Job, Problem> {
    let common = common::<DelegateRequest>(body)?;
    let objective = common.body.required_text("objective")?.to_owned();
    let input = common.body.get("input").cloned().unwrap_or_else(|| json!({}));
    let task_type = common.policy.task_type.clone().unwrap_or_else(|| "delegate".to_owned());
    let schema = common.execution_schema.cloned();
    Ok(job(common, JobWork::Delegate { objective, input, task_type }, schema, "vp.schema_only.v1"))
}

pub fn validate(body: &Value) -> Result<Job, Problem> {
    let common = common::<ValidateRequest>(body)?;
    let claim =
        common.body.get("claim").ok_or_else(|| common.body.wrong("claim", "is required"))?;
    if claim.as_str().is_some_and(|text| text.trim().is_empty()) {
        return Err(common.body.wrong("claim", "must not be blank"));
    }
    let inner = match claim.as_object() {
        Some(members) if members.contains_key("output") => common.body.object("claim")?,
        Some(_) | None => None,
    };
    let output = inner.as_ref().and_then(|inner| inner.get("output")).unwrap_or(claim).clone();
    // What belongs to the candidate stands beside it: in the claim, or in the request.
    let beside = inner.as_ref().unwrap_or(&common.body);
    let schemas = [schema(beside)?, schema(&common.body)?, common.execution_schema];
    let schema = schemas.into_iter().flatten().next().cloned();
    let evidence = evidence(beside)?;
    let policy = if schema.is_some() { "vp.schema_only.v1" } else { "vp.claim.v1" };
    Ok(job(common, JobWork::Validate { output, evidence }, schema, policy))
}

pub fn factcheck(body: &Value) -> Result<Job, Problem> {
    let common = common::<FactcheckRequest>(body)?;
    let claim =
        common.body.get("claim").ok_or_else(|| common.body.wrong("claim", "is required"))?;
    let prompt = match claim {
        Value::String(text) if !text.trim().is_empty() => text.clone(),
        Value::String(_) => return Err(common.body.wrong("claim", "must not be blank")),
        Value::Object(members) => match members.get("text").or_else(|| members.get("claim")) {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => claim.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            let reason = format!("must be a string or an object, not {}", kind(claim));
            return Err(common.body.wrong("claim", &reason));
        }
    };
    let mode =
        common.body.word("mode", &["standard", "realtime"])?.unwrap_or(FactcheckMode::Standard);
    if common.policy.binding.is_some() {
        let reason = "is not accepted by factcheck, which has its own schema; leave it out";
        return Err(common.body.unsupported("policy.policy_id", reason));
    }
    let work = JobWork::Factcheck { claim: claim.clone(), prompt, mode };
    Ok(job(common, work, Some(factcheck_schema()), "vp.schema_only.v1"))
}

/// What an executor must return for a fact check.
pub fn factcheck_schema() -> Value {
    json!({
        "type": "object",
        "required": ["verdict"],
        "properties": {
            "verdict": { "enum": ["TRUE", "FALSE", "UNSURE"] },
            "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
            "reasons": { "type": "array" },
            "sources": { "type": "array" }
        }
    })
}

fn common<R: DescribedRequest>(body: &Value) -> Result<CommonFields<'_>, Problem> {
    let request = canonical(body);
    let request_digest = digest(&request);
    let request = String::from_utf8(request).ok();
    let body = RequestFields::of_body(body, terms::CODE)?;
    body.keep_to::<R>()?;
    let policy = policy_request::decode(&body)?;
    let mut terms = terms::decode(&body, policy.tier.map_or(1, Tier::replicas))?;
    if let Some(session) = body.get("session_id") {
        if !terms.pool.is_empty() {
            let reason = "contradicts `consensus.session_pool`; leave one of them out";
            return Err(body.wrong("session_id", reason));
        }
        let reason = "must be a string or an integer";
        let entry = terms::pool_entry(session).ok_or_else(|| body.wrong("session_id", reason))?;
        terms.pool = vec![entry];
    }
    let execution = body.object("execution")?;
    let mut timeout_ms = policy.timeout_ms;
    let mut max_steps = None;
    let mut execution_schema = None;
    if let Some(execution) = &execution {
        timeout_ms = policy_request::timeout(execution)?.or(timeout_ms);
        max_steps = execution.whole("max_steps", 1, 1_000_000)?.and_then(|n| u32::try_from(n).ok());
        execution_schema = schema(execution)?;
    }
    let timeout_ms = timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    Ok(CommonFields {
        body,
        policy,
        terms,
        timeout_ms,
        max_steps,
        execution_schema,
        request_digest,
        request,
    })
}

fn job(
    common: CommonFields<'_>,
    work: JobWork,
    schema: Option<Value>,
    default_policy: &str,
) -> Job {
    let policy =
        common.policy.binding.unwrap_or_else(|| PolicyBinding::new(default_policy, json!({})));
    Job {
        work,
        policy,
        has_schema: schema.is_some(),
        output_schema: schema.unwrap_or_else(|| Value::Object(Map::new())),
        context: common.body.get("context").cloned(),
        passed_on: passed_on(&common.body),
        tier: common.policy.tier,
        labels: common.policy.labels,
        terms: common.terms,
        timeout_ms: common.timeout_ms,
        max_steps: common.max_steps,
        request_digest: common.request_digest,
        request: common.request,
        step: None,
    }
}

/// What the caller says to the executors beside the job.
fn passed_on(body: &RequestFields<'_>) -> Map<String, Value> {
    // Nobody reads `metadata`: it is known so that it is not refused.
    let _notes = body.get("metadata");
    let given = |name: &str| body.get(name).map(|value| (name.to_owned(), value.clone()));
    ["tools", "workflow", "actor"].into_iter().filter_map(given).collect()
}

/// What an output must match, as far as its kind goes; its bounds are checked later.
fn schema<'a>(fields: &RequestFields<'a>) -> Result<Option<&'a Value>, Problem> {
    match fields.get("output_schema") {
        Some(other) if !other.is_object() && !other.is_boolean() => {
            let reason = format!("must be a JSON Schema, not {}", kind(other));
            Err(fields.wrong("output_schema", &reason))
        }
        schema => Ok(schema),
    }
}

fn evidence(fields: &RequestFields<'_>) -> Result<Evidence, Problem> {
    let inline: Vec<executor::WireInlineEvidence> = list(fields, "evidence_inline")?;
    let refs: Vec<executor::WireArtifactRef> = list(fields, "evidence_refs")?;
    Ok(Evidence {
        inline: inline.into_iter().map(Into::into).collect(),
        refs: refs.into_iter().map(Into::into).collect(),
    })
}

fn list<T: serde::de::DeserializeOwned>(
    fields: &RequestFields<'_>,
    name: &str,
) -> Result<Vec<T>, Problem> {
    let Some(value) = fields.get(name) else { return Ok(Vec::new()) };
    let items = value.as_array().ok_or_else(|| fields.wrong(name, "must be a list"))?;
    let read = |(index, item): (usize, &Value)| {
        serde_json::from_value(item.clone()).map_err(|error| {
            fields.wrong(&format!("{name}.{index}"), &format!("is not usable: {error}"))
        })
    };
    items.iter().enumerate().map(read).collect()
}

//! Requests of `/api/v3/{delegate,validate,factcheck}`, decoded into jobs.

use jurat_core::{
    canonical::{canonical, digest},
    executor::session::Tier,
    policy::PolicyBinding,
    round::{
        candidate::{ArtifactRef, Evidence, InlineEvidence},
        job::{AgreementTerms, FactcheckMode, Job, JobWork},
    },
};
use serde_json::{Map, Value, json};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, Schema, Type, empty},
};

use super::{
    kit::{
        faults::RequestFaults,
        json::kind,
        request::{
            self, DraftField, FieldFault, FieldPath, RequestField, SchemaParts, add_component,
            component, named, object, one_of, request, text,
            unknown::FieldShape,
            values,
            values::{NOT_BLANK, NotBlank, Whole},
        },
        terms::{self, ConsensusTerms, SessionRef, agreement_terms},
        words,
    },
    policy_request::{
        FactcheckPolicyChoice, PolicyChoice, PolicyRequest, Seconds, TimeoutMs, deadline_ms,
    },
};
use crate::problem::Problem;

/// Default deadline of a round.
pub const DEFAULT_TIMEOUT_MS: u64 = 60_000;
const LARGEST_SAFE: u64 = 9_007_199_254_740_991;

request! {
    /// A request to delegate a job. Unknown fields are refused, except names that begin with `x_`,
    /// which are reserved for the caller.
    pub strict struct DelegateRequest, draft DelegateDraft {
        /// The job to do.
        objective: NotBlank,
        /// The input of the job; defaults to `{}`.
        input: Option<Value>,
        policy: Option<PolicyChoice>;
        ..job: JobFields,
        ..round: RoundFields
    }

    /// A request to validate a candidate. Unknown fields are refused, except names that begin with
    /// `x_`, which are reserved for the caller.
    pub strict struct ValidateRequest, draft ValidateDraft {
        claim: Claim;
        ..candidate: CandidateFields,
        ..job: JobFields,
        ..round: RoundFields
    }

    /// A request to fact-check a claim. Unknown fields are refused, except names that begin with `x_`,
    /// which are reserved for the caller.
    pub strict struct FactcheckRequest, draft FactcheckDraft {
        claim: FactClaim,
        /// Defaults to `standard`. In the mode `realtime`, a session whose executor does not list
        /// `factcheck:realtime` in its task types abstains with `NEEDS_SPEC`.
        mode: Option<words::FactcheckMode>,
        policy: Option<FactcheckPolicyChoice>;
        ..job: JobFields,
        ..round: RoundFields
    }

    /// A version 2 request to delegate a job. Unknown fields are ignored and named in the `warnings` of
    /// the reply.
    pub open struct DelegateRequestV2 {
        /// The job to do.
        objective: NotBlank,
        /// The input of the job; defaults to `{}`.
        input: Option<Value>,
        policy: Option<PolicyChoice>,
        /// The session to call; routing chooses one if it is left out.
        session_id: Option<SessionRef>;
        ..job: JobFields
    }

    /// A version 2 request to validate a candidate. Unknown fields are ignored and named in the
    /// `warnings` of the reply.
    pub open struct ValidateRequestV2 {
        claim: Claim,
        /// The session to call; routing chooses one if it is left out.
        session_id: Option<SessionRef>;
        ..candidate: CandidateFields,
        ..job: JobFields
    }

    /// The fields of every job.
    pub open struct JobFields, draft JobFieldsDraft {
        /// Additional context for the executors.
        context: Option<Value>,
        /// Tools that the executors may use; passed on to them.
        tools: Option<Value>,
        /// The workflow that the job belongs to; passed on to the executors.
        workflow: Option<Value>,
        /// The person or system the job is done for; passed on to the executors.
        actor: Option<Value>,
        /// The caller's notes; ignored.
        metadata: Option<Value>,
        execution: Option<ExecutionLimits>,
    }

    /// The fields that belong to a candidate.
    pub open struct CandidateFields, draft CandidateFieldsDraft {
        /// Schema that the output must match; takes precedence over `execution.output_schema`.
        output_schema: Option<JsonSchema>,
        /// Evidence for the candidate, as text.
        evidence_inline: Option<Vec<EvidenceItem<EvidenceText>>>,
        /// Evidence for the candidate, stored elsewhere.
        evidence_refs: Option<Vec<EvidenceItem<EvidenceRef>>>,
        policy: Option<PolicyChoice>,
    }

    /// The terms of a round.
    pub open struct RoundFields, draft RoundFieldsDraft {
        consensus: Option<ConsensusTerms>,
        /// Used as a pool of one session if there is no `session_pool`.
        session_id: Option<SessionRef>,
    }

    /// Evidence as text.
    pub strict struct EvidenceText, draft EvidenceTextDraft {
        mime: String,
        content: String,
    }

    /// Evidence stored elsewhere. It is fetched if a policy or a task requires it.
    pub strict struct EvidenceRef, draft EvidenceRefDraft {
        uri: String,
        digest: String,
        size_bytes: Whole<0, LARGEST_SAFE>,
        mime: String,
        /// Milliseconds since 1970.
        created_at: Whole<0, LARGEST_SAFE>,
        producer: String,
    }

    /// How to do the job.
    pub strict struct ExecutionLimits as "Execution", draft ExecutionDraft {
        /// Deadline of the whole round; defaults to 60000.
        timeout_ms: Option<TimeoutMs>,
        /// The deadline in seconds, if there is no `timeout_ms`.
        timeout: Option<Seconds>,
        /// Passed on in the task contract; defaults to 10.
        max_steps: Option<Whole<1, 1_000_000>>,
        /// Schema that the output must match; not used by factcheck.
        output_schema: Option<JsonSchema>,
    }

    /// A candidate that is the whole claim.
    open struct ClaimedCandidate {
        output: Option<Value>,
        output_schema: Option<JsonSchema>,
        evidence_inline: Option<Vec<EvidenceItem<EvidenceText>>>,
        evidence_refs: Option<Vec<EvidenceItem<EvidenceRef>>>,
    }
}

values! {
    /// A JSON Schema: an object or a boolean. Its limits are checked later.
    pub named struct JsonSchema(Value):
        one_of("A JSON Schema; draft 2020-12 unless `$schema` names another.")
            .item(object())
            .item(ObjectBuilder::new().schema_type(Type::Boolean))
        => json_schema;

    /// The claim of a fact check, and the claim's text.
    pub named struct FactClaim((Value, String) as Value):
        one_of("The claim as text, or an object with the text in `text` or `claim`.")
            .item(text().pattern(Some(NOT_BLANK)))
            .item(object())
        => fact_claim;
}

/// A piece of evidence, which is accepted or refused as a whole: a fault names the piece, not a
/// field within it.
#[derive(Debug)]
pub struct EvidenceItem<T>(pub T);

impl<T: RequestField> RequestField for EvidenceItem<T> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let mut inner = RequestFaults::default();
        let read = T::read(value, at, &mut inner);
        if let Some(fault) = inner.into_iter().next() {
            faults.add(at.wrong(&format!("is not usable: {}", fault.detail)));
        }
        read.map(Self)
    }

    fn describe() -> RefOr<Schema> {
        T::describe()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        T::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        T::shape()
    }
}

impl<T: DraftField> DraftField for EvidenceItem<T> {
    type Draft = T::Draft;
}

/// The candidate of a validate request: an output alone, or an object with the output, its schema
/// and its evidence.
#[derive(Debug)]
pub struct Claim {
    value: Value,
    candidate: Option<ClaimedCandidate>,
}

impl RequestField for Claim {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        if value.as_str().is_some_and(|text| text.trim().is_empty()) {
            faults.add(at.wrong("must not be blank"));
            return None;
        }
        let candidate = match value.get("output") {
            Some(_) => Some(ClaimedCandidate::read(value, at, faults)?),
            None => None,
        };
        Some(Self { value: value.clone(), candidate })
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }

    fn shape() -> FieldShape {
        FieldShape::Free
    }
}

impl DraftField for Claim {
    type Draft = Value;
}

named!(
    Claim:
        one_of("The candidate's output. An object with `output` is a full candidate: its `output` is judged, and its `output_schema`, `evidence_inline` and `evidence_refs` are used.")
            .item(text().pattern(Some(NOT_BLANK)))
            .item(object())
            .item(ArrayBuilder::new().items(RefOr::T(empty())))
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .item(ObjectBuilder::new().schema_type(Type::Boolean))
);

/// The parts that all three requests share.
struct CommonFields {
    policy: PolicyRequest,
    terms: AgreementTerms,
    job: JobFields,
    request_digest: String,
    request: Option<String>,
}

/// Reads a request to delegate a job.
pub fn delegate(body: &Value) -> Result<Job, Problem> {
    let DelegateRequest { objective, input, policy, job, round } =
        request::read(body, terms::CODE)?;
    let common = CommonFields::new(body, policy, job, round)?;
    let work = JobWork::Delegate {
        objective: objective.0,
        input: input.unwrap_or_else(|| json!({})),
        task_type: common.policy.task_type.clone().unwrap_or_else(|| "delegate".to_owned()),
    };
    let schema = common.execution_schema();
    Ok(common.job(work, schema, "vp.schema_only.v1"))
}

/// Reads a request to validate a candidate.
pub fn validate(body: &Value) -> Result<Job, Problem> {
    let ValidateRequest { claim, candidate: beside, job, round } =
        request::read(body, terms::CODE)?;
    let common = CommonFields::new(body, beside.policy, job, round)?;
    let Claim { value, candidate } = claim;
    // A full candidate contains its own evidence; otherwise the evidence is next to the claim.
    let (output, own_schema, inline, refs) = match candidate {
        Some(it) => {
            (it.output.unwrap_or(value), it.output_schema, it.evidence_inline, it.evidence_refs)
        }
        None => (value, None, beside.evidence_inline, beside.evidence_refs),
    };
    let schema = own_schema.or(beside.output_schema).map(|schema| schema.0);
    let schema = schema.or_else(|| common.execution_schema());
    let evidence = Evidence {
        inline: inline.unwrap_or_default().into_iter().map(|it| it.0.into()).collect(),
        refs: refs.unwrap_or_default().into_iter().map(|it| it.0.into()).collect(),
    };
    let policy = if schema.is_some() { "vp.schema_only.v1" } else { "vp.claim.v1" };
    Ok(common.job(JobWork::Validate { output, evidence }, schema, policy))
}

/// Reads a request to fact-check a claim.
pub fn factcheck(body: &Value) -> Result<Job, Problem> {
    let FactcheckRequest { claim, mode, policy, job, round } = request::read(body, terms::CODE)?;
    let common = CommonFields::new(body, policy.map(|policy| policy.0), job, round)?;
    if common.policy.binding.is_some() {
        let reason = "is not accepted by factcheck, which has its own schema; leave it out";
        return Err(AT.member("policy.policy_id").unsupported(reason));
    }
    let FactClaim((claim, prompt)) = claim;
    let mode = mode.map_or(FactcheckMode::Standard, |mode| mode.0);
    let work = JobWork::Factcheck { claim, prompt, mode };
    Ok(common.job(work, Some(factcheck_schema()), "vp.schema_only.v1"))
}

const AT: FieldPath<'static> = FieldPath::body(terms::CODE);

/// The schema of an executor's answer to a fact check.
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

impl CommonFields {
    fn new(
        body: &Value,
        policy: Option<PolicyChoice>,
        job: JobFields,
        round: RoundFields,
    ) -> Result<Self, Problem> {
        let policy = policy.map(|policy| policy.checked(&AT.member("policy"))).transpose()?;
        let policy = policy.unwrap_or_default();
        let replicas = policy.tier.map_or(1, Tier::replicas);
        let mut terms = agreement_terms(round.consensus, replicas, &AT)?;
        if let Some(SessionRef(session)) = round.session_id {
            if !terms.pool.is_empty() {
                let reason = "contradicts `consensus.session_pool`; leave one of them out";
                return Err(AT.member("session_id").wrong(reason));
            }
            terms.pool = vec![session];
        }
        let request = canonical(body);
        let request_digest = digest(&request);
        Ok(Self { policy, terms, job, request_digest, request: String::from_utf8(request).ok() })
    }

    fn execution_schema(&self) -> Option<Value> {
        self.job.execution.as_ref()?.output_schema.as_ref().map(|schema| schema.0.clone())
    }

    fn job(self, work: JobWork, schema: Option<Value>, default_policy: &str) -> Job {
        let binding = self.policy.binding;
        let policy = binding.unwrap_or_else(|| PolicyBinding::new(default_policy, json!({})));
        let JobFields { context, tools, workflow, actor, metadata: _, execution } = self.job;
        let (timeout_ms, max_steps) = execution.map_or((None, None), |limits| {
            (deadline_ms(limits.timeout_ms, limits.timeout), limits.max_steps)
        });
        let passed_on = [("tools", tools), ("workflow", workflow), ("actor", actor)];
        let given = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
        Job {
            work,
            policy,
            has_schema: schema.is_some(),
            output_schema: schema.unwrap_or_else(|| Value::Object(Map::new())),
            context,
            passed_on: passed_on.into_iter().filter_map(given).collect(),
            tier: self.policy.tier,
            labels: self.policy.labels,
            terms: self.terms,
            timeout_ms: timeout_ms.or(self.policy.timeout_ms).unwrap_or(DEFAULT_TIMEOUT_MS),
            max_steps: max_steps.and_then(|steps| u32::try_from(steps.0).ok()),
            request_digest: self.request_digest,
            request: self.request,
            step: None,
            relayed: None,
        }
    }
}

impl From<EvidenceText> for InlineEvidence {
    fn from(text: EvidenceText) -> Self {
        Self { mime: text.mime, content: text.content }
    }
}

impl From<EvidenceRef> for ArtifactRef {
    fn from(artifact: EvidenceRef) -> Self {
        Self {
            uri: artifact.uri,
            digest: artifact.digest,
            size_bytes: artifact.size_bytes.0,
            mime: artifact.mime,
            created_at: artifact.created_at.0,
            producer: artifact.producer,
        }
    }
}

fn json_schema(value: &Value) -> Result<Value, FieldFault> {
    if value.is_object() || value.is_boolean() {
        Ok(value.clone())
    } else {
        Err(format!("must be a JSON Schema, not {}", kind(value)).into())
    }
}

fn fact_claim(claim: &Value) -> Result<(Value, String), FieldFault> {
    let prompt = match claim {
        Value::String(text) if !text.trim().is_empty() => text.clone(),
        Value::String(_) => return Err("must not be blank".into()),
        Value::Object(members) => match members.get("text").or_else(|| members.get("claim")) {
            Some(Value::String(text)) => text.clone(),
            Some(_) | None => claim.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return Err(format!("must be a string or an object, not {}", kind(claim)).into());
        }
    };
    Ok((claim.clone(), prompt))
}

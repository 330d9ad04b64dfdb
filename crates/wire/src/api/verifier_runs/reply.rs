//! A run as replies and lists show it.

use std::borrow::Cow;

use jurat_core::{
    account::ledger::usd,
    round::{Round, replica::Replica},
    verifier::run::{REASONING, VerifierRun, VerifierRunEnd},
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, schema::Schema},
};

use crate::{
    api::{
        consensus_reply::ReplicaErrorBody,
        kit::{
            member::OptionalMember,
            time::Time,
            words::{Label, RunErrorCode, RunPurpose, one_of},
        },
        verifiers::NewestMeasurements,
    },
    problem::without_brackets,
};

/// What the sessions of judges begin with.
const JUDGE: &str = "judge:";

/// A verifier run; outside of lists, with the answer of each judge.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VerifierRun)]
pub struct VerifierRunBody<'a> {
    /// Null for a run without a key.
    #[schema(required = true)]
    verifier_run_id: Option<&'a str>,
    /// The id of a run without a key; null for all others.
    #[schema(required = true)]
    anonymous_verifier_run_id: Option<&'a str>,
    verifier_id: &'a str,
    version: u32,
    status: VerifierRunStatus,
    /// Whether the inputs pass; null if there is no verdict.
    #[schema(required = true)]
    passed: Option<bool>,
    /// The judge's reasoning; null if there is none.
    #[schema(required = true)]
    reasoning: Option<&'a str>,
    /// Zero while the run is in progress.
    duration_ms: u64,
    created_at: Time,
    /// With the status `error`: why there is no verdict.
    #[schema(required = true)]
    error_code: Option<RunErrorCode>,
    #[schema(required = true)]
    error_message: Option<Cow<'a, str>>,
    purpose: RunPurpose,
    /// SHA-256 of the canonical inputs, in hex.
    inputs_digest: &'a str,
    /// The round of the run.
    round_id: &'a str,
    /// Cost in credits, as decimal text.
    #[schema(example = "0.0031")]
    cost_usd: String,
    /// Left out in lists, like all fields up to `measured`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = JudgeUsageBody)]
    usage: Option<JudgeUsageBody>,
    /// The judges called, in selection order; empty while the run is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<JudgeBody>)]
    judges: Option<Vec<JudgeBody<'a>>>,
    /// Share of the called judges that agree; null while the run is in progress.
    #[serde(skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    agreement: OptionalMember<f64>,
    /// Probability that the verdict is right; null while the run is in progress.
    #[serde(skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    confidence: OptionalMember<f64>,
    /// True if the verdict has a confidence below one half; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    low_confidence: Option<bool>,
    /// Digest of the recorded decision; null while the run is in progress.
    #[serde(skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<String>)]
    receipt_id: OptionalMember<&'a str>,
    /// Measurements of this version; null if it was never measured.
    #[serde(skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<NewestMeasurements>)]
    measured: OptionalMember<NewestMeasurements<'a>>,
    /// The workflow that the run belongs to, if the caller named one; `skill_id` is an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    workflow_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    skill_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    workflow_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    skill_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    workflow_ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    skill_ref: Option<&'a str>,
    /// The caller's own id for the context of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    run_id: Option<&'a str>,
}

/// Total usage of the judges, as counted by their providers.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = JudgeUsage)]
struct JudgeUsageBody {
    input_tokens: u64,
    output_tokens: u64,
    /// Whether every verdict was cached, so that no model was called.
    cached: bool,
}

/// One judge of a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunJudge)]
struct JudgeBody<'a> {
    /// `provider/model`.
    model: &'a str,
    /// Its verdict: `met`, `not_met`, `cannot_confirm` or `conflicting`; null if it gave none.
    #[schema(required = true)]
    verdict: Option<&'a str>,
    /// How the verdict counts.
    label: Label,
    #[schema(required = true)]
    reasoning: Option<&'a str>,
    /// The passages that it cites.
    #[schema(value_type = Vec<Value>)]
    findings: &'a [Value],
    latency_ms: u64,
    /// Cost in credits, as decimal text.
    cost_usd: String,
    /// Whether its verdict was cached.
    cached: bool,
    /// Why it gave no verdict.
    #[schema(required = true)]
    error: Option<ReplicaErrorBody<'a>>,
}

/// Where a run stands.
#[derive(Debug, Clone, Copy)]
enum VerifierRunStatus {
    Success,
    Error,
    Running,
}

impl VerifierRunStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Running => "running",
        }
    }
}

impl Serialize for VerifierRunStatus {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(self.as_str())
    }
}

impl PartialSchema for VerifierRunStatus {
    fn schema() -> RefOr<Schema> {
        let text = "`success` with either verdict, `error` without one.";
        one_of(text, [Self::Success, Self::Error, Self::Running].into_iter().map(Self::as_str))
    }
}

impl ToSchema for VerifierRunStatus {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("RunStatus")
    }
}

/// A line of a list.
pub fn line(run: &VerifierRun) -> VerifierRunBody<'_> {
    let (ticket, end) = (&run.ticket, run.end.as_ref());
    let from = &ticket.provenance;
    let (workflow_id, workflow_ref) = (from.workflow_id.as_deref(), from.workflow_ref.as_deref());
    let (error_code, error_message) = error(end);
    VerifierRunBody {
        verifier_run_id: Some(&ticket.id),
        anonymous_verifier_run_id: None,
        verifier_id: &ticket.verifier_id,
        version: ticket.version,
        status: status(end),
        passed: end.and_then(|end| end.verdict.as_ref().ok().copied()),
        reasoning: end.and_then(|end| end.reasoning.as_deref()),
        duration_ms: end.map_or(0, |end| end.duration_ms),
        created_at: Time(run.created_at),
        error_code,
        error_message,
        purpose: RunPurpose(ticket.purpose),
        inputs_digest: &ticket.inputs_digest,
        round_id: run.round.as_str(),
        cost_usd: usd(end.map_or(0, |end| end.cost_micros)),
        usage: None,
        judges: None,
        agreement: OptionalMember::LeftOut,
        confidence: OptionalMember::LeftOut,
        low_confidence: None,
        receipt_id: OptionalMember::LeftOut,
        measured: OptionalMember::LeftOut,
        workflow_id,
        skill_id: workflow_id,
        workflow_version: from.workflow_version,
        skill_version: from.workflow_version,
        workflow_ref,
        skill_ref: workflow_ref,
        run_id: from.run_id.as_deref(),
    }
}

/// A run with its round.
pub fn whole<'a>(
    run: &'a VerifierRun,
    round: &'a Round,
    measured: Option<NewestMeasurements<'a>>,
) -> VerifierRunBody<'a> {
    let closing = round.closing.as_ref();
    let replicas: &[Replica] = closing.map_or(&[], |closing| &closing.replicas);
    VerifierRunBody {
        usage: Some(usage(replicas)),
        judges: Some(replicas.iter().map(JudgeBody::of).collect()),
        agreement: OptionalMember::Is(closing.map(|closing| closing.consensus.agreement)),
        confidence: OptionalMember::Is(closing.map(|closing| closing.consensus.confidence)),
        low_confidence: closing.and_then(|it| it.consensus.is_unlikely().then_some(true)),
        receipt_id: OptionalMember::Is(closing.map(|closing| closing.receipt_id.as_str())),
        measured: OptionalMember::Is(measured),
        ..line(run)
    }
}

/// A run without a key, with its round.
pub fn anonymous<'a>(run: &'a VerifierRun, round: &'a Round) -> VerifierRunBody<'a> {
    VerifierRunBody {
        verifier_run_id: None,
        anonymous_verifier_run_id: Some(&run.ticket.id),
        ..whole(run, round, None)
    }
}

fn status(end: Option<&VerifierRunEnd>) -> VerifierRunStatus {
    match end.map(|end| &end.verdict) {
        None => VerifierRunStatus::Running,
        Some(Ok(_)) => VerifierRunStatus::Success,
        Some(Err(_)) => VerifierRunStatus::Error,
    }
}

fn error(end: Option<&VerifierRunEnd>) -> (Option<RunErrorCode>, Option<Cow<'_, str>>) {
    match end.map(|end| &end.verdict) {
        Some(Err((code, message))) => (Some(RunErrorCode(*code)), Some(without_brackets(message))),
        None | Some(Ok(_)) => (None, None),
    }
}

fn usage(replicas: &[Replica]) -> JudgeUsageBody {
    let mut sum = JudgeUsageBody::default();
    for usage in replicas.iter().filter_map(|replica| replica.usage) {
        sum.input_tokens += usage.input_tokens;
        sum.output_tokens += usage.output_tokens;
    }
    sum.cached = !replicas.is_empty() && replicas.iter().all(is_cached);
    sum
}

fn is_cached(replica: &Replica) -> bool {
    replica.usage.is_some_and(|usage| usage.is_cached)
}

impl<'a> JudgeBody<'a> {
    fn of(replica: &'a Replica) -> Self {
        let output = replica.answer.content().and_then(|said| said.output.as_ref());
        let text = |name: &str| output.and_then(|output| output.get(name)?.as_str());
        let findings = output.and_then(|output| output.get("findings")?.as_array());
        Self {
            model: replica.session_id.strip_prefix(JUDGE).unwrap_or(&replica.session_id),
            verdict: text("verdict"),
            label: Label(replica.answer.label()),
            reasoning: text(REASONING),
            findings: findings.map_or(&[], Vec::as_slice),
            latency_ms: replica.latency_ms,
            cost_usd: usd(i64::try_from(replica.cost_micros).unwrap_or(i64::MAX)),
            cached: is_cached(replica),
            error: replica.answer.failure().map(ReplicaErrorBody::of),
        }
    }
}

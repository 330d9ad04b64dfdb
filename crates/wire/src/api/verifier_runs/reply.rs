//! Verifier runs as replies and lists show them.

use std::borrow::Cow;

use jurat_core::{
    account::ledger::usd,
    round::{Round, replica::Replica},
    verifier::run::{REASONING, VerifierRun, VerifierRunEnd},
};
use serde::{Deserialize, Serialize};
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

/// Prefix of the session ids of judges.
const JUDGE: &str = "judge:";

/// A verifier run; outside of lists, with the answer of each judge.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = VerifierRun)]
pub struct VerifierRunBody<'a> {
    /// Null for a run without a key.
    #[schema(required = true)]
    pub verifier_run_id: Option<Cow<'a, str>>,
    /// The id of a run without a key; null for all others.
    #[schema(required = true)]
    pub anonymous_verifier_run_id: Option<Cow<'a, str>>,
    pub verifier_id: Cow<'a, str>,
    pub version: u32,
    pub status: VerifierRunStatus,
    /// Whether the inputs pass; null if there is no verdict.
    #[schema(required = true)]
    pub passed: Option<bool>,
    /// The judge's reasoning; null if there is none.
    #[schema(required = true)]
    pub reasoning: Option<Cow<'a, str>>,
    /// Zero while the run is in progress.
    pub duration_ms: u64,
    pub created_at: Time,
    /// With the status `error`: why there is no verdict.
    #[schema(required = true)]
    pub error_code: Option<RunErrorCode>,
    #[schema(required = true)]
    pub error_message: Option<Cow<'a, str>>,
    pub purpose: RunPurpose,
    /// SHA-256 of the canonical inputs, in hex.
    pub inputs_digest: Cow<'a, str>,
    /// The round of the run.
    pub round_id: Cow<'a, str>,
    /// Cost in credits, as decimal text.
    #[schema(example = "0.0031")]
    pub cost_usd: String,
    /// Left out in lists, like all fields up to `measured`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = JudgeUsageBody)]
    pub usage: Option<JudgeUsageBody>,
    /// The judges called, in selection order; empty while the run is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<JudgeBody>)]
    pub judges: Option<Vec<JudgeBody<'a>>>,
    /// Share of the called judges that agree; null while the run is in progress.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    pub agreement: OptionalMember<f64>,
    /// Probability that the verdict is right; null while the run is in progress.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1)]
    pub confidence: OptionalMember<f64>,
    /// True if the verdict has a confidence of one half or less; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool)]
    pub low_confidence: Option<bool>,
    /// Digest of the recorded decision; null while the run is in progress.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<String>)]
    pub receipt_id: OptionalMember<Cow<'a, str>>,
    /// Measurements of this version; null if it was never measured.
    #[serde(default, skip_serializing_if = "OptionalMember::is_left_out")]
    #[schema(value_type = Option<NewestMeasurements>)]
    pub measured: OptionalMember<NewestMeasurements<'a>>,
    /// The workflow that the run belongs to, if the caller named one; `skill_id` is an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub workflow_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub skill_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub workflow_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub skill_version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub workflow_ref: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub skill_ref: Option<Cow<'a, str>>,
    /// The caller's own id for the context of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub run_id: Option<Cow<'a, str>>,
}

/// Total usage of the judges, as counted by their providers.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = JudgeUsage)]
pub struct JudgeUsageBody {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Whether every verdict was cached, so that no model was called.
    pub cached: bool,
}

/// One judge of a run.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = RunJudge)]
pub struct JudgeBody<'a> {
    /// `provider/model`.
    pub model: Cow<'a, str>,
    /// Its verdict: `met`, `not_met`, `cannot_confirm` or `conflicting`; null if it gave none.
    #[schema(required = true)]
    pub verdict: Option<Cow<'a, str>>,
    /// How the verdict counts.
    pub label: Label,
    #[schema(required = true)]
    pub reasoning: Option<Cow<'a, str>>,
    /// The passages that it cites.
    #[schema(value_type = Vec<Value>)]
    pub findings: Cow<'a, [Value]>,
    pub latency_ms: u64,
    /// Cost in credits, as decimal text.
    pub cost_usd: String,
    /// Whether its verdict was cached.
    pub cached: bool,
    /// Why it gave no verdict.
    #[schema(required = true)]
    pub error: Option<ReplicaErrorBody<'a>>,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifierRunStatus {
    Success,
    Error,
    Running,
}

impl PartialSchema for VerifierRunStatus {
    fn schema() -> RefOr<Schema> {
        let text = "`success` with either verdict, `error` without one.";
        one_of(text, ["success", "error", "running"].into_iter())
    }
}

impl ToSchema for VerifierRunStatus {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("RunStatus")
    }
}

/// A run in a list.
pub fn line(run: &VerifierRun) -> VerifierRunBody<'_> {
    let (ticket, end) = (&run.ticket, run.end.as_ref());
    let from = &ticket.provenance;
    let (workflow_id, workflow_ref) = (from.workflow_id.as_deref(), from.workflow_ref.as_deref());
    let (error_code, error_message) = error(end);
    VerifierRunBody {
        verifier_run_id: Some(Cow::Borrowed(&ticket.id)),
        anonymous_verifier_run_id: None,
        verifier_id: Cow::Borrowed(&ticket.verifier_id),
        version: ticket.version,
        status: status(end),
        passed: end.and_then(|end| end.verdict.as_ref().ok().copied()),
        reasoning: end.and_then(|end| end.reasoning.as_deref()).map(Cow::Borrowed),
        duration_ms: end.map_or(0, |end| end.duration_ms),
        created_at: Time(run.created_at),
        error_code,
        error_message,
        purpose: RunPurpose(ticket.purpose),
        inputs_digest: Cow::Borrowed(&ticket.inputs_digest),
        round_id: Cow::Borrowed(run.round.as_str()),
        cost_usd: usd(end.map_or(0, |end| end.cost_micros)),
        usage: None,
        judges: None,
        agreement: OptionalMember::LeftOut,
        confidence: OptionalMember::LeftOut,
        low_confidence: None,
        receipt_id: OptionalMember::LeftOut,
        measured: OptionalMember::LeftOut,
        workflow_id: workflow_id.map(Cow::Borrowed),
        skill_id: workflow_id.map(Cow::Borrowed),
        workflow_version: from.workflow_version,
        skill_version: from.workflow_version,
        workflow_ref: workflow_ref.map(Cow::Borrowed),
        skill_ref: workflow_ref.map(Cow::Borrowed),
        run_id: from.run_id.as_deref().map(Cow::Borrowed),
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
        receipt_id: OptionalMember::Is(
            closing.map(|closing| closing.receipt_id.as_str()).map(Cow::Borrowed),
        ),
        measured: OptionalMember::Is(measured),
        ..line(run)
    }
}

/// A run without a key, with its round.
pub fn anonymous<'a>(run: &'a VerifierRun, round: &'a Round) -> VerifierRunBody<'a> {
    VerifierRunBody {
        verifier_run_id: None,
        anonymous_verifier_run_id: Some(Cow::Borrowed(&run.ticket.id)),
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
            model: Cow::Borrowed(
                replica.session_id.strip_prefix(JUDGE).unwrap_or(&replica.session_id),
            ),
            verdict: text("verdict").map(Cow::Borrowed),
            label: Label(replica.answer.label()),
            reasoning: text(REASONING).map(Cow::Borrowed),
            findings: Cow::Borrowed(findings.map_or(&[], Vec::as_slice)),
            latency_ms: replica.latency_ms,
            cost_usd: usd(i64::try_from(replica.cost_micros).unwrap_or(i64::MAX)),
            cached: is_cached(replica),
            error: replica.answer.failure().map(ReplicaErrorBody::of),
        }
    }
}

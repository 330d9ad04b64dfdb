//! `POST /verify`: binds the policy, decides the candidate, and hashes the verdict.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use jurat_core::policy::{
    BindError, Evaluation, EvaluationStatus, Policy, PolicyBinding, PolicyRules, ResultFields,
    policy_hash, result_hash,
};
use jurat_core::reason;
use jurat_core::round::candidate::{ArtifactRef, Candidate};
use jurat_core::round::evidence::{EvidenceFinding, EvidenceStatus, MOST_REFS, amend};
use jurat_core::schema::Schema;
use jurat_guard::sandbox::{PolicyRefusal, Sandbox, SandboxError, SchemaRefusal};
use jurat_wire::executor::{ShapeError, VerifyResponse, decode_verify_request};

use crate::executor::{ExecutorError, JudgeRequest};
use crate::http::RuntimeState;
use crate::options::KernelCompat;
use crate::refusal::RequestRefusal;

pub(crate) async fn answer(
    shared: &RuntimeState,
    body: Value,
) -> Result<VerifyResponse, RequestRefusal> {
    let request = decode_verify_request(body)?;
    let judgement = JudgeRequest {
        candidate: Arc::new(request.candidate.into()),
        output_schema: request.output_schema,
        policy: request.policy.into(),
    };
    let deciding = decide(shared, &judgement);
    let evaluation = tokio::time::timeout(shared.options.limits.execute, deciding)
        .await
        .map_err(|_| RequestRefusal::from(ExecutorError::Timeout))
        .and_then(|decided| decided)?;
    Ok(response(shared, &judgement, &evaluation))
}

/// The evaluation in an answer of `/verify`, once its status is known to be consistent.
pub(crate) fn evaluation(answer: &VerifyResponse) -> Result<Evaluation, ShapeError> {
    Ok(Evaluation {
        status: answer.status()?.into(),
        score: answer.score,
        reason_codes: answer.reason_codes.clone(),
        notes: Vec::new(),
    })
}

/// Whether a value matches a schema. A check that was not made says nothing about the value.
pub(crate) async fn matched(
    bounded: &Sandbox,
    candidate: Arc<Candidate>,
    schema: Schema,
) -> Result<Evaluation, ExecutorError> {
    evaluate(bounded, Policy::SchemaOnly { rules: PolicyRules::Jurat }, candidate, schema).await
}

async fn evaluate(
    bounded: &Sandbox,
    policy: Policy,
    candidate: Arc<Candidate>,
    schema: Schema,
) -> Result<Evaluation, ExecutorError> {
    bounded.try_evaluate(Arc::new(policy), candidate, schema).await.map_err(not_done)
}

fn not_done(error: SandboxError) -> ExecutorError {
    match error {
        SandboxError::Busy => ExecutorError::Overloaded,
        SandboxError::Crashed => ExecutorError::Failed(error.to_string()),
    }
}

async fn decide(
    shared: &RuntimeState,
    judgement: &JudgeRequest,
) -> Result<Evaluation, RequestRefusal> {
    let policy = bind(shared, &judgement.policy).await?;
    let rules = policy.as_ref().map_or(PolicyRules::Jurat, Policy::rules);
    let schema = shared.bounded.schema_under(rules, &judgement.output_schema).await;
    let schema = schema.map_err(schema_refused)?;
    let computed = match policy {
        Some(policy) if !policy.needs_judge() => {
            let candidate = Arc::clone(&judgement.candidate);
            evaluate(&shared.bounded, policy, candidate, schema).await?
        }
        Some(_) | None => judge(shared, judgement, schema).await?,
    };
    let reviewed = shared.executor.review(judgement, computed).await?;
    let refs = &judgement.candidate.evidence.refs;
    if !judgement.policy.fetches_evidence() || refs.is_empty() {
        return Ok(reviewed);
    }
    Ok(amend(reviewed, &look_at(shared, refs).await))
}

/// Fetches the references of the candidate, if the policy asks for that.
async fn look_at(shared: &RuntimeState, refs: &[ArtifactRef]) -> Vec<EvidenceFinding> {
    let mut findings = Vec::with_capacity(refs.len());
    for (index, reference) in refs.iter().enumerate() {
        let found = match &shared.public {
            Some(client) if index < MOST_REFS => {
                let looked = client.look_at(reference, shared.options.limits.execute).await;
                if looked.found != EvidenceStatus::Seen {
                    let (found, cause) = (looked.found.as_str(), looked.detail);
                    tracing::warn!(found, %cause, "could not confirm evidence");
                }
                looked.found
            }
            Some(_) | None => EvidenceStatus::Unreachable,
        };
        findings.push(EvidenceFinding::new(reference, found));
    }
    findings
}

/// The built-in policy of a binding; `None` for a policy of the executor's own.
async fn bind(
    shared: &RuntimeState,
    binding: &PolicyBinding,
) -> Result<Option<Policy>, RequestRefusal> {
    let error = match shared.bounded.policy(binding).await {
        // A criterion never leaves its registry, so no other service can judge by it.
        Ok(Policy::Semantic(_)) => {
            let message = "`vp.semantic.v1` is decided by the registry that hosts the verifier";
            return Err(unsupported(message.to_owned()));
        }
        Ok(policy) => return Ok(Some(policy)),
        Err(PolicyRefusal::Policy(error)) => error,
        Err(PolicyRefusal::NotDone(error)) => return Err(not_done(error).into()),
    };
    match error {
        BindError::Unknown { policy_id } => {
            let own = shared.executor.capabilities().policies;
            if !own.contains(&policy_id) {
                let policy_id = policy_id.chars().take(80).collect();
                let refusal = invalid(&BindError::Unknown { policy_id });
                return Err(refusal.about("policy.policy_id"));
            }
            let expected = policy_hash(&policy_id, &binding.policy_params);
            let given = binding.policy_hash.to_ascii_lowercase();
            if given == expected || Some(given.as_str()) == expected.strip_prefix("sha256:") {
                return Ok(None);
            }
            Err(invalid(&BindError::Hash { policy_id, given, expected })
                .about("policy.policy_hash"))
        }
        error @ BindError::Version { .. } => Err(invalid(&error).about("policy.policy_version")),
        error @ BindError::Hash { .. } => Err(invalid(&error).about("policy.policy_hash")),
        error @ BindError::Params { .. } => {
            let mut refusal = invalid(&error);
            refusal.status = StatusCode::UNPROCESSABLE_ENTITY;
            let BindError::Params { field, .. } = error else { return Err(refusal) };
            Err(refusal.about(format!("policy.{field}")))
        }
    }
}

/// Asks the executor itself, unless the schema has already decided.
async fn judge(
    shared: &RuntimeState,
    judgement: &JudgeRequest,
    schema: Schema,
) -> Result<Evaluation, RequestRefusal> {
    if !schema.is_open() {
        let by_schema = matched(&shared.bounded, Arc::clone(&judgement.candidate), schema).await?;
        if by_schema.status != EvaluationStatus::Passed {
            return Ok(by_schema);
        }
    }
    shared.executor.judge(judgement).await.map_err(|error| {
        tracing::warn!(policy.id = %judgement.policy.policy_id, %error, "a judgment failed");
        match error {
            ExecutorError::NotSupported(message) => unsupported(message),
            error @ (ExecutorError::Refused { .. }
            | ExecutorError::Overloaded
            | ExecutorError::Upstream(_)
            | ExecutorError::Timeout
            | ExecutorError::Failed(_)) => error.into(),
        }
    })
}

fn response(
    shared: &RuntimeState,
    judgement: &JudgeRequest,
    evaluation: &Evaluation,
) -> VerifyResponse {
    let capabilities = shared.executor.capabilities();
    let compat = shared.options.compat;
    let reason_codes = codes(compat, evaluation);
    // A score that is not a number would not survive JSON.
    let score = if evaluation.score.is_nan() { 0.0 } else { evaluation.score.clamp(0.0, 1.0) };
    let passed = evaluation.status == EvaluationStatus::Passed;
    let hash = result_hash(&ResultFields {
        candidate_id: &judgement.candidate.candidate_id,
        execution_id: &judgement.candidate.execution_id,
        passed,
        score,
        reason_codes: &reason_codes,
        provider_family: &capabilities.provider_family,
        model_id: &capabilities.model_id,
        policy_hash: &judgement.policy.policy_hash,
    });
    let hash = match compat {
        KernelCompat::Jurat => hash,
        KernelCompat::WattSwarm => hash.trim_start_matches("sha256:").to_owned(),
    };
    VerifyResponse {
        verification_status: Some(evaluation.status.into()),
        passed,
        score,
        reason_codes,
        verifier_result_hash: Some(hash),
        provider_family: Some(capabilities.provider_family),
        model_id: Some(capabilities.model_id),
    }
}

/// WattSwarm's kernel requires a code on a pass, and a code that it knows on an inconclusive
/// verdict.
fn codes(compat: KernelCompat, evaluation: &Evaluation) -> Vec<u16> {
    let mut codes = evaluation.reason_codes.clone();
    if compat == KernelCompat::Jurat {
        return codes;
    }
    match evaluation.status {
        EvaluationStatus::Passed if codes.is_empty() => codes.push(reason::SCHEMA_OK),
        EvaluationStatus::Inconclusive if !reason::is_inconclusive(&codes) => {
            codes.push(reason::EVIDENCE_UNREACHABLE);
        }
        EvaluationStatus::Failed if codes.is_empty() => codes.push(reason::UNKNOWN),
        EvaluationStatus::Passed | EvaluationStatus::Failed | EvaluationStatus::Inconclusive => {}
    }
    codes
}

fn unsupported(message: String) -> RequestRefusal {
    RequestRefusal::new(StatusCode::UNPROCESSABLE_ENTITY, "policy_unsupported", message)
        .about("policy.policy_id")
}

fn invalid(error: &BindError) -> RequestRefusal {
    let message = format!("policy binding invalid: {error}");
    RequestRefusal::new(StatusCode::BAD_REQUEST, "policy_invalid", message)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` by name")]
fn schema_refused(error: SchemaRefusal) -> RequestRefusal {
    match &error {
        SchemaRefusal::Schema(_) => {
            let message = format!("output_schema: {}: {error}", error.slug());
            RequestRefusal::new(StatusCode::UNPROCESSABLE_ENTITY, "schema_refused", message)
                .about("output_schema")
        }
        SchemaRefusal::Busy => RequestRefusal::overloaded(),
        SchemaRefusal::Crashed => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            RequestRefusal::new(status, "executor_failed", error.to_string())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc;

    use serde_json::json;
    use tokio::sync::oneshot;
    use tokio::task::JoinSet;

    use super::*;
    use crate::background::BackgroundTasks;
    use crate::engines::{EchoExecutor, EchoMode};
    use crate::options::{ExecutorLimits, ExecutorOptions};

    /// Keeps the only thread busy and the queue full while the returned set is alive.
    pub(crate) async fn fill(bounded: &Sandbox) -> JoinSet<()> {
        let (release, released) = mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
        let thread = bounded.clone();
        let mut blocked = JoinSet::from_iter([async move {
            let work = move || {
                started.send(()).unwrap();
                assert!(released.recv().is_err());
            };
            drop((thread.run(work).await, release));
        }]);
        has_started.await.unwrap();
        // Refused jobs end immediately, the others wait as long as the set exists.
        while bounded.refused() == 0 {
            let waiting = bounded.clone();
            blocked.spawn(async move {
                let _done = waiting.run(|| ()).await;
            });
            tokio::task::yield_now().await;
        }
        blocked
    }

    #[tokio::test]
    async fn a_check_without_a_free_thread_is_not_a_verdict() {
        // More work than runs inline, under a schema that is cached already.
        let output: Value = (0..10_000).collect();
        let schema = json!({"items": {"type": "integer"}});
        let limits = ExecutorLimits { policy_threads: 1, ..ExecutorLimits::default() };
        for policy in ["vp.schema_only.v1", "vp.claim.v1"] {
            let echo = Arc::new(EchoExecutor::new("echo", "echo-1", EchoMode::Honest));
            let options = ExecutorOptions { limits, ..ExecutorOptions::default() };
            let shared = RuntimeState::new(echo, options, BackgroundTasks::default());
            let body = json!({
                "candidate": {"candidate_id": "c", "execution_id": "e", "output": output},
                "output_schema": schema,
                "policy": {
                    "policy_id": policy, "policy_version": "1",
                    "policy_hash": policy_hash(policy, &json!({})), "policy_params": {},
                },
            });
            assert!(answer(&shared, body.clone()).await.is_ok(), "{policy}");
            let _full = fill(&shared.bounded).await;
            let refusal = answer(&shared, body).await.unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.error), (503, "overloaded"), "{policy}");
        }
    }
}

//! `POST /verify`: binds the policy, decides the candidate, and hashes the verdict.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use jurat_core::candidate::{Candidate, Evidence};
use jurat_core::policy::{
    BindError, Evaluation, Policy, PolicyBinding, ResultFields, Rules, Status, policy_hash,
    result_hash,
};
use jurat_core::reason;
use jurat_core::schema::Schema;
use jurat_guard::bounded::{Bounded, RefusedSchema};
use jurat_wire::executor::{ShapeError, VerifyResponse, decode_verify_request};

use crate::executor::{ExecutorError, Judgement};
use crate::http::Shared;
use crate::options::Compat;
use crate::refusal::Refusal;

pub(crate) async fn answer(shared: &Shared, body: Value) -> Result<VerifyResponse, Refusal> {
    let request = decode_verify_request(body)?;
    let judgement = Judgement {
        candidate: Arc::new(request.candidate.into()),
        output_schema: request.output_schema,
        policy: request.policy.into(),
    };
    let deciding = decide(shared, &judgement);
    let evaluation = tokio::time::timeout(shared.options.limits.execute, deciding)
        .await
        .map_err(|_| Refusal::from(ExecutorError::Timeout))
        .and_then(|decided| decided)?;
    Ok(response(shared, &judgement, &evaluation))
}

/// What an answer in the form of `/verify` says, once its status is known to be sound.
pub(crate) fn evaluation(answer: &VerifyResponse) -> Result<Evaluation, ShapeError> {
    Ok(Evaluation {
        status: answer.status()?.into(),
        score: answer.score,
        reason_codes: answer.reason_codes.clone(),
        notes: Vec::new(),
    })
}

/// Why a value does not match a schema, if it does not. The error says that it cannot be told.
pub(crate) async fn mismatch(
    bounded: &Bounded,
    value: &Value,
    schema: &Value,
) -> Result<Option<String>, String> {
    let schema = bounded.schema(schema).await.map_err(|error| error.to_string())?;
    let candidate = Candidate {
        candidate_id: String::new(),
        execution_id: String::new(),
        output: value.clone(),
        evidence: Evidence::default(),
    };
    let evaluation = matched(bounded, Arc::new(candidate), schema).await;
    let notes = evaluation.notes.join("; ");
    match evaluation.status {
        Status::Passed => Ok(None),
        Status::Failed => Ok(Some(notes)),
        Status::Inconclusive => Err(notes),
    }
}

async fn matched(bounded: &Bounded, candidate: Arc<Candidate>, schema: Schema) -> Evaluation {
    let policy = Policy::SchemaOnly { rules: Rules::Jurat };
    bounded.evaluate(Arc::new(policy), candidate, schema).await
}

async fn decide(shared: &Shared, judgement: &Judgement) -> Result<Evaluation, Refusal> {
    let policy = bind(shared, &judgement.policy)?;
    let schema = shared.bounded.schema(&judgement.output_schema).await.map_err(schema_refused)?;
    let computed = match policy {
        Some(policy) if !policy.needs_judge() => {
            let candidate = Arc::clone(&judgement.candidate);
            shared.bounded.evaluate(Arc::new(policy), candidate, schema).await
        }
        Some(_) | None => judge(shared, judgement, schema).await?,
    };
    Ok(shared.executor.review(judgement, computed).await?)
}

/// The built-in policy of a binding; `None` for one of the executor's own.
fn bind(shared: &Shared, binding: &PolicyBinding) -> Result<Option<Policy>, Refusal> {
    match Policy::bind(binding) {
        Ok(policy) => Ok(Some(policy)),
        Err(BindError::Unknown { policy_id }) => {
            let own = shared.executor.capabilities().policies;
            if !own.contains(&policy_id) {
                let policy_id: String = policy_id.chars().take(80).collect();
                return Err(unsupported(format!("policy `{policy_id}` is not known here")));
            }
            let expected = policy_hash(&policy_id, &binding.policy_params);
            let given = binding.policy_hash.to_ascii_lowercase();
            if given == expected || Some(given.as_str()) == expected.strip_prefix("sha256:") {
                return Ok(None);
            }
            Err(invalid(&BindError::Hash { policy_id, given, expected })
                .about("policy.policy_hash"))
        }
        Err(error @ BindError::Version { .. }) => {
            Err(invalid(&error).about("policy.policy_version"))
        }
        Err(error @ BindError::Hash { .. }) => Err(invalid(&error).about("policy.policy_hash")),
        Err(error @ BindError::Params { .. }) => {
            let mut refusal = invalid(&error);
            refusal.status = StatusCode::UNPROCESSABLE_ENTITY;
            let BindError::Params { field, .. } = error else { return Err(refusal) };
            Err(refusal.about(format!("policy.{field}")))
        }
    }
}

/// Asks the executor itself, unless the schema has already decided.
async fn judge(
    shared: &Shared,
    judgement: &Judgement,
    schema: Schema,
) -> Result<Evaluation, Refusal> {
    if !schema.is_open() {
        let by_schema = matched(&shared.bounded, Arc::clone(&judgement.candidate), schema).await;
        if by_schema.status != Status::Passed {
            return Ok(by_schema);
        }
    }
    shared.executor.judge(judgement).await.map_err(|error| {
        tracing::warn!(policy.id = %judgement.policy.policy_id, %error, "A judgement failed.");
        match error {
            ExecutorError::NotSupported(message) => unsupported(message),
            error @ (ExecutorError::Refused { .. }
            | ExecutorError::Upstream(_)
            | ExecutorError::Timeout
            | ExecutorError::Failed(_)) => error.into(),
        }
    })
}

fn response(shared: &Shared, judgement: &Judgement, evaluation: &Evaluation) -> VerifyResponse {
    let capabilities = shared.executor.capabilities();
    let compat = shared.options.compat;
    let reason_codes = codes(compat, evaluation);
    // A score that is no number would not survive the way through JSON.
    let score = if evaluation.score.is_nan() { 0.0 } else { evaluation.score.clamp(0.0, 1.0) };
    let passed = evaluation.status == Status::Passed;
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
        Compat::Jurat => hash,
        Compat::WattSwarm => hash.trim_start_matches("sha256:").to_owned(),
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

/// WattSwarm's kernel wants a code on a pass, and one that it knows on an inconclusive verdict.
fn codes(compat: Compat, evaluation: &Evaluation) -> Vec<u16> {
    let mut codes = evaluation.reason_codes.clone();
    if compat == Compat::Jurat {
        return codes;
    }
    match evaluation.status {
        Status::Passed if codes.is_empty() => codes.push(reason::SCHEMA_OK),
        Status::Inconclusive if !reason::is_inconclusive(&codes) => {
            codes.push(reason::EVIDENCE_UNREACHABLE);
        }
        Status::Failed if codes.is_empty() => codes.push(reason::UNKNOWN),
        Status::Passed | Status::Failed | Status::Inconclusive => {}
    }
    codes
}

fn unsupported(message: String) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "policy_unsupported", message)
        .about("policy.policy_id")
}

fn invalid(error: &BindError) -> Refusal {
    let message = format!("policy binding invalid: {error}");
    Refusal::new(StatusCode::BAD_REQUEST, "policy_invalid", message)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` by name")]
fn schema_refused(error: RefusedSchema) -> Refusal {
    match &error {
        RefusedSchema::Schema(_) => {
            let message = format!("output_schema: {}: {error}", error.slug());
            Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "schema_refused", message)
                .about("output_schema")
        }
        RefusedSchema::Busy => Refusal::overloaded(),
        RefusedSchema::Crashed => {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Refusal::new(status, "executor_failed", error.to_string())
        }
    }
}

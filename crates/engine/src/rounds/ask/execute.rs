//! `/execute`: the request of a delegate or factcheck job, and how its reply is read.

use std::sync::Arc;

use jurat_core::round::{
    candidate::Candidate,
    job::{Job, JobWork, TaskCall},
    replica::{AnswerContent, FailureCode, Label, ReplicaAnswer, ReplicaFailure, ReplicaVote},
};
use jurat_guard::client::HttpReply;
use jurat_wire::executor::{
    ExecuteRequest, JobContract, TaskContract, TaskStage, decode_execute_response,
};
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{ReplicaPlan, ReplicaReply, reply_content};
use crate::{Engine, rounds::seats::SeatTarget};

const DEFAULT_MAX_STEPS: u32 = 10;

/// The inputs of a job, as the text for every replica. They are taken out of the job: as values
/// they may take a hundred times the memory.
pub(super) fn take_inputs(job: &mut Job) -> Option<Box<RawValue>> {
    // The body of a call for another node is sent as it came.
    if job.relayed.is_some() {
        return None;
    }
    let is_step = job.step.is_some();
    let inputs = match &mut job.work {
        JobWork::Validate { .. } => return None,
        JobWork::Delegate { input, .. } if is_step => std::mem::take(input),
        JobWork::Delegate { objective, input, .. } => {
            let mut inputs = match std::mem::take(input) {
                Value::Object(members) => members,
                other @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)) => Map::from_iter([("input".to_owned(), other)]),
            };
            inputs.insert("objective".to_owned(), json!(objective));
            inputs.entry("prompt").or_insert_with(|| json!(objective));
            if let Some(context) = job.context.take() {
                inputs.entry("context").or_insert(context);
            }
            for (name, value) in std::mem::take(&mut job.passed_on) {
                inputs.entry(name).or_insert(value);
            }
            Value::Object(inputs)
        }
        JobWork::Factcheck { claim, prompt, mode } => {
            let mut inputs = std::mem::take(&mut job.passed_on);
            inputs.insert("claim".to_owned(), std::mem::take(claim));
            inputs.insert("prompt".to_owned(), json!(std::mem::take(prompt)));
            inputs.insert("mode".to_owned(), json!(mode.as_str()));
            inputs.insert("context".to_owned(), json!(job.context.take()));
            Value::Object(inputs)
        }
    };
    // A value always serializes.
    to_raw_value(&inputs).ok()
}

pub(super) fn execute_request(errand: &ReplicaPlan, index: usize, place: &SeatTarget) -> Vec<u8> {
    if let Some(relayed) = &errand.job.relayed {
        return relayed_request(&relayed.body, place);
    }
    let inputs = errand.inputs.as_deref();
    if let Some(step) = &errand.job.step {
        return task_call_request(inputs, step, place);
    }
    let task_type = place.task_type.clone().unwrap_or_default();
    let execution_id = errand.execution_id(index);
    let timeout_ms = errand.job.timeout_ms;
    let task_contract = TaskContract::for_job(JobContract {
        task_id: errand.round.to_string(),
        task_type: task_type.clone(),
        inputs,
        output_schema: errand.job.output_schema.clone(),
        timeout_ms,
        max_steps: errand.job.max_steps.unwrap_or(DEFAULT_MAX_STEPS),
        policy: errand.job.policy.clone(),
        expiry_ms: errand.opened_at.plus_millis(timeout_ms).millis().unsigned_abs(),
    });
    let body = ExecuteRequest {
        task_id: errand.round.to_string(),
        attempt_id: execution_id.clone(),
        execution_id,
        task_type,
        inputs,
        profile: place.profile.clone(),
        task_contract,
        stage: TaskStage::Explore,
        seed_bundle: None,
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The request of another node, under the names that the executor has for task type and profile.
fn relayed_request(body: &Value, place: &SeatTarget) -> Vec<u8> {
    let mut body = body.clone();
    if let Value::Object(members) = &mut body {
        members.insert("profile".to_owned(), json!(place.profile));
        members.insert("task_type".to_owned(), json!(place.task_type));
    }
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The request for a task call: the contract as it was submitted, and its inputs unchanged.
fn task_call_request(inputs: Option<&RawValue>, step: &TaskCall, place: &SeatTarget) -> Vec<u8> {
    let body = ExecuteRequest::<&Value, Option<&RawValue>> {
        task_id: step.task_id.clone(),
        execution_id: step.execution_id.clone(),
        task_type: place.task_type.clone().unwrap_or_default(),
        inputs,
        profile: place.profile.clone(),
        task_contract: &step.contract,
        stage: TaskStage::Explore,
        attempt_id: format!("attempt-{}", step.attempt),
        seed_bundle: step.seed_bundle.clone(),
    };
    serde_json::to_vec(&body).unwrap_or_default()
}

pub(super) async fn read_execute_reply(
    engine: &Engine,
    errand: &ReplicaPlan,
    index: usize,
    reply: &HttpReply,
) -> ReplicaReply {
    let response = reply_content(reply).and_then(|value| {
        decode_execute_response(value)
            .map_err(|error| ReplicaFailure::new(FailureCode::BadShape, error.to_string()))
    });
    let (output, evidence) = match response {
        Ok(response) => response.into_parts(),
        Err(failure) => return ReplicaAnswer::failed(failure, None).into(),
    };
    let execution_id = errand.execution_id(index);
    let candidate_id = format!("cand-{execution_id}");
    let candidate = Arc::new(Candidate { candidate_id, execution_id, output, evidence });
    let reviewed = engine.review(errand, index, &candidate).await;
    let reviewed = engine.review_evidence(errand, &candidate, reviewed).await;
    let Candidate { output, mut evidence, .. } = Arc::unwrap_or_clone(candidate);
    evidence.inline.extend(reviewed.judgment);
    let said = AnswerContent {
        score: own_confidence(&output),
        output: Some(output),
        reason_codes: reviewed.reason_codes,
        evidence,
        result_hash: None,
        notes: reviewed.notes,
    };
    let answer = match reviewed.refused {
        None => ReplicaAnswer::Vote(ReplicaVote { label: label(&errand.job.work, &said), said }),
        Some(code) => refused_answer(&errand.job.work, code, said),
    };
    ReplicaReply { answer, cost_micros: reviewed.cost_micros, usage: reviewed.usage }
}

fn label(work: &JobWork, said: &AnswerContent) -> Label {
    let verdict =
        said.output.as_ref().and_then(|output| output.get("verdict")).and_then(Value::as_str);
    match (work, verdict) {
        (JobWork::Factcheck { .. }, Some("TRUE")) => Label::True,
        (JobWork::Factcheck { .. }, Some("FALSE")) => Label::False,
        (JobWork::Factcheck { .. }, _) => Label::Unsure,
        (JobWork::Delegate { .. } | JobWork::Validate { .. }, _) => Label::Ok,
    }
}

/// A candidate that is not a vote: in a delegate job it is reported as such, in a factcheck it is
/// an answer of the wrong shape.
fn refused_answer(work: &JobWork, code: FailureCode, said: AnswerContent) -> ReplicaAnswer {
    let detail = if said.notes.is_empty() {
        "the output fails the policy".to_owned()
    } else {
        said.notes.join("; ")
    };
    let code = match (work, code) {
        (JobWork::Factcheck { .. }, FailureCode::InvalidOutput) => FailureCode::BadShape,
        _ => code,
    };
    ReplicaAnswer::failed(ReplicaFailure { code, detail }, Some(said))
}

/// The executor's own confidence, if the output states one.
fn own_confidence(output: &Value) -> Option<f64> {
    output.get("confidence").and_then(Value::as_f64).filter(|score| (0.0..=1.0).contains(score))
}

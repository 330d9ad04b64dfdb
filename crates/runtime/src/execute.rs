//! `POST /execute`: one execution per `execution_id`, however often it is asked for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use moka::sync::Cache;
use serde_json::Value;
use tokio::sync::OnceCell;

use jurat_core::canonical;
use jurat_core::executor::Capabilities;
use jurat_wire::executor::{ExecuteResponse, decode_execute_request};

use crate::executor::{Execute, ExecutorError};
use crate::http::Shared;
use crate::options::Limits;
use crate::refusal::Refusal;

/// The answers that were given, by `execution_id`.
pub(crate) struct Answers(Cache<String, Arc<Remembered>>);

struct Remembered {
    /// The digest of the request, so that another one under the same id is noticed.
    request: String,
    /// Filled by the first that succeeds; the others wait for it. Failures are not kept.
    answer: OnceCell<Bytes>,
}

impl Answers {
    pub(crate) fn new(limits: Limits) -> Self {
        let cache = Cache::builder()
            .weigher(|id: &String, entry: &Arc<Remembered>| {
                let answer = entry.answer.get().map_or(0, Bytes::len);
                u32::try_from(id.len() + answer + 256).unwrap_or(u32::MAX)
            })
            .max_capacity(limits.remembered_bytes)
            .time_to_live(limits.remembered)
            .build();
        Self(cache)
    }

    fn entry(&self, id: &str, request: &str) -> Result<Arc<Remembered>, Refusal> {
        let fresh =
            || Arc::new(Remembered { request: request.to_owned(), answer: OnceCell::new() });
        let entry = self.0.get_with_by_ref(id, fresh);
        if entry.request == request {
            return Ok(entry);
        }
        let message = "this execution_id was used with another request; draw a new one";
        Err(Refusal::new(StatusCode::CONFLICT, "execution_id_reused", message)
            .about("execution_id"))
    }
}

pub(crate) async fn answer(shared: &Shared, body: Value) -> Result<Bytes, Refusal> {
    let digest = canonical::digest_json(&body);
    let request = decode_execute_request(body)?;
    refuse_undeclared(&shared.executor.capabilities(), &request)?;
    let id = request.execution_id.clone();
    if id.is_empty() || id.len() > 256 {
        let message = "execution_id: must have 1 to 256 bytes";
        return Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "request_invalid", message)
            .about("execution_id"));
    }
    let entry = shared.answers.entry(&id, &digest)?;
    let mut fresh = false;
    let answer = entry
        .answer
        .get_or_try_init(|| {
            fresh = true;
            run(shared, &request)
        })
        .await?
        .clone();
    if fresh {
        // Put in again, because only now its weight is known.
        shared.answers.0.insert(id, Arc::clone(&entry));
    }
    Ok(answer)
}

async fn run(shared: &Shared, request: &Execute) -> Result<Bytes, Refusal> {
    let limit = time_limit(shared.options.limits, request.task_contract.budget.time_ms);
    let execution = tokio::time::timeout(limit, shared.executor.execute(request))
        .await
        .map_err(|_| ExecutorError::Timeout)
        .and_then(|result| result)
        .inspect_err(|error| tracing::warn!(execution.id = %request.execution_id, %error, "An execution failed."))?;
    let response = ExecuteResponse::new(execution.output, execution.evidence);
    let bytes = serde_json::to_vec(&response)
        .map_err(|error| ExecutorError::Failed(format!("the answer is no JSON: {error}")))?;
    Ok(Bytes::from(bytes))
}

/// The budget of the contract, within the limit of the operator; a budget of zero is none.
fn time_limit(limits: Limits, budget_ms: u64) -> Duration {
    match budget_ms {
        0 => limits.execute,
        ms => limits.execute.min(Duration::from_millis(ms)),
    }
}

fn refuse_undeclared(capabilities: &Capabilities, request: &Execute) -> Result<(), Refusal> {
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
    if !capabilities.takes_task_type(&request.task_type) {
        let message = format!(
            "task_type: `{}` is not declared; this executor takes {}",
            short(&request.task_type),
            listed(&capabilities.task_types)
        );
        return Err(
            Refusal::new(unprocessable, "task_type_unsupported", message).about("task_type")
        );
    }
    if !capabilities.has_profile(&request.profile) {
        let message = format!(
            "profile: `{}` is not declared; this executor has {}",
            short(&request.profile),
            listed(&capabilities.profiles)
        );
        return Err(Refusal::new(unprocessable, "profile_unsupported", message).about("profile"));
    }
    Ok(())
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

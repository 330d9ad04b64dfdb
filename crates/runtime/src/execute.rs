//! `POST /execute`: one execution per `execution_id`, however often it is requested.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use moka::sync::Cache;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, watch};

use jurat_core::canonical;
use jurat_core::executor::Capabilities;
use jurat_wire::executor::{ExecuteResponse, decode_execute_request};

use crate::executor::{Execute, ExecutorError};
use crate::http::RuntimeState;
use crate::options::ExecutorLimits;
use crate::refusal::RequestRefusal;

/// The running executions and the given answers, by `execution_id`.
pub(crate) struct AnswerCache {
    /// Separate from the cache, which may drop its entries at any time.
    running: Mutex<BTreeMap<String, AnswerEntry<PendingAnswer>>>,
    /// Failures are not cached.
    remembered: Cache<String, AnswerEntry<Bytes>>,
}

/// The digest of the request, so that a different request under the same id is noticed, and the
/// result.
#[derive(Clone)]
struct AnswerEntry<T> {
    request: String,
    held: T,
}

/// Empty until the execution has ended.
type PendingAnswer = watch::Receiver<Option<Result<Bytes, RequestRefusal>>>;

impl AnswerCache {
    pub(crate) fn new(limits: ExecutorLimits) -> Self {
        let remembered = Cache::builder()
            .weigher(|id: &String, entry: &AnswerEntry<Bytes>| {
                u32::try_from(id.len() + entry.held.len() + 256).unwrap_or(u32::MAX)
            })
            .max_capacity(limits.remembered_bytes)
            .time_to_live(limits.remembered)
            .build();
        Self { running: Mutex::default(), remembered }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<String, AnswerEntry<PendingAnswer>>> {
        self.running.lock()
    }
}

impl<T: Clone> AnswerEntry<T> {
    fn of(&self, request: &str) -> Result<T, RequestRefusal> {
        if self.request == request {
            return Ok(self.held.clone());
        }
        let message = "this execution_id was used with another request; use a new one";
        Err(RequestRefusal::new(StatusCode::CONFLICT, "execution_id_reused", message)
            .about("execution_id"))
    }
}

pub(crate) async fn answer(
    shared: &Arc<RuntimeState>,
    mut body: Value,
) -> Result<Bytes, RequestRefusal> {
    let digest = digest(&mut body);
    let request = decode_execute_request(body)?;
    refuse_undeclared(&shared.executor.capabilities(), &request)?;
    if request.execution_id.is_empty() || 256 < request.execution_id.len() {
        let message = "execution_id: must have 1 to 256 bytes";
        return Err(RequestRefusal::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "request_invalid",
            message,
        )
        .about("execution_id"));
    }
    let mut outcome = find_or_start(shared, request, digest)?;
    let ended = outcome.wait_for(Option::is_some).await;
    ended.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| Err(lost()))
}

/// The digest of a request. A retry may have another attempt number, and may know more earlier
/// decisions.
fn digest(body: &mut Value) -> String {
    const OF_THE_TRY: [&str; 2] = ["attempt_id", "seed_bundle"];
    let taken = OF_THE_TRY.map(|name| body.as_object_mut().and_then(|it| it.remove(name)));
    // As it is written, because canonical JSON would round 64-bit integers.
    let digest = canonical::digest(&serde_json::to_vec(body).unwrap_or_default());
    for (name, value) in OF_THE_TRY.into_iter().zip(taken) {
        if let (Some(value), Some(members)) = (value, body.as_object_mut()) {
            members.insert(name.to_owned(), value);
        }
    }
    digest
}

fn find_or_start(
    shared: &Arc<RuntimeState>,
    request: Execute,
    digest: String,
) -> Result<PendingAnswer, RequestRefusal> {
    let id = request.execution_id.clone();
    let mut running = shared.answers.running();
    if let Some(entry) = running.get(&id) {
        return entry.of(&digest);
    }
    // An execution is cached before it leaves the list, so it is always in one of the two.
    if let Some(entry) = shared.answers.remembered.get(&id) {
        return Ok(watch::channel(Some(Ok(entry.of(&digest)?))).1);
    }
    let slot =
        Arc::clone(&shared.slots).try_acquire_owned().map_err(|_| RequestRefusal::overloaded())?;
    let (ended, outcome) = watch::channel(None);
    running.insert(id.clone(), AnswerEntry { request: digest.clone(), held: outcome.clone() });
    // Before the execution exists, because it removes itself from the list when it ends.
    drop(running);
    let listed =
        RunningExecution { shared: Arc::clone(shared), id, slot: Some(slot), ended, result: None };
    // Separate from the handler, which ends when its caller leaves: the work costs the same either
    // way.
    shared.tasks.spawn(async move {
        let result = run(&listed.shared, &request).await;
        listed.end(result, digest);
    });
    Ok(outcome)
}

/// An entry in the list of running executions. It is removed even if the executor panics.
struct RunningExecution {
    shared: Arc<RuntimeState>,
    id: String,
    slot: Option<OwnedSemaphorePermit>,
    ended: watch::Sender<Option<Result<Bytes, RequestRefusal>>>,
    result: Option<Result<Bytes, RequestRefusal>>,
}

impl RunningExecution {
    fn end(mut self, result: Result<Bytes, RequestRefusal>, request: String) {
        if let Ok(answer) = &result {
            let entry = AnswerEntry { request, held: answer.clone() };
            self.shared.answers.remembered.insert(self.id.clone(), entry);
        }
        self.result = Some(result);
    }
}

impl Drop for RunningExecution {
    fn drop(&mut self) {
        // All of this happens before a waiter learns of the end and possibly retries.
        self.shared.answers.running().remove(&self.id);
        self.slot = None;
        let result = self.result.take().unwrap_or_else(|| {
            tracing::error!(execution.id = %self.id, "an execution ended without an answer");
            Err(lost())
        });
        self.ended.send_replace(Some(result));
    }
}

fn lost() -> RequestRefusal {
    let message = "the execution ended without an answer; the executor's log shows why";
    RequestRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "executor_failed", message)
}

async fn run(shared: &RuntimeState, request: &Execute) -> Result<Bytes, RequestRefusal> {
    let limit = time_limit(shared.options.limits, request.task_contract.budget.time_ms);
    let execution = tokio::time::timeout(limit, shared.executor.execute(request))
        .await
        .map_err(|_| ExecutorError::Timeout)
        .and_then(|result| result)
        .inspect_err(|error| tracing::warn!(execution.id = %request.execution_id, %error, "an execution failed"))?;
    let response = ExecuteResponse::new(execution.output, execution.evidence);
    let bytes = serde_json::to_vec(&response)
        .map_err(|error| ExecutorError::Failed(format!("the answer is not JSON: {error}")))?;
    Ok(Bytes::from(bytes))
}

/// The budget of the contract, up to the limit of the operator; a budget of zero counts as none.
fn time_limit(limits: ExecutorLimits, budget_ms: u64) -> Duration {
    match budget_ms {
        0 => limits.execute,
        ms => limits.execute.min(Duration::from_millis(ms)),
    }
}

fn refuse_undeclared(capabilities: &Capabilities, request: &Execute) -> Result<(), RequestRefusal> {
    let unprocessable = StatusCode::UNPROCESSABLE_ENTITY;
    if !capabilities.takes_task_type(&request.task_type) {
        let message = format!(
            "task_type: `{}` is not declared; this executor takes {}",
            short(&request.task_type),
            listed(&capabilities.task_types)
        );
        return Err(
            RequestRefusal::new(unprocessable, "task_type_unsupported", message).about("task_type")
        );
    }
    if !capabilities.has_profile(&request.profile) {
        let message = format!(
            "profile: `{}` is not declared; this executor has {}",
            short(&request.profile),
            listed(&capabilities.profiles)
        );
        return Err(
            RequestRefusal::new(unprocessable, "profile_unsupported", message).about("profile")
        );
    }
    Ok(())
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

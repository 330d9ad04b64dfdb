//! `/v1/tasks`.

use jurat_wire::api::tasks::{
    CancelTaskDraft, DecisionBody, FeedbackDraft, TaskBody, TaskEventBody, TaskSummaryBody,
};
use serde_json::Value;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/tasks";
/// The event that ends the stream of a task: the task itself.
pub const LAST_EVENT: &str = jurat_wire::api::tasks::TASK;

/// A sample contract that can be submitted unchanged.
pub fn sample(task_id: Option<&str>) -> Call<Value> {
    Call::get("/v1/tasks/sample").query("task_id", task_id)
}

/// Submits a contract, which is a user's document.
pub fn submit(order: &Value) -> Call<TaskBody<'static>> {
    Call::post(ROUTE, order)
}

pub fn list(state: Option<&str>, task_type: Option<&str>) -> Call<Page<TaskSummaryBody<'static>>> {
    Call::get(ROUTE).query("state", state).query("task_type", task_type)
}

pub fn show(id: &str) -> Call<TaskBody<'static>> {
    Call::get(path(ROUTE, &[id]))
}

pub fn decision(id: &str) -> Call<DecisionBody<'static>> {
    Call::get(path(ROUTE, &[id, "decision"]))
}

pub fn cancel(id: &str, reason: Option<&str>) -> Call<TaskBody<'static>> {
    let body = CancelTaskDraft { reason: reason.map(str::to_owned) };
    Call::post(path(ROUTE, &[id, "cancel"]), &body)
}

pub fn next_epoch(id: &str) -> Call<TaskBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "epochs"]))
}

/// Disputes the decision of an epoch.
pub fn complain(id: &str, complaint: &FeedbackDraft) -> Call<TaskBody<'static>> {
    Call::post(path(ROUTE, &[id, "feedback"]), complaint)
}

/// The events of a task after the event with the number `after`.
pub fn events(
    id: &str,
    after: Option<u64>,
    limit: Option<u32>,
) -> Call<Page<TaskEventBody<'static>>> {
    Call::get(path(ROUTE, &[id, "events"])).query("after", after).query("limit", limit)
}

/// The events as a stream, which ends with the task.
pub fn follow(id: &str, after: Option<u64>, limit: Option<u32>) -> Call<TaskBody<'static>> {
    events(id, after, limit).reading()
}

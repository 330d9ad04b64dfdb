//! `/v1/tasks`.

use jurat_wire::api::tasks::{DecisionBody, TaskBody, TaskEventBody, TaskSummaryBody};
use serde_json::{Value, json};

use crate::call::{Call, Page, members, path};

const ROUTE: &str = "/v1/tasks";
/// The event that ends the stream of a task: the task itself.
pub const LAST_EVENT: &str = jurat_wire::api::tasks::TASK;

/// A sample contract that can be submitted unchanged.
pub fn sample(task_id: Option<&str>) -> Call<Value> {
    Call::get("/v1/tasks/sample").query("task_id", task_id)
}

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
    Call::post(path(ROUTE, &[id, "cancel"]), &members([("reason", json!(reason))]))
}

pub fn next_epoch(id: &str) -> Call<TaskBody<'static>> {
    Call::post(path(ROUTE, &[id, "epochs"]), &json!({}))
}

/// A complaint about the decision of an epoch, signed if the contract requires it.
#[derive(Debug, Clone, Copy)]
pub struct Complaint<'a> {
    pub reason: &'a str,
    pub epoch: Option<u64>,
    pub timestamp: Option<u64>,
    pub signature: Option<&'a str>,
}

pub fn complain(id: &str, complaint: &Complaint<'_>) -> Call<TaskBody<'static>> {
    let body = members([
        ("reason", json!(complaint.reason)),
        ("epoch", json!(complaint.epoch)),
        ("timestamp", json!(complaint.timestamp)),
        ("signature", json!(complaint.signature)),
    ]);
    Call::post(path(ROUTE, &[id, "feedback"]), &body)
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

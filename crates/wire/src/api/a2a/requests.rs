//! The parameters of the methods that read, list and cancel tasks.

use jurat_core::time::Timestamp;
use serde_json::Value;

use super::{error::A2aError, members::Members, task::TaskState};
use crate::api::kit::time;

/// The most messages that a caller can ask for.
const MOST_HISTORY: u32 = i32::MAX as u32;
const DEFAULT_PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 100;
const UNSPECIFIED: &str = "TASK_STATE_UNSPECIFIED";

/// The task that a request names, and how much of its history is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRequest {
    pub id: String,
    pub history_length: Option<u32>,
}

/// Reads the parameters of `GetTask`, `CancelTask` and `SubscribeToTask`.
pub fn task_request(params: &Value) -> Result<TaskRequest, A2aError> {
    let members = Members::of(params, "")?;
    Ok(TaskRequest {
        id: members.required_text("id")?.to_owned(),
        history_length: members.number("historyLength", 0, MOST_HISTORY)?,
    })
}

/// Which tasks to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskListRequest {
    pub context_id: Option<String>,
    pub status: Option<TaskState>,
    pub page_size: u32,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    pub updated_since: Option<Timestamp>,
    pub include_artifacts: bool,
}

/// Reads the parameters of `ListTasks`.
pub fn task_list_request(params: &Value) -> Result<TaskListRequest, A2aError> {
    let members = Members::of(params, "")?;
    let since = members.text("statusTimestampAfter")?.map(|text| {
        let wrong =
            || members.wrong("statusTimestampAfter", "must be a time such as 2026-11-15T09:30:00Z");
        time::parse(text).ok_or_else(wrong)
    });
    // The zero of the protocol's definition, which clients send for no state.
    let status = members.text("status")?.filter(|text| *text != UNSPECIFIED);
    let status = status.map(|text| {
        TaskState::ALL.into_iter().find(|it| it.as_str() == text).ok_or_else(|| {
            members.wrong(
                "status",
                "must be a state such as TASK_STATE_WORKING or TASK_STATE_COMPLETED",
            )
        })
    });
    Ok(TaskListRequest {
        context_id: members.text("contextId")?.map(str::to_owned),
        status: status.transpose()?,
        page_size: members.number("pageSize", 1, LARGEST_PAGE)?.unwrap_or(DEFAULT_PAGE),
        page_token: members.text("pageToken")?.map(str::to_owned),
        history_length: members.number("historyLength", 0, MOST_HISTORY)?,
        updated_since: since.transpose()?,
        include_artifacts: members.flag("includeArtifacts")?,
    })
}

/// How much history of a task is wanted, as `configuration` of a message says it.
pub(super) fn history_length(configuration: &Members<'_>) -> Result<Option<u32>, A2aError> {
    configuration.number("historyLength", 0, MOST_HISTORY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_filter_is_named() {
        for (params, field) in [
            (json!({ "pageSize": 0 }), "pageSize"),
            (json!({ "pageSize": 101 }), "pageSize"),
            (json!({ "historyLength": -5 }), "historyLength"),
            (json!({ "status": "TASK_STATE_RUNNING" }), "status"),
            (json!({ "statusTimestampAfter": "yesterday" }), "statusTimestampAfter"),
            (json!({ "includeArtifacts": "yes" }), "includeArtifacts"),
        ] {
            let error = task_list_request(&params).unwrap_err();
            assert_eq!(error.problem.field.as_deref(), Some(field), "{params}");
        }
        let all = task_list_request(&json!({})).unwrap();
        assert_eq!(all.page_size, DEFAULT_PAGE);
        assert_eq!(task_list_request(&json!({ "status": UNSPECIFIED })), Ok(all));
        let error = task_request(&json!({})).unwrap_err();
        assert_eq!(error.problem.detail, "`id` is required");
    }
}

//! What the tools for tasks, runs and knowledge take, where that is not the body of a request.

use std::time::Duration;

use jurat_core::{agent_run::AgentRunStatus, code::ProblemCode, task::TaskPhase};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::arguments::{known_arguments, number, page_of};
use crate::{
    api::kit::{
        fields::RequestFields,
        known_fields::DescribedRequest,
        words::{RunState, TaskState},
    },
    problem::Problem,
};

const TASK: &str = "task_id";
const RUN: &str = "run_id";
/// The longest that one call waits.
const LONGEST_WAIT: u64 = 60;
/// The largest number that an event can have.
const LARGEST: u64 = i64::MAX as u64;
const LARGEST_PAGE: u32 = 200;
const USUAL_PAGE: u32 = 50;

/// Arguments of tools for one task.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskArguments {
    /// The id of a task.
    #[schema(pattern = r"\S")]
    pub task_id: String,
}

/// Arguments of `get_task`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTaskArguments {
    /// The id of a task.
    #[schema(pattern = r"\S")]
    pub task_id: String,
    /// Wait up to this many seconds for the task to end or for its epoch to be decided.
    #[schema(minimum = 0, maximum = 60)]
    pub wait: Option<u64>,
}

/// Arguments of `list_tasks`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTasksArguments {
    /// Only tasks in this state.
    pub state: Option<TaskState>,
    /// Only tasks of this type.
    pub task_type: Option<String>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Arguments of `list_task_events`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskEventsArguments {
    /// The id of a task.
    #[schema(pattern = r"\S")]
    pub task_id: String,
    /// Only events after the one with this number; `next_cursor` of the previous page.
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807u64)]
    pub after: Option<u64>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// Arguments of `get_task_sample`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSampleArguments {
    /// The id of the task; generated if left out.
    #[schema(pattern = r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.:-]{1,128}$")]
    pub task_id: Option<String>,
}

/// Arguments of tools for one run.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunArguments {
    /// The id of a run.
    #[schema(pattern = r"\S")]
    pub run_id: String,
}

/// Arguments of `get_run`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GetRunArguments {
    /// The id of a run.
    #[schema(pattern = r"\S")]
    pub run_id: String,
    /// Wait up to this many seconds for the run to end.
    #[schema(minimum = 0, maximum = 60)]
    pub wait: Option<u64>,
}

/// Arguments of `list_runs`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRunsArguments {
    /// Only runs with this status.
    pub status: Option<RunState>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Arguments of `list_run_events`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunEventsArguments {
    /// The id of a run.
    #[schema(pattern = r"\S")]
    pub run_id: String,
    /// Only events before the one with this number; `next_cursor` of the previous page.
    #[schema(minimum = 0, maximum = 9_223_372_036_854_775_807u64)]
    pub before: Option<u64>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
}

/// Arguments of `export_knowledge`: either `task_type` or `task_id`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KnowledgeArguments {
    /// Decisions of all tasks of this type.
    #[schema(pattern = r"\S")]
    pub task_type: Option<String>,
    /// Decisions of this task.
    #[schema(pattern = r"\S")]
    pub task_id: Option<String>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Which tasks are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TasksOrder {
    pub state: Option<TaskPhase>,
    pub task_type: Option<String>,
    pub limit: u32,
    pub cursor: Option<String>,
}

/// Which runs are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRunsOrder {
    pub status: Option<AgentRunStatus>,
    pub limit: u32,
    pub cursor: Option<String>,
}

/// Which decisions are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeOrder {
    pub task_type: Option<String>,
    pub task_id: Option<String>,
    pub limit: u32,
    pub cursor: Option<String>,
}

pub fn task(arguments: &Value) -> Result<&str, Problem> {
    known_arguments::<TaskArguments>(arguments)?.required_text(TASK)
}

pub fn agent_run(arguments: &Value) -> Result<&str, Problem> {
    known_arguments::<RunArguments>(arguments)?.required_text(RUN)
}

/// A task, and how long to wait for it.
pub fn task_wait(arguments: &Value) -> Result<(&str, Option<Duration>), Problem> {
    wait::<GetTaskArguments>(arguments, TASK)
}

/// A run, and how long to wait for it.
pub fn agent_run_wait(arguments: &Value) -> Result<(&str, Option<Duration>), Problem> {
    wait::<GetRunArguments>(arguments, RUN)
}

fn wait<'a, R: DescribedRequest>(
    arguments: &'a Value,
    name: &str,
) -> Result<(&'a str, Option<Duration>), Problem> {
    let fields = known_arguments::<R>(arguments)?;
    let wait = fields.whole("wait", 0, LONGEST_WAIT)?;
    Ok((fields.required_text(name)?, wait.map(Duration::from_secs)))
}

/// A task, and the body of the request about it, which stands beside its name.
pub fn task_with(arguments: &Value) -> Result<(&str, Value), Problem> {
    beside(arguments, TASK)
}

/// A run, and the body of the request about it.
pub fn agent_run_with(arguments: &Value) -> Result<(&str, Value), Problem> {
    beside(arguments, RUN)
}

fn beside<'a>(arguments: &'a Value, name: &str) -> Result<(&'a str, Value), Problem> {
    let id =
        RequestFields::of_body(arguments, ProblemCode::ValidationError)?.required_text(name)?;
    let mut body = arguments.as_object().cloned().unwrap_or_else(Map::new);
    body.remove(name);
    Ok((id, Value::Object(body)))
}

pub fn tasks(arguments: &Value) -> Result<TasksOrder, Problem> {
    let fields = known_arguments::<ListTasksArguments>(arguments)?;
    let words: Vec<&str> = TaskPhase::ALL.iter().map(|it| it.as_str()).collect();
    let (limit, cursor) = page_of(&fields)?;
    let task_type = fields.text("task_type")?.map(str::to_owned);
    Ok(TasksOrder { state: fields.word("state", &words)?, task_type, limit, cursor })
}

pub fn agent_runs(arguments: &Value) -> Result<AgentRunsOrder, Problem> {
    let fields = known_arguments::<ListRunsArguments>(arguments)?;
    let words: Vec<&str> = AgentRunStatus::ALL.iter().map(|it| it.as_str()).collect();
    let (limit, cursor) = page_of(&fields)?;
    Ok(AgentRunsOrder { status: fields.word("status", &words)?, limit, cursor })
}

/// A task, behind which event to start, and how many events to return.
pub fn task_events(arguments: &Value) -> Result<(&str, u64, u32), Problem> {
    let (id, after, limit) = events::<TaskEventsArguments>(arguments, (TASK, "after"))?;
    Ok((id, after.unwrap_or(0), limit))
}

/// A run, before which event to start, and how many events to return.
pub fn agent_run_events(arguments: &Value) -> Result<(&str, u64, u32), Problem> {
    let (id, before, limit) = events::<RunEventsArguments>(arguments, (RUN, "before"))?;
    Ok((id, before.unwrap_or(LARGEST), limit))
}

fn events<'a, R: DescribedRequest>(
    arguments: &'a Value,
    (name, place): (&str, &str),
) -> Result<(&'a str, Option<u64>, u32), Problem> {
    let fields = known_arguments::<R>(arguments)?;
    let from = fields.whole(place, 0, LARGEST)?;
    let limit = number(&fields, "limit", LARGEST_PAGE)?.unwrap_or(USUAL_PAGE);
    Ok((fields.required_text(name)?, from, limit))
}

/// The name that a sample of a contract is to have.
pub fn sample(arguments: &Value) -> Result<Option<&str>, Problem> {
    let fields = known_arguments::<TaskSampleArguments>(arguments)?;
    fields.text(TASK)?.map(crate::api::tasks::task_id).transpose()
}

pub fn knowledge(arguments: &Value) -> Result<KnowledgeOrder, Problem> {
    let fields = known_arguments::<KnowledgeArguments>(arguments)?;
    let (limit, cursor) = page_of(&fields)?;
    let text = |name: &str| {
        let text = fields.get(name).map(|_| fields.required_text(name)).transpose()?;
        Ok::<_, Problem>(text.map(str::to_owned))
    };
    Ok(KnowledgeOrder { task_type: text("task_type")?, task_id: text(TASK)?, limit, cursor })
}

//! The entries of the tools for tasks, runs and what is remembered of decisions.

use jurat_core::account::caller::Scope;
use jurat_wire::api::{
    agent_runs::{
        AgentRunBody, AgentRunEventBody, AgentRunLine, AgentRunRequestBody, AgentRunResultBody,
        AgentRunSubmitted,
    },
    kit::page::PageBody,
    knowledge::KnowledgeBody,
    mcp::tasks::{
        GetRunArguments, GetTaskArguments, KnowledgeArguments, ListRunsArguments,
        ListTasksArguments, RunArguments, RunEventsArguments, TaskArguments, TaskEventsArguments,
        TaskSampleArguments,
    },
    tasks::{DecisionBody, TaskBody, TaskContractBody, TaskEventBody, TaskOrder, TaskSummaryBody},
};
use serde_json::Value;

use super::{TextAuthor, ToolEffect, ToolEntry};
use crate::mcp::{render, schema, tasks};

pub(super) static ALL: &[ToolEntry] = &[
    ToolEntry {
        name: "submit_task",
        scopes: &[Scope::TasksWrite, Scope::RoundsCreate],
        title: "Submit a task",
        text: "Has executors work on a job under a contract: some propose, others vote, and the decision is made final. Returns immediately; use `get_task` with `wait` to follow the task. `get_task_sample` returns a contract to start from.",
        effect: ToolEffect::Asks,
        input: schema::input::<TaskOrder>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::submit,
        summary: task,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "get_task_sample",
        scopes: &[Scope::TasksRead],
        title: "Get a sample contract",
        text: "Returns a contract to start from: quorum 1, decided by its schema alone, valid for ten minutes.",
        effect: ToolEffect::Reads,
        input: schema::input::<TaskSampleArguments>,
        output: schema::output::<TaskContractBody>,
        run: tasks::sample,
        summary: render::done,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "get_task",
        scopes: &[Scope::TasksRead],
        title: "Show a task",
        text: "Returns the state of a task, with its candidates, votes and budget. With `wait`, returns when the task ends or its epoch is decided, or after that many seconds.",
        effect: ToolEffect::Reads,
        input: schema::input::<GetTaskArguments>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::get,
        summary: task,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "list_tasks",
        scopes: &[Scope::TasksRead],
        title: "List tasks",
        text: "Lists the tasks of the account, newest first, one page at a time.",
        effect: ToolEffect::Reads,
        input: schema::input::<ListTasksArguments>,
        output: schema::output::<PageBody<'static, TaskSummaryBody<'static>>>,
        run: tasks::list,
        summary: render::counted,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "get_task_decision",
        scopes: &[Scope::TasksRead],
        title: "Show a decision",
        text: "Returns the decision of a task, with the votes and the confidence. Fields are null if there is no decision yet.",
        effect: ToolEffect::Reads,
        input: schema::input::<TaskArguments>,
        output: schema::output::<DecisionBody<'static>>,
        run: tasks::decision,
        summary: decision,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "list_task_events",
        scopes: &[Scope::TasksRead],
        title: "List the events of a task",
        text: "Lists the events of a task, oldest first, one page at a time.",
        effect: ToolEffect::Reads,
        input: schema::input::<TaskEventsArguments>,
        output: schema::output::<PageBody<'static, TaskEventBody<'static>>>,
        run: tasks::events,
        summary: render::counted,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "cancel_task",
        scopes: &[Scope::TasksWrite],
        title: "Cancel a task",
        text: "Cancels a task and stops its work in progress.",
        effect: ToolEffect::Ends,
        input: tasks::cancel_input,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::cancel,
        summary: task,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "begin_task_epoch",
        scopes: &[Scope::TasksWrite],
        title: "Start the next epoch of a task",
        text: "Starts the next epoch of a continuous task whose decision is final, with a new budget.",
        effect: ToolEffect::Asks,
        input: schema::input::<TaskArguments>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::next_epoch,
        summary: task,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "complain_of_task",
        scopes: &[Scope::TasksWrite],
        title: "Dispute a decision",
        text: "Disputes a final decision as wrong, once and during its settlement window. The decision is recorded as bad and no longer reused; this cannot be undone.",
        effect: ToolEffect::Ends,
        input: tasks::complain_input,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::complain,
        summary: task,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "export_knowledge",
        scopes: &[Scope::TasksRead],
        title: "List remembered decisions",
        text: "Lists the decisions of the account's tasks, newest first, for one `task_type` or one `task_id`.",
        effect: ToolEffect::Reads,
        input: schema::input::<KnowledgeArguments>,
        output: schema::output::<PageBody<'static, KnowledgeBody<'static>>>,
        run: tasks::export_knowledge,
        summary: render::counted,
        author: TextAuthor::Executors,
    },
];

pub(super) static AGENT_RUNS: &[ToolEntry] = &[
    ToolEntry {
        name: "submit_run",
        scopes: &[Scope::TasksWrite, Scope::RoundsCreate],
        title: "Submit a run",
        text: "Has several agents work on one job, each with its own executor and prompt, and combines their values into one result. With `kickoff` it starts immediately; use `get_run` with `wait` to follow it.",
        effect: ToolEffect::Asks,
        input: schema::input::<AgentRunRequestBody>,
        output: schema::output::<AgentRunSubmitted<'static>>,
        run: tasks::submit_agent_run,
        summary: agent_run,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "kickoff_run",
        scopes: &[Scope::TasksWrite],
        title: "Start a run",
        text: "Starts a run that is waiting for its kickoff.",
        effect: ToolEffect::Asks,
        input: schema::input::<RunArguments>,
        output: schema::output::<AgentRunBody<'static>>,
        run: tasks::kickoff_agent_run,
        summary: agent_run,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "get_run",
        scopes: &[Scope::TasksRead],
        title: "Show a run",
        text: "Returns the status of a run and its steps. With `wait`, returns when the run ends, or after that many seconds.",
        effect: ToolEffect::Reads,
        input: schema::input::<GetRunArguments>,
        output: schema::output::<AgentRunBody<'static>>,
        run: tasks::get_agent_run,
        summary: agent_run,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "get_run_result",
        scopes: &[Scope::TasksRead],
        title: "Show the result of a run",
        text: "Returns the combined result of a run; null until it has ended.",
        effect: ToolEffect::Reads,
        input: schema::input::<RunArguments>,
        output: schema::output::<AgentRunResultBody<'static>>,
        run: tasks::agent_run_result,
        summary: agent_run,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "list_runs",
        scopes: &[Scope::TasksRead],
        title: "List runs",
        text: "Lists the runs of the account, newest first, one page at a time.",
        effect: ToolEffect::Reads,
        input: schema::input::<ListRunsArguments>,
        output: schema::output::<PageBody<'static, AgentRunLine>>,
        run: tasks::list_agent_runs,
        summary: render::counted,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "list_run_events",
        scopes: &[Scope::TasksRead],
        title: "List the events of a run",
        text: "Lists the events of a run, newest first, one page at a time.",
        effect: ToolEffect::Reads,
        input: schema::input::<RunEventsArguments>,
        output: schema::output::<PageBody<'static, AgentRunEventBody<'static>>>,
        run: tasks::agent_run_events,
        summary: render::counted,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "cancel_run",
        scopes: &[Scope::TasksWrite],
        title: "Cancel a run",
        text: "Cancels a run: waiting steps end immediately, and the tasks of steps in progress are cancelled.",
        effect: ToolEffect::Ends,
        input: tasks::cancel_agent_run_input,
        output: schema::output::<AgentRunBody<'static>>,
        run: tasks::cancel_agent_run,
        summary: agent_run,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "retry_run",
        scopes: &[Scope::TasksWrite],
        title: "Retry a run",
        text: "Retries the unsuccessful steps of a run that has ended.",
        effect: ToolEffect::Asks,
        input: schema::input::<RunArguments>,
        output: schema::output::<AgentRunBody<'static>>,
        run: tasks::retry_agent_run,
        summary: agent_run,
        author: TextAuthor::Executors,
    },
];

/// Where a task stands in a sentence.
fn task(body: &Value) -> String {
    let (id, state) = (render::text(&body["task_id"]), render::text(&body["state"]));
    format!("Task `{id}` is {state}, epoch {}.", body["epoch"])
}

fn decision(body: &Value) -> String {
    let (id, state) = (render::text(&body["task_id"]), render::text(&body["state"]));
    if body["candidate_id"].is_null() {
        return format!("Task `{id}` is {state}; there is no decision.");
    }
    format!(
        "Task `{id}` is {state}: {} approve, {} reject, confidence {}.",
        body["approvals"], body["rejections"], body["confidence"]
    )
}

fn agent_run(body: &Value) -> String {
    format!("Run `{}` is {}.", render::text(&body["run_id"]), render::text(&body["status"]))
}

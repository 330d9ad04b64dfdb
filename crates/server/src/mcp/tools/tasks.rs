//! The entries of the tools for tasks, runs and what is remembered of decisions.

use jurat_core::caller::Scope;
use jurat_wire::api::{
    knowledge::KnowledgeBody,
    mcp::tasks::{
        GetRunArguments, GetTaskArguments, KnowledgeArguments, ListRunsArguments,
        ListTasksArguments, RunArguments, RunEventsArguments, TaskArguments, TaskEventsArguments,
        TaskSampleArguments,
    },
    page::Page,
    runs::{RunBody, RunEventBody, RunLine, RunOrderBody, RunResultBody, RunSubmitted},
    tasks::{DecisionBody, EventBody, TaskBody, TaskContractBody, TaskOrder, TaskSummaryBody},
};
use serde_json::Value;

use super::{Author, Effect, Entry};
use crate::mcp::{render, schema, tasks};

pub(super) static ALL: &[Entry] = &[
    Entry {
        name: "submit_task",
        scopes: &[Scope::TasksWrite, Scope::RoundsCreate],
        title: "Submit a task",
        text: "Has executors work on a job under a contract: they propose, others verify, votes decide, and the decision is made final. The answer comes at once; `get_task` with `wait` follows it. `get_task_sample` makes a contract to begin with.",
        effect: Effect::Asks,
        input: schema::input::<TaskOrder>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::submit,
        summary: task,
        author: Author::Caller,
    },
    Entry {
        name: "get_task_sample",
        scopes: &[Scope::TasksRead],
        title: "Make a contract",
        text: "Returns a contract to begin with: quorum 1, decided by its schema alone, for ten minutes.",
        effect: Effect::Reads,
        input: schema::input::<TaskSampleArguments>,
        output: schema::output::<TaskContractBody>,
        run: tasks::sample,
        summary: render::done,
        author: Author::Caller,
    },
    Entry {
        name: "get_task",
        scopes: &[Scope::TasksRead],
        title: "Show a task",
        text: "Returns where a task stands, with its candidates, votes and budget. With `wait` the answer comes when it ends or its epoch is decided, after so many seconds at the latest.",
        effect: Effect::Reads,
        input: schema::input::<GetTaskArguments>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::get,
        summary: task,
        author: Author::Executors,
    },
    Entry {
        name: "list_tasks",
        scopes: &[Scope::TasksRead],
        title: "List tasks",
        text: "Lists the tasks of the account, newest first, a page at a time.",
        effect: Effect::Reads,
        input: schema::input::<ListTasksArguments>,
        output: schema::output::<Page<'static, TaskSummaryBody<'static>>>,
        run: tasks::list,
        summary: render::counted,
        author: Author::Caller,
    },
    Entry {
        name: "get_task_decision",
        scopes: &[Scope::TasksRead],
        title: "Show a decision",
        text: "Returns what a task decided, with the votes and the confidence. Where there is no decision, or not yet, its members are null.",
        effect: Effect::Reads,
        input: schema::input::<TaskArguments>,
        output: schema::output::<DecisionBody<'static>>,
        run: tasks::decision,
        summary: decision,
        author: Author::Executors,
    },
    Entry {
        name: "list_task_events",
        scopes: &[Scope::TasksRead],
        title: "List what happened to a task",
        text: "Lists the events of a task, the first one first, a page at a time.",
        effect: Effect::Reads,
        input: schema::input::<TaskEventsArguments>,
        output: schema::output::<Page<'static, EventBody<'static>>>,
        run: tasks::events,
        summary: render::counted,
        author: Author::Executors,
    },
    Entry {
        name: "cancel_task",
        scopes: &[Scope::TasksWrite],
        title: "Cancel a task",
        text: "Calls a task off. What is under way for it is stopped.",
        effect: Effect::Ends,
        input: tasks::cancel_input,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::cancel,
        summary: task,
        author: Author::Executors,
    },
    Entry {
        name: "begin_task_epoch",
        scopes: &[Scope::TasksWrite],
        title: "Begin the next epoch of a task",
        text: "Has a continuous task whose decision is final decided once more, with a new budget.",
        effect: Effect::Asks,
        input: schema::input::<TaskArguments>,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::next_epoch,
        summary: task,
        author: Author::Caller,
    },
    Entry {
        name: "complain_of_task",
        scopes: &[Scope::TasksWrite],
        title: "Complain of a decision",
        text: "Says that a final decision was wrong, once and while it settles. It stays on record as bad and is not reused any more; nothing takes that back.",
        effect: Effect::Ends,
        input: tasks::complain_input,
        output: schema::output::<TaskBody<'static>>,
        run: tasks::complain,
        summary: task,
        author: Author::Executors,
    },
    Entry {
        name: "export_knowledge",
        scopes: &[Scope::TasksRead],
        title: "List remembered decisions",
        text: "Lists the decisions that the account's tasks made, the newest first, of one `task_type` or of one `task_id`.",
        effect: Effect::Reads,
        input: schema::input::<KnowledgeArguments>,
        output: schema::output::<Page<'static, KnowledgeBody<'static>>>,
        run: tasks::export_knowledge,
        summary: render::counted,
        author: Author::Executors,
    },
];

pub(super) static RUNS: &[Entry] = &[
    Entry {
        name: "submit_run",
        scopes: &[Scope::TasksWrite, Scope::RoundsCreate],
        title: "Submit a run",
        text: "Has several agents work on one thing, each with its executor and prompt, and makes one result of what they say. With `kickoff` it begins at once; `get_run` with `wait` follows it.",
        effect: Effect::Asks,
        input: schema::input::<RunOrderBody>,
        output: schema::output::<RunSubmitted<'static>>,
        run: tasks::submit_run,
        summary: run,
        author: Author::Caller,
    },
    Entry {
        name: "kickoff_run",
        scopes: &[Scope::TasksWrite],
        title: "Begin a run",
        text: "Lets a run begin that waits for it.",
        effect: Effect::Asks,
        input: schema::input::<RunArguments>,
        output: schema::output::<RunBody<'static>>,
        run: tasks::kickoff_run,
        summary: run,
        author: Author::Caller,
    },
    Entry {
        name: "get_run",
        scopes: &[Scope::TasksRead],
        title: "Show a run",
        text: "Returns how far a run is, with each of its steps. With `wait` the answer comes when it is over, after so many seconds at the latest.",
        effect: Effect::Reads,
        input: schema::input::<GetRunArguments>,
        output: schema::output::<RunBody<'static>>,
        run: tasks::get_run,
        summary: run,
        author: Author::Executors,
    },
    Entry {
        name: "get_run_result",
        scopes: &[Scope::TasksRead],
        title: "Show the result of a run",
        text: "Returns what the agents of a run say together; null while it is not over.",
        effect: Effect::Reads,
        input: schema::input::<RunArguments>,
        output: schema::output::<RunResultBody<'static>>,
        run: tasks::run_result,
        summary: run,
        author: Author::Executors,
    },
    Entry {
        name: "list_runs",
        scopes: &[Scope::TasksRead],
        title: "List runs",
        text: "Lists the runs of the account, newest first, a page at a time.",
        effect: Effect::Reads,
        input: schema::input::<ListRunsArguments>,
        output: schema::output::<Page<'static, RunLine>>,
        run: tasks::list_runs,
        summary: render::counted,
        author: Author::Executors,
    },
    Entry {
        name: "list_run_events",
        scopes: &[Scope::TasksRead],
        title: "List what happened to a run",
        text: "Lists the events of a run, the newest first, a page at a time.",
        effect: Effect::Reads,
        input: schema::input::<RunEventsArguments>,
        output: schema::output::<Page<'static, RunEventBody<'static>>>,
        run: tasks::run_events,
        summary: render::counted,
        author: Author::Executors,
    },
    Entry {
        name: "cancel_run",
        scopes: &[Scope::TasksWrite],
        title: "Cancel a run",
        text: "Calls a run off: steps that nobody has end at once, and the tasks of the others are cancelled.",
        effect: Effect::Ends,
        input: tasks::cancel_run_input,
        output: schema::output::<RunBody<'static>>,
        run: tasks::cancel_run,
        summary: run,
        author: Author::Executors,
    },
    Entry {
        name: "retry_run",
        scopes: &[Scope::TasksWrite],
        title: "Try a run again",
        text: "Tries again the steps that did not succeed of a run that is over.",
        effect: Effect::Asks,
        input: schema::input::<RunArguments>,
        output: schema::output::<RunBody<'static>>,
        run: tasks::retry_run,
        summary: run,
        author: Author::Executors,
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

fn run(body: &Value) -> String {
    format!("Run `{}` is {}.", render::text(&body["run_id"]), render::text(&body["status"]))
}

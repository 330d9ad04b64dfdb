//! What the operations on tasks are for, what they take, and what they answer.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    events::ERROR,
    kit::page::PageBody,
    knowledge::KnowledgeBody,
    tasks::{
        CancelTaskRequest, DecisionBody, FeedbackRequest, SubmitTask, TASK, TASK_EVENT, TaskBody,
        TaskContractBody, TaskEventBody, TaskSummaryBody,
    },
};
use jurat_wire::problem::ProblemBody;

use super::TASKS;
use crate::{
    openapi::{
        description::{EventDescription, OperationDescription},
        examples, parameters,
    },
    resources::RouteInfo,
};

/// The end of a stream, as an example.
const STREAM: &str = "event: task_event\nid: 1\ndata: {\"task_id\":\"task-001\",\"seq\":1,…}\n\nevent: final\ndata: {\"task_id\":\"task-001\",\"state\":\"finalized\",…}\n\n";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "task_submit" => submit(),
        "task_list" => list(),
        "task_sample" => sample(),
        "task_show" => show(),
        "task_events" => events(),
        "task_decision" => decision(),
        "task_cancel" => cancel(),
        "task_next_epoch" => next_epoch(),
        "task_complain" => complain(),
        "knowledge_list" => knowledge(),
        _ => return None,
    })
}

fn submit() -> OperationDescription {
    let text = "Submits a contract, alone or with the executors for it, and drives the task to its end. Submitting the same `task_id` with the same contract again returns the existing task; with another contract it is 409. All problems of a contract are reported together in `errors`. The key must also have the scope `rounds:create`, and `verifiers:run` if a verifier decides; its limits apply to the task's calls, and the task is cancelled when the key is revoked or expires.";
    OperationDescription::new(TASKS, "Submit a task", text)
        .scope(Scope::TasksWrite)
        .takes::<SubmitTask>([("plain", examples::tasks::order())])
        .answers::<TaskBody<'_>>(201, "The added task.", examples::tasks::task())
        .answers::<TaskBody<'_>>(
            200,
            "The existing task, which was submitted before.",
            examples::tasks::task(),
        )
        .idempotent()
        .with([parameters::prefer(
            "`wait=N` returns the task when it ends, or its current state after N seconds.",
        )])
        .refuses([
            ProblemCode::Conflict,
            ProblemCode::PolicyInvalid,
            ProblemCode::SchemaRefused,
            ProblemCode::RateLimited,
            ProblemCode::ShuttingDown,
            ProblemCode::NotFound,
            ProblemCode::SessionsUnavailable,
        ])
}

fn list() -> OperationDescription {
    OperationDescription::new(TASKS, "List tasks", "The tasks of the account, newest first.")
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_tasks())
        .answers::<PageBody<'_, TaskSummaryBody<'_>>>(
            200,
            "A page of tasks.",
            examples::tasks::list(),
        )
        .refuses([ProblemCode::ValidationError])
}

fn sample() -> OperationDescription {
    let text =
        "A contract to start from: quorum 1, decided by its schema alone, valid for ten minutes.";
    OperationDescription::new(TASKS, "Get a sample contract", text)
        .scope(Scope::TasksRead)
        .with([parameters::task_id()])
        .answers::<TaskContractBody>(200, "The contract.", examples::tasks::contract())
        .refuses([ProblemCode::ValidationError])
}

fn show() -> OperationDescription {
    let text = "A task with its contract, candidates, votes and spending. A vote's verdict is null until it is revealed.";
    OperationDescription::new(TASKS, "Show a task", text)
        .scope(Scope::TasksRead)
        .with([
            parameters::wait_for_task(),
            parameters::prefer("`wait=30` waits like the parameter `wait`."),
        ])
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::whole())
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn events() -> OperationDescription {
    let text = "The events of a task, oldest first. With `Accept: text/event-stream` each event is sent as it happens, and the task at its end; `Last-Event-ID` resumes an interrupted stream.";
    OperationDescription::new(TASKS, "List or follow events of a task", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_task_events())
        .answers::<PageBody<'_, TaskEventBody<'_>>>(
            200,
            "A page of events.",
            examples::tasks::events(),
        )
        .or_streams(
            &[
                (TASK_EVENT, EventDescription::of::<TaskEventBody<'_>>()),
                (TASK, EventDescription::of::<TaskBody<'_>>()),
                (ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            STREAM,
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn decision() -> OperationDescription {
    let text = "The decision of a task, with the votes, the rounds of its calls and the digest of the decision. Fields are null if there is no decision yet.";
    OperationDescription::new(TASKS, "Show a decision", text)
        .scope(Scope::TasksRead)
        .answers::<DecisionBody<'_>>(200, "The decision.", examples::tasks::decision())
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn cancel() -> OperationDescription {
    let text = "Cancels a task and stops its work in progress. A cancelled task is returned unchanged; a task that ended otherwise is 409.";
    OperationDescription::new(TASKS, "Cancel a task", text)
        .scope(Scope::TasksWrite)
        .takes::<CancelTaskRequest>([("plain", serde_json::json!({ "reason": "asked twice" }))])
        .or_nothing()
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::cancelled())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
        ])
}

fn next_epoch() -> OperationDescription {
    let text = "Starts the next epoch of a continuous task whose decision is final, with a new budget. It is 409 for a one-shot task, for one that is not decided yet, and for one that has ended.";
    OperationDescription::new(TASKS, "Start the next epoch", text)
        .scope(Scope::TasksWrite)
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::next_epoch())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
            ProblemCode::ShuttingDown,
            ProblemCode::InvalidJson,
            ProblemCode::PayloadTooLarge,
            ProblemCode::RequestTimeout,
            ProblemCode::UnsupportedMediaType,
        ])
}

fn knowledge() -> OperationDescription {
    let text = "The decisions of the account's tasks, newest first, for one task type or one task: send either `task_type` or `task_id`. Tasks with the same inputs reuse them as candidates, and executors receive decisions of similar tasks.";
    OperationDescription::new(TASKS, "List remembered decisions", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_knowledge())
        .answers::<PageBody<'_, KnowledgeBody<'_>>>(
            200,
            "A page of decisions.",
            examples::tasks::knowledge(),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn complain() -> OperationDescription {
    let text = "Disputes a decision as wrong, once and within `acceptance.settlement.window_ms` after it became final. The decision itself does not change, but it is no longer reused and settles as bad. If the contract names an authority's key, the dispute must be signed with it.";
    OperationDescription::new(TASKS, "Dispute a decision", text)
        .scope(Scope::TasksWrite)
        .takes::<FeedbackRequest>([("plain", examples::tasks::complaint())])
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::complained())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
        ])
}

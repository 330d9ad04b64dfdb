//! What the operations on tasks are for, what they take, and what they answer.

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::api::{
    events::ERROR,
    knowledge::KnowledgeBody,
    page::Page,
    tasks::{
        CancelTaskRequest, DecisionBody, EventBody, FeedbackRequest, SubmitTask, TASK, TASK_EVENT,
        TaskBody, TaskContractBody, TaskSummaryBody,
    },
};
use jurat_wire::problem::ProblemBody;

use super::TASKS;
use crate::{
    http::RouteInfo,
    openapi::{
        description::{Description, Event},
        examples, parameters,
    },
};

/// The end of a stream, as an example.
const STREAM: &str = "event: task_event\nid: 1\ndata: {\"task_id\":\"task-001\",\"seq\":1,…}\n\nevent: final\ndata: {\"task_id\":\"task-001\",\"state\":\"finalized\",…}\n\n";

pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
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

fn submit() -> Description {
    let text = "Takes a contract, alone or with who is to work on it, and drives the task to its end. The same `task_id` with the same contract is the task as it is; with another contract it is 409. Everything that is wrong with a contract is told at once, in `errors`. The key must also have the scope `rounds:create`, and `verifiers:run` where a verifier decides; its limits hold for the steps, and the task is cancelled when the key is revoked or expires.";
    Description::new(TASKS, "Submit a task", text)
        .scope(Scope::TasksWrite)
        .takes::<SubmitTask>([("plain", examples::tasks::order())])
        .answers::<TaskBody<'_>>(201, "The task that was added.", examples::tasks::task())
        .answers::<TaskBody<'_>>(
            200,
            "The task, which was submitted before.",
            examples::tasks::task(),
        )
        .repeatable()
        .with([parameters::prefer(
            "`wait=N` answers when the task is over, or after N seconds, with the task as it is then.",
        )])
        .refuses([
            Code::Conflict,
            Code::PolicyInvalid,
            Code::SchemaRefused,
            Code::RateLimited,
            Code::ShuttingDown,
            Code::NotFound,
            Code::SessionsUnavailable,
        ])
}

fn list() -> Description {
    Description::new(TASKS, "List tasks", "The tasks of the account, newest first.")
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_tasks())
        .answers::<Page<'_, TaskSummaryBody<'_>>>(200, "A page of tasks.", examples::tasks::list())
        .refuses([Code::ValidationError])
}

fn sample() -> Description {
    let text = "A contract to begin with: quorum 1, decided by its schema alone, for ten minutes.";
    Description::new(TASKS, "Make a contract", text)
        .scope(Scope::TasksRead)
        .with([parameters::task_id()])
        .answers::<TaskContractBody>(200, "The contract.", examples::tasks::contract())
        .refuses([Code::ValidationError])
}

fn show() -> Description {
    let text = "A task with its contract, its candidates, its votes and what it has spent. What a vote says is null until it is revealed.";
    Description::new(TASKS, "Show a task", text)
        .scope(Scope::TasksRead)
        .with([
            parameters::wait_for_task(),
            parameters::prefer("`wait=30` is the same as the parameter."),
        ])
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::whole())
        .refuses([Code::NotFound, Code::ValidationError])
}

fn events() -> Description {
    let text = "What happened to a task, the first event first. With `Accept: text/event-stream` each event is sent as it happens, and the task at its end; `Last-Event-ID` goes on where a stream broke off.";
    Description::new(TASKS, "List or follow events", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_task_events())
        .answers::<Page<'_, EventBody<'_>>>(200, "A page of events.", examples::tasks::events())
        .or_streams(
            &[
                (TASK_EVENT, Event::of::<EventBody<'_>>()),
                (TASK, Event::of::<TaskBody<'_>>()),
                (ERROR, Event::of::<ProblemBody<'_>>()),
            ],
            STREAM,
        )
        .refuses([Code::NotFound, Code::ValidationError])
}

fn decision() -> Description {
    let text = "What a task decided, with the votes, the rounds of its steps and the digest of the decision. Where there is no decision, or not yet, its members are null.";
    Description::new(TASKS, "Show a decision", text)
        .scope(Scope::TasksRead)
        .answers::<DecisionBody<'_>>(200, "The decision.", examples::tasks::decision())
        .refuses([Code::NotFound, Code::ValidationError])
}

fn cancel() -> Description {
    let text = "Calls a task off. What is under way for it is stopped. One that was called off before is returned as it is; one that ended otherwise is 409.";
    Description::new(TASKS, "Cancel a task", text)
        .scope(Scope::TasksWrite)
        .takes::<CancelTaskRequest>([("plain", serde_json::json!({ "reason": "asked twice" }))])
        .or_nothing()
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::cancelled())
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict, Code::ValidationError, Code::Overloaded])
}

fn next_epoch() -> Description {
    let text = "Begins the next epoch of a continuous task whose decision is final, with a new budget. It is 409 for a task that is decided once, for one that is not decided yet, and for one that is over.";
    Description::new(TASKS, "Begin the next epoch", text)
        .scope(Scope::TasksWrite)
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::next_epoch())
        .repeatable()
        .refuses([
            Code::NotFound,
            Code::Conflict,
            Code::ValidationError,
            Code::Overloaded,
            Code::ShuttingDown,
            Code::InvalidJson,
            Code::PayloadTooLarge,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
        ])
}

fn knowledge() -> Description {
    let text = "The decisions that the account's tasks made, the newest first: of one type of tasks or of one task, with `task_type` or `task_id` and not both. Tasks on the same find them as candidates, and executors are told of those on the like.";
    Description::new(TASKS, "List remembered decisions", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_knowledge())
        .answers::<Page<'_, KnowledgeBody<'_>>>(
            200,
            "A page of decisions.",
            examples::tasks::knowledge(),
        )
        .refuses([Code::NotFound, Code::ValidationError])
}

fn complain() -> Description {
    let text = "Says that a decision was wrong, while it settles: once, and within `acceptance.settlement.window_ms` of the moment at which it was final. The decision stays what it is, is not reused any more, and settles as bad. Where the contract names the key of an authority, the complaint must be signed with it.";
    Description::new(TASKS, "Complain of a decision", text)
        .scope(Scope::TasksWrite)
        .takes::<FeedbackRequest>([("plain", examples::tasks::complaint())])
        .answers::<TaskBody<'_>>(200, "The task.", examples::tasks::complained())
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict, Code::ValidationError, Code::Overloaded])
}

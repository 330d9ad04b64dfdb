//! `/a2a` and the agent card: the surface for agents, whose methods the module `a2a` answers.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::a2a::{
    MEDIA_TYPE,
    card::AgentCard,
    message::A2aSendRequest,
    rpc::{A2aRpcRequest, A2aRpcResponse},
    task::{A2aSendReply, A2aTask, A2aTaskPage, TaskState},
};
use serde_json::json;

use crate::{
    a2a::{self, http_json},
    operation::{
        ErrorForm, Operation, example,
        parameters::{self, PathParameter},
    },
    resources::AGENTS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        card_operation(),
        rpc_operation(),
        send_operation(),
        stream_operation(),
        list_operation(),
        get_operation(),
        cancel_operation(),
        subscribe_operation(),
        extended_card_operation(),
        no_push(Operation::get(PUSH_CONFIGS, "a2a_push_list", http_json::push_config)),
        no_push(Operation::post(PUSH_CONFIGS, "a2a_push_create", http_json::push_config)),
        no_push(Operation::get(PUSH_CONFIG, "a2a_push_get", http_json::push_config)),
        no_push(Operation::delete(PUSH_CONFIG, "a2a_push_delete", http_json::push_config)),
    ]
}

const PUSH_CONFIGS: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs";
const PUSH_CONFIG: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs/{config}";

/// An operation that only says that there are no push notifications.
fn no_push(operation: Operation) -> Operation {
    operation.fails_as(ErrorForm::A2aHttp).undocumented()
}

const TASK: PathParameter =
    PathParameter::new("id", "The id of a task.", "rnd_01KHG5YN40MXBR5YWT0Q2YFEDS");

/// The errors of a message, in addition to those of every method.
const MESSAGE: [ProblemCode; 12] = [
    ProblemCode::RequestInvalid,
    ProblemCode::NotFound,
    ProblemCode::PolicyInvalid,
    ProblemCode::SchemaRefused,
    ProblemCode::SessionUnknown,
    ProblemCode::SessionPoolTooSmall,
    ProblemCode::SessionsUnavailable,
    ProblemCode::BudgetExhausted,
    ProblemCode::AccountSuspended,
    ProblemCode::ShuttingDown,
    ProblemCode::Conflict,
    ProblemCode::IdempotencyMismatch,
];

fn card_operation() -> Operation {
    let text = "The card of this server: its addresses, its skills, and how to send a key. It is signed with the key of the node.";
    Operation::get("/.well-known/agent-card.json", "agent_card", a2a::public_card)
        .also_at("/.well-known/agent.json", "agent_card_old")
        .for_anyone()
        .tag(AGENTS)
        .summary("Show the agent card")
        .text(text)
        .answers::<AgentCard>(200, "The card.", example(include_str!("a2a/card.json")))
        .and_header("Cache-Control", "How long the card may be cached.")
        .and_header("ETag", "Identifies the content of the card.")
        .and_header("Last-Modified", "When the server first showed the card.")
        .answers_nothing(304, "The client has the card.")
}

fn rpc_operation() -> Operation {
    let text = "The Agent2Agent protocol 1.0 over JSON-RPC: SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask, SubscribeToTask, GetExtendedAgentCard, and the methods of push notifications, which are not supported. A method needs the same scope as its operation. An error of a method has the status 200.";
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": { "pageSize": 10 } });
    let reply = json!({
        "jsonrpc": "2.0", "id": 1,
        "result": { "tasks": [], "nextPageToken": "", "pageSize": 10, "totalSize": 0 },
    });
    of_protocol(Operation::post("/a2a", "a2a", a2a::post), ErrorForm::A2aRpc)
        .also("/a2a/")
        .summary("Call a method of the Agent2Agent protocol")
        .text(text)
        .takes::<A2aRpcRequest>([("plain", call)])
        .answers::<A2aRpcResponse>(200, "The response.", reply)
        .or_as("text/event-stream", "The responses of a method that streams.")
}

fn send_operation() -> Operation {
    let text = "Begins a task and returns it when it has ended, or immediately with `configuration.returnImmediately`. A data part holds `skill` and the request of that skill; a text is the objective of `delegate`. The same message sent twice is one task.";
    of_protocol(
        Operation::post("/a2a/v1/message:send", "a2a_send", http_json::send),
        ErrorForm::A2aHttp,
    )
    .begins_rounds()
    .summary("Send a message")
    .text(text)
    .scope(Scope::RoundsCreate)
    .takes::<A2aSendRequest>([("plain", example(include_str!("a2a/send_request.json")))])
    .answers::<A2aSendReply>(200, "The task.", example(include_str!("a2a/send.json")))
    .or_typed(MEDIA_TYPE)
    .refuses(MESSAGE)
}

fn stream_operation() -> Operation {
    let text = "Begins a task like `message:send`, and streams it: the task, its artifacts, and its last status.";
    of_protocol(
        Operation::post("/a2a/v1/message:stream", "a2a_stream", http_json::send_streaming),
        ErrorForm::A2aHttp,
    )
    .begins_rounds()
    .summary("Send a message and stream its task")
    .text(text)
    .scope(Scope::RoundsCreate)
    .takes::<A2aSendRequest>([("plain", example(include_str!("a2a/send_request.json")))])
    .answers_as(200, "The events of the task.", &["text/event-stream"])
    .refuses(MESSAGE)
}

fn list_operation() -> Operation {
    let text = "The account's tasks, newest first: every round that does not belong to a task of Jurat, whether it came as a message or not.";
    let states = TaskState::ALL.map(TaskState::as_str);
    of_protocol(Operation::get("/a2a/v1/tasks", "a2a_tasks", http_json::list), ErrorForm::A2aHttp)
        .summary("List tasks")
        .text(text)
        .scope(Scope::RoundsRead)
        .with(parameters::of_agent_tasks(&states))
        .answers::<A2aTaskPage>(200, "A page of tasks.", example(include_str!("a2a/list.json")))
        .or_typed(MEDIA_TYPE)
}

fn get_operation() -> Operation {
    let text = "A task with its artifacts and its message. A task of another account is not found.";
    of_protocol(
        Operation::get("/a2a/v1/tasks/{id}", "a2a_task", http_json::get),
        ErrorForm::A2aHttp,
    )
    .summary("Show a task")
    .text(text)
    .in_path([TASK])
    .scope(Scope::RoundsRead)
    .with([parameters::history_length()])
    .answers::<A2aTask>(200, "The task.", example(include_str!("a2a/task.json")))
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound])
}

fn cancel_operation() -> Operation {
    let text = "Cancels a task. It ends without a verdict; the answers of replicas that have answered stay on record. A task that has ended otherwise cannot be cancelled.";
    of_protocol(
        Operation::post("/a2a/v1/tasks/{id}:cancel", "a2a_cancel", http_json::act),
        ErrorForm::A2aHttp,
    )
    .mounted_at(&["/a2a/v1/tasks/{id}"])
    .summary("Cancel a task")
    .text(text)
    .in_path([TASK])
    .scope(Scope::RoundsCreate)
    .answers::<A2aTask>(200, "The task.", example(include_str!("a2a/cancelled.json")))
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound, ProblemCode::InvalidJson])
}

fn subscribe_operation() -> Operation {
    let text = "Streams a task in progress: the task, its artifacts, and its last status. A task that has ended cannot be followed.";
    of_protocol(
        Operation::post("/a2a/v1/tasks/{id}:subscribe", "a2a_subscribe", http_json::act),
        ErrorForm::A2aHttp,
    )
    // `a2a_cancel` and `a2a_task` answer these paths, too.
    .mounted_at(&[])
    .summary("Follow a task")
    .text(text)
    .in_path([TASK])
    .scope(Scope::RoundsRead)
    .answers_as(200, "The events of the task.", &["text/event-stream"])
    .refuses([ProblemCode::NotFound, ProblemCode::InvalidJson])
}

fn extended_card_operation() -> Operation {
    let text = "The card for this key: the skills that it may use, and the account's own verifiers as skills.";
    of_protocol(
        Operation::get("/a2a/v1/extendedAgentCard", "a2a_extended_card", http_json::extended_card),
        ErrorForm::A2aHttp,
    )
    .summary("Show the extended agent card")
    .text(text)
    .answers::<AgentCard>(200, "The card.", example(include_str!("a2a/card.json")))
    .or_typed(MEDIA_TYPE)
}

/// What every operation of the protocol has.
fn of_protocol(operation: Operation, errors: ErrorForm) -> Operation {
    operation
        .tag(AGENTS)
        .fails_as(errors)
        .with([parameters::a2a_version()])
        .refuses([ProblemCode::ValidationError, ProblemCode::NotSupported])
}

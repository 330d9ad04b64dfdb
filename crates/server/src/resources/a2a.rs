//! `/a2a` and the agent card: the surface for agents, whose methods the module `a2a` answers.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    a2a::{
        MEDIA_TYPE,
        card::AgentCard,
        error::HttpErrorBody,
        message::A2aSendRequest,
        push::{A2aPushConfig, A2aPushConfigList, A2aPushRemoved, A2aPushRequest},
        rpc::{A2aRpcRequest, A2aRpcResponse},
        task::{A2aSendReply, A2aTask, A2aTaskPage, A2aUpdate, TaskState},
    },
    events,
};
use serde_json::{Value, json};

use crate::{
    a2a::{self, http_json},
    operation::{
        ErrorForm, EventDescription, Operation, example,
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
        subscribe_by_get_operation(),
        extended_card_operation(),
        push_create_operation(),
        push_list_operation(),
        push_get_operation(),
        push_delete_operation(),
    ]
}

const PUSH_CONFIGS: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs";
const PUSH_CONFIG: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs/{config}";

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

/// The events of a stream of the HTTP+JSON binding.
fn task_events() -> [(&'static str, EventDescription); 2] {
    [
        ("message", EventDescription::of::<A2aUpdate>()),
        (events::ERROR, EventDescription::of::<HttpErrorBody>()),
    ]
}

fn card_operation() -> Operation {
    let text = "The card of this server: its addresses, its skills, and how to send a key. It is signed with the key of the node.";
    Operation::get("/.well-known/agent-card.json", "agent_card", a2a::public_card)
        .also_at("/.well-known/agent.json", "agent_card_old")
        .also_at("/api/v1/a2a/agent.json", "peer_agent_card")
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
    let text = "The Agent2Agent protocol 1.0 over JSON-RPC: SendMessage, SendStreamingMessage, GetTask, ListTasks, CancelTask, SubscribeToTask, GetExtendedAgentCard, and CreateTaskPushNotificationConfig, GetTaskPushNotificationConfig, ListTaskPushNotificationConfigs, DeleteTaskPushNotificationConfig. A method needs the same scope as its operation. An error of a method has the status 200.";
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
    .streams(200, "The events of the task.", &task_events())
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
    let text = "Cancels a task. It ends without a verdict; the answers of replicas that have answered stay on record. A task that has ended otherwise cannot be cancelled. For a run of a verifier, the scope `verifiers:run` is enough.";
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
    .streams(200, "The events of the task.", &task_events())
    .refuses([ProblemCode::NotFound, ProblemCode::InvalidJson])
}

/// The definition of the protocol binds this method to `GET`, and its text to `POST`.
fn subscribe_by_get_operation() -> Operation {
    of_protocol(
        Operation::get("/a2a/v1/tasks/{id}:subscribe", "a2a_subscribe_by_get", http_json::get),
        ErrorForm::A2aHttp,
    )
    .mounted_at(&[])
    .summary("Follow a task")
    .text("Like `POST` at the same path.")
    .in_path([TASK])
    .scope(Scope::RoundsRead)
    .streams(200, "The events of the task.", &task_events())
    .refuses([ProblemCode::NotFound])
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
    .and_header("Cache-Control", "How long the client may cache the card.")
}

const PUSH: PathParameter = PathParameter::new("config", "The id of a configuration.", "mine");

fn push_create_operation() -> Operation {
    let text = "Has an address told when the task has ended, or now if it has: a `statusUpdate` with the last status, retried for about three days. The token and the credentials accompany it, and no reply shows them. A configuration with the same id is replaced. A task has at most 10, and they go a week after they were added.";
    let request = json!({
        "id": "mine", "url": "https://example.com/a2a-news", "token": "chosen-by-the-receiver",
    });
    of_protocol(
        Operation::post(PUSH_CONFIGS, "a2a_push_create", http_json::push_create),
        ErrorForm::A2aHttp,
    )
    .summary("Add a push notification to a task")
    .text(text)
    .in_path([TASK])
    .scope(Scope::RoundsCreate)
    .scope(Scope::RoundsRead)
    .takes::<A2aPushRequest>([("plain", request)])
    .answers::<A2aPushConfig>(200, "The configuration.", push_config())
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound, ProblemCode::InvalidJson, ProblemCode::Conflict])
}

fn push_list_operation() -> Operation {
    let list = json!({ "configs": [push_config()], "nextPageToken": "" });
    of_protocol(
        Operation::get(PUSH_CONFIGS, "a2a_push_list", http_json::push_list),
        ErrorForm::A2aHttp,
    )
    .summary("List the push notifications of a task")
    .text("The configurations of a task, in order of creation.")
    .in_path([TASK])
    .scope(Scope::RoundsRead)
    .answers::<A2aPushConfigList>(200, "The configurations.", list)
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound])
}

fn push_get_operation() -> Operation {
    of_protocol(
        Operation::get(PUSH_CONFIG, "a2a_push_get", http_json::push_get),
        ErrorForm::A2aHttp,
    )
    .summary("Show a push notification of a task")
    .text("One configuration of a task.")
    .in_path([TASK, PUSH])
    .scope(Scope::RoundsRead)
    .answers::<A2aPushConfig>(200, "The configuration.", push_config())
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound])
}

fn push_delete_operation() -> Operation {
    of_protocol(
        Operation::delete(PUSH_CONFIG, "a2a_push_delete", http_json::push_delete),
        ErrorForm::A2aHttp,
    )
    .summary("Remove a push notification of a task")
    .text("Removes a configuration, with what still waits to be sent. Removing it again changes nothing.")
    .in_path([TASK, PUSH])
    .scope(Scope::RoundsCreate)
    .scope(Scope::RoundsRead)
    .answers::<A2aPushRemoved>(200, "It is removed.", json!({}))
    .or_typed(MEDIA_TYPE)
    .refuses([ProblemCode::NotFound])
}

fn push_config() -> Value {
    json!({
        "id": "mine", "taskId": "rnd_01KHG5YN40MXBR5YWT0Q2YFEDS",
        "url": "https://example.com/a2a-news",
    })
}

/// What every operation of the protocol has.
fn of_protocol(operation: Operation, errors: ErrorForm) -> Operation {
    operation
        .tag(AGENTS)
        .fails_as(errors)
        .with([parameters::a2a_version()])
        .refuses([ProblemCode::ValidationError, ProblemCode::NotSupported])
}

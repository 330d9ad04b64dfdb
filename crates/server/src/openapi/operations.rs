//! What each operation is for, what it takes, and what it answers.

mod agent_events;
mod agent_runs;
mod credits;
mod executor;
mod logins;
mod people;
mod tasks;
mod templates;
mod verifiers;
mod workflows;

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::{
    api::{
        consensus_reply::{DelegateReply, ReplicaBody, VerdictReply},
        consensus_request::{
            DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest,
            ValidateRequestV2,
        },
        doctor::{CheckedEntries, CheckupBody},
        events::{self, DecidedEvent, ReplicaStarted},
        executors::{AddExecutorRequest, ExecutorBody, ProbeBody},
        keys::{CreateKeyRequest, CreatedKey, KeyPage, RotateKeyRequest},
        kit::page::PageBody,
        mcp::{McpMessage, McpReply},
        prune::{PruneRequest, PrunedBody},
        rounds::{ErasedBody, RoundBody},
        sessions::{AddSessionRequest, SessionBody},
        status::{ApiIndex, RemovalBody, RemovedExecutor, ServerStatus},
        v2::{DelegateReplyV2, VerdictReplyV2},
    },
    problem::ProblemBody,
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    description::{EventDescription, OperationDescription},
    examples, parameters,
};
use crate::resources::RouteInfo;

pub(super) const CONSENSUS: &str = "consensus";
pub(super) const ROUNDS: &str = "rounds";
pub(super) const TASKS: &str = "tasks";
pub(super) const AGENT_EVENTS: &str = "agent events";
pub(super) const EXECUTORS: &str = "executors";
pub(super) const SESSIONS: &str = "sessions";
pub(super) const KEYS: &str = "keys";
pub(super) const CREDITS: &str = "credits";
pub(super) const VERIFIERS: &str = "verifiers";
pub(super) const AGENT_RUNS: &str = "runs";
pub(super) const PEOPLE: &str = "people";
pub(super) const WORKFLOWS: &str = "workflows";
pub(super) const TEMPLATES: &str = "templates";
pub(super) const WORKFLOW_TOOLS: &str = "instructions";
pub(super) const MODELS: &str = "models";
pub(super) const OPERATIONS: &str = "operations";

/// The tags, with what belongs to each.
pub(super) const TAGS: &[(&str, &str)] = &[
    (CONSENSUS, "Delegate, validate and fact-check with several executors."),
    (ROUNDS, "Read rounds and their decisions."),
    (TASKS, "Have executors propose and vote on a job under a contract."),
    (EXECUTORS, "Register the services that execute and verify."),
    (AGENT_EVENTS, "Inspect events to executors, and send them events."),
    (SESSIONS, "Define named routes to executors, with a profile, a tier and a price."),
    (VERIFIERS, "Deploy, run and measure semantic checks that a judge decides."),
    (AGENT_RUNS, "Have several agents work on one job, and combine their values into one result."),
    (WORKFLOWS, "Save runbooks that name their verifiers, and share both."),
    (TEMPLATES, "Publish workflows with their checks, and read, search and fork them."),
    (WORKFLOW_TOOLS, "Get instructions for agents that design and improve workflows."),
    (KEYS, "Create, list, rotate and revoke API keys."),
    (CREDITS, "Show and grant credit, and suspend accounts."),
    (PEOPLE, "Manage handles, teams, shares and invitations."),
    (MODELS, "Call the operations as tools from models and agents."),
    (OPERATIONS, "Check the server, and read this document."),
];

/// The description of a route; `None` for one that nobody described, which a test finds.
pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    let is_v2 = route.path.starts_with("/api/v2/");
    Some(match route.operation {
        "delegate" if is_v2 => delegate_v2(),
        "delegate" => delegate(),
        "validate" if is_v2 => validate_v2(),
        "validate" => validate(),
        "factcheck" => factcheck(),
        "verify" => executor::verify(),
        "capabilities_show" => executor::capabilities_show(),
        "round_list" => round_list(),
        "round_show" => round_show(),
        "round_cancel" => round_cancel(),
        "round_erase" => round_erase(),
        "prune" => prune(),
        "executor_add" => executor_add(),
        "executor_list" => executor_list(),
        "executor_show" => executor_show(),
        "executor_check" => executor_check(),
        "executor_remove" => executor_remove(),
        "session_add" => session_add(),
        "session_list" => session_list(),
        "session_show" => session_show(),
        "session_remove" => session_remove(),
        "key_create" => key_create(),
        "key_list" => key_list(),
        "key_revoke" => key_revoke(),
        "key_rotate" => key_rotate(),
        "me_show" => credits::me_show(),
        "usage_show" => credits::usage_show(),
        "transfer_list" => credits::transfer_list(),
        "account_transfers" => credits::account_transfers(),
        "account_list" => credits::account_list(),
        "account_show" => credits::account_show(),
        "credit_grant" => credits::credit_grant(),
        "account_suspend" => credits::account_suspend(),
        "account_resume" => credits::account_resume(),
        "mcp" => mcp(),
        "doctor" => doctor(),
        "doctor_entries" => doctor_entries(),
        "health" | "healthz" => health(),
        "ready" => ready(),
        "metrics_show" => metrics_show(),
        "front" => front(),
        "openapi" => openapi(),
        "docs" => docs(),
        "docs_file" => docs_file(),
        _ => {
            return verifiers::describe(route)
                .or_else(|| agent_runs::describe(route))
                .or_else(|| tasks::describe(route))
                .or_else(|| agent_events::describe(route))
                .or_else(|| people::describe(route))
                .or_else(|| workflows::describe(route))
                .or_else(|| templates::describe(route))
                .or_else(|| logins::describe(route));
        }
    })
}

fn delegate() -> OperationDescription {
    let text = "Runs the job on 1, 3 or 5 sessions, checks every output under the policy, and returns the one they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.";
    let description = OperationDescription::new(CONSENSUS, "Delegate a job", text)
        .takes::<DelegateRequest>([("plain", examples::of("delegate_request"))])
        .answers::<DelegateReply<'_>>(
            200,
            "The result that the replicas agree on.",
            examples::of("delegate"),
        );
    round_of::<DelegateReply<'_>>(description)
}

fn validate() -> OperationDescription {
    let text = "Has 1, 3 or 5 sessions judge a candidate under a policy, and returns the verdict they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.";
    let description = OperationDescription::new(CONSENSUS, "Validate a candidate", text)
        .takes::<ValidateRequest>([("plain", examples::of("validate_request"))])
        .answers::<VerdictReply<'_>>(
            200,
            "The result that the replicas agree on.",
            examples::of("validate"),
        );
    round_of::<VerdictReply<'_>>(description)
}

fn factcheck() -> OperationDescription {
    let text = "Has 1, 3 or 5 sessions decide whether a claim is true, and returns the verdict they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.";
    let description = OperationDescription::new(CONSENSUS, "Fact-check a claim", text)
        .takes::<FactcheckRequest>([("plain", examples::of("factcheck_request"))])
        .answers::<VerdictReply<'_>>(
            200,
            "The result that the replicas agree on.",
            examples::of("factcheck"),
        );
    round_of::<VerdictReply<'_>>(description)
}

fn delegate_v2() -> OperationDescription {
    let text = "Like version 3 with one replica, in the session that the request names. `consensus` is ignored.";
    let description = OperationDescription::new(CONSENSUS, "Delegate a job to one session", text)
        .takes::<DelegateRequestV2>([("plain", examples::of("delegate_v2_request"))])
        .answers::<DelegateReplyV2<'_>>(200, "The session's output.", examples::of("delegate_v2"));
    round_of::<DelegateReplyV2<'_>>(description)
}

fn validate_v2() -> OperationDescription {
    let text = "Like version 3 with one replica, in the session that the request names. `consensus` is ignored.";
    let description =
        OperationDescription::new(CONSENSUS, "Validate a candidate with one session", text)
            .takes::<ValidateRequestV2>([("plain", examples::of("validate_v2_request"))])
            .answers::<VerdictReplyV2<'_>>(
                200,
                "The session's verdict.",
                examples::of("validate_v2"),
            );
    round_of::<VerdictReplyV2<'_>>(description)
}

/// What all operations that open a round have in common; `R` is the data of the last event.
fn round_of<R: ToSchema>(description: OperationDescription) -> OperationDescription {
    description
        .or_streams(
            &[
                (events::REPLICA_STARTED, EventDescription::of::<ReplicaStarted<'_>>()),
                (events::REPLICA_DONE, EventDescription::of::<ReplicaBody<'_>>()),
                (events::DECIDED, EventDescription::of::<DecidedEvent<'_>>()),
                (events::FINAL, EventDescription::of::<R>()),
                (events::ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            examples::STREAM,
        )
        .answers::<RoundBody<'_>>(
            202,
            "The open round, which continues; with `Prefer: respond-async`.",
            examples::of("round_open"),
        )
        .and_header("Location", "URL of the round.")
        .and_header("Preference-Applied", "`respond-async`.")
        .with([parameters::prefer(
            "`respond-async` returns 202 immediately; `respond-async, wait=10` returns it after ten seconds unless the round has ended.",
        )])
        .idempotent()
        .scope(Scope::RoundsCreate)
        .refuses([
            ProblemCode::RequestInvalid,
            ProblemCode::NotSupported,
            ProblemCode::PolicyInvalid,
            ProblemCode::SchemaRefused,
            ProblemCode::SessionUnknown,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::ShuttingDown,
            ProblemCode::ConsensusDisagreement,
            ProblemCode::Conflict,
        ])
}

fn round_list() -> OperationDescription {
    OperationDescription::new(ROUNDS, "List rounds", "The account's rounds, newest first.")
        .scope(Scope::RoundsRead)
        .with(parameters::of_list())
        .with(parameters::of_rounds())
        .answers::<PageBody<'_, RoundBody<'_>>>(
            200,
            "A page of rounds.",
            examples::of("round_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

fn round_show() -> OperationDescription {
    let text = "A round and, once it has ended, the fields of its reply. A round of another account is not found.";
    OperationDescription::new(ROUNDS, "Show a round", text)
        .scope(Scope::RoundsRead)
        .with([
            parameters::wait(),
            parameters::prefer(
                "`wait=10` waits like the parameter `wait`, which takes precedence.",
            ),
        ])
        .answers::<RoundBody<'_>>(200, "The round.", examples::of("round"))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn round_cancel() -> OperationDescription {
    let text = "Cancels a round. Replicas that have not answered are cancelled, the answers of the others stay on record, and the round ends as `cancelled` without a verdict. Cancelling again has no effect; a round that ended otherwise is a conflict, and so is a round of a task, which ends with the task.";
    OperationDescription::new(ROUNDS, "Cancel a round", text)
        .scope(Scope::RoundsCreate)
        .answers::<RoundBody<'_>>(200, "The round has ended.", examples::of("round_cancelled"))
        .answers::<RoundBody<'_>>(
            202,
            "The round's node is about to end it.",
            examples::of("round_open"),
        )
        .and_header("Location", "URL of the round.")
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn round_erase() -> OperationDescription {
    let text = "Erases the content of a round that has ended: the request, the outputs, and the texts and evidence of its replicas. Its decision stays, with the digests of the erased content. Erasing again has no effect; a round that has not ended, or whose task has not ended, is a conflict.";
    OperationDescription::new(ROUNDS, "Erase the content of a round", text)
        .scope(Scope::RoundsCreate)
        .answers::<ErasedBody<'_>>(200, "The content is erased.", examples::of("round_erase"))
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn prune() -> OperationDescription {
    let text = "Removes data that is older than the settings under `storage` and `agent_events` allow, which the server also does regularly: replies stored under idempotency keys, the content of rounds, events of ended tasks and runs, and events to executors. Decisions and the ledger are never removed.";
    OperationDescription::new(OPERATIONS, "Remove old data", text)
        .scope(Scope::Admin)
        .takes::<PruneRequest>([("plain", examples::of("prune_request"))])
        .or_nothing()
        .answers::<PrunedBody>(200, "How much was removed, or would be.", examples::of("prune"))
        .refuses([ProblemCode::ValidationError])
}

fn executor_add() -> OperationDescription {
    let text = "Registers a service and adds a session of the same name. The service is probed for health and capabilities; one that does not answer is registered anyway, unless `must_answer` is true.";
    OperationDescription::new(EXECUTORS, "Register an executor", text)
        .scope(Scope::Admin)
        .takes::<AddExecutorRequest>([("plain", examples::of("executor_add_request"))])
        .answers::<ExecutorBody<'_>>(201, "The executor.", examples::of("executor_add"))
        .idempotent()
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::NotSupported,
            ProblemCode::Conflict,
            ProblemCode::ExecutorUnavailable,
        ])
}

fn executor_list() -> OperationDescription {
    OperationDescription::new(EXECUTORS, "List executors", "All executors, by name.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, ExecutorBody<'_>>>(
            200,
            "A page of executors.",
            examples::of("executor_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

fn executor_show() -> OperationDescription {
    OperationDescription::new(EXECUTORS, "Show an executor", "An executor and its current state.")
        .scope(Scope::Admin)
        .answers::<ExecutorBody<'_>>(200, "The executor.", examples::of("executor"))
        .refuses([ProblemCode::NotFound])
}

fn executor_check() -> OperationDescription {
    let text = "Probes the executor's health and capabilities now. The status is 200 even if the executor is unhealthy.";
    OperationDescription::new(EXECUTORS, "Check an executor", text)
        .scope(Scope::Admin)
        .answers::<ProbeBody<'_>>(200, "Result of the check.", examples::of("check"))
        .refuses([ProblemCode::NotFound])
}

fn executor_remove() -> OperationDescription {
    OperationDescription::new(
        EXECUTORS,
        "Remove an executor",
        "Removes an executor and its sessions.",
    )
    .scope(Scope::Admin)
    .answers::<RemovedExecutor<'_>>(200, "The removed resource.", examples::of("executor_remove"))
    .idempotent()
    .refuses([ProblemCode::NotFound])
}

fn session_add() -> OperationDescription {
    let text = "Adds a named route to an executor, with its own profile, tier and price.";
    OperationDescription::new(SESSIONS, "Add a session", text)
        .scope(Scope::Admin)
        .takes::<AddSessionRequest>([("plain", examples::of("session_add_request"))])
        .answers::<SessionBody<'_>>(201, "The session.", examples::of("session"))
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::Conflict])
}

fn session_list() -> OperationDescription {
    OperationDescription::new(SESSIONS, "List sessions", "All sessions, by id.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, SessionBody<'_>>>(
            200,
            "A page of sessions.",
            examples::of("session_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

fn session_show() -> OperationDescription {
    OperationDescription::new(SESSIONS, "Show a session", "A session, as it was added.")
        .scope(Scope::Admin)
        .answers::<SessionBody<'_>>(200, "The session.", examples::of("session"))
        .refuses([ProblemCode::NotFound])
}

fn session_remove() -> OperationDescription {
    OperationDescription::new(
        SESSIONS,
        "Remove a session",
        "Removes a session; its executor stays.",
    )
    .scope(Scope::Admin)
    .answers::<RemovalBody<'_>>(200, "The removed resource.", examples::of("session_remove"))
    .idempotent()
    .refuses([ProblemCode::NotFound])
}

fn key_create() -> OperationDescription {
    let text = "Creates a key for an account. Only this reply contains the key itself. A key never has more permissions than the key that created it; without the scope `admin` it creates keys only for its own account, within its own limits.";
    OperationDescription::new(KEYS, "Create a key", text)
        .scope(Scope::KeysWrite)
        .takes::<CreateKeyRequest>([("plain", examples::of("key_create_request"))])
        .answers::<CreatedKey>(201, "The key, shown once.", examples::of("key_create"))
        .and_header("Cache-Control", "`no-store`.")
        .refuses([ProblemCode::ValidationError, ProblemCode::Conflict])
}

fn key_list() -> OperationDescription {
    let text = "The keys of all accounts, or of one, in order of creation. Callers without the scope `admin` see only the keys of their own account.";
    OperationDescription::new(KEYS, "List keys", text)
        .scope(Scope::KeysWrite)
        .with(parameters::of_list())
        .with(parameters::of_keys("Only keys of this account."))
        .answers::<KeyPage>(200, "A page of keys.", examples::of("key_list"))
        .refuses([ProblemCode::ValidationError])
}

fn key_revoke() -> OperationDescription {
    let text = "Revokes a key. A name refers to all keys of the account with that name. The caller's own key and the last one with the scope `admin` cannot be revoked. Without the scope `admin`, the caller cannot revoke keys of other accounts or keys with more permissions.";
    OperationDescription::new(KEYS, "Revoke a key", text)
        .scope(Scope::KeysWrite)
        .with(parameters::of_keys("The account that a name belongs to; defaults to the caller's."))
        .answers_nothing(204, "It is revoked.")
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound, ProblemCode::Conflict])
}

fn key_rotate() -> OperationDescription {
    let text = "Replaces a key with a new one; the old key stays valid for a while.";
    OperationDescription::new(KEYS, "Rotate a key", text)
        .scope(Scope::Admin)
        .with(parameters::of_keys("The account that a name belongs to; defaults to the caller's."))
        .takes::<RotateKeyRequest>([("plain", json!({ "grace_seconds": 3600 }))])
        .or_nothing()
        .answers::<CreatedKey>(201, "The new key, shown once.", examples::of("key_rotate"))
        .and_header("Cache-Control", "`no-store`.")
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound, ProblemCode::Conflict])
}

fn mcp() -> OperationDescription {
    let text = "The Model Context Protocol over HTTP, in its revisions from 2024-11-05 to 2026-07-28. Each request contains one JSON-RPC message and is answered on its own: there are no protocol sessions. A tool needs the same scope as its operation.";
    let error = |code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } });
    OperationDescription::new(MODELS, "Send a Model Context Protocol message", text)
        .takes::<McpMessage>([("plain", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))])
        .answers::<McpReply>(
            200,
            "The response to a request.",
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        )
        .or_as(
            "text/event-stream",
            "The messages of the response; progress notifications come first.",
        )
        .answers_nothing(202, "The notification was accepted; it has no response.")
        .answers::<McpReply>(
            400,
            "The body is not a valid message, or contradicts the headers.",
            error(-32600, "`jsonrpc` must be `2.0`"),
        )
        .answers::<McpReply>(404, "There is no such method.", error(-32601, "no/such/method"))
        .refuses([ProblemCode::HostRefused])
}

fn doctor() -> OperationDescription {
    let text = "Checks the whole store and probes every executor, so it may take a while.";
    OperationDescription::new(OPERATIONS, "Check the installation", text)
        .scope(Scope::Admin)
        .answers::<CheckupBody<'_>>(200, "The result.", examples::of("doctor"))
}

fn doctor_entries() -> OperationDescription {
    let text =
        "Recomputes the decision entries of ended rounds of all accounts from the stored data.";
    OperationDescription::new(OPERATIONS, "Check recorded decisions", text)
        .scope(Scope::Admin)
        .with(parameters::of_entries())
        .answers::<CheckedEntries<'_>>(
            200,
            "The checked decisions.",
            json!({ "checked": 3, "problems": [], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn health() -> OperationDescription {
    let text = "Confirms that the process is running. It does not check the store.";
    OperationDescription::new(OPERATIONS, "Check liveness", text).answers::<ServerStatus>(
        200,
        "The server is alive.",
        json!({ "status": "ok" }),
    )
}

fn ready() -> OperationDescription {
    let text = "Checks whether the store answers and accepts writes.";
    OperationDescription::new(OPERATIONS, "Check readiness", text)
        .answers::<ServerStatus>(200, "The server is ready.", json!({ "status": "ready" }))
        .refuses([ProblemCode::StoreUnavailable, ProblemCode::ShuttingDown])
}

fn metrics_show() -> OperationDescription {
    let text = "The metrics of this node, in Prometheus text format, or in OpenMetrics format if `Accept` asks for it.";
    OperationDescription::new(OPERATIONS, "Read the metrics", text)
        .scope(Scope::MetricsRead)
        .answers_as(200, "The metrics.", &["text/plain", "application/openmetrics-text"])
}

fn front() -> OperationDescription {
    let text = "Entry points of the server: a page for browsers, JSON for programs.";
    OperationDescription::new(OPERATIONS, "List the entry points", text)
        .answers::<ApiIndex>(200, "The URLs.", json!(ApiIndex::default()))
        .or_as("text/html", "A page with the same URLs.")
}

fn openapi() -> OperationDescription {
    let text = "This document: every operation of the server in OpenAPI 3.1.";
    OperationDescription::new(OPERATIONS, "Read this document", text).answers::<Document>(
        200,
        "The document.",
        json!({ "openapi": "3.1.0", "info": { "title": "Jurat", "version": env!("CARGO_PKG_VERSION") }, "paths": {}, "components": {}, "tags": [] }),
    )
}

/// A document in OpenAPI 3.1.
#[derive(Debug, ToSchema)]
#[schema(as = OpenApiDocument)]
#[expect(dead_code, reason = "it only describes the document")]
struct Document {
    openapi: String,
    #[schema(value_type = Object)]
    info: Value,
    #[schema(value_type = Object)]
    paths: Value,
    #[schema(value_type = Object)]
    components: Value,
    #[schema(value_type = Vec<Object>)]
    tags: Value,
}

fn docs() -> OperationDescription {
    let text = "A page to read and try the operations of this document. It asks for a key only to try them, and loads nothing from other hosts.";
    OperationDescription::new(OPERATIONS, "Read and try the API", text).answers_as(
        200,
        "The page.",
        &["text/html"],
    )
}

fn docs_file() -> OperationDescription {
    OperationDescription::new(
        OPERATIONS,
        "Load a file of the API page",
        "A file that the page `/docs` needs.",
    )
    .answers_as(200, "The file.", &["text/css", "text/html", "text/javascript", "image/png"])
    .refuses([ProblemCode::NotFound])
}

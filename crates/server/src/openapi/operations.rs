//! What each operation is for, what it takes, and what it answers.

mod agent_events;
mod credits;
mod executor;
mod logins;
mod people;
mod runs;
mod tasks;
mod templates;
mod verifiers;
mod workflows;

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::{
    api::{
        consensus_reply::{DelegateReply, ReplicaBody, VerdictReply},
        consensus_request::{
            DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest,
            ValidateRequestV2,
        },
        doctor::{CheckedEntries, Checkup},
        events::{self, Decided, ReplicaStarted},
        executors::{AddExecutorRequest, ExecutorBody, ProbeBody},
        keys::{CreateKeyRequest, CreatedKey, KeyPage, RotateKeyRequest},
        mcp::{McpMessage, McpReply},
        page::Page,
        prune::{PruneRequest, PrunedBody},
        rounds::{ErasedBody, RoundBody},
        sessions::{AddSessionRequest, SessionBody},
        status::{Index, Removed, RemovedExecutor, Status},
        v2::{DelegateReplyV2, VerdictReplyV2},
    },
    problem::ProblemBody,
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    description::{Description, Event},
    examples, parameters,
};
use crate::http::RouteInfo;

pub(super) const CONSENSUS: &str = "consensus";
pub(super) const ROUNDS: &str = "rounds";
pub(super) const TASKS: &str = "tasks";
pub(super) const AGENT_EVENTS: &str = "agent events";
pub(super) const EXECUTORS: &str = "executors";
pub(super) const SESSIONS: &str = "sessions";
pub(super) const KEYS: &str = "keys";
pub(super) const CREDITS: &str = "credits";
pub(super) const VERIFIERS: &str = "verifiers";
pub(super) const RUNS: &str = "runs";
pub(super) const PEOPLE: &str = "people";
pub(super) const WORKFLOWS: &str = "workflows";
pub(super) const TEMPLATES: &str = "templates";
pub(super) const WORKFLOW_TOOLS: &str = "instructions";
pub(super) const MODELS: &str = "models";
pub(super) const OPERATIONS: &str = "operations";

/// The tags, with what belongs to each.
pub(super) const TAGS: &[(&str, &str)] = &[
    (CONSENSUS, "Have something done, judged or checked by several executors at once."),
    (ROUNDS, "Read what was asked and decided."),
    (TASKS, "Have a job proposed, verified and voted on under a contract."),
    (EXECUTORS, "Register the services that do the work."),
    (AGENT_EVENTS, "See what executors are told besides their work, and send them events."),
    (SESSIONS, "Name lanes to executors, with a profile, a tier and a price."),
    (VERIFIERS, "Deploy, run and measure semantic checks that a judge decides."),
    (RUNS, "Have several agents work on one thing, and make one result of what they say."),
    (WORKFLOWS, "Save runbooks that name their verifiers, and share both."),
    (
        TEMPLATES,
        "Publish workflows with their checks for everybody, and read, search and fork them.",
    ),
    (WORKFLOW_TOOLS, "Get instructions for agents that design and improve workflows."),
    (KEYS, "Make, list, replace and revoke the keys of callers."),
    (CREDITS, "See and grant credit, and suspend accounts."),
    (PEOPLE, "Be known by a handle, work in teams, and answer what others share and offer."),
    (MODELS, "Offer the operations as tools to models and agents."),
    (OPERATIONS, "See whether the server is there, and read this document."),
];

/// The description of a route; `None` for one that nobody described, which a test finds.
pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
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
                .or_else(|| runs::describe(route))
                .or_else(|| tasks::describe(route))
                .or_else(|| agent_events::describe(route))
                .or_else(|| people::describe(route))
                .or_else(|| workflows::describe(route))
                .or_else(|| templates::describe(route))
                .or_else(|| logins::describe(route));
        }
    })
}

fn delegate() -> Description {
    let text = "Runs the job on 1, 3 or 5 sessions, checks every output under the policy, and returns the one they agree on. The status is 200 also when they do not agree; `disagreement_policy` `fail_hard` makes that a 409.";
    let description = Description::new(CONSENSUS, "Have a job done", text)
        .takes::<DelegateRequest>([("plain", examples::of("delegate_request"))])
        .answers::<DelegateReply<'_>>(200, "What the replicas agree on.", examples::of("delegate"));
    round_of::<DelegateReply<'_>>(description)
}

fn validate() -> Description {
    let text = "Has 1, 3 or 5 sessions judge a candidate under a policy, and returns the verdict they agree on. The status is 200 also when they do not agree; `disagreement_policy` `fail_hard` makes that a 409.";
    let description = Description::new(CONSENSUS, "Have a candidate judged", text)
        .takes::<ValidateRequest>([("plain", examples::of("validate_request"))])
        .answers::<VerdictReply<'_>>(200, "What the replicas agree on.", examples::of("validate"));
    round_of::<VerdictReply<'_>>(description)
}

fn factcheck() -> Description {
    let text = "Has 1, 3 or 5 sessions say whether a claim is true, and returns the verdict they agree on. The status is 200 also when they do not agree; `disagreement_policy` `fail_hard` makes that a 409.";
    let description = Description::new(CONSENSUS, "Have a claim checked", text)
        .takes::<FactcheckRequest>([("plain", examples::of("factcheck_request"))])
        .answers::<VerdictReply<'_>>(200, "What the replicas agree on.", examples::of("factcheck"));
    round_of::<VerdictReply<'_>>(description)
}

fn delegate_v2() -> Description {
    let text = "The same as version 3 with one replica, in the session that the request names. `consensus` is ignored.";
    let description = Description::new(CONSENSUS, "Have a job done by one session", text)
        .takes::<DelegateRequestV2>([("plain", examples::of("delegate_v2_request"))])
        .answers::<DelegateReplyV2<'_>>(
            200,
            "What the session returned.",
            examples::of("delegate_v2"),
        );
    round_of::<DelegateReplyV2<'_>>(description)
}

fn validate_v2() -> Description {
    let text = "The same as version 3 with one replica, in the session that the request names. `consensus` is ignored.";
    let description = Description::new(CONSENSUS, "Have a candidate judged by one session", text)
        .takes::<ValidateRequestV2>([("plain", examples::of("validate_v2_request"))])
        .answers::<VerdictReplyV2<'_>>(200, "What the session said.", examples::of("validate_v2"));
    round_of::<VerdictReplyV2<'_>>(description)
}

/// What all operations that open a round have in common; `R` is the data of the last event.
fn round_of<R: ToSchema>(description: Description) -> Description {
    description
        .or_streams(
            &[
                (events::REPLICA_STARTED, Event::of::<ReplicaStarted<'_>>()),
                (events::REPLICA_DONE, Event::of::<ReplicaBody<'_>>()),
                (events::DECIDED, Event::of::<Decided<'_>>()),
                (events::FINAL, Event::of::<R>()),
                (events::ERROR, Event::of::<ProblemBody<'_>>()),
            ],
            examples::STREAM,
        )
        .answers::<RoundBody<'_>>(
            202,
            "The round, which goes on; with `Prefer: respond-async`.",
            examples::of("round_open"),
        )
        .and_header("Location", "Where the round can be seen.")
        .and_header("Preference-Applied", "`respond-async`.")
        .with([parameters::prefer(
            "`respond-async` answers 202 at once, `respond-async, wait=10` after ten seconds unless the round has ended by then.",
        )])
        .repeatable()
        .scope(Scope::RoundsCreate)
        .refuses([
            Code::RequestInvalid,
            Code::NotSupported,
            Code::PolicyInvalid,
            Code::SchemaRefused,
            Code::SessionUnknown,
            Code::SessionPoolTooSmall,
            Code::SessionsUnavailable,
            Code::BudgetExhausted,
            Code::AccountSuspended,
            Code::ShuttingDown,
            Code::ConsensusDisagreement,
            Code::Conflict,
        ])
}

fn round_list() -> Description {
    Description::new(ROUNDS, "List rounds", "The account's rounds, newest first.")
        .scope(Scope::RoundsRead)
        .with(parameters::of_list())
        .with(parameters::of_rounds())
        .answers::<Page<'_, RoundBody<'_>>>(200, "A page of rounds.", examples::of("round_list"))
        .refuses([Code::ValidationError])
}

fn round_show() -> Description {
    let text = "A round, and once it has ended the members of its reply. A round of another account is not found.";
    Description::new(ROUNDS, "Show a round", text)
        .scope(Scope::RoundsRead)
        .with([
            parameters::wait(),
            parameters::prefer("`wait=10` waits like the parameter `wait`, which has precedence."),
        ])
        .answers::<RoundBody<'_>>(200, "The round.", examples::of("round"))
        .refuses([Code::NotFound, Code::ValidationError])
}

fn round_cancel() -> Description {
    let text = "Calls a round off. Replicas that have not answered are cancelled, what others said stays on record, and the round ends as `cancelled` without a verdict. Calling off again is the same; a round that ended otherwise is a conflict, and so is a step of a task, which ends with the task.";
    Description::new(ROUNDS, "Call a round off", text)
        .scope(Scope::RoundsCreate)
        .answers::<RoundBody<'_>>(200, "It has ended.", examples::of("round_cancelled"))
        .answers::<RoundBody<'_>>(202, "Its node is about to end it.", examples::of("round_open"))
        .and_header("Location", "Where the round can be seen.")
        .refuses([Code::NotFound, Code::Conflict])
}

fn round_erase() -> Description {
    let text = "Erases what was asked and said in a round that has ended: the request, the outputs, and the texts and evidence of its replicas. Its decision stays, with the digests of what is gone. Erasing again is the same; a round that has not ended, or whose task is not over, is a conflict.";
    Description::new(ROUNDS, "Erase what was said in a round", text)
        .scope(Scope::RoundsCreate)
        .answers::<ErasedBody<'_>>(200, "It is erased.", examples::of("round_erase"))
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn prune() -> Description {
    let text = "Removes at once what is older than the settings under `storage` and `agent_events` say, which the server does by itself as well: answers under idempotency keys, what was asked and said in rounds, events of tasks and runs that have ended, and events to executors. Decisions and the ledger never go.";
    Description::new(OPERATIONS, "Remove what is old", text)
        .scope(Scope::Admin)
        .takes::<PruneRequest>([("plain", examples::of("prune_request"))])
        .or_nothing()
        .answers::<PrunedBody>(200, "How much went, or would go.", examples::of("prune"))
        .refuses([Code::ValidationError])
}

fn executor_add() -> Description {
    let text = "Registers a service that does work, and a session of the same name with it. The service is asked for health and capabilities; one that does not answer is registered all the same, unless `must_answer` is true.";
    Description::new(EXECUTORS, "Register an executor", text)
        .scope(Scope::Admin)
        .takes::<AddExecutorRequest>([("plain", examples::of("executor_add_request"))])
        .answers::<ExecutorBody<'_>>(201, "The executor.", examples::of("executor_add"))
        .repeatable()
        .refuses([
            Code::ValidationError,
            Code::NotSupported,
            Code::Conflict,
            Code::ExecutorUnavailable,
        ])
}

fn executor_list() -> Description {
    Description::new(EXECUTORS, "List executors", "All executors, by name.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<Page<'_, ExecutorBody<'_>>>(
            200,
            "A page of executors.",
            examples::of("executor_list"),
        )
        .refuses([Code::ValidationError])
}

fn executor_show() -> Description {
    Description::new(EXECUTORS, "Show an executor", "An executor, with what is known of it now.")
        .scope(Scope::Admin)
        .answers::<ExecutorBody<'_>>(200, "The executor.", examples::of("executor"))
        .refuses([Code::NotFound])
}

fn executor_check() -> Description {
    let text = "Asks the executor now for health and capabilities. The status is 200 also when it is not well.";
    Description::new(EXECUTORS, "Check an executor", text)
        .scope(Scope::Admin)
        .answers::<ProbeBody<'_>>(200, "What the check found.", examples::of("check"))
        .refuses([Code::NotFound])
}

fn executor_remove() -> Description {
    Description::new(EXECUTORS, "Remove an executor", "Removes an executor and its sessions.")
        .scope(Scope::Admin)
        .answers::<RemovedExecutor<'_>>(200, "What is gone.", examples::of("executor_remove"))
        .repeatable()
        .refuses([Code::NotFound])
}

fn session_add() -> Description {
    let text = "Adds a named lane to an executor, with a profile, a tier and a price of its own.";
    Description::new(SESSIONS, "Add a session", text)
        .scope(Scope::Admin)
        .takes::<AddSessionRequest>([("plain", examples::of("session_add_request"))])
        .answers::<SessionBody<'_>>(201, "The session.", examples::of("session"))
        .repeatable()
        .refuses([Code::ValidationError, Code::Conflict])
}

fn session_list() -> Description {
    Description::new(SESSIONS, "List sessions", "All sessions, by id.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<Page<'_, SessionBody<'_>>>(
            200,
            "A page of sessions.",
            examples::of("session_list"),
        )
        .refuses([Code::ValidationError])
}

fn session_show() -> Description {
    Description::new(SESSIONS, "Show a session", "A session, as it was added.")
        .scope(Scope::Admin)
        .answers::<SessionBody<'_>>(200, "The session.", examples::of("session"))
        .refuses([Code::NotFound])
}

fn session_remove() -> Description {
    Description::new(SESSIONS, "Remove a session", "Removes a session; its executor stays.")
        .scope(Scope::Admin)
        .answers::<Removed<'_>>(200, "What is gone.", examples::of("session_remove"))
        .repeatable()
        .refuses([Code::NotFound])
}

fn key_create() -> Description {
    let text = "Makes a key for an account. The key itself is in this reply only. A key never may do more than its maker; one without the scope `admin` makes keys of its own account, within its own limits.";
    Description::new(KEYS, "Make a key", text)
        .scope(Scope::KeysWrite)
        .takes::<CreateKeyRequest>([("plain", examples::of("key_create_request"))])
        .answers::<CreatedKey>(201, "The key, shown once.", examples::of("key_create"))
        .and_header("Cache-Control", "`no-store`.")
        .refuses([Code::ValidationError, Code::Conflict])
}

fn key_list() -> Description {
    let text = "The keys of all accounts, or of one, in the order in which they were made. Whoever is no admin sees those of the own account.";
    Description::new(KEYS, "List keys", text)
        .scope(Scope::KeysWrite)
        .with(parameters::of_list())
        .with(parameters::of_keys("Only keys of this account."))
        .answers::<KeyPage>(200, "A page of keys.", examples::of("key_list"))
        .refuses([Code::ValidationError])
}

fn key_revoke() -> Description {
    let text = "Revokes a key. A name means all keys of the account that have it. The caller's own key and the last one with the scope `admin` cannot be revoked, and without the scope `admin` no key of another account, nor one that may do more.";
    Description::new(KEYS, "Revoke a key", text)
        .scope(Scope::KeysWrite)
        .with(parameters::of_keys(
            "The account that a name belongs to; the caller's when left out.",
        ))
        .answers_nothing(204, "It is revoked.")
        .refuses([Code::ValidationError, Code::NotFound, Code::Conflict])
}

fn key_rotate() -> Description {
    let text = "Makes a key in place of another, which still serves for a while.";
    Description::new(KEYS, "Replace a key", text)
        .scope(Scope::Admin)
        .with(parameters::of_keys(
            "The account that a name belongs to; the caller's when left out.",
        ))
        .takes::<RotateKeyRequest>([("plain", json!({ "grace_seconds": 3600 }))])
        .or_nothing()
        .answers::<CreatedKey>(201, "The new key, shown once.", examples::of("key_rotate"))
        .and_header("Cache-Control", "`no-store`.")
        .refuses([Code::ValidationError, Code::NotFound, Code::Conflict])
}

fn mcp() -> Description {
    let text = "The Model Context Protocol over HTTP, in its revisions from 2024-11-05 to 2026-07-28. Each request holds one message of JSON-RPC and is answered by itself: there are no sessions. The scope that a tool needs is that of its operation.";
    let error = |code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } });
    Description::new(MODELS, "Send a message of the Model Context Protocol", text)
        .takes::<McpMessage>([("plain", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))])
        .answers::<McpReply>(
            200,
            "The answer to a request.",
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        )
        .or_as("text/event-stream", "The messages of the answer; progress comes before it.")
        .answers_nothing(202, "A notification was taken, and has no answer.")
        .answers::<McpReply>(
            400,
            "It is no message, or contradicts its headers.",
            error(-32600, "`jsonrpc` must be `2.0`"),
        )
        .answers::<McpReply>(404, "There is no such method.", error(-32601, "no/such/method"))
        .refuses([Code::HostRefused])
}

fn doctor() -> Description {
    let text = "Looks at the store as a whole and asks every executor now how it is, so it may take a while.";
    Description::new(OPERATIONS, "Check the installation", text)
        .scope(Scope::Admin)
        .answers::<Checkup<'_>>(200, "What was found.", examples::of("doctor"))
}

fn doctor_entries() -> Description {
    let text = "Takes rounds of all accounts that have ended, and makes the decision entry of each anew from all that is stored of it.";
    Description::new(OPERATIONS, "Check recorded decisions", text)
        .scope(Scope::Admin)
        .with(parameters::of_entries())
        .answers::<CheckedEntries<'_>>(
            200,
            "What was checked.",
            json!({ "checked": 3, "problems": [], "next_cursor": null }),
        )
        .refuses([Code::ValidationError])
}

fn health() -> Description {
    let text = "Says that the process is there. It does not look at the store.";
    Description::new(OPERATIONS, "See whether the server is there", text).answers::<Status>(
        200,
        "It is there.",
        json!({ "status": "ok" }),
    )
}

fn ready() -> Description {
    let text = "Says whether the store answers and takes writes.";
    Description::new(OPERATIONS, "See whether the server can serve", text)
        .answers::<Status>(200, "It can.", json!({ "status": "ready" }))
        .refuses([Code::StoreUnavailable, Code::ShuttingDown])
}

fn metrics_show() -> Description {
    let text = "The figures that this node counts: in the text format of Prometheus, or in that of OpenMetrics for who asks for it in `Accept`.";
    Description::new(OPERATIONS, "Read the figures", text).scope(Scope::MetricsRead).answers_as(
        200,
        "The figures.",
        &["text/plain", "application/openmetrics-text"],
    )
}

fn front() -> Description {
    let text = "Says what this is and where to read on: a page for browsers, JSON for programs.";
    Description::new(OPERATIONS, "See what there is", text)
        .answers::<Index>(200, "The addresses.", json!(Index::default()))
        .or_as("text/html", "A page with the same addresses.")
}

fn openapi() -> Description {
    let text = "This document: every operation of the server in OpenAPI 3.1.";
    Description::new(OPERATIONS, "Read this document", text).answers::<Document>(
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

fn docs() -> Description {
    let text = "A page to read and try the operations of this document. It asks for a key only to try them, and loads nothing from other hosts.";
    Description::new(OPERATIONS, "Read and try the API", text).answers_as(
        200,
        "The page.",
        &["text/html"],
    )
}

fn docs_file() -> Description {
    Description::new(OPERATIONS, "Load a file of the page", "What the page of `/docs` needs.")
        .answers_as(200, "The file.", &["text/css", "text/html", "text/javascript", "image/png"])
        .refuses([Code::NotFound])
}

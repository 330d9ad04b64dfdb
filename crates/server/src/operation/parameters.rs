//! Parameters that several operations take.

use jurat_core::{
    agent_run::AgentRunStatus,
    round::{RoundStatus, consensus::Outcome, job::JobKind},
    task::{TaskPhase, agent_event::Delivery},
    verifier::run::{VerifierRunPurpose, VerifierRunVerdict},
    webhook::WebhookDeliveryState,
    workflow::OwnershipFilter,
};
use serde_json::json;
use utoipa::openapi::{
    Required,
    path::{Parameter, ParameterBuilder, ParameterIn},
    schema::{ArrayBuilder, KnownFormat, ObjectBuilder, SchemaFormat, Type},
};

use crate::{
    request::{
        page::{DEFAULT_LIMIT, LARGEST_LIMIT},
        prefer::LONGEST_WAIT,
    },
    resources::MOST_ENTRIES,
};

/// A parameter of a path, such as `{name}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PathParameter {
    name: &'static str,
    text: &'static str,
    example: &'static str,
}

impl PathParameter {
    pub(crate) const fn new(name: &'static str, text: &'static str, example: &'static str) -> Self {
        Self { name, text, example }
    }

    pub(crate) fn parameter(&self) -> Parameter {
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(self.text))
            .schema(Some(string().min_length(Some(1))))
            .example(Some(json!(self.example)))
            .build()
    }
}

/// The version number of a workflow or a template.
pub(crate) const VERSION: PathParameter =
    PathParameter::new("version", "The number of a version.", "1");

/// The caller's id for the request.
pub(crate) fn request_id() -> Parameter {
    let text = "An id for the request; up to 64 letters, digits, `-` and `_` are kept and returned, otherwise an id is generated.";
    in_header("X-Request-Id", text, string())
}

/// The header that makes a write safe to retry.
pub(crate) fn idempotency_key() -> Parameter {
    let schema = string().min_length(Some(1)).max_length(Some(255)).pattern(Some(PRINTABLE));
    let text = "Idempotency key: makes the request safe to retry. It is executed once, and repeats get the same reply. Keys belong to the account.";
    in_header("Idempotency-Key", text, schema)
}

/// The payment of a request, in the header of one version of the protocol.
pub(crate) fn payment(name: &str, text: &str) -> Parameter {
    in_header(name, text, string())
}

/// Printable ASCII that is not blank.
const PRINTABLE: &str = "^[ -~]*[!-~][ -~]*$";

/// The version of the Agent2Agent protocol.
pub(crate) fn a2a_version() -> Parameter {
    let text = "The version of the protocol: `1.0`. Without it, the protocol means 0.3, which is not served. It can be a query parameter, too.";
    in_header("A2A-Version", text, string())
}

/// How much history a task is shown with.
pub(crate) fn history_length() -> Parameter {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    query("historyLength", "The largest number of messages in `history`.", schema)
}

/// The filters of a list of tasks of the Agent2Agent protocol.
pub(crate) fn of_agent_tasks(states: &[&'static str]) -> [Parameter; 7] {
    let size = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(100));
    let time = string().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    let flag = ObjectBuilder::new().schema_type(Type::Boolean);
    let states = states.iter().copied();
    [
        query("contextId", "Only tasks of this context.", string()),
        query("status", "Only tasks in this state.", string().enum_values(Some(states))),
        query(
            "pageSize",
            "The largest number of tasks; at most 20 with artifacts. Defaults to 50.",
            size,
        ),
        query("pageToken", "`nextPageToken` of the previous page.", string()),
        history_length(),
        query("statusTimestampAfter", "Only tasks that changed at this time or later.", time),
        query("includeArtifacts", "Whether to include artifacts.", flag),
    ]
}

/// The caller's preferences for the reply.
pub(crate) fn prefer(text: &str) -> Parameter {
    in_header("Prefer", text, string())
}

/// The maximum wait for the end of a round.
pub(crate) fn wait() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(LONGEST_WAIT.as_secs()));
    query("wait", "Wait up to this many seconds for the round to end.", schema)
}

/// The sets of tools for a model.
pub(crate) fn tool_sets() -> Parameter {
    let sets = "`consensus`, `verifiers`, `workflows`, `templates`, `tasks`, `account`";
    let text = format!(
        "Sets of tools, separated by commas: {sets}; `aliases` also lists second names. Without it, all sets that the server offers."
    );
    query("tools", &text, string())
}

/// The maximum wait for the end of a task.
pub(crate) fn wait_for_task() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(LONGEST_WAIT.as_secs()));
    query("wait", "Wait up to this many seconds for the task to end.", schema)
}

/// The filters of a list of tasks.
pub(crate) fn of_tasks() -> [Parameter; 2] {
    let states = TaskPhase::ALL.iter().map(|state| state.as_str());
    [
        query("state", "Only tasks in this state.", string().enum_values(Some(states))),
        query("task_type", "Only tasks of this type.", string()),
    ]
}

/// The filters of a list of agent events.
pub(crate) fn of_agent_events() -> [Parameter; 3] {
    let states = Delivery::ALL.iter().map(|state| state.as_str());
    [
        query("state", "Only events in this state.", string().enum_values(Some(states))),
        query("executor", "Only events to this executor.", string()),
        query(
            "needs_review",
            "Only events for which the executor asks for human review, or only others.",
            ObjectBuilder::new().schema_type(Type::Boolean),
        ),
    ]
}

/// The filter of a list of webhook deliveries.
pub(crate) fn of_webhook_deliveries() -> [Parameter; 1] {
    let states = WebhookDeliveryState::ALL.iter().map(|state| state.as_str());
    [query("state", "Only deliveries in this state.", string().enum_values(Some(states)))]
}

/// The event of a task to start after.
pub(crate) fn of_task_events() -> [Parameter; 2] {
    let number = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let text = "In a stream: the number of the last event received.";
    [
        query("after", "Only events after the one with this number.", number()),
        in_header("Last-Event-ID", text, number()),
    ]
}

/// The task, or the task type, whose decisions are listed.
pub(crate) fn of_knowledge() -> [Parameter; 2] {
    [
        query("task_type", "Decisions of all tasks of this type.", string()),
        query("task_id", "Decisions of this task.", string()),
    ]
}

/// The id of a new task.
pub(crate) fn task_id() -> Parameter {
    let schema = string().pattern(Some("^[A-Za-z0-9_.:-]{1,128}$"));
    query("task_id", "The id of the task; generated if left out.", schema)
}

fn in_header(name: &str, text: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(schema))
        .build()
}

/// `limit` and `cursor` of a list.
pub(crate) fn of_list() -> [Parameter; 2] {
    of_list_up_to(LARGEST_LIMIT)
}

/// The parameters of a check of recorded decisions.
pub(crate) fn of_entries() -> Vec<Parameter> {
    let newest = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1));
    let text = "On the first page: limit the check to this many of the newest.";
    let [limit, cursor] = of_list_up_to(MOST_ENTRIES);
    vec![limit, cursor, query("newest", text, newest)]
}

fn of_list_up_to(most: u32) -> [Parameter; 2] {
    let limit = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(most))
        .default(Some(json!(DEFAULT_LIMIT)));
    [
        query("limit", "Maximum number of items per page.", limit),
        query("cursor", "`next_cursor` of the previous page.", string()),
    ]
}

/// The account that a key belongs to.
pub(crate) fn of_keys(text: &str) -> [Parameter; 1] {
    [query("account", text, string().pattern(Some("^acct_[A-Za-z0-9]{1,40}$")))]
}

/// The filters of a list of rounds.
pub(crate) fn of_rounds() -> [Parameter; 5] {
    let kinds = JobKind::ALL.iter().map(|kind| kind.as_str());
    let outcomes = Outcome::ALL.iter().map(|outcome| outcome.as_str());
    let states = RoundStatus::ALL.iter().map(|state| state.as_str());
    [
        query("kind", "Only rounds of this kind.", string().enum_values(Some(kinds))),
        query("outcome", "Only rounds with this outcome.", string().enum_values(Some(outcomes))),
        query("state", "Only rounds in this state.", string().enum_values(Some(states))),
        query("since", "Only rounds opened at or after this time.", moment()),
        query("until", "Only rounds opened before this time.", moment()),
    ]
}

/// The filter of a list of agent runs.
pub(crate) fn of_agent_runs() -> Parameter {
    let statuses = AgentRunStatus::ALL.iter().map(|status| status.as_str());
    query("status", "Only runs with this status.", string().enum_values(Some(statuses)))
}

/// The event of an agent run to start after or before.
pub(crate) fn of_run_events() -> [Parameter; 2] {
    let number = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    [
        query("after", "Only events after the one with this number, oldest first.", number()),
        query("before", "Only events before the one with this number, newest first.", number()),
    ]
}

/// The maximum wait for the end of an agent run.
pub(crate) fn wait_for_agent_run() -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(LONGEST_WAIT.as_secs()));
    query("wait", "Wait up to this many seconds for the run to end.", schema)
}

/// The filter of a list of teams.
pub(crate) fn of_teams() -> Parameter {
    let schema = string().enum_values(Some(["all", "mine", "member"])).default(Some(json!("all")));
    query("filter", "All of the caller's teams, those it owns, or those it joined.", schema)
}

/// The filter of a list of shares.
pub(crate) fn of_shares() -> Parameter {
    let schema = string().enum_values(Some(["pending", "accepted", "declined"]));
    query("state", "Only shares in this state; defaults to all but declined ones.", schema)
}

/// The filters of a list of invitations.
pub(crate) fn of_invitations() -> [Parameter; 2] {
    let filter =
        string().enum_values(Some(["received", "sent", "all"])).default(Some(json!("received")));
    let state = string().enum_values(Some(["pending", "all"])).default(Some(json!("pending")));
    [
        query("filter", "Invitations that the caller received, sent, or both.", filter),
        query("state", "Only pending invitations, or all.", state),
    ]
}

/// The version of a verifier.
pub(crate) fn version(text: &str) -> Parameter {
    let schema =
        ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(u32::MAX));
    query("version", text, schema)
}

/// The maximum number of iterations of a loop.
pub(crate) fn iterations(usual: u32) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(1_000))
        .default(Some(json!(usual)));
    query("max_iterations", "Maximum number of iterations.", schema)
}

/// The filters of a list of templates.
pub(crate) fn of_templates() -> [Parameter; 3] {
    [
        query(
            "filter",
            "`mine` for the caller's own.",
            string().enum_values(Some(["all", "mine"])),
        ),
        query("search", "Only templates that contain this text in their listed fields.", string()),
        query(
            "include_archived",
            "Include archived templates, which only their owner can see.",
            string().enum_values(Some(["true", "false"])),
        ),
    ]
}

/// The file of a version, its format, and its expected digest.
pub(crate) fn of_file() -> [Parameter; 3] {
    [
        query("path", "The path of the file.", string().min_length(Some(1))),
        query("format", "`raw` for the raw bytes.", string().enum_values(Some(["raw", "json"]))),
        query("sha256", "The SHA-256 that the file must have, in hex.", string()),
    ]
}

/// The filters of a list of verifier runs.
pub(crate) fn of_verifier_runs() -> [Parameter; 5] {
    let verdicts = VerifierRunVerdict::ALL.iter().map(|verdict| verdict.as_str());
    let purposes = VerifierRunPurpose::ALL.iter().map(|purpose| purpose.as_str());
    [
        version("Only runs of this version."),
        query("verdict", "Only runs with this outcome.", string().enum_values(Some(verdicts))),
        query("purpose", "Only runs with this purpose.", string().enum_values(Some(purposes))),
        query("since", "Only runs started at or after this time.", moment()),
        query("until", "Only runs started before this time.", moment()),
    ]
}

/// The filters of a list of workflows.
pub(crate) fn of_workflows() -> [Parameter; 4] {
    let whose = OwnershipFilter::ALL.iter().map(|whose| whose.as_str());
    let boolean = ObjectBuilder::new().schema_type(Type::Boolean);
    let text = "Only workflows whose name, slug, tags, description or outcome contains this text.";
    [
        query("filter", "Which workflows to include.", string().enum_values(Some(whose))),
        query("tag", "Only workflows with this tag.", string()),
        query("search", text, string()),
        query("include_archived", "Include the caller's archived workflows.", boolean),
    ]
}

/// The files of a workflow, their format, and the expected digest.
pub(crate) fn of_files() -> [Parameter; 4] {
    let paths = ParameterBuilder::new()
        .name("paths")
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some("Several files, one parameter each; up to 100."))
        .schema(Some(ArrayBuilder::new().items(string())))
        .build();
    [
        query("path", "One file.", string()),
        paths,
        query("format", "`raw` for the raw bytes.", string().enum_values(Some(["json", "raw"]))),
        query("sha256", "The SHA-256 that the content must have.", string()),
    ]
}

/// The verifier whose runs are listed.
pub(crate) fn of_verifier() -> Parameter {
    let text =
        "Only runs of this verifier: its id (even if revoked), its name, or `system:` and a name.";
    query("verifier", text, string())
}

fn query(name: &str, text: &str, schema: ObjectBuilder) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(schema))
        .build()
}

fn moment() -> ObjectBuilder {
    string().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

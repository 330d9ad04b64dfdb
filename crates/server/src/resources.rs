//! The route table. A route that is not in it does not exist; one that does not say so needs a key.

mod accounts;
mod agent_events;
pub(crate) mod agent_runs;
mod api_keys;
mod consensus;
mod devices;
mod docs;
mod doctor;
mod executors;
mod follow;
mod invitations;
pub(crate) mod knowledge;
mod logins;
mod me;
mod operations;
mod packs;
mod prune;
mod rounds;
mod sessions;
mod shares;
mod stream;
pub(crate) mod tasks;
mod teams;
mod templates;
mod verifier_runs;
mod verifier_tests;
mod verifiers;
mod verify;
mod workflows;

use std::sync::Arc;

use axum::{
    Extension, Router,
    http::Uri,
    middleware::from_fn_with_state,
    response::Response,
    routing::{MethodRouter, delete, get, patch, post},
};
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) use self::{
    consensus::reply_with,
    doctor::MOST_ENTRIES,
    packs::body as pack_body,
    templates::{checked_body, forked, offered_template, published},
    verifier_runs::verifier_run_request,
    verifiers::{cursor_position, listed, listing, measured},
    workflows::{envelopes, hit_list, lineage_of, offered, saved, single, wanted_hits},
};
pub(crate) use crate::request::page::{DEFAULT_LIMIT, LARGEST_LIMIT};
use crate::{
    mcp::{self, AllowedHosts},
    request::{auth, encode, layers},
};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    Anyone,
    /// Without a key too; with one, its caller is known.
    Visitor,
    Key,
}

/// A line of the route table, for tests and documents.
#[derive(Debug, Clone, Copy)]
pub struct RouteInfo {
    pub method: &'static str,
    pub path: &'static str,
    pub access: RouteAccess,
    pub operation: &'static str,
}

struct Route {
    info: RouteInfo,
    handler: MethodRouter<Engine>,
    /// The same with a slash within the name: `@handle/slug`.
    also: Option<&'static str>,
}

fn route(
    method: &'static str,
    path: &'static str,
    operation: &'static str,
    handler: MethodRouter<Engine>,
) -> Route {
    Route {
        info: RouteInfo { method, path, access: RouteAccess::Key, operation },
        handler,
        also: None,
    }
}

fn open_route(path: &'static str, operation: &'static str, handler: MethodRouter<Engine>) -> Route {
    Route {
        info: RouteInfo { method: "GET", path, access: RouteAccess::Anyone, operation },
        handler,
        also: None,
    }
}

impl Route {
    /// Needs no key.
    fn for_visitors(mut self) -> Self {
        self.info.access = RouteAccess::Visitor;
        self
    }

    fn also(mut self, path: &'static str) -> Self {
        self.also = Some(path);
        self
    }
}

/// What agents get for one workflow, under both names of workflows.
macro_rules! pack_routes {
    ($base:literal) => {
        [
            route("POST", concat!($base, "/{ref}/teach"), "workflow_teach", post(packs::teach)),
            route(
                "POST",
                concat!($base, "/{ref}/optimize"),
                "workflow_optimize",
                post(packs::optimize),
            ),
            route(
                "POST",
                concat!($base, "/{ref}/optimize-description"),
                "workflow_optimize_description",
                post(packs::optimize_description),
            ),
            route("POST", concat!($base, "/{ref}/audit"), "workflow_audit", post(packs::audit_one)),
            route(
                "POST",
                concat!($base, "/{ref}/safety-check"),
                "workflow_check_safety",
                post(packs::check_safety),
            ),
        ]
    };
}

fn routes() -> Vec<Route> {
    let mut routes = operation_routes();
    routes.extend(registry_routes());
    routes.extend(agent_run_routes());
    routes.extend(task_routes());
    routes.extend(agent_event_routes());
    routes.extend(people_routes());
    routes.extend(template_routes());
    routes.extend(template_version_routes());
    routes.extend(pack_routes!("/v1/workflows"));
    routes.extend(pack_routes!("/v1/skills"));
    routes.extend(login_routes().map(anyone));
    routes.extend(workflow_routes!("/v1/workflows"));
    routes.extend(workflow_routes!("/v1/skills"));
    routes
}

/// Workflows and who may use them. Clients know them by two names.
macro_rules! workflow_routes {
    ($base:literal) => {{
        let save = route("POST", $base, "workflow_save", post(workflows::save));
        let list = route("GET", $base, "workflow_list", get(workflows::list));
        let of = |method, rest, operation, handler| route(method, rest, operation, handler);
        [
            save,
            list,
            of("POST", concat!($base, "/search"), "workflow_search", post(workflows::search)),
            of("GET", concat!($base, "/{ref}"), "workflow_get", get(workflows::show))
                .also(concat!($base, "/{ref}/{slug}")),
            of("DELETE", concat!($base, "/{ref}"), "workflow_delete", delete(workflows::erase)),
            of(
                "GET",
                concat!($base, "/{ref}/versions/{version}"),
                "workflow_version_get",
                get(workflows::show_version),
            ),
            of(
                "DELETE",
                concat!($base, "/{ref}/versions/{version}"),
                "workflow_version_delete",
                delete(workflows::erase_version),
            ),
            of("GET", concat!($base, "/{ref}/files"), "workflow_files", get(workflows::read_files))
                .also(concat!($base, "/{ref}/{slug}/files")),
            of(
                "PATCH",
                concat!($base, "/{ref}/files"),
                "workflow_patch_files",
                patch(workflows::patch),
            ),
            of(
                "POST",
                concat!($base, "/{ref}/archive"),
                "workflow_archive",
                post(workflows::archive),
            ),
            of(
                "POST",
                concat!($base, "/{ref}/unarchive"),
                "workflow_unarchive",
                post(workflows::unarchive),
            ),
            of("POST", concat!($base, "/{ref}/grants"), "workflow_grant", post(workflows::grant)),
            of("GET", concat!($base, "/{ref}/grants"), "workflow_grants", get(workflows::grants)),
            of(
                "DELETE",
                concat!($base, "/{ref}/grants"),
                "workflow_revoke",
                delete(workflows::revoke),
            ),
            of("POST", concat!($base, "/{ref}/leave"), "workflow_leave", post(workflows::leave)),
            of(
                "POST",
                concat!($base, "/{ref}/transfer-ownership"),
                "workflow_transfer",
                post(workflows::transfer),
            ),
            of(
                "GET",
                concat!($base, "/{ref}/lineage"),
                "workflow_lineage",
                get(workflows::lineage),
            ),
        ]
    }};
}
use workflow_routes;

/// Verifiers and their runs.
fn registry_routes() -> Vec<Route> {
    vec![
        route("POST", "/v1/verifiers", "verifier_deploy", post(verifiers::deploy)),
        route("GET", "/v1/verifiers", "verifier_list", get(verifiers::list)),
        route("GET", "/v1/verifiers/{ref}", "verifier_get", get(verifiers::show))
            .also("/v1/verifiers/{ref}/{slug}"),
        route("GET", "/v1/verifiers/{ref}/versions", "verifier_versions", get(verifiers::versions)),
        route("POST", "/v1/verifiers/{ref}/runs", "verifier_run", post(verifier_runs::run))
            .for_visitors()
            .also("/v1/verifiers/{ref}/{slug}/runs"),
        route("GET", "/v1/verifiers/{ref}/runs", "verifier_runs", get(verifier_runs::of_verifier)),
        route("POST", "/v1/verifiers/{ref}/tests", "verifier_test", post(verifier_tests::test)),
        route(
            "POST",
            "/v1/verifiers/{ref}/attacks",
            "verifier_attack",
            post(verifier_tests::attack),
        ),
        route("DELETE", "/v1/verifiers/{ref}", "verifier_revoke", delete(verifiers::revoke)),
        route(
            "DELETE",
            "/v1/verifiers/{ref}/permanent",
            "verifier_delete",
            delete(verifiers::erase),
        ),
        route("GET", "/v1/verifier-runs", "run_list", get(verifier_runs::list)),
        route("GET", "/v1/verifier-runs/{id}", "run_get", get(verifier_runs::show)),
    ]
}

/// Runs of several agents.
fn agent_run_routes() -> Vec<Route> {
    vec![
        route("POST", "/v1/runs", "task_run_submit", post(agent_runs::submit)),
        route("GET", "/v1/runs", "task_run_list", get(agent_runs::list)),
        route("GET", "/v1/runs/{id}", "task_run_get", get(agent_runs::show)),
        route("GET", "/v1/runs/{id}/result", "task_run_result", get(agent_runs::result)),
        route("GET", "/v1/runs/{id}/events", "task_run_events", get(agent_runs::events)),
        route("POST", "/v1/runs/{id}/kickoff", "task_run_kickoff", post(agent_runs::kickoff)),
        route("POST", "/v1/runs/{id}/cancel", "task_run_cancel", post(agent_runs::cancel)),
        route("POST", "/v1/runs/{id}/retry", "task_run_retry", post(agent_runs::retry)),
    ]
}

/// Tasks: jobs under a contract.
fn task_routes() -> Vec<Route> {
    vec![
        route("POST", "/v1/tasks", "task_submit", post(tasks::submit)),
        route("GET", "/v1/tasks", "task_list", get(tasks::list)),
        route("GET", "/v1/tasks/sample", "task_sample", get(tasks::sample)),
        route("GET", "/v1/tasks/{id}", "task_show", get(tasks::show)),
        route("GET", "/v1/tasks/{id}/events", "task_events", get(tasks::events)),
        route("GET", "/v1/tasks/{id}/decision", "task_decision", get(tasks::decision)),
        route("POST", "/v1/tasks/{id}/cancel", "task_cancel", post(tasks::cancel)),
        route("POST", "/v1/tasks/{id}/epochs", "task_next_epoch", post(tasks::next_epoch)),
        route("POST", "/v1/tasks/{id}/feedback", "task_complain", post(tasks::complain)),
        route("GET", "/v1/knowledge", "knowledge_list", get(knowledge::list)),
    ]
}

/// What executors are told besides their work.
fn agent_event_routes() -> Vec<Route> {
    vec![
        route("POST", "/v1/agent-events", "agent_event_send", post(agent_events::send)),
        route("GET", "/v1/agent-events", "agent_event_list", get(agent_events::list)),
        route("GET", "/v1/agent-events/{id}", "agent_event_show", get(agent_events::show)),
    ]
}

/// A route that needs no key.
fn anyone(mut route: Route) -> Route {
    route.info.access = RouteAccess::Anyone;
    route
}

/// How people and programs come in.
fn login_routes() -> impl Iterator<Item = Route> {
    [
        route("POST", "/v1/register", "register", post(logins::register)),
        route("POST", "/v1/register/verify", "register_verify", post(logins::verify)),
        route("POST", "/v1/login", "login", post(logins::login)),
        route("POST", "/v1/login/verify", "login_verify", post(logins::verify)),
        route("POST", "/v1/auth/exchange", "device_exchange", post(logins::exchange)),
        route(
            "GET",
            "/.well-known/goodeye-client-config",
            "client_config",
            get(devices::client_config),
        ),
        route("POST", "/auth/device/authorize", "device_begin", post(devices::authorize)),
        route("POST", "/auth/device/token", "device_poll", post(devices::token)),
        route("GET", "/auth/device", "device_page", get(devices::page)),
        route("POST", "/auth/device", "device_page_answer", post(devices::answer)),
    ]
    .into_iter()
}

/// Handles, teams, shares and invitations.
fn people_routes() -> Vec<Route> {
    vec![
        route("PATCH", "/v1/me", "handle_claim", patch(me::claim)),
        route("POST", "/v1/me/rename-handle", "handle_rename", post(me::rename)),
        route("POST", "/v1/auth/approve", "device_answer", post(logins::approve)),
        route("POST", "/v1/teams", "team_create", post(teams::create)),
        route("GET", "/v1/teams", "team_list", get(teams::list)),
        route("DELETE", "/v1/teams/{team}", "team_delete", delete(teams::erase)),
        route("GET", "/v1/teams/{team}/members", "team_members", get(teams::members)),
        route("POST", "/v1/teams/{team}/members", "team_invite", post(teams::add_member)),
        route(
            "DELETE",
            "/v1/teams/{team}/members/{user}",
            "team_remove",
            delete(teams::remove_member),
        ),
        route(
            "POST",
            "/v1/teams/{team}/transfer-ownership",
            "team_transfer",
            post(teams::transfer),
        ),
        route("GET", "/v1/shares", "share_list", get(shares::list)),
        route("POST", "/v1/shares/{id}/accept", "share_accept", post(shares::accept)),
        route("POST", "/v1/shares/{id}/decline", "share_decline", post(shares::decline)),
        route("POST", "/v1/shares/{id}/block", "share_block", post(shares::block)),
        route("GET", "/v1/invitations", "invitation_list", get(invitations::list)),
        route(
            "POST",
            "/v1/invitations/{id}/accept",
            "invitation_accept",
            post(invitations::accept),
        ),
        route(
            "POST",
            "/v1/invitations/{id}/decline",
            "invitation_decline",
            post(invitations::decline),
        ),
        route(
            "POST",
            "/v1/invitations/{id}/cancel",
            "invitation_cancel",
            post(invitations::cancel),
        ),
    ]
}

/// Templates, and instructions for agents. A name may have a slash in it, and so has two forms.
fn template_routes() -> Vec<Route> {
    vec![
        route("GET", "/v1/design/workflow-prompt", "design_prompt", get(packs::design)),
        route("GET", "/v1/design/skill-prompt", "design_skill_prompt", get(packs::design)),
        route("GET", "/v1/audit/workflow-prompt", "audit_prompt", get(packs::audit)),
        route("GET", "/v1/audit/skill-prompt", "audit_skill_prompt", get(packs::audit)),
        route("POST", "/v1/templates", "template_publish", post(templates::publish)),
        route("GET", "/v1/templates", "template_list", get(templates::list)).for_visitors(),
        route("POST", "/v1/templates/search", "template_search", post(templates::search))
            .for_visitors(),
        route("POST", "/v1/templates/fork", "template_fork", post(templates::fork)),
        route("GET", "/v1/templates/{ref}", "template_get", get(templates::show))
            .for_visitors()
            .also("/v1/templates/{ref}/{slug}"),
        route("DELETE", "/v1/templates/{ref}", "template_delete", delete(templates::delete))
            .also("/v1/templates/{ref}/{slug}"),
        route("GET", "/v1/templates/{ref}/files", "template_file", get(templates::file))
            .for_visitors()
            .also("/v1/templates/{ref}/{slug}/files"),
        route("POST", "/v1/templates/{ref}/archive", "template_archive", post(templates::archive))
            .also("/v1/templates/{ref}/{slug}/archive"),
        route(
            "POST",
            "/v1/templates/{ref}/unarchive",
            "template_unarchive",
            post(templates::unarchive),
        )
        .also("/v1/templates/{ref}/{slug}/unarchive"),
        route(
            "POST",
            "/v1/templates/{ref}/transfer-ownership",
            "template_transfer",
            post(templates::transfer),
        )
        .also("/v1/templates/{ref}/{slug}/transfer-ownership"),
        route(
            "POST",
            "/v1/templates/{ref}/safety-check",
            "template_check_safety",
            post(templates::check_safety),
        )
        .for_visitors()
        .also("/v1/templates/{ref}/{slug}/safety-check"),
    ]
}

fn template_version_routes() -> Vec<Route> {
    vec![
        route(
            "DELETE",
            "/v1/templates/{ref}/versions/{version}",
            "template_unpublish",
            delete(templates::unpublish),
        )
        .also("/v1/templates/{ref}/{slug}/versions/{version}"),
        route(
            "DELETE",
            "/v1/templates/{ref}/versions/{version}/permanent",
            "template_delete_version",
            delete(templates::delete_version),
        )
        .also("/v1/templates/{ref}/{slug}/versions/{version}/permanent"),
        route(
            "POST",
            "/v1/templates/{ref}/versions/{version}/deprecate",
            "template_deprecate",
            post(templates::deprecate),
        )
        .also("/v1/templates/{ref}/{slug}/versions/{version}/deprecate"),
    ]
}

fn operation_routes() -> Vec<Route> {
    vec![
        open_route("/", "front", get(docs::front)),
        open_route("/health", "health", get(operations::health)),
        open_route("/healthz", "healthz", get(operations::health)),
        open_route("/ready", "ready", get(operations::ready)),
        open_route("/openapi.json", "openapi", get(docs::document)),
        open_route("/docs", "docs", get(docs::page)),
        open_route("/docs/{file}", "docs_file", get(docs::part)),
        route("GET", "/metrics", "metrics_show", get(operations::metrics)),
        route("POST", "/api/v2/delegate", "delegate", post(consensus::delegate_v2)),
        route("POST", "/api/v2/validate", "validate", post(consensus::validate_v2)),
        route("POST", "/api/v3/delegate", "delegate", post(consensus::delegate)),
        route("POST", "/api/v3/validate", "validate", post(consensus::validate)),
        route("POST", "/api/v3/factcheck", "factcheck", post(consensus::factcheck)),
        route("POST", "/api/v4/delegate", "delegate", post(consensus::delegate)),
        route("POST", "/api/v4/validate", "validate", post(consensus::validate)),
        route("POST", "/api/v4/factcheck", "factcheck", post(consensus::factcheck)),
        route("POST", "/verify", "verify", post(verify::verify)),
        route("GET", "/capabilities", "capabilities_show", get(verify::capabilities)),
        route("POST", "/v1/executors", "executor_add", post(executors::add)),
        route("GET", "/v1/executors", "executor_list", get(executors::list)),
        route("GET", "/v1/executors/{name}", "executor_show", get(executors::show)),
        route("POST", "/v1/executors/{name}/check", "executor_check", post(executors::check)),
        route("DELETE", "/v1/executors/{name}", "executor_remove", delete(executors::remove)),
        route("POST", "/v1/sessions", "session_add", post(sessions::add)),
        route("GET", "/v1/sessions", "session_list", get(sessions::list)),
        route("GET", "/v1/sessions/{id}", "session_show", get(sessions::show)),
        route("DELETE", "/v1/sessions/{id}", "session_remove", delete(sessions::remove)),
        route("POST", "/v1/api-keys", "key_create", post(api_keys::create)),
        route("GET", "/v1/api-keys", "key_list", get(api_keys::list)),
        route("DELETE", "/v1/api-keys/{id}", "key_revoke", delete(api_keys::revoke)),
        route("POST", "/v1/api-keys/{id}/rotate", "key_rotate", post(api_keys::rotate)),
        route("GET", "/v1/me", "me_show", get(me::show)),
        route("GET", "/v1/me/usage", "usage_show", get(me::usage)),
        route("GET", "/v1/me/transfers", "transfer_list", get(me::transfers)),
        route("GET", "/v1/accounts", "account_list", get(accounts::list)),
        route("GET", "/v1/accounts/{id}", "account_show", get(accounts::show)),
        route("GET", "/v1/accounts/{id}/transfers", "account_transfers", get(accounts::transfers)),
        route("POST", "/v1/accounts/{id}/grants", "credit_grant", post(accounts::grant)),
        route("POST", "/v1/accounts/{id}/suspend", "account_suspend", post(accounts::suspend)),
        route("POST", "/v1/accounts/{id}/resume", "account_resume", post(accounts::resume)),
        route("GET", "/v1/rounds", "round_list", get(rounds::list)),
        route("GET", "/v1/rounds/{id}", "round_show", get(rounds::show)),
        route("POST", "/v1/rounds/{id}/cancel", "round_cancel", post(rounds::cancel)),
        route("DELETE", "/v1/rounds/{id}/payload", "round_erase", delete(rounds::erase)),
        route("POST", "/v1/prune", "prune", post(prune::prune)),
        route("GET", "/v1/doctor", "doctor", get(doctor::show)),
        route("GET", "/v1/doctor/entries", "doctor_entries", get(doctor::entries)),
        route("POST", "/mcp", "mcp", post(mcp::post)),
    ]
}

/// Every route with who may call it.
pub fn route_table() -> Vec<RouteInfo> {
    routes().into_iter().map(|route| route.info).collect()
}

pub(crate) fn router(engine: Engine, hosts: AllowedHosts) -> Router {
    let (mut guarded, mut open, mut visited) = (Router::new(), Router::new(), Router::new());
    for Route { info, handler, also } in routes() {
        // What begins rounds is refused first when there is too much of it, all else never.
        let handler = if is_round(info.method, info.path) {
            handler.layer(from_fn_with_state(engine.clone(), layers::admit))
        } else {
            handler
        };
        let router = match info.access {
            RouteAccess::Key => &mut guarded,
            RouteAccess::Anyone => &mut open,
            RouteAccess::Visitor => &mut visited,
        };
        for path in [Some(info.path), also].into_iter().flatten() {
            *router = std::mem::take(router).route(path, handler.clone());
        }
    }
    guarded
        .route_layer(from_fn_with_state(engine.clone(), auth::require_key))
        .merge(visited.route_layer(from_fn_with_state(engine.clone(), auth::know_key)))
        .merge(open.route_layer(from_fn_with_state(engine.clone(), auth::know_nobody)))
        .layer(Extension(Arc::new(hosts)))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(layers::caught))
        .layer(from_fn_with_state(engine.clone(), layers::identify))
        .with_state(engine)
}

/// Whether a request begins a round, or a task or a run of several agents, which begin rounds.
pub(crate) fn is_round(method: &str, path: &str) -> bool {
    let begins = ["/runs", "/tests", "/attacks"];
    let is_run = path.starts_with("/v1/verifiers/") && begins.iter().any(|end| path.ends_with(end));
    let is_order = ["/verify", "/v1/tasks", "/v1/runs"].contains(&path);
    method == "POST" && (path.starts_with("/api/") || is_order || is_run)
}

async fn unknown_route(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    encode::problem(&Problem::new(ProblemCode::NotFound, format!("there is nothing at `{path}`")))
}

async fn wrong_method() -> Response {
    encode::problem(&Problem::new(
        ProblemCode::MethodNotAllowed,
        "this path does not support that method",
    ))
}

//! The route table. A route that is not in it does not exist; one that does not say so needs a key.

mod accounts;
mod api_keys;
mod consensus;
mod docs;
mod doctor;
mod executors;
mod me;
mod operations;
mod page;
mod rounds;
mod sessions;
mod stream;
mod verifier_runs;
mod verifier_tests;
mod verifiers;
mod verify;

use std::sync::Arc;

use axum::{
    Extension, Router,
    http::Uri,
    middleware::from_fn_with_state,
    response::Response,
    routing::{MethodRouter, delete, get, post},
};
use jurat_core::code::Code;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) use self::{
    consensus::reply_with,
    doctor::MOST_ENTRIES,
    page::{DEFAULT_LIMIT, LARGEST_LIMIT},
    verifier_runs::run_request,
    verifiers::measured,
};
use crate::{
    auth, encode, layers,
    mcp::{self, Hosts},
};

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Anyone,
    Key,
}

/// A line of the route table, for tests and documents.
#[derive(Debug, Clone, Copy)]
pub struct RouteInfo {
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    pub operation: &'static str,
}

struct Route {
    info: RouteInfo,
    handler: MethodRouter<Engine>,
}

fn route(
    method: &'static str,
    path: &'static str,
    operation: &'static str,
    handler: MethodRouter<Engine>,
) -> Route {
    Route { info: RouteInfo { method, path, access: Access::Key, operation }, handler }
}

fn open_route(path: &'static str, operation: &'static str, handler: MethodRouter<Engine>) -> Route {
    Route { info: RouteInfo { method: "GET", path, access: Access::Anyone, operation }, handler }
}

fn routes() -> Vec<Route> {
    let mut routes = operation_routes();
    routes.extend(registry_routes());
    routes
}

/// Verifiers and their runs.
fn registry_routes() -> Vec<Route> {
    vec![
        route("POST", "/v1/verifiers", "verifier_deploy", post(verifiers::deploy)),
        route("GET", "/v1/verifiers", "verifier_list", get(verifiers::list)),
        route("GET", "/v1/verifiers/{ref}", "verifier_get", get(verifiers::show)),
        route("GET", "/v1/verifiers/{ref}/versions", "verifier_versions", get(verifiers::versions)),
        route("POST", "/v1/verifiers/{ref}/runs", "verifier_run", post(verifier_runs::run)),
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

fn operation_routes() -> Vec<Route> {
    vec![
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
        route("GET", "/v1/doctor", "doctor", get(doctor::show)),
        route("GET", "/v1/doctor/entries", "doctor_entries", get(doctor::entries)),
        route("POST", "/mcp", "mcp", post(mcp::post)),
    ]
}

/// Every route with who may call it.
pub fn route_table() -> Vec<RouteInfo> {
    routes().into_iter().map(|route| route.info).collect()
}

pub(crate) fn router(engine: Engine, hosts: Hosts) -> Router {
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for Route { info, handler } in routes() {
        // What begins rounds is refused first when there is too much of it, all else never.
        let handler = if is_round(info.method, info.path) {
            handler.layer(from_fn_with_state(engine.clone(), layers::admit))
        } else {
            handler
        };
        match info.access {
            Access::Key => guarded = guarded.route(info.path, handler),
            Access::Anyone => open = open.route(info.path, handler),
        }
    }
    guarded
        .route_layer(from_fn_with_state(engine.clone(), auth::require_key))
        .merge(open)
        .layer(Extension(Arc::new(hosts)))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(layers::caught))
        .layer(from_fn_with_state(engine.clone(), layers::identify))
        .with_state(engine)
}

/// Whether a request begins a round.
pub(crate) fn is_round(method: &str, path: &str) -> bool {
    let begins = ["/runs", "/tests", "/attacks"];
    let is_run = path.starts_with("/v1/verifiers/") && begins.iter().any(|end| path.ends_with(end));
    method == "POST" && (path.starts_with("/api/") || path == "/verify" || is_run)
}

async fn unknown_route(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    encode::problem(&Problem::new(Code::NotFound, format!("there is nothing at `{path}`")))
}

async fn wrong_method() -> Response {
    encode::problem(&Problem::new(Code::MethodNotAllowed, "this address does not take that method"))
}

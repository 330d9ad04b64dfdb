//! Builds the router from the declared operations; there are no other routes.

use std::sync::Arc;

use axum::{
    Extension, Router,
    http::{HeaderValue, Uri, header},
    middleware::{from_fn, from_fn_with_state},
    response::Response,
    routing::MethodRouter,
};
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    a2a,
    mcp::{AllowedHosts, CallsInFlight, InProcessRouter, ToolOffer},
    operation::{ErrorForm, Operation, RouteAccess, RouteInfo},
    peers::PeerOptions,
    request::{auth, encode, error_form, layers},
    resources::operations,
};

/// Where only prompt-oriented clients look for anything.
const PROMPT_ORIENTED: &str = "/api/v1/";

/// Every documented route, with the callers that it admits.
pub fn route_table() -> Vec<RouteInfo> {
    let routes = operations().iter().flat_map(|operation| {
        operation.addresses.iter().map(|address| RouteInfo {
            method: operation.method,
            path: &address.path,
            access: operation.access,
            operation: &address.id,
        })
    });
    routes.collect()
}

/// What the operator turned on.
#[derive(Debug, Default)]
pub(crate) struct RouterOptions {
    pub(crate) tools: ToolOffer,
    pub(crate) peers: PeerOptions,
}

pub(crate) fn router(engine: Engine, hosts: AllowedHosts, options: RouterOptions) -> Router {
    let peers = Arc::new(options.peers);
    let (mut guarded, mut open, mut visited) = (Router::new(), Router::new(), Router::new());
    let (mut paid, mut inside) = (Router::new(), Router::new());
    for operation in operations() {
        let handler = admitted(&engine, operation);
        let router = match operation.access {
            RouteAccess::Key => &mut guarded,
            RouteAccess::Anyone => &mut open,
            RouteAccess::Visitor if operation.is_paid => &mut paid,
            RouteAccess::Visitor => &mut visited,
        };
        for path in operation.routes() {
            *router = std::mem::take(router).route(path, handler.clone());
        }
        if operation.routes().contains(&operation.path()) {
            inside = inside.route(operation.path(), handler);
        }
    }
    let inside = inside
        .layer(Extension(Arc::clone(&peers)))
        .layer(CatchPanicLayer::custom(layers::caught))
        .with_state(engine.clone());
    guarded
        .route_layer(from_fn_with_state(engine.clone(), auth::require_key))
        .merge(visited.route_layer(from_fn_with_state(engine.clone(), auth::know_key)))
        .merge(paid.route_layer(from_fn_with_state(engine.clone(), auth::know_payer)))
        .merge(open.route_layer(from_fn_with_state(engine.clone(), auth::know_nobody)))
        .layer(Extension(Arc::new(hosts)))
        .layer(Extension((Arc::new(options.tools), CallsInFlight::default())))
        .layer(Extension(peers))
        .layer(Extension(InProcessRouter(inside)))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(layers::caught))
        .layer(from_fn(error_form::translate))
        .layer(from_fn_with_state(engine.clone(), layers::identify))
        .with_state(engine)
}

/// The handler of an operation. If it begins rounds, a node with too much work refuses it.
fn admitted(engine: &Engine, operation: &Operation) -> MethodRouter<Engine> {
    let handler = operation.handler.clone();
    if operation.begins_rounds {
        handler.layer(from_fn_with_state(engine.clone(), layers::admit))
    } else {
        handler
    }
}

/// Whether a request is for an operation that begins rounds. This is checked before routing, so
/// that a node that is late spends no time on the request.
pub(crate) fn begins_rounds(method: &str, path: &str) -> bool {
    let is_asked = |operation: &&Operation| {
        operation.method == method && operation.paths().any(|declared| matches(declared, path))
    };
    operations().iter().filter(|operation| operation.begins_rounds).any(|it| is_asked(&it))
}

/// The form of the errors at a path, whatever the method is.
pub(crate) fn error_form(path: &str) -> ErrorForm {
    if let Some(form) = a2a::error_form(path) {
        return form;
    }
    let mut others = operations().iter().filter(|it| it.error_form != ErrorForm::Problem);
    let found = others.find(|it| it.paths().any(|declared| matches(declared, path)));
    match found {
        Some(operation) => operation.error_form,
        None if path.starts_with(PROMPT_ORIENTED) => ErrorForm::Peer,
        None => ErrorForm::Problem,
    }
}

/// Whether a path matches a declared path.
fn matches(declared: &str, path: &str) -> bool {
    let (mut declared, mut given) = (declared.split('/'), path.split('/'));
    loop {
        match (declared.next(), given.next()) {
            (None, None) => return true,
            (Some(name), Some(text)) if name.starts_with('{') && !text.is_empty() => {}
            (Some(fixed), Some(text)) if fixed == text => {}
            _ => return false,
        }
    }
}

pub(crate) async fn unknown_route(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    encode::problem(&Problem::new(ProblemCode::NotFound, format!("there is nothing at `{path}`")))
}

async fn wrong_method(uri: Uri) -> Response {
    let mut response = encode::problem(&Problem::new(
        ProblemCode::MethodNotAllowed,
        "this path does not support that method",
    ));
    // Otherwise the header names the methods of the route.
    if let Some(methods) = a2a::http_json::allowed(uri.path()) {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_rounds_is_known_before_it_is_routed() {
        for (method, path, expected) in [
            ("POST", "/api/v3/validate", true),
            ("POST", "/api/v4/delegate", true),
            ("POST", "/api/v2/delegate", true),
            ("POST", "/api/v1/delegate", true),
            ("POST", "/api/v1/completions/35", true),
            ("POST", "/api/v2/chat/completions", true),
            ("POST", "/api/v1/chat/completions/35", true),
            ("GET", "/api/v1/tasks/35", false),
            ("POST", "/api/v4/x402/delegate", true),
            ("POST", "/verify", true),
            ("POST", "/v1/chat/completions", true),
            ("POST", "/v1/tasks", true),
            ("POST", "/v1/runs", true),
            ("POST", "/v1/verifiers/cites/runs", true),
            ("POST", "/v1/verifiers/@ann/cites/runs", true),
            ("POST", "/v1/verifiers/cites/tests", true),
            ("POST", "/v1/verifiers/cites/attacks", true),
            ("GET", "/v1/verifiers/cites/runs", false),
            ("POST", "/a2a/v1/message:send", true),
            ("POST", "/a2a", false),
            ("GET", "/api/v3/validate", false),
            ("POST", "/v1/sessions", false),
            ("POST", "/v1/tasks/t1/cancel", false),
            ("POST", "/v1/verifiers//runs", false),
        ] {
            assert_eq!(begins_rounds(method, path), expected, "{method} {path}");
        }
    }
}

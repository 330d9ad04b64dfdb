//! Walks the route table: every route needs a key, and every error has one shape.

use std::collections::BTreeSet;

use axum::body::Body;
use http::StatusCode;
use jurat_core::code::ProblemCode;
use jurat_server::{RouteAccess, route_table};
use jurat_testkit::app::{TestApp, TestReply};

fn path_of(template: &str) -> String {
    let path = template.replace("{name}", "nobody").replace("{ref}", "nobody");
    let path = path.replace("{version}", "1");
    path.replace("{id}", "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV")
}

/// The stable code of an error, in the form of the surface that it comes from.
pub(crate) fn code_of(reply: &TestReply) -> String {
    let body = reply.json();
    let code =
        ["/code", "/error/code", "/error/details/0/metadata/code", "/error/data/0/metadata/code"]
            .into_iter()
            .find_map(|at| body.pointer(at)?.as_str());
    code.unwrap_or_default().to_owned()
}

/// The routes that everybody may call.
const OPEN: [&str; 22] = [
    "/",
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/api/v1/a2a/agent.json",
    "/.well-known/agent-registration.json",
    "/.well-known/goodeye-client-config",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/auth/device",
    "/auth/device/authorize",
    "/auth/device/token",
    "/docs",
    "/docs/{file}",
    "/health",
    "/healthz",
    "/openapi.json",
    "/ready",
    "/v1/auth/exchange",
    "/v1/login",
    "/v1/login/verify",
    "/v1/register",
    "/v1/register/verify",
];

#[tokio::test]
async fn every_route_but_the_listed_few_refuses_an_anonymous_caller() {
    let app = TestApp::new().await;
    let (mut open, mut visited) = (BTreeSet::new(), BTreeSet::new());
    for route in route_table() {
        let reply =
            app.anonymous().send(route.method, &path_of(route.path), Body::from("{}"), &[]).await;
        if route.access == RouteAccess::Visitor {
            visited.insert(format!("{} {}", route.method, route.path));
        } else if route.access == RouteAccess::Anyone {
            open.insert(route.path);
        } else if reply.status == StatusCode::UNAUTHORIZED {
            assert_eq!(route.access, RouteAccess::Key, "{}", route.path);
            assert_eq!(code_of(&reply), "auth_required", "{}", route.path);
        } else {
            open.insert(route.path);
        }
    }
    assert_eq!(open, BTreeSet::from(OPEN));
    // These show or run only published objects, or are paid for, and have tests of their own.
    let visited: Vec<&str> = visited.iter().map(String::as_str).collect();
    assert_eq!(
        visited,
        [
            "GET /api/v3/x402/payments/{payment_id}",
            "GET /api/v4/x402/payments/{payment_id}",
            "GET /v1/templates",
            "GET /v1/templates/{ref}",
            "GET /v1/templates/{ref}/files",
            "POST /api/v2/x402/delegate",
            "POST /api/v2/x402/validate",
            "POST /api/v3/x402/delegate",
            "POST /api/v3/x402/factcheck",
            "POST /api/v3/x402/validate",
            "POST /api/v4/x402/delegate",
            "POST /api/v4/x402/factcheck",
            "POST /api/v4/x402/validate",
            "POST /v1/templates/search",
            "POST /v1/templates/{ref}/safety-check",
            "POST /v1/verifiers/{ref}/runs",
        ]
    );
}

#[tokio::test]
async fn a_missing_route_is_a_problem_document_too() {
    let app = TestApp::new().await;
    for (method, path, status) in
        [("GET", "/nowhere", 404), ("PUT", "/v1/rounds", 405), ("GET", "/api/v3/validate", 405)]
    {
        let reply = app.admin().send(method, path, Body::empty(), &[]).await;
        assert_eq!(reply.status.as_u16(), status, "{method} {path}");
        assert_eq!(reply.headers["content-type"], "application/problem+json");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        assert!(reply.headers.contains_key("x-request-id"));
        let problem = reply.json();
        assert_eq!(problem["status"], status);
        assert_eq!(
            problem["type"],
            format!("urn:jurat:error:{}", problem["code"].as_str().unwrap())
        );
    }
}

#[tokio::test]
async fn a_path_with_an_invalid_name_is_not_found() {
    let app = TestApp::new().await;
    let mut asked = 0;
    for route in route_table() {
        let path = route.path.replace("{version}", "1");
        let Some((before, rest)) = path.split_once('{') else { continue };
        let (_, after) = rest.split_once('}').unwrap();
        for strange in ["%FF", "a%C3", "%00", "a%00b"] {
            let path = format!("{before}{strange}{after}");
            let reply = app.admin().send(route.method, &path, Body::empty(), &[]).await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{} {path}", route.method);
            assert_eq!(code_of(&reply), "not_found", "{path}");
            asked += 1;
        }
    }
    assert!(40 <= asked, "{asked}");
}

#[tokio::test]
async fn every_code_has_a_status_and_a_hint() {
    for code in ProblemCode::ALL {
        assert!((400..600).contains(&code.http_status()), "{code}");
        assert!(code.hint().ends_with('.'), "{code}");
        assert!(matches!(code.exit_code(), 1 | 2), "{code}");
    }
}

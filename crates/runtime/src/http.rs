//! The HTTP endpoints.

use std::future::Future;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower_http::catch_panic::CatchPanicLayer;

use jurat_core::policy::PolicyRules;
use jurat_core::strict_json::StrictErrorKind;
use jurat_guard::public::PublicClient;
use jurat_guard::sandbox::Sandbox;
use jurat_wire::executor::{CapabilitiesResponse, HealthResponse};
use jurat_wire::strict_json;

use crate::accept::accept;
use crate::background::BackgroundTasks;
use crate::events::EventInbox;
use crate::execute::AnswerCache;
use crate::executor::ExecutorService;
use crate::options::ExecutorOptions;
use crate::refusal::RequestRefusal;
use crate::signature::{self, SignedHead};
use crate::{events, execute, verify};

/// The state that every handler shares.
pub(crate) struct RuntimeState {
    pub(crate) executor: Arc<dyn ExecutorService>,
    pub(crate) options: ExecutorOptions,
    pub(crate) answers: AnswerCache,
    pub(crate) heard: EventInbox,
    pub(crate) bounded: Sandbox,
    /// Fetches evidence; `None` if the TLS setup of the machine is broken.
    pub(crate) public: Option<PublicClient>,
    pub(crate) slots: Arc<Semaphore>,
    pub(crate) tasks: BackgroundTasks,
}

impl RuntimeState {
    pub(crate) fn new(
        executor: Arc<dyn ExecutorService>,
        options: ExecutorOptions,
        tasks: BackgroundTasks,
    ) -> Self {
        let limits = options.limits;
        let public = PublicClient::new(&options.evidence_allow)
            .inspect_err(|error| tracing::error!(%error, "cannot fetch evidence"));
        Self {
            executor,
            options,
            public: public.ok(),
            answers: AnswerCache::new(limits),
            heard: EventInbox::new(limits),
            bounded: Sandbox::new(limits.policy_threads),
            slots: Arc::new(Semaphore::new(limits.concurrent)),
            tasks,
        }
    }
}

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the listener failed")]
    Listener(#[source] std::io::Error),
}

/// The endpoints as a router, for a server of your own.
///
/// An execution continues after its caller leaves, and only [`serve`] waits for it at shutdown.
pub fn router(executor: Arc<dyn ExecutorService>, options: ExecutorOptions) -> Router {
    routes(RuntimeState::new(executor, options, BackgroundTasks::default()))
}

fn routes(shared: RuntimeState) -> Router {
    let shared = Arc::new(shared);
    Router::new()
        .route("/capabilities", get(capabilities))
        .route("/execute", post(execute))
        .route("/verify", post(verify))
        .route("/agent-events", post(agent_events))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&shared), authorize))
        .route("/health", get(health))
        .fallback(|| async { RequestRefusal::new(StatusCode::NOT_FOUND, "not_found", NOT_FOUND) })
        .method_not_allowed_fallback(|| async {
            RequestRefusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", NOT_FOUND)
        })
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(shared)
}

const NOT_FOUND: &str = "an executor has GET /health, GET /capabilities, POST /execute, POST /verify and POST /agent-events";

/// Serves the executor until `shutdown` resolves; work in progress then gets a grace period.
pub async fn serve(
    listener: TcpListener,
    executor: Arc<dyn ExecutorService>,
    options: ExecutorOptions,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let limits = options.limits;
    let tasks = BackgroundTasks::default();
    let router = routes(RuntimeState::new(executor, options, tasks.clone()));
    let accepted = accept(listener, router, limits, &tasks, shutdown).await;
    tasks.stop(limits.grace).await;
    accepted.map_err(ServeError::Listener)
}

async fn health() -> Json<HealthResponse> {
    Json(HealthResponse { status: "ok".to_owned() })
}

async fn capabilities(State(shared): State<Arc<RuntimeState>>) -> Json<CapabilitiesResponse> {
    let mut capabilities = shared.executor.capabilities();
    // WattSwarm's kernel requires the words themselves, and asks for these by default.
    spell_out(&mut capabilities.task_types, "swarm");
    spell_out(&mut capabilities.profiles, "default");
    Json(capabilities.into())
}

fn spell_out(names: &mut Vec<String>, usual: &str) {
    if names.iter().any(|name| name == "*") && names.iter().all(|name| name != usual) {
        names.push(usual.to_owned());
    }
}

async fn execute(
    State(shared): State<Arc<RuntimeState>>,
    request: Request<Body>,
) -> Result<Response, RequestRefusal> {
    let body = read(&shared, request, "/task_contract/acceptance/verifier_policy").await?;
    Ok(json_bytes(execute::answer(&shared, body).await?))
}

async fn verify(
    State(shared): State<Arc<RuntimeState>>,
    request: Request<Body>,
) -> Result<Response, RequestRefusal> {
    let body = read(&shared, request, "/policy").await?;
    let _slot = shared.slots.try_acquire().map_err(|_| RequestRefusal::overloaded())?;
    Ok(Json(verify::answer(&shared, body).await?).into_response())
}

async fn agent_events(
    State(shared): State<Arc<RuntimeState>>,
    request: Request<Body>,
) -> Result<Response, RequestRefusal> {
    let head = SignedHead::of(&request);
    let bytes = read_bytes(&shared, request).await?;
    let signer = signature::signer(&shared.options.nodes, &head, &bytes)?;
    let body = strict_json::parse_within(&bytes, shared.options.limits.values)?;
    let _slot = shared.slots.try_acquire().map_err(|_| RequestRefusal::overloaded())?;
    Ok(Json(events::answer(&shared, signer, body).await?).into_response())
}

async fn authorize(
    State(shared): State<Arc<RuntimeState>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let Some(token) = &shared.options.token else { return next.run(request).await };
    let given = bearer(request.headers()).unwrap_or_default();
    if bool::from(given.as_bytes().ct_eq(token.expose().as_bytes())) {
        return next.run(request).await;
    }
    let message = "send `Authorization: Bearer <token>` with the token of this executor";
    RequestRefusal::new(StatusCode::UNAUTHORIZED, "auth_required", message).into_response()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Reads a JSON body within the limits on size, values and time. The policy at the given path may
/// be one of WattSwarm's, which reads 64-bit integers exactly; then so do we.
async fn read(
    shared: &RuntimeState,
    request: Request<Body>,
    policy: &str,
) -> Result<Value, RequestRefusal> {
    let bytes = read_bytes(shared, request).await?;
    let most_values = shared.options.limits.values;
    strict_json::parse_within(&bytes, most_values).or_else(|error| {
        if error.kind != StrictErrorKind::IntegerOutOfRange {
            return Err(error.into());
        }
        let wide = strict_json::parse_wide_within(&bytes, most_values)?;
        let is_of_peer = wide.pointer(policy).is_some_and(is_wattswarms);
        if is_of_peer { Ok(wide) } else { Err(error.into()) }
    })
}

fn is_wattswarms(policy: &Value) -> bool {
    let text = |name: &str| policy.get(name).and_then(Value::as_str).unwrap_or_default();
    PolicyRules::by_hash(text("policy_id"), text("policy_hash")) == PolicyRules::WattSwarm
}

async fn read_bytes(
    shared: &RuntimeState,
    request: Request<Body>,
) -> Result<Bytes, RequestRefusal> {
    let limits = shared.options.limits;
    // Requiring the content type also keeps web pages away: a browser asks before it sends JSON to
    // another origin.
    if !is_plain_json(request.headers()) {
        let message = "send `Content-Type: application/json` and no `Content-Encoding`";
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(RequestRefusal::new(status, "unsupported_media_type", message));
    }
    let reading = axum::body::to_bytes(request.into_body(), limits.body_bytes);
    tokio::time::timeout(limits.read, reading)
        .await
        .map_err(|_| {
            let message = "the body did not arrive in time";
            RequestRefusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
        })?
        .map_err(|_| {
            let message = format!("the body is larger than {} bytes", limits.body_bytes);
            RequestRefusal::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
        })
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json") && !headers.contains_key(header::CONTENT_ENCODING)
}

fn json_bytes(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn panicked(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!("the executor panicked while answering a request");
    let message = "the executor panicked; its log shows where";
    RequestRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "executor_failed", message)
        .into_response()
}

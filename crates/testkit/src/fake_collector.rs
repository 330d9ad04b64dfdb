//! An OpenTelemetry collector that accepts OTLP over HTTP and records everything.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse},
        trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    },
    common::v1::{AnyValue, KeyValue, any_value},
    logs::v1::LogRecord,
    trace::v1::Span,
};
use parking_lot::Mutex;
use prost::Message;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

#[derive(Debug)]
pub struct FakeCollector {
    address: SocketAddr,
    shared: Arc<CollectorState>,
    /// Ends with the collector.
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct CollectorState {
    bodies: Mutex<Vec<Vec<u8>>>,
    headers: Mutex<Vec<HeaderMap>>,
    spans: watch::Sender<Vec<Span>>,
    records: watch::Sender<Vec<LogRecord>>,
}

impl FakeCollector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(CollectorState::default());
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/logs", post(logs))
            .with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, _tasks: tasks }
    }

    /// The base address without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the received spans satisfy the condition, and returns them.
    pub async fn spans(&self, are_there: impl Fn(&[Span]) -> bool) -> Vec<Span> {
        let mut spans = self.shared.spans.subscribe();
        let there = spans.wait_for(|spans| are_there(spans)).await.unwrap();
        there.clone()
    }

    /// Waits for this many log records, and returns them.
    pub async fn records(&self, count: usize) -> Vec<LogRecord> {
        let mut records = self.shared.records.subscribe();
        let there = records.wait_for(|records| count <= records.len()).await.unwrap();
        there.clone()
    }

    /// Every received body, unchanged.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.shared.bodies.lock().clone()
    }

    /// A header of the last request.
    pub fn last_header(&self, name: &str) -> Option<String> {
        let headers = self.shared.headers.lock();
        Some(headers.last()?.get(name)?.to_str().ok()?.to_owned())
    }
}

/// An attribute as text, whatever its type.
pub fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|it| it.key == key)?;
    match found.value.as_ref()? {
        AnyValue { value: Some(any_value::Value::StringValue(text)) } => Some(text.clone()),
        AnyValue { value: Some(any_value::Value::IntValue(number)) } => Some(number.to_string()),
        AnyValue { value: Some(any_value::Value::DoubleValue(number)) } => Some(number.to_string()),
        AnyValue { value: Some(any_value::Value::BoolValue(is)) } => Some(is.to_string()),
        other => Some(format!("{other:?}")),
    }
}

async fn traces(
    State(shared): State<Arc<CollectorState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(request) = taken::<ExportTraceServiceRequest>(&shared, headers, &body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let spans = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    shared.spans.send_modify(|all| all.extend(spans.flat_map(|scope| scope.spans)));
    answer(&ExportTraceServiceResponse::default())
}

async fn logs(
    State(shared): State<Arc<CollectorState>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some(request) = taken::<ExportLogsServiceRequest>(&shared, headers, &body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let records = request.resource_logs.into_iter().flat_map(|resource| resource.scope_logs);
    shared.records.send_modify(|all| all.extend(records.flat_map(|scope| scope.log_records)));
    answer(&ExportLogsServiceResponse::default())
}

/// The message of a request, if it is declared as protobuf and is valid.
fn taken<M: Message + Default>(
    shared: &CollectorState,
    headers: HeaderMap,
    body: &[u8],
) -> Option<M> {
    let is_protobuf =
        headers.get(header::CONTENT_TYPE).is_some_and(|value| value == "application/x-protobuf");
    shared.headers.lock().push(headers);
    shared.bodies.lock().push(body.to_vec());
    if is_protobuf { M::decode(body).ok() } else { None }
}

fn answer(message: &impl Message) -> Response {
    ([(header::CONTENT_TYPE, "application/x-protobuf")], message.encode_to_vec()).into_response()
}

//! Spans of a request, a round, a replica, a check or a write, shared by log and traces.
//!
//! All of them have the level of errors, so that every log line names its request and its round,
//! whatever the filter is. A span contains no text of a caller or an executor.

use std::future::Future;

use http::{HeaderMap, StatusCode};
use jurat_core::{
    id::RoundId,
    policy::{Evaluation, Policy},
    round::{OpenRound, Seat, job::JobKind},
};
use opentelemetry::{
    Context,
    propagation::{Extractor, TextMapPropagator as _},
    trace::Status,
};
use opentelemetry_http::HeaderInjector;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::{Instrument as _, Span, error_span, field::Empty};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{
    executors::pool::ExecutorAddress,
    rounds::{ask::ReplicaReply, seats::JUDGE_PREFIX},
};

/// The maximum length of `tracestate` that a caller may pass on to executors.
const LONGEST_STATE: usize = 512;

/// Makes the span of a request part of its caller's trace.
pub fn adopt(span: &Span, headers: &HeaderMap) {
    if headers.contains_key("traceparent") {
        let parent = TraceContextPropagator::new()
            .extract_with_context(&Context::new(), &IncomingHeaders(headers));
        // It fails if tracing is off, and then there is nothing to do.
        let _untraced = span.set_parent(parent);
    }
}

/// Records the status of a reply.
pub fn record_answer(span: &Span, status: StatusCode) {
    span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.set_attribute("error.type", status.as_u16().to_string());
        span.set_status(Status::error(""));
    }
}

/// The span of a round, whose id is not known yet.
pub(crate) fn round_span(kind: JobKind) -> Span {
    error_span!("round", jurat.round.id = Empty, jurat.round.kind = kind.as_str())
}

pub(crate) fn name_round(id: &RoundId) {
    Span::current().record("jurat.round.id", id.as_str());
}

/// Asks one session within a span of its own, which records the result.
pub(crate) async fn trace_replica(
    open: &OpenRound,
    index: usize,
    seat: &Seat,
    asking: impl Future<Output = ReplicaReply>,
) -> ReplicaReply {
    let name = match open.kind {
        JobKind::Validate if seat.session_id.starts_with(JUDGE_PREFIX) => "judge",
        JobKind::Validate => "POST /verify",
        JobKind::Delegate | JobKind::Factcheck => "POST /execute",
    };
    // Callers name the models of judges, so the provider is recorded instead.
    let session = if name == "judge" { &seat.executor } else { &seat.session_id };
    let span = error_span!(
        "replica",
        otel.kind = "client",
        otel.name = name,
        jurat.replica.index = index,
        jurat.executor.name = seat.executor,
        jurat.session.id = session,
    );
    let asked = asking.instrument(span.clone()).await;
    if !open.is_vote() || asked.answer.failure().is_some() {
        span.set_attribute("jurat.replica.label", asked.answer.label().as_str());
    }
    if let Some(failure) = asked.answer.failure() {
        span.set_attribute("error.type", failure.code.as_str());
        span.set_status(Status::error(""));
    }
    asked
}

/// Passes the trace on to the executor.
pub(crate) fn inject(headers: &mut HeaderMap) {
    let context = Span::current().context();
    TraceContextPropagator::new().inject_context(&context, &mut HeaderInjector(headers));
}

/// Records the executor of a replica, and the status of its reply.
pub(crate) fn record_reply(address: &ExecutorAddress, status: Option<StatusCode>) {
    let span = Span::current();
    span.set_attribute("http.request.method", "POST");
    span.set_attribute("server.address", address.host.clone());
    if let Some(status) = status {
        span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
    }
}

/// Makes a check within a span of its own, which records the verdict.
pub(crate) async fn trace_check<E>(
    policy: &Policy,
    checking: impl Future<Output = Result<Evaluation, E>>,
) -> Result<Evaluation, E> {
    let span = error_span!("check", jurat.policy.id = policy.id());
    let evaluation = checking.instrument(span.clone()).await;
    if let Ok(evaluation) = &evaluation {
        span.set_attribute("jurat.check.status", evaluation.status.as_str());
    }
    evaluation
}

pub(crate) fn write_span(name: &'static str) -> Span {
    error_span!("store_write", otel.kind = "client", db.operation.name = name)
}

/// The trusted headers of a request.
struct IncomingHeaders<'a>(&'a HeaderMap);

impl Extractor for IncomingHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let text = self.0.get(key)?.to_str().ok()?;
        (text.len() <= LONGEST_STATE).then_some(text)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

//! Sends traces and evaluation events to an OpenTelemetry collector, by OTLP over HTTP.

mod http_client;

use std::time::Duration;

use anyhow::Context as _;
use jurat_engine::node::evaluation;
use jurat_guard::client::{ClientLimits, OutboundClient};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    logs::SdkLoggerProvider,
    trace::{Sampler, SdkTracerProvider},
};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use self::http_client::OtlpHttpClient;

/// Timeout for the export of a batch.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to wait for the last batches when the process ends.
const LAST_BATCH: Duration = Duration::from_secs(5);

/// The collector of traces, and the share of traces that it gets.
#[derive(Clone)]
pub(crate) struct TelemetryOptions {
    pub(crate) endpoint: String,
    pub(crate) sample_ratio: f64,
}

/// The two streams to the collector. Their queues have limits and drop the excess, so a slow or
/// missing collector delays nothing.
pub(crate) struct Telemetry {
    traces: SdkTracerProvider,
    events: SdkLoggerProvider,
}

impl Telemetry {
    /// Starts to send. Must be called within the runtime.
    pub(crate) fn start(options: &TelemetryOptions) -> anyhow::Result<Self> {
        let courier =
            OtlpHttpClient::new(OutboundClient::new(ClientLimits::default())?, Handle::current());
        let at = |path: &str| format!("{}{path}", options.endpoint.trim_end_matches('/'));
        let spans = SpanExporter::builder()
            .with_http()
            .with_http_client(courier.clone())
            .with_timeout(EXPORT_TIMEOUT)
            .with_endpoint(at("/v1/traces"))
            .build()
            .context("traces cannot be sent")?;
        let records = LogExporter::builder()
            .with_http()
            .with_http_client(courier)
            .with_timeout(EXPORT_TIMEOUT)
            .with_endpoint(at("/v1/logs"))
            .build()
            .context("events cannot be sent")?;
        let root = Sampler::TraceIdRatioBased(options.sample_ratio);
        let traces = SdkTracerProvider::builder()
            .with_batch_exporter(spans)
            .with_sampler(Sampler::ParentBased(Box::new(root)))
            .with_resource(resource())
            .build();
        let events = SdkLoggerProvider::builder()
            .with_batch_exporter(records)
            .with_resource(resource())
            .build();
        Ok(Self { traces, events })
    }

    /// Exports our spans as traces, without the lines of the log.
    pub(crate) fn spans<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.traces.tracer("jurat"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(filter_fn(|it| it.is_span() && it.target().starts_with("jurat")))
    }

    /// Exports verdicts as events.
    pub(crate) fn events<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        OpenTelemetryTracingBridge::new(&self.events)
            .with_filter(filter_fn(|it| it.is_event() && it.target() == evaluation::TARGET))
    }

    /// Sends the remaining batches, for a limited time.
    pub(crate) async fn finish(self) {
        let sending = tokio::task::spawn_blocking(move || {
            let traces = self.traces.shutdown_with_timeout(LAST_BATCH);
            let events = self.events.shutdown_with_timeout(LAST_BATCH);
            traces.and(events)
        });
        let sent = tokio::time::timeout(LAST_BATCH, sending).await;
        if !matches!(sent, Ok(Ok(Ok(())))) {
            tracing::warn!("the last traces and events may not have reached the collector");
        }
    }
}

/// The description of the sender, which is named `jurat` unless `OTEL_SERVICE_NAME` is set.
fn resource() -> Resource {
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let name = crate::config::variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "jurat".to_owned());
    Resource::builder().with_service_name(name).with_attribute(version).build()
}

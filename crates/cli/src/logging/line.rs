//! A log line: flat, as text or as JSON, with the fields of its spans.

use std::{error::Error, fmt, fmt::Write as _};

use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::kit::time;
use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::Record,
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, format::Writer},
    registry::{LookupSpan, Scope},
};

use super::redact::redacted;
use crate::config::LogFormat;

/// Keeps the fields of a span as one JSON object.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanFields;

/// Writes a line in one of the two formats.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLineFormat(pub(super) LogFormat);

impl<'w> FormatFields<'w> for SpanFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut gathered = FieldCollector::default();
        fields.record(&mut gathered);
        write!(writer, "{}", Value::Object(gathered.0))
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        let mut gathered = FieldCollector(object(&current.fields));
        fields.record(&mut gathered);
        current.fields = Value::Object(gathered.0).to_string();
        Ok(())
    }
}

impl<S> FormatEvent<S, SpanFields> for LogLineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, SpanFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut gathered = FieldCollector::default();
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<FormattedFields<SpanFields>>() {
                gathered.0.extend(object(&fields.fields));
            }
        }
        event.record(&mut gathered);
        let mut fields = gathered.0;
        let message = fields.remove("message").unwrap_or_default();
        let at = time::text(SystemClock.now());
        let (level, target) = (event.metadata().level(), event.metadata().target());
        match self.0 {
            LogFormat::Json => {
                write!(writer, "{{\"timestamp\":\"{at}\",\"level\":\"{level}\"")?;
                write!(writer, ",\"target\":{},\"message\":{message}", Value::from(target))?;
                for (name, value) in &fields {
                    write!(writer, ",{}:{value}", Value::from(name.as_str()))?;
                }
                writeln!(writer, "}}")
            }
            LogFormat::Text => {
                let message = on_one_line(message.as_str().unwrap_or_default());
                write!(writer, "{at} {level:>5} {target}: {message}")?;
                for (name, value) in &fields {
                    write!(writer, " {name}={}", plain(value))?;
                }
                writeln!(writer)
            }
        }
    }
}

/// Fields by name, without those that only traces need.
#[derive(Default)]
struct FieldCollector(Map<String, Value>);

impl FieldCollector {
    fn keep(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        let is_for_traces = ["otel.", "url.", "db."].iter().any(|start| name.starts_with(start));
        if !is_for_traces {
            // The prefix says nothing in our own log.
            let name = name.strip_prefix("jurat.").unwrap_or(name);
            self.0.insert(name.to_owned(), value.into());
        }
    }
}

impl Visit for FieldCollector {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.keep(field, redacted(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.keep(field, redacted(&value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // This fails only if the value fails to format itself; the text is then shorter.
        let _ = write!(text, "{value:?}");
        self.keep(field, redacted(&text));
    }
}

fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// A value for people: a single word as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.chars().all(|c| !c.is_control() && c != ' ' && c != '"') => {
            text.to_owned()
        }
        Some(_) | None => value.to_string(),
    }
}

/// Text without control characters, so it cannot start a new line and forge one.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for symbol in text.chars() {
        if symbol.is_control() { line.extend(symbol.escape_default()) } else { line.push(symbol) }
    }
    line
}

//! The log on standard error.

mod line;
mod redact;

use std::io;

use jurat_engine::{Clock as _, SystemClock, node::evaluation};
use jurat_wire::api::kit::time;
use serde_json::json;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry,
    filter::{FilterExt as _, dynamic_filter_fn, filter_fn},
    fmt,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use self::line::{LogLineFormat, SpanFields};

use crate::{
    args::Cli,
    config::{self, CliConfig, LogFormat},
    failure::CliFailure,
    output::complain,
    settings::LOG_FORMAT,
    telemetry::Telemetry,
};

/// The default filter of a server.
pub(crate) const OF_A_SERVER: &str = "warn,jurat=info";
/// The target of lines that pass every filter.
const ALWAYS: &str = "jurat::start";
/// The default filter of a command.
pub(crate) const OF_A_COMMAND: &str = "error";

/// Starts the log of a command.
pub(crate) fn start(config: &CliConfig, default: &str) -> anyhow::Result<()> {
    begin(config, default, LogFormat::Text, None)
}

/// Starts the log of a server, which includes panics, and its traces.
pub(crate) fn start_server(
    config: &CliConfig,
    telemetry: Option<&Telemetry>,
) -> anyhow::Result<()> {
    begin(config, OF_A_SERVER, config.log_format, telemetry)?;
    std::panic::set_hook(Box::new(tell_panic));
    Ok(())
}

fn begin(
    config: &CliConfig,
    default: &str,
    format: LogFormat,
    telemetry: Option<&Telemetry>,
) -> anyhow::Result<()> {
    let text = config.log_filter.as_deref().unwrap_or(default);
    // A configured filter or the JSON format applies even in the background.
    let minds_others = config.log_filter.is_none() && format == LogFormat::Text;
    // Verdicts are logged only if the filter names their target.
    let text = format!("{}=off,{text},{ALWAYS}=info", evaluation::TARGET);
    let filter = EnvFilter::try_new(text)
        .map_err(|error| CliFailure::usage(format!("`log.filter` is invalid: {error}")))?;
    let lines = fmt::layer()
        .fmt_fields(SpanFields)
        .event_format(LogLineFormat(format))
        .with_writer(io::stderr)
        .with_filter(filter.and(filter_fn(may_be_told)).and(dynamic_filter_fn(
            move |metadata, _: &Context<'_, Registry>| {
                !minds_others || !is_chatter(metadata) || !is_in_background()
            },
        )));
    tracing_subscriber::registry()
        .with(lines)
        .with(telemetry.map(Telemetry::spans))
        .with(telemetry.map(Telemetry::events))
        .try_init()
        .map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}

/// Whether a line may be logged, whatever the filter says. The debug lines of libraries contain
/// headers, statements and packets, so they stay out. The MCP library quotes callers even in its
/// warnings.
fn may_be_told(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    target.starts_with("jurat") || (*metadata.level() <= Level::INFO && !target.starts_with("rmcp"))
}

/// Whether a line is only informational.
fn is_chatter(metadata: &Metadata<'_>) -> bool {
    Level::WARN < *metadata.level() && metadata.target() != ALWAYS
}

/// Whether another process is in the foreground of the terminal, as after `jurat serve &`: our
/// lines would mix with its output.
fn is_in_background() -> bool {
    let foreground = rustix::termios::tcgetpgrp(io::stderr());
    foreground.is_ok_and(|group| group != rustix::process::getpgrp())
}

/// Logs a panic as an error. A formatted text is left out, because it may contain data of a caller
/// or an executor.
fn tell_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let text = panic.payload().downcast_ref::<&'static str>().copied();
    let location = panic.location().map(ToString::to_string);
    tracing::error!(
        panic.text = text.unwrap_or("(hidden)"),
        panic.location = location,
        "bug in jurat: panic"
    );
}

/// Writes a line to a log of JSON lines, whatever its filter.
pub(crate) fn always(text: &str) {
    tracing::info!(target: ALWAYS, "{text}");
}

/// Writes an error as a JSON log line, even before the log has started.
pub(crate) fn error_line(text: &str, advice: &[String]) {
    let at = time::text(SystemClock.now());
    let line = json!({ "timestamp": at, "level": "ERROR", "target": ALWAYS, "message": text, "advice": advice });
    complain(&line.to_string());
}

/// The log format, as far as it is known before the settings are read.
pub(crate) fn format_before_settings(cli: &Cli) -> LogFormat {
    if !cli.command.is_server() {
        return LogFormat::Text;
    }
    let flag = cli.command.log_format().map(str::to_owned);
    let word = flag.or_else(|| config::variable(LOG_FORMAT.variable));
    config::log_format(word.as_deref())
}

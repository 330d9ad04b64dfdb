//! The log on standard error.

use std::io;

use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::time;
use serde_json::json;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{
    args::Cli,
    config::{self, Config, LogFormat},
    failure::Failure,
    output::complain,
    settings::LOG_FORMAT,
};

/// What a server logs when nobody says otherwise.
pub(crate) const OF_A_SERVER: &str = "warn,jurat=info";
/// The target of what is logged whatever the filter says.
const ALWAYS: &str = "jurat::start";
/// What a command logs: only what its user must know.
pub(crate) const OF_A_COMMAND: &str = "error";

pub(crate) fn start(config: &Config, default: &str, format: LogFormat) -> anyhow::Result<()> {
    let text = config.log_filter.as_deref().unwrap_or(default);
    let text = format!("{text},{ALWAYS}=info");
    let filter = EnvFilter::try_new(text)
        .map_err(|error| Failure::usage(format!("`log.filter` is not a filter: {error}")))?;
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false);
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}

/// Says something in a log of JSON lines, whatever its filter.
pub(crate) fn always(text: &str) {
    tracing::info!(target: ALWAYS, "{text}");
}

/// An error as a line of a log of JSON lines, also when there is no log yet.
pub(crate) fn error_line(text: &str, advice: &[String]) {
    let fields = json!({ "message": text, "advice": advice });
    let at = time::text(SystemClock.now());
    let line = json!({ "timestamp": at, "level": "ERROR", "fields": fields, "target": ALWAYS });
    complain(&line.to_string());
}

/// The form of the log as far as it is known before the settings are read.
pub(crate) fn format_before_settings(cli: &Cli) -> LogFormat {
    if !cli.command.is_server() {
        return LogFormat::Text;
    }
    let flag = cli.command.log_format().map(str::to_owned);
    let word = flag.or_else(|| config::variable(LOG_FORMAT.variable));
    config::log_format(word.as_deref())
}

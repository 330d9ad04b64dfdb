//! The log on standard error.

use std::io;

use tracing_subscriber::{EnvFilter, fmt};

use crate::{args::LogFormat, config::Config, failure::Failure};

/// What a server logs when nobody says otherwise.
pub(crate) const OF_A_SERVER: &str = "warn,jurat=info";
/// The target of what is logged whatever the filter says.
pub(crate) const ALWAYS: &str = "jurat::start";
/// What a command logs: only what its user must know.
pub(crate) const OF_A_COMMAND: &str = "error";

pub(crate) fn start(config: &Config, default: &str, format: LogFormat) -> anyhow::Result<()> {
    let text = config.log.as_deref().unwrap_or(default);
    let text = format!("{text},{ALWAYS}=info");
    let filter = EnvFilter::try_new(text)
        .map_err(|error| Failure::usage(format!("JURAT_LOG is not a filter: {error}")))?;
    let builder = fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(false);
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("the log could not be started: {error}"))
}

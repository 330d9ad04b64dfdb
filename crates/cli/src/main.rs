//! The `jurat` binary.

mod args;
mod client;
mod commands;
mod config;
mod failure;
mod hint;
mod lock_wait;
mod logging;
mod node;
mod output;
mod settings;
mod signals;
mod state;
mod telemetry;

use std::{io, process::ExitCode};

use clap::Parser as _;

use crate::{
    args::Cli,
    commands::CommandContext,
    config::CliConfig,
    failure::{PrintedUnread, sentence},
    output::{Output, OutputFormat},
    settings::Settings,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let out = Output::new(&cli.global, config::colours());
    if let Some(printed) = commands::without_settings(out, &cli.command) {
        return printed.map_or_else(|error| failed(out, &error), ExitCode::from);
    }
    let settings = match Settings::read(&cli.given()) {
        Ok(settings) => settings,
        Err(error) => return failed(out.logging(logging::format_before_settings(&cli)), &error),
    };
    let config = CliConfig::new(settings);
    let out = if cli.command.is_server() { out.logging(config.log_format) } else { out };
    let context = CommandContext { config, out };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(out, &error.into()),
    };
    let result = runtime.block_on(commands::run(&context, cli.command));
    // Work that still runs was abandoned on purpose, for example after a second signal.
    runtime.shutdown_background();
    result.map_or_else(|error| failed(out, &error), ExitCode::from)
}

/// Prints the error, with advice on the next step.
fn failed(out: Output, error: &anyhow::Error) -> ExitCode {
    // The reader of the output has closed it.
    if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<PrintedUnread>() {
        return ExitCode::SUCCESS;
    }
    out.error(&sentence(error), &failure::advice(error));
    if out.format == OutputFormat::Json {
        // The exit code reports the error even if this cannot be printed.
        drop(match failure::unread_body(error) {
            Some(bytes) => out.body(bytes, |_| String::new()),
            None => out.data(&failure::body(error).to_string()),
        });
    }
    ExitCode::from(failure::exit_code(error))
}

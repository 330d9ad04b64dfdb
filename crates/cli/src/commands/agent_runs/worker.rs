//! `jurat run worker`: a process that works on the agent runs of a store.

use std::time::Duration;

use jurat_engine::{Clock as _, RunWorkerEnd, RunWorkerSettings, SoleNode, SystemClock};
use jurat_store::StoreLocation;

use super::CommandContext;
use crate::{
    args::AgentRunWorkerArgs,
    failure::CliFailure,
    logging,
    node::{self, EngineSettings},
    signals::ShutdownSignals,
    state::{StateError, StateFolder},
};

pub(super) async fn run(context: &CommandContext, args: AgentRunWorkerArgs) -> anyhow::Result<u8> {
    let config = &context.config;
    if config.server.is_some() {
        return Err(CliFailure::usage(
            "a worker uses a store, not a server; leave out `--server`, and name the store with `--store`",
        ));
    }
    logging::start_server(config, None)?;
    let mut signals = ShutdownSignals::listen()?;
    let state = StateFolder::open_saying(&config.state_dir, context.out)?;
    let _lock = state.lock(&config.store).map_err(with_advice)?;
    let engine = node::engine(&state, &config.store, EngineSettings::of(config)?);
    let engine = Box::pin(engine).await?;
    let is_shared = matches!(config.store, StoreLocation::Postgres { .. });
    engine.start(if is_shared { SoleNode::No } else { SoleNode::Yes }).await?;
    let settings = settings(&args);
    tracing::info!(worker.id = settings.name, "working on runs");
    let mut working = Box::pin(engine.work_on_agent_runs(&settings));
    let worked = tokio::select! {
        worked = &mut working => worked,
        () = signals.next() => {
            tracing::info!("stopping; returning steps in progress to the queue");
            engine.stop_rounds();
            working.await
        }
    };
    engine.stop_rounds();
    engine.shutdown().await;
    worked?;
    Ok(0)
}

fn settings(args: &AgentRunWorkerArgs) -> RunWorkerSettings {
    let drawn = || format!("worker-{:08x}", SystemClock.bits() & 0xffff_ffff);
    RunWorkerSettings {
        name: args.worker_id.clone().unwrap_or_else(drawn),
        at_once: usize::try_from(args.concurrency).unwrap_or(usize::MAX),
        poll: Duration::from_millis(args.poll_ms),
        lease_ms: args.lease_ms,
        until: if args.once { RunWorkerEnd::Idle } else { RunWorkerEnd::Stopped },
    }
}

/// Explains that a server that uses the store works on its runs itself.
fn with_advice(error: StateError) -> anyhow::Error {
    if let StateError::Served { pid, url, .. } = error {
        return CliFailure::usage(format!(
            "the server with pid {pid} at {url} uses this store and works on its runs itself; several workers need PostgreSQL"
        ));
    }
    error.into()
}

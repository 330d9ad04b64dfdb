//! `jurat run worker`: a process that works on the runs of a store.

use std::time::Duration;

use jurat_engine::{Alone, Clock as _, SystemClock, WorkUntil, WorkerSettings};
use jurat_store::Location;

use super::Context;
use crate::{
    args::RunWorker,
    failure::Failure,
    logging, node,
    signals::Signals,
    state::{State, StateError},
};

pub(super) async fn run(context: &Context, args: RunWorker) -> anyhow::Result<u8> {
    let config = &context.config;
    if config.server.is_some() {
        return Err(Failure::usage(
            "a worker uses a store, not a server; leave out `--server`, and name the store with `--store`",
        ));
    }
    logging::start_server(config, None)?;
    let mut signals = Signals::listen()?;
    let state = State::open_saying(&config.state_dir, context.out)?;
    let _lock = state.lock(&config.store).map_err(with_advice)?;
    let terms = (config.judges.clone(), node::accounts(config)?);
    let engine = Box::pin(node::engine(&state, &config.store, config.limits, terms)).await?;
    let is_shared = matches!(config.store, Location::Postgres { .. });
    engine.start(if is_shared { Alone::No } else { Alone::Yes }).await?;
    let settings = settings(&args);
    tracing::info!(worker.id = settings.name, "working on runs");
    let mut working = Box::pin(engine.work_on_runs(&settings));
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

fn settings(args: &RunWorker) -> WorkerSettings {
    let drawn = || format!("worker-{:08x}", SystemClock.bits() & 0xffff_ffff);
    WorkerSettings {
        name: args.worker_id.clone().unwrap_or_else(drawn),
        at_once: usize::try_from(args.concurrency).unwrap_or(usize::MAX),
        poll: Duration::from_millis(args.poll_ms),
        lease_ms: args.lease_ms,
        until: if args.once { WorkUntil::Idle } else { WorkUntil::Stopped },
    }
}

/// Says who does the work when a server has the store.
fn with_advice(error: StateError) -> anyhow::Error {
    if let StateError::Served { pid, url, .. } = error {
        return Failure::usage(format!(
            "the server with pid {pid} at {url} uses this store and works on its runs itself; several workers need PostgreSQL"
        ));
    }
    error.into()
}

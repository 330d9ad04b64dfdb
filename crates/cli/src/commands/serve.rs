//! `jurat serve`.

use std::io;

use anyhow::{Context as _, bail};
use jurat_engine::Alone;
use jurat_server::Inbound;
use jurat_store::Location;
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};

use super::Context;
use crate::{
    args::{LogFormat, Serve},
    failure::Failure,
    logging, node,
    output::{Format, Output, complain},
    patience::patiently,
    signals::Signals,
    state::{ServerFile, State, StateError, store_name},
};

/// What a shell calls the end by ctrl-c.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(context: &Context, args: Serve) -> anyhow::Result<u8> {
    logging::start(&context.config, logging::OF_A_SERVER, args.log_format)?;
    let store = with_migrations(context.config.store.clone(), args.migrate_url)?;
    let mut signals = Signals::listen()?;
    let state = State::open(&context.config.state_dir)?;
    let say = |text: &str| say(args.log_format, text);
    let waiting = patiently(
        |error| matches!(error, StateError::Locked { .. }),
        say,
        async || Ok(state.lock(&store)?),
    );
    let _lock = tokio::select! {
        lock = waiting => lock?,
        () = signals.next() => return Ok(INTERRUPTED),
    };
    let listener = bind(&args.listen).await?;
    let url = url_of(&listener)?;
    let engine = Box::pin(node::engine(&state, &store)).await?;
    let alone = match store {
        Location::Memory | Location::File(_) => Alone::Yes,
        Location::Postgres { .. } => Alone::No,
    };
    engine.start(alone).await?;

    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = jurat_server::serve(listener, engine.clone(), Inbound::default(), stopped);
    let mut serving = Box::pin(async {
        serving.await.context("the listener failed")?;
        engine.shutdown().await;
        anyhow::Ok(())
    });
    let pid = std::process::id();
    let server = ServerFile { url: url.clone(), pid, store: store_name(&store) };
    let _announced = state.announce(&server)?;
    listening(context.out, args.log_format, &url)?;
    tokio::select! {
        result = &mut serving => result?,
        () = signals.next() => {
            tracing::info!("stopping when the rounds under way have ended; a second signal ends them");
            drop(stop);
            tokio::select! {
                result = &mut serving => result?,
                () = signals.next() => return Ok(INTERRUPTED),
            }
        }
    }
    Ok(0)
}

fn with_migrations(store: Location, migrate_url: Option<String>) -> anyhow::Result<Location> {
    match (store, migrate_url) {
        (Location::Postgres { url, .. }, migrate_url) => {
            Ok(Location::Postgres { url, migrate_url })
        }
        (store, None) => Ok(store),
        (_, Some(_)) => {
            Err(Failure::usage("`--migrate-url` needs a `--store` that is a postgres:// address"))
        }
    }
}

pub(super) async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!(
                "cannot listen on {address}: another program does; stop it, or choose another address with `--listen`"
            )
        }
        Err(error) => Err(error)
            .with_context(|| format!("cannot listen on {address}; choose with `--listen`")),
    }
}

/// The address by which programs on this machine reach the listener.
pub(super) fn url_of(listener: &TcpListener) -> io::Result<String> {
    let mut address = listener.local_addr()?;
    if address.ip().is_unspecified() {
        let loopback = match address {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(loopback);
    }
    Ok(format!("http://{address}"))
}

/// Says where it listens; that line is what others wait for, so it is never left out.
pub(super) fn listening(out: Output, log: LogFormat, url: &str) -> io::Result<()> {
    match out.format {
        Format::Json => out.data(
            &json!({ "event": "listening", "url": url, "pid": std::process::id() }).to_string(),
        ),
        Format::Text => {
            say(log, &format!("listening on {url}"));
            Ok(())
        }
    }
}

/// Says something to whoever started the server, without a break in a log of JSON lines.
fn say(log: LogFormat, text: &str) {
    match log {
        LogFormat::Text => complain(text),
        LogFormat::Json => tracing::info!(target: logging::ALWAYS, "{text}"),
    }
}

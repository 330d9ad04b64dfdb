//! `jurat serve`.

pub(crate) mod args;

use std::{io, pin::Pin};

use anyhow::{Context as _, bail};
use jurat_engine::{Engine, RunWorkerSettings, SoleNode};
use jurat_server::ServerOptions;
use jurat_store::StoreLocation;
use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot};

use super::CommandContext;
use crate::{
    args::ServeArgs,
    config::{CliConfig, LogFormat, unknown_variables},
    failure::CliFailure,
    lock_wait::retry_while_locked,
    logging,
    node::{self, EngineSettings},
    output::{Output, OutputFormat, complain},
    settings::MCP_HOSTS,
    signals::ShutdownSignals,
    state::{ServerFile, StateError, StateFolder, store_name},
    telemetry::Telemetry,
};

/// Exit code of a program that ctrl-c ended.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(context: &CommandContext, args: &ServeArgs) -> anyhow::Result<u8> {
    let config = &context.config;
    let telemetry = config.telemetry.as_ref().map(Telemetry::start).transpose()?;
    logging::start_server(config, telemetry.as_ref())?;
    for text in unknown_variables() {
        tracing::warn!("{text}");
    }
    let store = with_migrations(config.store.clone(), config.migrate_url.clone())?;
    let mut signals = ShutdownSignals::listen()?;
    let state = StateFolder::open_saying(&config.state_dir, context.out)?;
    let waiting = retry_while_locked(
        |error| matches!(error, StateError::Locked { .. }),
        |text| context.out.note(text),
        async || Ok(state.lock(&store)?),
    );
    let _lock = tokio::select! {
        lock = waiting => lock?,
        () = signals.next() => return Ok(INTERRUPTED),
    };
    let listener = bind(&config.listen).await?;
    let url = checked_url(config, &listener)?;
    let mut settings = EngineSettings::of(config)?;
    if let Some(endpoint) = &config.node {
        settings.peers = Some(Box::pin(node::open_endpoint(&state, endpoint)).await?);
    }
    let mesh = settings.peers.as_ref().map(|peers| peers.mesh.clone());
    let engine = Box::pin(node::engine(&state, &store, settings)).await?;
    if args.new_admin_key {
        node::new_admin(&state, &engine).await?;
    }
    begin(&engine, &store, config.runs.clone()).await?;
    announce_loopback(&engine, config).await?;

    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async { drop(stopped.await) };
    let serving = jurat_server::serve(listener, engine.clone(), front(config), stopped);
    let serving = Box::pin(async {
        serving.await.context("the listener failed")?;
        engine.shutdown().await;
        if let Some(mesh) = mesh {
            mesh.close().await;
        }
        if let Some(telemetry) = telemetry {
            telemetry.finish().await;
        }
        anyhow::Ok(())
    });
    let (pid, name) = (std::process::id(), store_name(&store));
    let server = ServerFile { url: url.clone(), pid, store: name };
    let _announced = state.announce(&server)?;
    listening(context.out, &url)?;
    until_stopped(&engine, serving, &mut signals, stop).await
}

/// Serves until a signal stops the server, or the listener fails.
async fn until_stopped(
    engine: &Engine,
    mut serving: Pin<Box<impl Future<Output = anyhow::Result<()>>>>,
    signals: &mut ShutdownSignals,
    stop: oneshot::Sender<()>,
) -> anyhow::Result<u8> {
    tokio::select! {
        result = &mut serving => result?,
        () = signals.next() => {
            // Before the log line, so no round starts after it.
            engine.stop_rounds();
            tracing::info!("stopping after the rounds in progress; a second signal stops immediately");
            drop(stop);
            tokio::select! {
                result = &mut serving => result?,
                () = signals.next() => {
                    tracing::warn!("stopped by a second signal; the next start marks rounds in progress as expired");
                    return Ok(INTERRUPTED);
                }
            }
        }
    }
    Ok(0)
}

/// The URL of the server. An account for programs without a key is refused if others reach the
/// server, too: a proxy on this machine may pass on their requests as its own.
fn checked_url(config: &CliConfig, listener: &TcpListener) -> anyhow::Result<String> {
    let (url, listens_at) = (url_of(listener)?, listener.local_addr()?);
    if config.peers.loopback_account.is_none() {
        return Ok(url);
    }
    let for_others = [
        ("accounts.public_url", config.accounts.public_url.is_some()),
        ("mcp.hosts", config.settings.text(&MCP_HOSTS).is_some()),
        ("server.trusted_proxies", !config.trusted_proxies.is_empty()),
    ];
    let for_others = for_others.into_iter().find(|(_, is_set)| *is_set);
    let why = if let Some((setting, _)) = for_others {
        format!(
            "`{setting}` says that other machines reach this server, too; remove one of both settings"
        )
    } else if !listens_at.ip().to_canonical().is_loopback() {
        format!(
            "`server.listen` (`--listen`) lets other machines reach this server at {listens_at}, too; listen on a loopback address, or remove `auth.loopback_account`"
        )
    } else {
        return Ok(url);
    };
    Err(CliFailure::usage(format!(
        "`auth.loopback_account` lets in programs on this machine without a key, and {why}"
    )))
}

/// Says in the log that programs on this machine need no key, or that their account is missing.
async fn announce_loopback(engine: &Engine, config: &CliConfig) -> anyhow::Result<()> {
    let Some(account) = &config.peers.loopback_account else { return Ok(()) };
    if engine.admit_loopback(account).await?.is_some() {
        tracing::warn!(account.id = %account, "programs on this machine need no key: `auth.loopback_account` is set");
    } else {
        tracing::warn!(account.id = %account, "`auth.loopback_account` names an account that does not exist; everybody needs a key");
    }
    Ok(())
}

fn front(config: &CliConfig) -> ServerOptions {
    ServerOptions {
        inbound: config.inbound,
        hosts: config.hosts.clone(),
        tools: config.tools.clone(),
        trusted_proxies: config.trusted_proxies.clone(),
        peers: config.peers.clone(),
    }
}

/// Starts the background work, which no request asks for.
async fn begin(
    engine: &Engine,
    store: &StoreLocation,
    runs: Option<RunWorkerSettings>,
) -> anyhow::Result<()> {
    let is_shared = matches!(store, StoreLocation::Postgres { .. });
    engine.start(if is_shared { SoleNode::No } else { SoleNode::Yes }).await?;
    if let Some(runs) = runs {
        engine.spawn_run_worker(runs);
    }
    Ok(())
}

fn with_migrations(
    store: StoreLocation,
    migrate_url: Option<String>,
) -> anyhow::Result<StoreLocation> {
    match (store, migrate_url) {
        (StoreLocation::Postgres { url, .. }, migrate_url) => {
            Ok(StoreLocation::Postgres { url, migrate_url })
        }
        (store, None) => Ok(store),
        (_, Some(_)) => Err(CliFailure::usage(
            "`--migrate-url` needs a `--store` that is a postgres:// address",
        )),
    }
}

pub(super) async fn bind(address: &str) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(listener),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            bail!(
                "cannot listen on {address}: the address is in use; stop the other program, or choose another address with `--listen`"
            )
        }
        Err(error) => Err(error).with_context(|| {
            format!("cannot listen on {address}; choose another address with `--listen`")
        }),
    }
}

/// The URL at which programs on this machine reach the listener.
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

/// Prints the address. Scripts wait for this line, so it is always printed.
pub(super) fn listening(out: Output, url: &str) -> io::Result<()> {
    let text = format!("listening on {url}");
    match (out.format, out.log) {
        (OutputFormat::Json, _) => {
            let pid = std::process::id();
            out.data(&json!({ "event": "listening", "url": url, "pid": pid }).to_string())?;
        }
        (OutputFormat::Text, LogFormat::Text) => complain(&text),
        (OutputFormat::Text, LogFormat::Json) => logging::always(&text),
    }
    Ok(())
}

//! The real server among the subjects, with its store on disk or in memory.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::{Context as _, Result};
use jurat_bench_load::{announce, until_parent_goes};
use jurat_core::key::ApiKey;
use jurat_engine::{Alone, Clock as _, Engine, Judges, Limits, NodeKey, Parts, SystemClock};
use jurat_guard::{bounded::Bounded, client::Client};
use jurat_store::{Location, Store};
use serde_json::json;
use tokio::net::TcpListener;

use crate::bare::client;

/// Who is measured, the baseline first.
pub const SUBJECTS: [&str; 3] = ["bare", "jurat", "jurat-memory"];

/// Where the server keeps its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    OnDisk,
    InMemory,
}

/// What stands between the network and the handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// The server's own loop, and its limits.
    Own,
    /// `axum::serve`, as most programs use it, and nobody refused for being late.
    Plain,
}

/// Starts the server on a free port with a fresh store and registers an executor per address.
///
/// It returns when `until_parent_goes` does.
pub async fn serve(executors: Vec<String>, keeps: Keeps, front: Front) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let location = match keeps {
        Keeps::OnDisk => Location::File(folder.path().join("jurat.db")),
        Keeps::InMemory => Location::Memory,
    };
    let (engine, key) = node(jurat_store::open(&location).await?, front).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let server = async {
        match front {
            Front::Own => {
                let never = std::future::pending();
                jurat_server::serve(listener, engine, jurat_server::Front::default(), never).await
            }
            Front::Plain => axum::serve(listener, jurat_server::router(engine)).await,
        }
    };
    let registered = async {
        register(&format!("http://{address}"), &key, executors).await?;
        announce(address.port(), &key.reveal());
        until_parent_goes().await;
        Ok(())
    };
    tokio::select! {
        ended = server => ended.context("cannot serve"),
        ended = registered => ended,
    }
}

/// An engine that works, and the key of its caller.
pub async fn node(store: Arc<dyn Store>, front: Front) -> Result<(Engine, ApiKey)> {
    let engine = Engine::new(Parts {
        store,
        clock: Arc::new(SystemClock),
        client: Client::new(jurat_guard::client::Limits::default())?,
        bounded: Bounded::default(),
        node_key: NodeKey::from_seed(&[7; 32]).context("no signing key")?,
        secrets: Arc::new(|_| None),
        // One key stands for all callers.
        limits: Limits {
            rounds_per_key: usize::MAX,
            rounds_per_account: usize::MAX,
            bytes_per_account: usize::MAX,
            lag: if front == Front::Own { Limits::default().lag } else { None },
            ..Limits::default()
        },
        judges: Judges::default(),
        accounts: jurat_engine::Accounts::default(),
        points: jurat_engine::Points::default(),
    });
    let key = ApiKey::new(SystemClock.bits(), [SystemClock.bits(), SystemClock.bits()]);
    engine.key_ensure_admin(&key).await?;
    engine.start(Alone::Yes).await?;
    Ok((engine, key))
}

/// Registers an executor for each address, by the name `executor-` and its number.
pub async fn register(server: &str, key: &ApiKey, executors: Vec<String>) -> Result<()> {
    let client = client()?;
    for (number, url) in executors.into_iter().enumerate() {
        let body = json!({ "name": format!("executor-{number}"), "url": url }).to_string();
        let request = client
            .post(format!("{server}/v1/executors"))
            .header("authorization", format!("Bearer {}", key.reveal()))
            .header("content-type", "application/json")
            .body(body);
        request.send().await?.error_for_status()?;
    }
    Ok(())
}

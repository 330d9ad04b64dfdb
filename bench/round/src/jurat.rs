//! The real server among the subjects, with its store on disk or in memory.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::{Context as _, Result};
use jurat_bench_load::{announce, until_parent_goes};
use jurat_core::account::key::ApiKey;
use jurat_engine::{
    Clock as _, Engine, EngineLimits, EngineParts, JudgesConfig, NodeSigningKey, SoleNode,
    SystemClock,
};
use jurat_guard::{client::OutboundClient, sandbox::Sandbox};
use jurat_store::{Store, StoreLocation};
use serde_json::json;
use tokio::net::TcpListener;

use crate::bare::client;

/// The subjects, the baseline first.
pub const SUBJECTS: [&str; 3] = ["bare", "jurat", "jurat-memory"];

/// The location of the server's rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    OnDisk,
    InMemory,
}

/// The layer between the network and the handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontKind {
    /// The server's own accept loop, with its limits.
    Own,
    /// `axum::serve`, as most programs use it, without refusals on a late node.
    Plain,
}

/// Starts the server on a free port with a new store and registers an executor per address.
///
/// Returns when the parent exits.
pub async fn serve(executors: Vec<String>, keeps: StoreKind, front: FrontKind) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let location = match keeps {
        StoreKind::OnDisk => StoreLocation::File(folder.path().join("jurat.db")),
        StoreKind::InMemory => StoreLocation::Memory,
    };
    let (engine, key) = node(jurat_store::open(&location).await?, front).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let server = async {
        match front {
            FrontKind::Own => {
                let never = std::future::pending();
                jurat_server::serve(listener, engine, jurat_server::ServerOptions::default(), never)
                    .await
            }
            FrontKind::Plain => axum::serve(listener, jurat_server::router(engine)).await,
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

/// A working engine, and the key of its caller.
pub async fn node(store: Arc<Store>, front: FrontKind) -> Result<(Engine, ApiKey)> {
    let engine = Engine::new(EngineParts {
        store,
        clock: Arc::new(SystemClock),
        client: OutboundClient::new(jurat_guard::client::ClientLimits::default())?,
        bounded: Sandbox::default(),
        node_key: NodeSigningKey::from_seed(&[7; 32]).context("no signing key")?,
        secrets: Arc::new(|_| None),
        // One key serves all callers.
        limits: EngineLimits {
            rounds_per_key: usize::MAX,
            rounds_per_account: usize::MAX,
            bytes_per_account: usize::MAX,
            lag: if front == FrontKind::Own { EngineLimits::default().lag } else { None },
            ..EngineLimits::default()
        },
        judges: JudgesConfig::default(),
        accounts: jurat_engine::AccountSettings::default(),
        profiles: jurat_wire::api::openai::profile::built_in(),
        webhooks: jurat_engine::WebhookSettings::default(),
        payments: None,
        peers: None,
        failpoints: jurat_engine::Failpoints::default(),
    });
    let key = ApiKey::new(SystemClock.bits(), [SystemClock.bits(), SystemClock.bits()]);
    engine.key_ensure_admin(&key).await?;
    engine.start(SoleNode::Yes).await?;
    Ok((engine, key))
}

/// Registers an executor for each address, named `executor-` and its number.
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

//! The real server among the subjects, with an event log of a given length.

use std::{net::Ipv4Addr, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use jurat_bench_load::{announce, stores::location, until_parent_goes};
use jurat_bench_round::{
    bare::client,
    jurat::{FrontKind, node, register},
};
use jurat_core::account::key::ApiKey;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{log, order};

/// The task that the log is copied from.
const FIRST: &str = "first";

/// Starts the server on a free port with this many events in its log; returns when the parent
/// exits.
pub(crate) async fn serve(store: &str, events: u64, executors: Vec<String>) -> Result<()> {
    let store = jurat_store::open(&location(store)).await?;
    // Every client waits for the end, so none is refused because the node is late.
    let (engine, key) = node(Arc::clone(&store), FrontKind::Plain).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let front = jurat_server::ServerOptions::default();
    let server = jurat_server::serve(listener, engine, front, std::future::pending());
    let told = async {
        let url = format!("http://{address}");
        register(&url, &key, executors).await?;
        first(&url, &key).await?;
        log::fill(&store, &format!("bench-{FIRST}"), events).await?;
        announce(address.port(), &key.reveal());
        until_parent_goes().await;
        Ok(())
    };
    tokio::select! {
        ended = server => ended.context("cannot serve"),
        ended = told => ended,
    }
}

async fn first(server: &str, key: &ApiKey) -> Result<()> {
    let request = client()?
        .post(format!("{server}/v1/tasks"))
        .header("authorization", format!("Bearer {}", key.reveal()))
        .header("prefer", format!("wait={}", order::LONGEST_WAIT.as_secs()))
        .header("content-type", "application/json")
        .body(order::order(FIRST, 1).to_string());
    let answer = request.send().await?.error_for_status()?.bytes().await?;
    let task: Value = serde_json::from_slice(&answer)?;
    ensure!(task["state"] == "finalized", "the first task ended otherwise: {task}");
    Ok(())
}

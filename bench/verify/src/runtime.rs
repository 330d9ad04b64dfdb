//! The runtime as released, with an executor that leaves the verdict to the policy.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Result;
use jurat_bench_load::{announce, until_parent_goes};
use jurat_runtime::ExecutorOptions;
use jurat_runtime::engines::{EchoExecutor, EchoMode};
use tokio::net::TcpListener;

/// Serves until the parent exits; the warm-up puts the schema into the cache.
pub(crate) async fn serve() -> Result<()> {
    let executor = Arc::new(EchoExecutor::new("bench", "bench-1", EchoMode::Honest));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(listener.local_addr()?.port(), "");
    Ok(jurat_runtime::serve(listener, executor, ExecutorOptions::default(), until_parent_goes())
        .await?)
}

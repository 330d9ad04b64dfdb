//! Measures a server under overload, and with connections that stall.

mod measure;
mod report;
mod stall;

use std::net::SocketAddr;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jurat_bench_round::executors;
use jurat_bench_round::jurat::{self, FrontKind, StoreKind};
use mimalloc::MiMalloc;
use tokio::runtime::Builder;

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
#[command(about = "Offers a server a part of what it can do, all of it, and five times as much.")]
struct OverloadBenchArgs {
    /// Executors for each round: 1, 3 or 5
    #[arg(long, default_value_t = 3, value_parser = jurat_bench_round::replicas)]
    replicas: usize,
    /// Seconds of each load, after one second that is not counted
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Passes; the metrics are medians
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Connections of the honest callers
    #[arg(long, default_value_t = 1024)]
    lanes: usize,
    /// Connections that stall
    #[arg(long, default_value_t = 2000)]
    stalled: usize,
    /// Give the server a processor of its own; everything else shares another. Needs two processors
    /// and `taskset`
    #[arg(long)]
    apart: bool,
    /// Keep the rounds in memory, without the disk
    #[arg(long, global = true)]
    memory: bool,
    /// Print the metrics as JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    role: Option<OverloadBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum OverloadBenchRole {
    /// Executors that answer immediately, all in one process.
    Executors { count: usize },
    /// The handlers behind `axum::serve`, without shedding.
    Plain { executors: Vec<String> },
    /// The real server.
    Jurat { executors: Vec<String> },
    /// Connections that stall, and are opened again whenever they end.
    Stall { address: SocketAddr, count: usize },
}

fn main() -> Result<()> {
    let arguments = OverloadBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => {
            Builder::new_current_thread().enable_all().build()?.block_on(measure::run(&arguments))
        }
        Some(role) => Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(serve(role, arguments.memory)),
    }
}

async fn serve(role: OverloadBenchRole, is_in_memory: bool) -> Result<()> {
    let keeps = if is_in_memory { StoreKind::InMemory } else { StoreKind::OnDisk };
    match role {
        OverloadBenchRole::Executors { count } => executors::serve(count).await,
        OverloadBenchRole::Plain { executors } => {
            jurat::serve(executors, keeps, FrontKind::Plain).await
        }
        OverloadBenchRole::Jurat { executors } => {
            jurat::serve(executors, keeps, FrontKind::Own).await
        }
        OverloadBenchRole::Stall { address, count } => stall::stall(address, count).await,
    }
}

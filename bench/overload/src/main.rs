//! What does a server do with more than it can do, and with connections that stall?

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

/// The allocator that is shipped, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
#[command(about = "Offers a server a part of what it can do, all of it, and five times as much.")]
struct OverloadBenchArgs {
    /// How many executors are asked: 1, 3 or 5.
    #[arg(long, default_value_t = 3, value_parser = jurat_bench_round::replicas)]
    replicas: usize,
    /// How long each load lasts, after a second that is not counted.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// How often all of it is done; the figures are medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Connections of the honest callers.
    #[arg(long, default_value_t = 1024)]
    lanes: usize,
    /// Connections that stall.
    #[arg(long, default_value_t = 2000)]
    stalled: usize,
    /// The server gets a processor to itself, all else shares another. Needs two and `taskset`.
    #[arg(long)]
    apart: bool,
    /// Keeps the rounds in memory, to leave the disk out of it.
    #[arg(long, global = true)]
    memory: bool,
    /// Prints the figures as JSON.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    role: Option<OverloadBenchRole>,
}

/// What this program does when it is started by itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum OverloadBenchRole {
    /// Executors that answer at once, all in one process.
    Executors { count: usize },
    /// The handlers behind `axum::serve`, without shedding.
    Plain { executors: Vec<String> },
    /// The real server.
    Jurat { executors: Vec<String> },
    /// Connections that stall, opened again whenever they end.
    Stall { address: SocketAddr, count: usize },
}

fn main() -> Result<()> {
    let arguments = OverloadBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, so that the roles have the other cores.
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

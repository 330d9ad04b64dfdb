//! Measures the cost of a round compared with a bare fan-out to the same executors.

use anyhow::Result;
use clap::{Parser, Subcommand};
use jurat_bench_load::{
    LoadOptions, LoadSubject, Method, RequestVariation, RunningRole, Target, compare, print, spawn,
};
use jurat_bench_round::jurat::{FrontKind, StoreKind};
use jurat_bench_round::{bare, executors, jurat, replicas, request};
use mimalloc::MiMalloc;
use tokio::runtime::Builder;

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
#[command(about = "Measures a round beside a bare fan-out to the same executors.")]
struct RoundBenchArgs {
    #[command(flatten)]
    options: LoadOptions,
    /// Executors for each round: 1, 3 or 5
    #[arg(long, default_value_t = 3, value_parser = replicas)]
    replicas: usize,
    #[command(subcommand)]
    role: Option<RoundBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum RoundBenchRole {
    /// Executors that answer immediately, all in one process.
    Executors { count: usize },
    /// A handler that asks the executors, takes the majority and stores nothing.
    Bare { executors: Vec<String> },
    /// The real server with its store on disk, and the executors registered.
    Jurat { executors: Vec<String> },
    /// The same server with its store in memory.
    JuratMemory { executors: Vec<String> },
}

fn main() -> Result<()> {
    let arguments = RoundBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => Builder::new_current_thread().enable_all().build()?.block_on(measure(&arguments)),
        Some(role) => Builder::new_multi_thread().enable_all().build()?.block_on(serve(role)),
    }
}

async fn serve(role: RoundBenchRole) -> Result<()> {
    match role {
        RoundBenchRole::Executors { count } => executors::serve(count).await,
        RoundBenchRole::Bare { executors } => bare::serve(executors).await,
        RoundBenchRole::Jurat { executors } => {
            jurat::serve(executors, StoreKind::OnDisk, FrontKind::Own).await
        }
        RoundBenchRole::JuratMemory { executors } => {
            jurat::serve(executors, StoreKind::InMemory, FrontKind::Own).await
        }
    }
}

async fn measure(arguments: &RoundBenchArgs) -> Result<()> {
    let executors = spawn(&["executors".to_owned(), arguments.replicas.to_string()]).await?;
    let urls = executors::urls(&executors);
    let mut running = Vec::new();
    let mut subjects = Vec::new();
    for name in jurat::SUBJECTS {
        let mut words = vec![name.to_owned()];
        words.extend(urls.clone());
        let role = spawn(&words).await?;
        subjects.push(subject(name, &role, &executors, arguments.replicas)?);
        running.push(role);
    }
    let options = &arguments.options;
    let comparison = compare(&subjects, options.plan(), options.rounds).await?;
    print(&comparison, options);
    Ok(())
}

fn subject(
    name: &str,
    role: &RunningRole,
    executors: &RunningRole,
    replicas: usize,
) -> Result<LoadSubject> {
    let target = Target {
        address: role.address,
        method: Method::POST,
        path: "/api/v3/validate".to_owned(),
        headers: request::headers(&role.note)?,
        body: request::body(replicas),
        vary: RequestVariation::Nothing,
        marker: r#""verdict":"VALID""#.to_owned(),
    };
    Ok(LoadSubject { name: name.to_owned(), target, pid: role.pid, peers: vec![executors.pid] })
}

//! Measures the cost of a task compared with its bare calls, and whether a long event log slows it
//! down.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

mod bare;
mod jurat;
mod log;
mod order;

use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jurat_bench_load::{
    BenchStores, LoadComparison, LoadPlan, LoadStop, LoadSubject, RunningRole, compare, report,
    spawn,
};
use jurat_bench_round::executors;
use mimalloc::MiMalloc;
use serde_json::json;
use tokio::runtime::Builder;

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
#[command(about = "Measures tasks beside the bare calls they make, and with logs of any length.")]
struct TasksBenchArgs {
    /// Quorums of the tasks; each is measured separately
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3])]
    quorums: Vec<u32>,
    /// Concurrent clients that submit tasks and wait for the end of their own
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16])]
    clients: Vec<usize>,
    /// Events in the log of a server; each number has a store of its own
    #[arg(long, value_delimiter = ',', default_values_t = [10, 10_000, 1_000_000])]
    events: Vec<u64>,
    /// Seconds of one pass, after its warm-up
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// End a pass after this many tasks instead
    #[arg(long)]
    requests: Option<u64>,
    /// Tasks per client that are not counted, at the start of each pass
    #[arg(long, default_value_t = 20)]
    warm_up: u64,
    /// Passes for each subject
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Keep everything on this PostgreSQL server, in schemas that are dropped at the end; by
    /// default in SQLite files
    #[arg(long)]
    postgres: Option<String>,
    /// Fail if a task takes this many times as long with the longest log as with the shortest
    #[arg(long, default_value_t = 1.5)]
    most_ratio: f64,
    /// Print the metrics as JSON, with every pass
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    role: Option<TasksBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum TasksBenchRole {
    /// Executors that answer immediately, all in one process.
    Executors { count: usize },
    /// A handler that makes the calls of a task and stores nothing.
    Bare { executors: Vec<String> },
    /// The real server, with registered executors and this many events in its log.
    Jurat { store: String, events: u64, executors: Vec<String> },
}

fn main() -> Result<()> {
    let arguments = TasksBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => Builder::new_current_thread().enable_all().build()?.block_on(measure(&arguments)),
        Some(role) => Builder::new_multi_thread().enable_all().build()?.block_on(serve(role)),
    }
}

async fn serve(role: TasksBenchRole) -> Result<()> {
    match role {
        TasksBenchRole::Executors { count } => executors::serve(count).await,
        TasksBenchRole::Bare { executors } => bare::serve(executors).await,
        TasksBenchRole::Jurat { store, events, executors } => {
            jurat::serve(&store, events, executors).await
        }
    }
}

async fn measure(arguments: &TasksBenchArgs) -> Result<()> {
    let stores = BenchStores::new(arguments.postgres.clone()).await?;
    let measured = measure_on(&stores, arguments).await;
    stores.drop().await?;
    let (tasks, logs) = measured?;
    let store = stores.name();
    if arguments.json {
        let of_quorum = |(quorum, it): &(u32, LoadComparison)| json!({ "quorum": quorum, "figures": report::to_json(it) });
        let tasks: Vec<_> = tasks.iter().map(of_quorum).collect();
        println!("{}", json!({ "store": store, "tasks": tasks, "logs": report::to_json(&logs) }));
    } else {
        for (quorum, it) in &tasks {
            println!("Quorum: {quorum}, clients: {}, {store}:\n", it.plan.connections);
            println!("{}\n", report::to_table(it));
        }
        println!("Quorum: 1, clients: 1, with logs of any length, {store}:\n");
        println!("{}", report::to_table(&logs));
    }
    logs.check_flat("a task", arguments.most_ratio)
}

async fn measure_on(
    stores: &BenchStores,
    arguments: &TasksBenchArgs,
) -> Result<(Vec<(u32, LoadComparison)>, LoadComparison)> {
    let most = arguments.quorums.iter().copied().max().unwrap_or(1);
    let executors = spawn(&["executors".to_owned(), (most + 1).to_string()]).await?;
    let tasks = measure_tasks(stores, &executors, arguments).await?;
    let logs = measure_logs(stores, &executors, arguments).await?;
    Ok((tasks, logs))
}

/// The bare calls, and the server.
async fn measure_tasks(
    stores: &BenchStores,
    executors: &RunningRole,
    arguments: &TasksBenchArgs,
) -> Result<Vec<(u32, LoadComparison)>> {
    let mut running = vec![("bare", spawn_bare(executors).await?)];
    for (name, store) in stores.of_servers().await? {
        running.push((name, spawn_server(&store, 0, executors).await?));
    }
    let mut comparisons = Vec::new();
    for quorum in &arguments.quorums {
        for clients in &arguments.clients {
            let subjects = running.iter().map(|(name, it)| subject(name, it, executors, *quorum));
            let subjects: Vec<LoadSubject> = subjects.collect::<Result<_>>()?;
            let compared = compare(&subjects, plan(arguments, *clients), arguments.rounds).await?;
            comparisons.push((*quorum, compared));
        }
    }
    Ok(comparisons)
}

/// One task after the other, with short and long logs.
async fn measure_logs(
    stores: &BenchStores,
    executors: &RunningRole,
    arguments: &TasksBenchArgs,
) -> Result<LoadComparison> {
    let (mut running, mut subjects) = (Vec::new(), Vec::new());
    for events in &arguments.events {
        let server = spawn_server(&stores.new_store().await?, *events, executors).await?;
        subjects.push(subject(&format!("{events} events"), &server, executors, 1)?);
        running.push(server);
    }
    compare(&subjects, plan(arguments, 1), arguments.rounds).await
}

async fn spawn_bare(executors: &RunningRole) -> Result<RunningRole> {
    let mut words = vec!["bare".to_owned()];
    words.extend(executors::urls(executors));
    spawn(&words).await
}

async fn spawn_server(store: &str, events: u64, executors: &RunningRole) -> Result<RunningRole> {
    let mut words = vec!["jurat".to_owned(), store.to_owned(), events.to_string()];
    words.extend(executors::urls(executors));
    spawn(&words).await
}

fn subject(
    name: &str,
    role: &RunningRole,
    executors: &RunningRole,
    quorum: u32,
) -> Result<LoadSubject> {
    let (name, target) = (name.to_owned(), order::target(role, quorum)?);
    Ok(LoadSubject { name, target, pid: role.pid, peers: vec![executors.pid] })
}

fn plan(arguments: &TasksBenchArgs, connections: usize) -> LoadPlan {
    let stop = match arguments.requests {
        Some(requests) => LoadStop::Requests(requests),
        None => LoadStop::After(Duration::from_secs(arguments.seconds)),
    };
    LoadPlan { connections: connections.max(1), warm_up: arguments.warm_up, stop }
}

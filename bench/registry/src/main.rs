//! Measures the cost of a verifier run besides its judge call, and whether lists stay fast.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

mod bare;
mod judge;
mod jurat;
mod request;
mod verifiers;

use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jurat_bench_load::{
    BenchStores, LoadComparison, LoadPlan, LoadStop, LoadSubject, Method, RequestVariation,
    RunningRole, Target, compare, report, spawn,
};
use mimalloc::MiMalloc;
use serde_json::json;
use tokio::runtime::Builder;

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// As many as the smallest store has, so that every store shows the same number.
const FIRST_PAGE: &str = "/v1/verifiers?limit=10";

#[derive(Debug, Parser)]
#[command(about = "Measures runs of a verifier beside its judge, and lists of many verifiers.")]
struct RegistryBenchArgs {
    /// Concurrent clients that run the verifier; each number is measured separately
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64])]
    clients: Vec<usize>,
    /// Verifiers of the account whose list is read; each number has a store of its own
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000])]
    verifiers: Vec<u32>,
    /// Seconds of one pass, after its warm-up
    #[arg(long, default_value_t = 4)]
    seconds: u64,
    /// End a pass after this many requests instead
    #[arg(long)]
    requests: Option<u64>,
    /// Requests per connection that are not counted, at the start of each pass
    #[arg(long, default_value_t = 50)]
    warm_up: u64,
    /// Passes for each subject
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Keep everything on this PostgreSQL server, in schemas that are dropped at the end; by
    /// default in SQLite files
    #[arg(long)]
    postgres: Option<String>,
    /// Fail if a list or a verifier takes this many times as long with the most verifiers as with
    /// the fewest
    #[arg(long, default_value_t = 2.0)]
    most_ratio: f64,
    /// Print the metrics as JSON, with every pass
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    role: Option<RegistryBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum RegistryBenchRole {
    /// A judge that immediately finds every criterion met.
    Judge,
    /// A handler that asks the judge and stores nothing.
    Bare { judge: String },
    /// The real server, with this many verifiers of that judge.
    Jurat { judge: String, verifiers: u32, store: String },
}

fn main() -> Result<()> {
    let arguments = RegistryBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => Builder::new_current_thread().enable_all().build()?.block_on(measure(&arguments)),
        Some(role) => Builder::new_multi_thread().enable_all().build()?.block_on(serve(role)),
    }
}

async fn serve(role: RegistryBenchRole) -> Result<()> {
    match role {
        RegistryBenchRole::Judge => judge::serve().await,
        RegistryBenchRole::Bare { judge } => bare::serve(&judge).await,
        RegistryBenchRole::Jurat { judge, verifiers, store } => {
            jurat::serve(&judge, verifiers, &store).await
        }
    }
}

async fn measure(arguments: &RegistryBenchArgs) -> Result<()> {
    let stores = BenchStores::new(arguments.postgres.clone()).await?;
    let measured = measure_on(&stores, arguments).await;
    stores.drop().await?;
    let RegistryResults { runs, lists, shows } = measured?;
    let store = stores.name();
    if arguments.json {
        let runs: Vec<_> = runs.iter().map(report::to_json).collect();
        let (lists, shows) = (report::to_json(&lists), report::to_json(&shows));
        println!("{}", json!({ "store": store, "runs": runs, "lists": lists, "shows": shows }));
    } else {
        for runs in &runs {
            println!("Runs, clients: {}, {store}:\n", runs.plan.connections);
            println!("{}\n", report::to_table(runs));
        }
        println!("The first page of the list, {store}:\n\n{}\n", report::to_table(&lists));
        println!("One verifier, {store}:\n\n{}", report::to_table(&shows));
    }
    lists.check_flat("a list", arguments.most_ratio)?;
    shows.check_flat("a verifier", arguments.most_ratio)
}

struct RegistryResults {
    runs: Vec<LoadComparison>,
    lists: LoadComparison,
    shows: LoadComparison,
}

async fn measure_on(
    stores: &BenchStores,
    arguments: &RegistryBenchArgs,
) -> Result<RegistryResults> {
    let judge = spawn(&["judge".to_owned()]).await?;
    let runs = measure_runs(stores, &judge, arguments).await?;
    let (lists, shows) = measure_lists(stores, &judge, arguments).await?;
    Ok(RegistryResults { runs, lists, shows })
}

/// The bare call of the judge, a handler that makes it, and the server.
async fn measure_runs(
    stores: &BenchStores,
    judge: &RunningRole,
    arguments: &RegistryBenchArgs,
) -> Result<Vec<LoadComparison>> {
    let url = format!("http://{}", judge.address);
    let bare = spawn(&["bare".to_owned(), url.clone()]).await?;
    let mut running = Vec::new();
    for (name, store) in stores.of_servers().await? {
        running.push((name, spawn_server(&url, 1, &store).await?));
    }
    let mut subjects = vec![
        subject("call", judge, None, request::of_judge(judge)),
        subject("bare", &bare, Some(judge), request::of_run(&bare)?),
    ];
    for (name, server) in &running {
        subjects.push(subject(name, server, Some(judge), request::of_run(server)?));
    }
    let mut comparisons = Vec::new();
    for clients in &arguments.clients {
        let plan = plan(arguments, *clients);
        comparisons.push(compare(&subjects, plan, arguments.rounds).await?);
    }
    Ok(comparisons)
}

/// The first page of the list, and one verifier after the other, each with few and with many
/// verifiers.
async fn measure_lists(
    stores: &BenchStores,
    judge: &RunningRole,
    arguments: &RegistryBenchArgs,
) -> Result<(LoadComparison, LoadComparison)> {
    let url = format!("http://{}", judge.address);
    let (mut running, mut lists, mut shows) = (Vec::new(), Vec::new(), Vec::new());
    for count in &arguments.verifiers {
        let server = spawn_server(&url, *count, &stores.new_store().await?).await?;
        let name = format!("{count} verifiers");
        let read = |path: &str, vary, marker: &str| {
            anyhow::Ok(Target {
                address: server.address,
                method: Method::GET,
                path: path.to_owned(),
                headers: request::headers(&server)?,
                body: bytes::Bytes::new(),
                vary,
                marker: marker.to_owned(),
            })
        };
        let first = verifiers::name(0);
        let list = read(FIRST_PAGE, RequestVariation::Nothing, &first)?;
        lists.push(subject(&name, &server, None, list));
        let vary = RequestVariation::Path { below: u64::from(*count) };
        let show = read("/v1/verifiers/bench-", vary, "\"criterion\"")?;
        shows.push(subject(&name, &server, None, show));
        running.push(server);
    }
    let plan = plan(arguments, 1);
    let lists = compare(&lists, plan, arguments.rounds).await?;
    let shows = compare(&shows, plan, arguments.rounds).await?;
    Ok((lists, shows))
}

async fn spawn_server(judge: &str, verifiers: u32, store: &str) -> Result<RunningRole> {
    let words = ["jurat".to_owned(), judge.to_owned(), verifiers.to_string(), store.to_owned()];
    spawn(&words).await
}

fn subject(
    name: &str,
    role: &RunningRole,
    peer: Option<&RunningRole>,
    target: Target,
) -> LoadSubject {
    let peers = peer.map(|peer| peer.pid).into_iter().collect();
    LoadSubject { name: name.to_owned(), target, pid: role.pid, peers }
}

fn plan(arguments: &RegistryBenchArgs, connections: usize) -> LoadPlan {
    let stop = match arguments.requests {
        Some(requests) => LoadStop::Requests(requests),
        None => LoadStop::After(Duration::from_secs(arguments.seconds)),
    };
    LoadPlan { connections: connections.max(1), warm_up: arguments.warm_up, stop }
}

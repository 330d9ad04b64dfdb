//! Measures what other protocols cost beside REST, for the same round.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

mod request;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use jurat_bench_load::{LoadComparison, LoadOptions, LoadSubject, compare, report, spawn};
use jurat_bench_round::{
    executors,
    jurat::{self, FrontKind, StoreKind},
};
use mimalloc::MiMalloc;
use serde_json::json;
use tokio::runtime::Builder;

use self::request::{MeasuredJob, REPLICAS};

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
#[command(about = "Measures the surfaces of other protocols beside REST, for the same round.")]
struct SurfaceBenchArgs {
    #[command(flatten)]
    options: LoadOptions,
    /// Keep the rounds in memory instead of on disk
    #[arg(long)]
    memory: bool,
    /// Fail if a surface takes more than this many times the CPU time of REST
    #[arg(long, value_name = "RATIO")]
    most_ratio: Option<f64>,
    #[command(subcommand)]
    role: Option<SurfaceBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Subcommand)]
#[command(hide = true)]
enum SurfaceBenchRole {
    /// Executors that answer immediately, all in one process.
    Executors { count: usize },
    /// The real server with its store on disk, and the executors registered.
    Jurat { executors: Vec<String> },
    /// The same server with its store in memory.
    JuratMemory { executors: Vec<String> },
}

fn main() -> Result<()> {
    let arguments = SurfaceBenchArgs::parse();
    match arguments.role.clone() {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => Builder::new_current_thread().enable_all().build()?.block_on(measure(&arguments)),
        Some(role) => Builder::new_multi_thread().enable_all().build()?.block_on(serve(role)),
    }
}

async fn serve(role: SurfaceBenchRole) -> Result<()> {
    match role {
        SurfaceBenchRole::Executors { count } => executors::serve(count).await,
        SurfaceBenchRole::Jurat { executors } => {
            jurat::serve(executors, StoreKind::OnDisk, FrontKind::Own).await
        }
        SurfaceBenchRole::JuratMemory { executors } => {
            jurat::serve(executors, StoreKind::InMemory, FrontKind::Own).await
        }
    }
}

async fn measure(arguments: &SurfaceBenchArgs) -> Result<()> {
    let mut comparisons = Vec::new();
    for job in MeasuredJob::ALL {
        comparisons.push((job, measure_job(job, arguments).await?));
    }
    if arguments.options.json {
        let jobs = comparisons.iter().map(|(job, it)| (job.name().to_owned(), report::to_json(it)));
        println!("{}", json!(jobs.collect::<serde_json::Map<_, _>>()));
    } else {
        for (job, comparison) in &comparisons {
            println!("{}:\n\n{}\n", job.name(), report::to_table(comparison));
        }
    }
    let most = arguments.most_ratio.unwrap_or(f64::INFINITY);
    comparisons.iter().try_for_each(|(_, comparison)| check(comparison, most))
}

/// Measures a job on each of its surfaces, each on a server and a store of its own, so that no
/// surface pays for the rounds of another.
async fn measure_job(job: MeasuredJob, arguments: &SurfaceBenchArgs) -> Result<LoadComparison> {
    let executors = spawn(&["executors".to_owned(), REPLICAS.to_string()]).await?;
    let role = if arguments.memory { "jurat-memory" } else { "jurat" };
    let mut words = vec![role.to_owned()];
    words.extend(executors::urls(&executors));
    let (mut running, mut subjects) = (Vec::new(), Vec::new());
    for surface in job.surfaces() {
        let server = spawn(&words).await?;
        let target = surface.target(job, &server)?;
        let (name, peers) = (surface.name().to_owned(), vec![executors.pid]);
        subjects.push(LoadSubject { name, target, pid: server.pid, peers });
        running.push(server);
    }
    compare(&subjects, arguments.options.plan(), arguments.options.rounds).await
}

/// Fails if a surface takes more than `most` times the CPU time of the first.
fn check(comparison: &LoadComparison, most: f64) -> Result<()> {
    let Some((baseline, others)) = comparison.subjects.split_first() else { return Ok(()) };
    for surface in others {
        let [_, _, _, cpu, _] = surface.over(baseline);
        if let Some(ratio) = cpu.filter(|ratio| most < ratio.median) {
            let (name, first, ratio) = (&surface.name, &baseline.name, ratio.median);
            bail!("{name} takes {ratio:.2} times the CPU time of {first}");
        }
    }
    Ok(())
}

//! Measures how long `jurat serve` takes to be ready with a million rounds, compared with an empty
//! store.
#![expect(clippy::print_stdout, reason = "a measurement prints its figures")]

mod rounds;
mod server;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use jurat_store::Store;
use serde::Serialize;

use crate::server::{ListTimes, ServerProcess};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(about)]
struct StartBenchArgs {
    /// Closed rounds in the large store
    #[arg(long, default_value_t = 1_000_000)]
    rounds: u32,
    /// Rounds that each start finds open, as after a crash
    #[arg(long, default_value_t = 100)]
    open: u32,
    /// How many times each store is started
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Keep the large store in this folder, and reuse it if it exists
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Build the large store and measure nothing
    #[arg(long, requires = "folder")]
    make_only: bool,
    /// The program to start; by default the one next to this program
    #[arg(long)]
    program: Option<PathBuf>,
    /// Fail if the large store takes longer than this at any start
    #[arg(long, default_value_t = 1_000.0)]
    most_ms: f64,
    /// Print the metrics as JSON, with every start
    #[arg(long)]
    json: bool,
}

/// The measurements of one store.
#[derive(Debug, Default, Serialize)]
struct StartMetrics {
    name: &'static str,
    rounds: u32,
    ready_ms: Vec<f64>,
    newest_ms: Vec<f64>,
    /// The slowest list by a kind, an outcome, or both, that finds nothing.
    nothing_found_ms: Vec<f64>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = StartBenchArgs::parse();
    let aside = tempfile::tempdir()?;
    let large = options.folder.clone().unwrap_or_else(|| aside.path().join("large"));
    if !large.join("jurat.db").exists() {
        make(&large, options.rounds).await?;
    }
    if options.make_only {
        return Ok(());
    }
    let program = program(options.program.as_deref())?;
    let mut figures = [
        StartMetrics { name: "empty", ..StartMetrics::default() },
        StartMetrics { name: "large", rounds: options.rounds, ..StartMetrics::default() },
    ];
    for turn in 0..options.turns {
        let empty = aside.path().join(format!("empty-{turn}"));
        for (figures, folder) in figures.iter_mut().zip([&empty, &large]) {
            leave_open(folder, turn, options.open).await?;
            let (server, ready_ms) = ServerProcess::start(&program, folder).await?;
            let ListTimes { newest_ms, nothing_found_ms } = server.lists().await?;
            server.kill().await?;
            figures.ready_ms.push(ready_ms);
            figures.newest_ms.push(newest_ms);
            figures.nothing_found_ms.push(nothing_found_ms);
        }
    }
    print(&figures, options.json)?;
    let slowest = figures[1].ready_ms.iter().copied().fold(0.0, f64::max);
    if options.most_ms < slowest {
        bail!("ready after {slowest:.0} ms, and {:.0} ms is the most", options.most_ms);
    }
    Ok(())
}

fn program(named: Option<&Path>) -> Result<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.parent()?.join("jurat"));
    let program = named.map(Path::to_owned).or_else(beside).context("no program")?;
    if !program.exists() {
        bail!("there is no `{}`; build it, or name it with `--program`", program.display());
    }
    Ok(program)
}

async fn make(folder: &Path, count: u32) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let store = Arc::new(Store::sqlite(&folder.join("jurat.db")).await?);
    rounds::fill(&store, count).await?;
    store.close().await;
    Ok(())
}

/// Leaves rounds open, like a node that is killed.
async fn leave_open(folder: &Path, turn: usize, count: u32) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let store = Arc::new(Store::sqlite(&folder.join("jurat.db")).await?);
    rounds::leave_open(&store, turn, count).await?;
    store.close().await;
    Ok(())
}

fn print(figures: &[StartMetrics], is_json: bool) -> Result<()> {
    if is_json {
        println!("{}", serde_json::to_string(&serde_json::json!({ "stores": figures }))?);
        return Ok(());
    }
    println!("| store | closed rounds | ready, ms | newest 50, ms | lists that find nothing, ms |");
    println!("|---|---:|---:|---:|---:|");
    for it in figures {
        let (ready, newest) = (range(&it.ready_ms), range(&it.newest_ms));
        let nothing = range(&it.nothing_found_ms);
        println!("| {} | {} | {ready} | {newest} | {nothing} |", it.name, it.rounds);
    }
    Ok(())
}

/// The median, with the minimum and the maximum.
fn range(values: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.first(), sorted.last()) {
        (Some(median), Some(least), Some(most)) => format!("{median:.1} ({least:.1}–{most:.1})"),
        _ => "–".to_owned(),
    }
}

//! Measures `/verify` of the runtime with a cached schema, compared with an echo of the same body.

mod echo;
mod request;
mod runtime;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jurat_bench_load::{
    LoadOptions, LoadSubject, Method, RequestVariation, Target, compare, print, spawn,
};
use mimalloc::MiMalloc;
use tokio::runtime::Builder;

/// The allocator of the released binary, for every role alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The subjects with a marker of a correct answer, the baseline first.
const SUBJECTS: [(&str, &str); 2] = [("echo", "cand-1"), ("runtime", r#""passed":true"#)];

#[derive(Debug, Parser)]
#[command(about = "Measures /verify of the runtime beside an echo of the same body.")]
struct VerifyBenchArgs {
    #[command(flatten)]
    options: LoadOptions,
    #[command(subcommand)]
    role: Option<VerifyBenchRole>,
}

/// The roles in which this program starts itself.
#[derive(Debug, Clone, Copy, Subcommand)]
#[command(hide = true)]
enum VerifyBenchRole {
    /// A handler that sends the body back.
    Echo,
    /// The runtime, with an executor that checks schemas.
    Runtime,
}

fn main() -> Result<()> {
    let arguments = VerifyBenchArgs::parse();
    match arguments.role {
        // The load comes from one thread, which leaves the other cores to the roles.
        None => Builder::new_current_thread().enable_all().build()?.block_on(measure(&arguments)),
        Some(role) => Builder::new_multi_thread().enable_all().build()?.block_on(serve(role)),
    }
}

async fn serve(role: VerifyBenchRole) -> Result<()> {
    match role {
        VerifyBenchRole::Echo => echo::serve().await,
        VerifyBenchRole::Runtime => runtime::serve().await,
    }
}

async fn measure(arguments: &VerifyBenchArgs) -> Result<()> {
    let mut running = Vec::new();
    let mut subjects = Vec::new();
    for (name, marker) in SUBJECTS {
        let role = spawn(&[name.to_owned()]).await?;
        let target = Target {
            address: role.address,
            method: Method::POST,
            path: "/verify".to_owned(),
            headers: Vec::new(),
            body: request::body(),
            vary: RequestVariation::Nothing,
            marker: marker.to_owned(),
        };
        subjects.push(LoadSubject {
            name: name.to_owned(),
            target,
            pid: role.pid,
            peers: Vec::new(),
        });
        running.push(role);
    }
    let options = &arguments.options;
    let comparison = compare(&subjects, options.plan(), options.rounds).await?;
    print(&comparison, options);
    Ok(())
}

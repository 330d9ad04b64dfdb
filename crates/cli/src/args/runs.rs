//! `jurat run`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListArgs;

const SUBMIT_EXAMPLES: &str = "\
Examples:
  jurat run submit run.json
  jurat run submit run.json --kickoff
  cat run.json | jurat run submit - --kickoff --json

The server works on the run once it is kicked off; `jurat run watch` follows it.";

const WORKER_EXAMPLES: &str = "\
Examples:
  jurat --store postgres://jurat@db.example.com/jurat run worker
  jurat --store postgres://jurat@db.example.com/jurat run worker --worker-id blue --concurrency 32
  jurat run worker --once

Any number of workers share one PostgreSQL, with servers or without. With a file as the store, the
server works on the runs itself; a worker needs the store for itself, so stop the server first.";

#[derive(Debug, Subcommand)]
pub(crate) enum TaskRuns {
    /// Submits a run of several agents
    Submit(SubmitRun),
    /// Lets a run begin that waits for it
    #[command(after_help = "Examples:\n  jurat run kickoff bridges-1")]
    Kickoff {
        id: String,
        /// Makes a repeated request the same one
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Follows a run until it ends
    #[command(
        after_help = "Examples:\n  jurat run watch bridges-1\n  jurat run watch bridges-1 --json\n  jurat run watch bridges-1 --gate || echo stopped with $?\n\nWith --gate the exit code is 11 for a run that failed, and 12 for one that was cancelled or\nhas no answer."
    )]
    Watch(NamedRun),
    /// Prints what came of a run
    #[command(
        after_help = "Examples:\n  jurat run result bridges-1\n  jurat run result bridges-1 --json\n\nWith --gate the exit code is 11 for a run that failed, and 12 for one that was cancelled, is\nnot over, or has no answer."
    )]
    Result(NamedRun),
    /// Prints what happened to a run, the newest first
    #[command(
        after_help = "Examples:\n  jurat run events bridges-1\n  jurat run events bridges-1 --limit 10 --json"
    )]
    Events {
        id: String,
        /// How many events are printed at the most
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: u32,
    },
    /// Lists the runs, newest first
    List(ListTaskRuns),
    /// Shows one run with its steps
    #[command(
        after_help = "Examples:\n  jurat run show bridges-1\n  jurat run show bridges-1 --json"
    )]
    Show { id: String },
    /// Calls a run off
    #[command(
        after_help = "Examples:\n  jurat run cancel bridges-1\n  jurat run cancel bridges-1 --reason 'asked twice'"
    )]
    Cancel {
        id: String,
        /// Kept with the run
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Makes a repeated request the same one
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Tries again what did not succeed of a run that is over
    #[command(after_help = "Examples:\n  jurat run retry bridges-1")]
    Retry {
        id: String,
        /// Makes a repeated request the same one
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Checks that the store is ready for runs, which needs no other preparation
    #[command(
        after_help = "Examples:\n  jurat run init\n  jurat --store postgres://jurat@db.example.com/jurat run init"
    )]
    Init,
    /// Works on the runs of all accounts, until it is stopped
    Worker(RunWorker),
}

#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitRun {
    /// File with the spec, or with `kickoff` and `spec`; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) spec: PathBuf,
    /// Lets it begin at once
    #[arg(long)]
    pub(crate) kickoff: bool,
    /// Makes a repeated submission the same one
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedRun {
    pub(crate) id: String,
    /// Ends with 11 when the run failed, and with 12 when it has no answer otherwise
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat run list\n  jurat run list --status FAILED --limit 10\n  jurat run list --json"
)]
pub(crate) struct ListTaskRuns {
    /// Only runs that have come so far
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(
        jurat_core::task_run::RunStatus::ALL.iter().map(|status| status.as_str())
    ))]
    pub(crate) status: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WORKER_EXAMPLES)]
pub(crate) struct RunWorker {
    /// How runs call the worker; a name is drawn when it is left out
    #[arg(long, value_name = "NAME")]
    pub(crate) worker_id: Option<String>,
    /// Steps at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// How seldom it looks for steps that others bring
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 250,
          value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) poll_ms: u64,
    /// How long a step is held without a sign of life, before another worker takes it
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 30_000,
          value_parser = clap::value_parser!(u64).range(300..=3_600_000))]
    pub(crate) lease_ms: u64,
    /// Ends when there is nothing to do any more
    #[arg(long)]
    pub(crate) once: bool,
    /// Form of the log: text or json [env: `JURAT_LOG_FORMAT`]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

//! `jurat run`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::ListArgs;

const SUBMIT_EXAMPLES: &str = "\
Examples:
  jurat run submit run.json
  jurat run submit run.json --kickoff
  cat run.json | jurat run submit - --kickoff --json

The server works on the run after kickoff; `jurat run watch` follows it.";

const WORKER_EXAMPLES: &str = "\
Examples:
  jurat --store postgres://jurat@db.example.com/jurat run worker
  jurat --store postgres://jurat@db.example.com/jurat run worker --worker-id blue --concurrency 32
  jurat run worker --once

Any number of workers and servers can share one PostgreSQL store. An SQLite store has one process at
a time: the server works on its runs itself, so stop the server before you start a worker.";

#[derive(Debug, Subcommand)]
pub(crate) enum AgentRunsCommand {
    /// Submit a run of several agents
    Submit(SubmitAgentRunArgs),
    /// Start a submitted run
    #[command(after_help = "Examples:\n  jurat run kickoff bridges-1")]
    Kickoff {
        id: String,
        /// Idempotency key: safe to retry
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Follow a run until it ends
    #[command(
        after_help = "Examples:\n  jurat run watch bridges-1\n  jurat run watch bridges-1 --json\n  jurat run watch bridges-1 --gate || echo stopped with $?\n\nWith --gate the exit code is 11 if the run failed, and 12 if it was cancelled or has no answer."
    )]
    Watch(AgentRunNameArgs),
    /// Print the result of a run
    #[command(
        after_help = "Examples:\n  jurat run result bridges-1\n  jurat run result bridges-1 --json\n\nWith --gate the exit code is 11 if the run failed, and 12 if it was cancelled, has not ended, or\nhas no answer."
    )]
    Result(AgentRunNameArgs),
    /// Print the events of a run, newest first
    #[command(
        after_help = "Examples:\n  jurat run events bridges-1\n  jurat run events bridges-1 --limit 10 --json"
    )]
    Events {
        id: String,
        /// Maximum number of events
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: u32,
    },
    /// List runs, newest first
    List(ListAgentRunsArgs),
    /// Show a run and its steps
    #[command(
        after_help = "Examples:\n  jurat run show bridges-1\n  jurat run show bridges-1 --json"
    )]
    Show { id: String },
    /// Cancel a run
    #[command(
        after_help = "Examples:\n  jurat run cancel bridges-1\n  jurat run cancel bridges-1 --reason 'asked twice'"
    )]
    Cancel {
        id: String,
        /// Reason, recorded with the run
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Idempotency key: safe to retry
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Retry the unsuccessful steps of a run that has ended
    #[command(after_help = "Examples:\n  jurat run retry bridges-1")]
    Retry {
        id: String,
        /// Idempotency key: safe to retry
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Check that the store is ready for runs
    #[command(
        after_help = "Examples:\n  jurat run init\n  jurat --store postgres://jurat@db.example.com/jurat run init"
    )]
    Init,
    /// Work on the runs of all accounts until stopped
    Worker(AgentRunWorkerArgs),
}

#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitAgentRunArgs {
    /// File with the spec, or with `kickoff` and `spec`; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) spec: PathBuf,
    /// Start the run immediately
    #[arg(long)]
    pub(crate) kickoff: bool,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AgentRunNameArgs {
    pub(crate) id: String,
    /// Exit with 11 if the run failed, or 12 if it has no answer for another reason
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat run list\n  jurat run list --status FAILED --limit 10\n  jurat run list --json"
)]
pub(crate) struct ListAgentRunsArgs {
    /// Only runs with this status
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(
        jurat_core::agent_run::AgentRunStatus::ALL.iter().map(|status| status.as_str())
    ))]
    pub(crate) status: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = WORKER_EXAMPLES)]
pub(crate) struct AgentRunWorkerArgs {
    /// Name of the worker in run events [default: random]
    #[arg(long, value_name = "NAME")]
    pub(crate) worker_id: Option<String>,
    /// Maximum number of concurrent steps
    #[arg(long, value_name = "NUMBER", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Poll interval for new steps
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 250,
          value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub(crate) poll_ms: u64,
    /// Lease on a step; without a renewal, another worker takes the step
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 30_000,
          value_parser = clap::value_parser!(u64).range(300..=3_600_000))]
    pub(crate) lease_ms: u64,
    /// Exit when there is no work left
    #[arg(long)]
    pub(crate) once: bool,
    /// Log format: text or json [env: `JURAT_LOG_FORMAT`]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

//! `jurat task`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ListArgs;

const SUBMIT_EXAMPLES: &str = "\
Examples:
  jurat task sample > contract.json
  jurat task submit contract.json
  jurat task submit contract.json --executor alpha --executor beta --expires-in 600
  jurat task submit --file contract.json --task-id task-2 --json

The server drives the task to its end; `jurat task watch` follows it. Without a server the task
begins when one runs, or with `jurat task watch`.";

const RUN_EXAMPLES: &str = "\
Examples:
  jurat task run --executor my-runtime
  jurat task run --file contract.json --executor alpha --executor beta --verifier gamma
  jurat task run --file contract.json --expires-in 600 --gate || echo stopped with $?

Without a file the contract of `jurat task sample` is used.
With --gate the exit code is 11 for a task that failed, and 12 for one that expired or was
cancelled.";

const RUN_REAL_EXAMPLES: &str = "\
Examples:
  jurat task run-real --executor my-runtime --profile default --task-id task-001
  jurat task run-real --executor my-runtime --file contract.json

Like `jurat task run`, but the exit code is 1 when the task ends without a decision.
With --gate it is 11 for a task that failed, and 12 for one that expired or was cancelled.";

#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// Submits a task, and leaves it to the server
    Submit(SubmitTask),
    /// Submits a task, follows it to its end, and prints the decision
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunTask),
    /// Like `run`, and fails when the task does
    #[command(name = "run-real", after_help = RUN_REAL_EXAMPLES)]
    RunReal(RunTask),
    /// Follows a task until it ends
    #[command(
        after_help = "Examples:\n  jurat task watch task-001\n  jurat task watch task-001 --gate\n\nWith --gate the exit code is 11 for a task that failed, and 12 for one that expired or was\ncancelled."
    )]
    Watch(NamedTask),
    /// Prints what a task decided
    #[command(
        after_help = "Examples:\n  jurat task decision task-001\n  jurat task decision task-001 --json\n\nWith --gate the exit code is 11 for a task that failed, and 12 for one without a decision."
    )]
    Decision(NamedTask),
    /// Lists the tasks, newest first
    List(ListTasks),
    /// Shows one task: who works on it, its candidates, votes and budget
    #[command(
        after_help = "Examples:\n  jurat task show task-001\n  jurat task show task-001 --json"
    )]
    Show { id: String },
    /// Calls a task off
    #[command(
        after_help = "Examples:\n  jurat task cancel task-001\n  jurat task cancel task-001 --reason 'asked twice'"
    )]
    Cancel {
        id: String,
        /// Kept with the task
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Makes a repeated request the same one
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Begins the next epoch of a continuous task
    #[command(
        name = "next-epoch",
        after_help = "Examples:\n  jurat task next-epoch task-001\n\nThe task must be CONTINUOUS, and the decision of its last epoch final."
    )]
    NextEpoch {
        id: String,
        /// Makes a repeated request the same one
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Says that a decision was wrong, while it can be said
    Complain(Complain),
    /// Prints what happened to a task, the first event first
    Events(TaskEvents),
    /// Prints a contract to begin with
    #[command(
        after_help = "Examples:\n  jurat task sample > contract.json\n  jurat task sample --task-id task-001"
    )]
    Sample {
        /// The name of the task; one is drawn when it is left out
        #[arg(long, value_name = "ID")]
        task_id: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitTask {
    /// File with the contract; `-` reads standard input
    #[arg(value_name = "FILE", conflicts_with = "file")]
    pub(crate) contract: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) order: OrderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunTask {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    /// Ends with 11 when the task failed, and with 12 when it ended without a decision otherwise
    #[arg(long)]
    pub(crate) gate: bool,
}

/// What is submitted, and who is to work on it.
#[derive(Debug, Args)]
pub(crate) struct OrderArgs {
    /// File with the contract; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Executor that may work on the task; once for each of a panel
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Vec<String>,
    /// Executor that verifies; once for each. Left out: those of --executor
    #[arg(long, value_name = "NAME")]
    pub(crate) verifier: Vec<String>,
    /// Profile under which they work [default: default]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The name of the task, instead of that in the contract
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,
    /// The contract ends so long from now, instead of at its `expiry_ms`
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires_in: Option<u64>,
    /// Makes a repeated submission the same one
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat task complain task-001 --reason 'the river is the Rhone'\n  jurat task complain task-001 --epoch 2 --reason wrong --timestamp 1790000600000 --signature 5f0c…\n\nA contract that names the key of an authority wants a signature: Ed25519 over the text\n`ACCOUNT|TASK|EPOCH|BAD|REASON|TIMESTAMP`; without one the refusal shows it. Such a decision is not reused any more, and settles as bad."
)]
pub(crate) struct Complain {
    pub(crate) id: String,
    /// Why the decision was wrong
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Which decision of a continuous task is meant; the newest when left out
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epoch: Option<u64>,
    /// When it was signed, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS", requires = "signature")]
    pub(crate) timestamp: Option<u64>,
    /// Signature by the key that the contract names, in hex
    #[arg(long, value_name = "HEX", requires = "timestamp")]
    pub(crate) signature: Option<String>,
    /// Makes a repeated request the same one
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NamedTask {
    pub(crate) id: String,
    /// Ends with 11 when the task failed, and with 12 when it has no decision otherwise
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat task list\n  jurat task list --state failed --limit 10\n  jurat task list --task-type swarm --json"
)]
pub(crate) struct ListTasks {
    /// Only tasks in this state
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(
        jurat_core::task::Phase::ALL.iter().map(|phase| phase.as_str())
    ))]
    pub(crate) state: Option<String>,
    /// Only tasks of this type
    #[arg(long, value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat task events task-001\n  jurat task events task-001 --after 20 --limit 100\n  jurat task events task-001 --follow --json\n\nWith --follow each event is printed as it happens, until the task ends; with --json each is one\nline."
)]
pub(crate) struct TaskEvents {
    pub(crate) id: String,
    /// Starts behind the event with this number
    #[arg(long, value_name = "NUMBER")]
    pub(crate) after: Option<u64>,
    /// How many events are printed at the most
    #[arg(long, value_name = "NUMBER", conflicts_with = "follow")]
    pub(crate) limit: Option<u32>,
    /// Goes on until the task ends
    #[arg(long)]
    pub(crate) follow: bool,
}

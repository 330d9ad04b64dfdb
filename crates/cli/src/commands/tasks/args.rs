//! `jurat task`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::ListArgs;

const SUBMIT_EXAMPLES: &str = "\
Examples:
  jurat task sample > contract.json
  jurat task submit contract.json
  jurat task submit contract.json --executor alpha --executor beta --expires-in 600
  jurat task submit --file contract.json --task-id task-2 --json

The server carries out the task; `jurat task watch` follows it. If no server is running, the task
waits for the next start or for `jurat task watch`.";

const RUN_EXAMPLES: &str = "\
Examples:
  jurat task run --executor my-runtime
  jurat task run --file contract.json --executor alpha --executor beta --verifier gamma
  jurat task run --file contract.json --expires-in 600 --gate || echo stopped with $?

Without --file, the contract of `jurat task sample` is used.
With --gate the exit code is 11 if the task failed, and 12 if it expired or was cancelled.";

const RUN_REAL_EXAMPLES: &str = "\
Examples:
  jurat task run-real --executor my-runtime --profile default --task-id task-001
  jurat task run-real --executor my-runtime --file contract.json

Like `jurat task run`, but the exit code is 1 if the task ends without a decision.
With --gate it is 11 if the task failed, and 12 if it expired or was cancelled.";

#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// Submit a task for the server to carry out
    Submit(SubmitTaskArgs),
    /// Submit a task, follow it to its end and print the decision
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunTaskArgs),
    /// Like `run`, but exit with 1 if there is no decision
    #[command(name = "run-real", after_help = RUN_REAL_EXAMPLES)]
    RunReal(RunTaskArgs),
    /// Follow a task until it ends
    #[command(
        after_help = "Examples:\n  jurat task watch task-001\n  jurat task watch task-001 --gate\n\nWith --gate the exit code is 11 if the task failed, and 12 if it expired or was cancelled."
    )]
    Watch(TaskNameArgs),
    /// Print the decision of a task
    #[command(
        after_help = "Examples:\n  jurat task decision task-001\n  jurat task decision task-001 --json\n\nWith --gate the exit code is 11 if the task failed, and 12 if it has no decision."
    )]
    Decision(TaskNameArgs),
    /// List tasks, newest first
    List(ListTasksArgs),
    /// Show a task with its executors, candidates, votes and budget
    #[command(
        after_help = "Examples:\n  jurat task show task-001\n  jurat task show task-001 --json"
    )]
    Show { id: String },
    /// Cancel a task
    #[command(
        after_help = "Examples:\n  jurat task cancel task-001\n  jurat task cancel task-001 --reason 'asked twice'"
    )]
    Cancel {
        id: String,
        /// Reason, recorded with the task
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Idempotency key: safe to retry
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Start the next epoch of a continuous task
    #[command(
        name = "next-epoch",
        after_help = "Examples:\n  jurat task next-epoch task-001\n\nThe task must be CONTINUOUS, and the decision of its last epoch must be final."
    )]
    NextEpoch {
        id: String,
        /// Idempotency key: safe to retry
        #[arg(long, value_name = "KEY")]
        idempotency_key: Option<String>,
    },
    /// Dispute a decision before it is settled
    Complain(ComplainArgs),
    /// Print the events of a task, oldest first
    Events(TaskEventsArgs),
    /// Print a sample contract
    #[command(
        after_help = "Examples:\n  jurat task sample > contract.json\n  jurat task sample --task-id task-001"
    )]
    Sample {
        /// Id of the task [default: random]
        #[arg(long, value_name = "ID")]
        task_id: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SUBMIT_EXAMPLES)]
pub(crate) struct SubmitTaskArgs {
    /// File with the contract; `-` reads standard input
    #[arg(value_name = "FILE", conflicts_with = "file")]
    pub(crate) contract: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) order: TaskOrderArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunTaskArgs {
    #[command(flatten)]
    pub(crate) order: TaskOrderArgs,
    /// Exit with 11 if the task failed, or 12 if it ended without a decision for another reason
    #[arg(long)]
    pub(crate) gate: bool,
}

/// The contract to submit, and the executors that work on it.
#[derive(Debug, Args)]
pub(crate) struct TaskOrderArgs {
    /// File with the contract; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Executor that may propose, and vote if there is no --verifier; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Vec<String>,
    /// Executor that votes; repeatable [default: those of --executor]
    #[arg(long, value_name = "NAME")]
    pub(crate) verifier: Vec<String>,
    /// Profile that the executors use [default: default]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Id of the task, instead of the one in the contract
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,
    /// Expire after this many seconds instead of at the contract's `expiry_ms`
    #[arg(long, value_name = "SECONDS")]
    pub(crate) expires_in: Option<u64>,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat task complain task-001 --reason 'the river is the Rhone'\n  jurat task complain task-001 --epoch 2 --reason wrong --timestamp 1790000600000 --signature 5f0c…\n\nIf the contract names an authority's key, sign the text `ACCOUNT|TASK|EPOCH|BAD|REASON|TIMESTAMP`\nwith Ed25519; without a signature the error shows the exact text. A disputed decision is not reused\nand settles as bad."
)]
pub(crate) struct ComplainArgs {
    pub(crate) id: String,
    /// Why the decision is wrong
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Epoch of the decision, for a continuous task [default: the newest]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epoch: Option<u64>,
    /// Time of the signature, in milliseconds since 1970
    #[arg(long, value_name = "MILLISECONDS", requires = "signature")]
    pub(crate) timestamp: Option<u64>,
    /// Signature by the key that the contract names, in hex
    #[arg(long, value_name = "HEX", requires = "timestamp")]
    pub(crate) signature: Option<String>,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskNameArgs {
    pub(crate) id: String,
    /// Exit with 11 if the task failed, or 12 if it has no decision for another reason
    #[arg(long)]
    pub(crate) gate: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat task list\n  jurat task list --state failed --limit 10\n  jurat task list --task-type swarm --json"
)]
pub(crate) struct ListTasksArgs {
    /// Only tasks in this state
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(
        jurat_core::task::TaskPhase::ALL.iter().map(|phase| phase.as_str())
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
    after_help = "Examples:\n  jurat task events task-001\n  jurat task events task-001 --after 20 --limit 100\n  jurat task events task-001 --follow --json\n\nWith --follow, events are printed as they happen until the task ends; with --json, one per line."
)]
pub(crate) struct TaskEventsArgs {
    pub(crate) id: String,
    /// Start after the event with this number
    #[arg(long, value_name = "NUMBER")]
    pub(crate) after: Option<u64>,
    /// Maximum number of events
    #[arg(long, value_name = "NUMBER", conflicts_with = "follow")]
    pub(crate) limit: Option<u32>,
    /// Continue until the task ends
    #[arg(long)]
    pub(crate) follow: bool,
}

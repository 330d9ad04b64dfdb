//! `jurat executors` and `jurat sessions`.

use clap::{Args, Subcommand};

use crate::args::ListArgs;

const ADD_EXAMPLES: &str = "\
Examples:
  jurat executors add my-runtime http://127.0.0.1:8787
  jurat executors add careful https://model.example.com --token-env CAREFUL_TOKEN --tier oracle
  jurat executors add swarm http://127.0.0.1:8788 --task-type delegate=swarm
  jurat executors add lanes http://127.0.0.1:8789 --no-session
  jurat executors add later http://127.0.0.1:8790 --no-check
  jurat executors add far http://127.0.0.1:8787 --remote --target-node 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c

A session with the same name is added too, so rounds can use the executor immediately; with
`--no-session`, add sessions yourself with `jurat sessions add`. An executor that does not answer is
not registered, and the exit code is 1; `--no-check` registers it anyway.

With `--remote`, the executor belongs to another node, which must be a trusted peer. The URL is that
of the executor as its own node knows it: `jurat node offers ID` lists what a node lends.";

#[derive(Debug, Subcommand)]
pub(crate) enum ExecutorsCommand {
    /// Register an executor and print its capabilities
    Add(Box<AddExecutorArgs>),
    /// List executors
    #[command(after_help = "Examples:\n  jurat executors list\n  jurat executors list --json")]
    List(ListArgs),
    /// Show an executor
    #[command(after_help = "Examples:\n  jurat executors show my-runtime")]
    Show { name: String },
    /// Probe an executor's health and capabilities; exit with 1 if it is unhealthy
    #[command(after_help = "Examples:\n  jurat executors check my-runtime")]
    Check { name: String },
    /// Remove an executor and its sessions
    #[command(after_help = "Examples:\n  jurat executors remove my-runtime")]
    Remove { name: String },
}

#[derive(Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct AddExecutorArgs {
    pub(crate) name: String,
    /// Base URL, under which `/health`, `/capabilities`, `/execute` and `/verify` are served
    pub(crate) url: String,
    /// Environment variable of the server with the executor's bearer token
    #[arg(long, value_name = "VAR")]
    pub(crate) token_env: Option<String>,
    /// Base URL of the `/agent-events` endpoint that receives task events
    #[arg(long, visible_alias = "agent-event-callback-base-url", value_name = "URL")]
    pub(crate) agent_events_url: Option<String>,
    /// Register the executor even if it does not answer
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Do not add a session
    #[arg(long, conflicts_with_all = ["profile", "tier", "label", "task_type", "price_micros", "reliability"])]
    pub(crate) no_session: bool,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

/// Where an executor of another node is.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// The executor belongs to another node, which calls it for this one
    #[arg(long)]
    pub(crate) remote: bool,
    /// Node of a remote executor: the id of a trusted peer
    #[arg(long, value_name = "ID")]
    pub(crate) target_node: Option<String>,
    /// Part of the network in which a remote executor is: `global`, `region:NAME`, `group:NAME` or
    /// `node:ID`
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Option<String>,
}

/// Properties of a session besides its name and executor.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// Profile that the executor should use
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Tier of the session
    #[arg(long, value_parser = ["fast", "safe", "oracle"])]
    pub(crate) tier: Option<String>,
    /// Label that pools and policies select by; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// The executor's own name for a task type, such as `delegate=swarm`; repeatable
    #[arg(long, value_name = "OURS=THEIRS", value_parser = pair)]
    pub(crate) task_type: Vec<(String, String)>,
    /// Price per call, in millionths of a credit
    #[arg(long, value_name = "N")]
    pub(crate) price_micros: Option<u64>,
    /// How often the session is right, from 0.01 to 0.99 [default: the tier's assumption]
    #[arg(long, value_name = "SHARE")]
    pub(crate) reliability: Option<f64>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((ours, theirs)) if !ours.is_empty() && !theirs.is_empty() => {
            Ok((ours.to_owned(), theirs.to_owned()))
        }
        Some(_) | None => Err("write it like `delegate=swarm`".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Add a session to an executor
    Add(AddSessionArgs),
    /// List sessions
    #[command(after_help = "Examples:\n  jurat sessions list\n  jurat sessions list --json")]
    List(ListArgs),
    /// Show a session
    #[command(after_help = "Examples:\n  jurat sessions show 201")]
    Show { id: String },
    /// Remove a session
    #[command(after_help = "Examples:\n  jurat sessions remove 201")]
    Remove { id: String },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat sessions add 201 --executor my-runtime\n  jurat sessions add 202 --executor my-runtime --profile careful --tier safe --label heavy"
)]
pub(crate) struct AddSessionArgs {
    pub(crate) id: String,
    /// Executor of the session
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: String,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

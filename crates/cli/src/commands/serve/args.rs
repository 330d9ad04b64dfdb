//! `jurat serve` and `jurat runtime`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jurat_core::account::ledger;
use jurat_runtime::{NodePublicKey, Range, engines::EchoMode};

use crate::settings::LISTEN;

const SERVE_EXAMPLES: &str = "\
Examples:
  jurat serve
  jurat --state-dir /var/lib/jurat serve --listen 0.0.0.0:5872 --log-format json
  jurat serve --node-listen 0.0.0.0:5873
  JURAT_STORE=postgres://app@db/jurat JURAT_MIGRATE_URL=postgres://owner@db/jurat jurat serve

The first start writes `admin.key` to the state folder. A node that joins a PostgreSQL database that
already has an operator's key does not: copy the file, or add `--new-admin-key`. On SIGTERM or
Ctrl-C the server finishes the rounds in progress and stops; a second signal stops it immediately.";

const RUNTIME_EXAMPLES: &str = "\
Examples:
  jurat runtime --engine echo
  jurat runtime --listen 127.0.0.1:8788 --engine echo --mode lie --model-id liar-1
  jurat runtime --engine openai --base-url http://127.0.0.1:11434/v1 --model llama3.2
  jurat runtime --engine command --task-types delegate -- ./answer.py --fast

Then register it:
  jurat executors add my-runtime http://127.0.0.1:8787";

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0 picks a free port [env: `JURAT_LISTEN`] [default:
    /// 127.0.0.1:5872]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Addresses to listen on for other nodes, separated by commas; without it and other settings
    /// of `node`, for none [env: `JURAT_NODE_LISTEN`]
    #[arg(long, value_name = "ADDRESSES")]
    pub(crate) node_listen: Option<String>,
    /// PostgreSQL URL of the role that owns and migrates the tables
    /// [env: `JURAT_MIGRATE_URL`]
    #[arg(long, value_name = "URL")]
    pub(crate) migrate_url: Option<String>,
    /// Log format on standard error [env: `JURAT_LOG_FORMAT`] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) log_format: Option<String>,
    /// Create an additional operator's key and write it to `admin.key`
    #[arg(long)]
    pub(crate) new_admin_key: bool,
}

/// A host or an address, and a port. Names are looked up later.
fn address(text: &str) -> Result<String, String> {
    LISTEN.parse(text).map_err(|_| format!("write {}", LISTEN.expects()))
}

/// An amount of US dollars, in millionths.
fn price(text: &str) -> Result<u64, String> {
    let micros = ledger::micros(text).and_then(|micros| u64::try_from(micros).ok());
    micros.ok_or_else(|| "write an amount of US dollars such as 1.25".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = RUNTIME_EXAMPLES)]
pub(crate) struct RuntimeArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Engine that does the work
    #[arg(long, value_enum, default_value_t = EngineNameArg::Echo)]
    pub(crate) engine: EngineNameArg,
    /// Behaviour of the echo engine: honest, lie, hang or fail [default: honest]
    #[arg(long)]
    pub(crate) mode: Option<EchoMode>,
    /// Provider that the answers are attributed to [default: `jurat-` and the engine]
    #[arg(long, value_name = "NAME")]
    pub(crate) provider_family: Option<String>,
    /// Model or version that the answers are attributed to [default: the model, program or mode]
    #[arg(long, value_name = "NAME")]
    pub(crate) model_id: Option<String>,
    /// Profiles that sessions can request; `*` accepts any
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "NAMES")]
    pub(crate) profiles: Vec<String>,
    /// Task types to accept; `*` accepts any
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "NAMES")]
    pub(crate) task_types: Vec<String>,
    /// Reply in the format of another kernel
    #[arg(long, value_enum)]
    pub(crate) compat: Option<CompatArg>,
    /// Environment variable with the bearer token that callers must send
    #[arg(long, value_name = "VAR")]
    pub(crate) token_env: Option<String>,
    /// Private address ranges to allow evidence from, such as `10.0.0.0/8` [default: public only]
    #[arg(long, value_delimiter = ',', value_name = "RANGES")]
    pub(crate) evidence_allow: Vec<Range>,
    /// Base URL of the model API, for `--engine openai` [default: `https://api.openai.com/v1`]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Name of the model, for `--engine openai`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Environment variable with the API key of the model, for `--engine openai`
    #[arg(long, value_name = "VAR")]
    pub(crate) key_env: Option<String>,
    /// Price of a million input tokens in US dollars, such as 1.25, for `--engine openai`; adds the
    /// cost to the trace of each answer
    #[arg(long, value_name = "USD", value_parser = price, requires = "output_price")]
    pub(crate) input_price: Option<u64>,
    /// Price of a million output tokens in US dollars, for `--engine openai`
    #[arg(long, value_name = "USD", value_parser = price, requires = "input_price")]
    pub(crate) output_price: Option<u64>,
    /// Environment variable to pass to the program of `--engine command`; repeatable
    #[arg(long, value_name = "VAR")]
    pub(crate) pass_env: Vec<String>,
    /// Pass agent events to the program of `--engine command` too, as the endpoint `agent_event`
    #[arg(long)]
    pub(crate) hear_events: bool,
    /// Public key of a node, as printed by `jurat node`: accept only agent events signed by it;
    /// repeatable
    #[arg(long, value_name = "KEY")]
    pub(crate) node_key: Vec<NodePublicKey>,
    /// Log format on standard error [env: `JURAT_LOG_FORMAT`] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) log_format: Option<String>,
    /// Program of `--engine command`, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineNameArg {
    /// Repeat the prompt; understands whole-number arithmetic
    Echo,
    /// Run a local program for each request
    Command,
    /// Call a model with an OpenAI-compatible API
    #[value(name = "openai")]
    OpenAi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompatArg {
    #[value(name = "wattswarm")]
    WattSwarm,
}

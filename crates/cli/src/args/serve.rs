//! `jurat serve` and `jurat runtime`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use jurat_core::ledger;
use jurat_runtime::{NodeKey, Range, engines::EchoMode};

use crate::settings::LISTEN;

const SERVE_EXAMPLES: &str = "\
Examples:
  jurat serve
  jurat --state-dir /var/lib/jurat serve --listen 0.0.0.0:5872 --log-format json
  JURAT_STORE=postgres://app@db/jurat JURAT_MIGRATE_URL=postgres://owner@db/jurat jurat serve

The first start writes `admin.key` into the state folder. A node that joins a PostgreSQL
database with an operator's key writes none; copy the file, or add `--new-admin-key`. SIGTERM and ctrl-c end the server when
the rounds under way have ended; a second one ends it at once.";

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
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes a free one [env: `JURAT_LISTEN`] [default: 127.0.0.1:5872]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// PostgreSQL address of the role that owns the tables and migrates them
    /// [env: `JURAT_MIGRATE_URL`]
    #[arg(long, value_name = "URL")]
    pub(crate) migrate_url: Option<String>,
    /// Form of the log on standard error [env: `JURAT_LOG_FORMAT`] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) log_format: Option<String>,
    /// Write a new operator's key to `admin.key`, beside those that the store knows
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
pub(crate) struct Runtime {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// What does the work
    #[arg(long, value_enum, default_value_t = EngineName::Echo)]
    pub(crate) engine: EngineName,
    /// How the echo engine behaves: honest, lie, hang or fail; by default honest
    #[arg(long)]
    pub(crate) mode: Option<EchoMode>,
    /// Who stands behind the answers; by default `jurat-` and the engine
    #[arg(long, value_name = "NAME")]
    pub(crate) provider_family: Option<String>,
    /// The model or version; by default the model, the program or the mode
    #[arg(long, value_name = "NAME")]
    pub(crate) model_id: Option<String>,
    /// Profiles that sessions may ask for; `*` takes any
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "NAMES")]
    pub(crate) profiles: Vec<String>,
    /// Task types that are taken; `*` takes any
    #[arg(long, value_delimiter = ',', default_value = "*", value_name = "NAMES")]
    pub(crate) task_types: Vec<String>,
    /// Answers in the way another kernel wants them
    #[arg(long, value_enum)]
    pub(crate) compat: Option<Compat>,
    /// Environment variable with the bearer token that callers must send
    #[arg(long, value_name = "VAR")]
    pub(crate) token_env: Option<String>,
    /// Private ranges from which evidence may be fetched, such as `10.0.0.0/8`; without it only public addresses
    #[arg(long, value_delimiter = ',', value_name = "RANGES")]
    pub(crate) evidence_allow: Vec<Range>,
    /// Address of the model's API, for `--engine openai`; by default `https://api.openai.com/v1`
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Name of the model, for `--engine openai`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Environment variable with the key of the model's API, for `--engine openai`
    #[arg(long, value_name = "VAR")]
    pub(crate) key_env: Option<String>,
    /// What a million tokens that the model reads cost in US dollars, such as 1.25, for
    /// `--engine openai`; with it the trace of an answer says what it cost
    #[arg(long, value_name = "USD", value_parser = price, requires = "output_price")]
    pub(crate) input_price: Option<u64>,
    /// What a million tokens that the model writes cost in US dollars, for `--engine openai`
    #[arg(long, value_name = "USD", value_parser = price, requires = "input_price")]
    pub(crate) output_price: Option<u64>,
    /// Environment variable that the program of `--engine command` may see; may be given again
    #[arg(long, value_name = "VAR")]
    pub(crate) pass_env: Vec<String>,
    /// Tells the program of `--engine command` of agent events too, as the endpoint `agent_event`
    #[arg(long)]
    pub(crate) hear_events: bool,
    /// Public key of a node, as `jurat node` shows it: only agent events that it signed are taken; may
    /// be given again
    #[arg(long, value_name = "KEY")]
    pub(crate) node_key: Vec<NodeKey>,
    /// Form of the log on standard error [env: `JURAT_LOG_FORMAT`] [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub(crate) log_format: Option<String>,
    /// The program of `--engine command`, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// Repeats the prompt and knows whole-number arithmetic
    Echo,
    /// Runs a local program for each request
    Command,
    /// Asks a model behind an OpenAI-compatible API
    #[value(name = "openai")]
    OpenAi,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    #[value(name = "wattswarm")]
    WattSwarm,
}

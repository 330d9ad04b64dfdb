//! `jurat agent-events`.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use jurat_core::agent_event::{Delivery, EventType};

use super::ListArgs;

const SEND_EXAMPLES: &str = "\
Examples:
  jurat agent-events send --executor my-runtime --type dm_received --payload '{\"content\": \"hello\"}'
  jurat agent-events send --executor my-runtime --type dm_received --payload-file letter.json --dedupe-key letter-17

The executor must be registered with `--agent-events-url`. The server tells it; without a server it
is told when one runs.";

#[derive(Debug, Subcommand)]
pub(crate) enum AgentEvents {
    /// Lists what executors are told, newest first
    List(ListAgentEvents),
    /// Shows one event, how far the telling has come, and what the executor decided
    #[command(
        after_help = "Examples:\n  jurat agent-events show 0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70"
    )]
    Show { id: String },
    /// Sends an executor an event
    Send(SendAgentEvent),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat agent-events list\n  jurat agent-events list --state failed --executor my-runtime\n  jurat agent-events list --json"
)]
pub(crate) struct ListAgentEvents {
    /// Only events that stand so
    #[arg(long, value_parser = PossibleValuesParser::new(Delivery::ALL.iter().map(|it| it.as_str())))]
    pub(crate) state: Option<String>,
    /// Only events to this executor
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Option<String>,
    /// Only events that the executor asks a person to look at
    #[arg(long)]
    pub(crate) needs_review: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SEND_EXAMPLES)]
pub(crate) struct SendAgentEvent {
    /// The executor that is told
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: String,
    /// What happened
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(
        EventType::ALL.iter().filter(|it| it.is_sendable()).map(|it| it.as_str())
    ))]
    pub(crate) event_type: String,
    /// What the event says, as JSON
    #[arg(long, value_name = "JSON", required_unless_present = "payload_file")]
    pub(crate) payload: Option<String>,
    /// File with what the event says; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    pub(crate) payload_file: Option<PathBuf>,
    /// Says that somebody waits for a decision
    #[arg(long)]
    pub(crate) requires_decision: bool,
    /// The same key for the same executor is the same event
    #[arg(long, value_name = "KEY")]
    pub(crate) dedupe_key: Option<String>,
    /// Which conversation it belongs to
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// Which node it comes from
    #[arg(long, value_name = "ID")]
    pub(crate) source_node: Option<String>,
    /// Which agent of the executor it is for
    #[arg(long, value_name = "ID")]
    pub(crate) target_agent: Option<String>,
}

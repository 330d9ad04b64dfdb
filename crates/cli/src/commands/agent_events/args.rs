//! `jurat agent-events`.

use std::path::PathBuf;

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use jurat_core::task::agent_event::{AgentEventType, Delivery};

use crate::args::ListArgs;

const SEND_EXAMPLES: &str = "\
Examples:
  jurat agent-events send --executor my-runtime --type dm_received --payload '{\"content\": \"hello\"}'
  jurat agent-events send --executor my-runtime --type dm_received --payload-file letter.json --dedupe-key letter-17

The executor must be registered with `--agent-events-url`. The server delivers the event; if no
server is running, the event waits for the next start.";

#[derive(Debug, Subcommand)]
pub(crate) enum AgentEventsCommand {
    /// List the events sent to executors, newest first
    List(ListAgentEventsArgs),
    /// Show an event, its delivery state and the executor's decision
    #[command(
        after_help = "Examples:\n  jurat agent-events show 0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70"
    )]
    Show { id: String },
    /// Send an event to an executor
    Send(SendAgentEventArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat agent-events list\n  jurat agent-events list --state failed --executor my-runtime\n  jurat agent-events list --json"
)]
pub(crate) struct ListAgentEventsArgs {
    /// Only events in this delivery state
    #[arg(long, value_parser = PossibleValuesParser::new(Delivery::ALL.iter().map(|it| it.as_str())))]
    pub(crate) state: Option<String>,
    /// Only events for this executor
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: Option<String>,
    /// Only events that the executor marked for review by a person
    #[arg(long)]
    pub(crate) needs_review: bool,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
#[command(after_help = SEND_EXAMPLES)]
pub(crate) struct SendAgentEventArgs {
    /// Executor to send the event to
    #[arg(long, value_name = "NAME")]
    pub(crate) executor: String,
    /// Type of the event
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(
        AgentEventType::ALL.iter().filter(|it| it.is_sendable()).map(|it| it.as_str())
    ))]
    pub(crate) event_type: String,
    /// Payload of the event, as JSON
    #[arg(long, value_name = "JSON", required_unless_present = "payload_file")]
    pub(crate) payload: Option<String>,
    /// File with the payload; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    pub(crate) payload_file: Option<PathBuf>,
    /// Mark the event as waiting for a decision
    #[arg(long)]
    pub(crate) requires_decision: bool,
    /// Deduplication key: each executor gets one event per key
    #[arg(long, value_name = "KEY")]
    pub(crate) dedupe_key: Option<String>,
    /// Conversation that the event belongs to
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// Node that the event comes from
    #[arg(long, value_name = "ID")]
    pub(crate) source_node: Option<String>,
    /// Agent of the executor that the event is for
    #[arg(long, value_name = "ID")]
    pub(crate) target_agent: Option<String>,
}

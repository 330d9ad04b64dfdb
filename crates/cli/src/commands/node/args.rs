//! `jurat node`.

use std::net::SocketAddr;

use clap::{Args, Subcommand};

use crate::args::ListArgs;

const NODE_EXAMPLES: &str = "\
Examples:
  jurat node
  jurat --state-dir /var/lib/jurat node --json
  jurat node status

Without a subcommand, prints the public key with which this node signs. It reads `node.key` in the
state folder, so no server needs to be running.";

const ID_EXAMPLES: &str = "\
Examples:
  jurat node id
  jurat --state-dir /var/lib/jurat node id

Reads `node.key` in the state folder; no server needs to be running.";

const INVITE_EXAMPLES: &str = "\
Examples:
  jurat node invite
  jurat node invite --name lab --valid-seconds 600
  jurat node invite --no-hire --concurrent-jobs 2 --task-type validate

The ticket is a secret: whoever has it becomes a trusted peer, once. Pass it to the operator of the
other node, who runs `jurat node join TICKET` there.";

const JOIN_EXAMPLES: &str = "\
Examples:
  jurat node join jurataahmqzd4kexample
  jurat node join - --name lab

`-` reads the ticket from standard input, so that other users of this machine do not see it.";

const TRUST_EXAMPLES: &str = "\
Examples:
  jurat node trust 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c --address 192.0.2.8:5873
  jurat node trust 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c --no-hire --concurrent-jobs 2

Trust holds in one direction: the other node must trust this one, too. Terms that are left out have
their defaults, also for a node that is trusted already; its name and its addresses stay.";

#[derive(Debug, Args)]
#[command(after_help = NODE_EXAMPLES)]
pub(crate) struct NodeArgs {
    #[command(subcommand)]
    pub(crate) command: Option<NodeCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Print the id of this node: its public key
    #[command(after_help = ID_EXAMPLES)]
    Id,
    /// Show where other nodes reach this one, and how many it trusts
    #[command(after_help = "Examples:\n  jurat node status\n  jurat node status --json")]
    Status,
    /// Write an invitation for another node, and print its ticket
    #[command(after_help = INVITE_EXAMPLES)]
    Invite(InviteNodeArgs),
    /// Take an invitation of another node; both trust each other afterwards
    #[command(after_help = JOIN_EXAMPLES)]
    Join(JoinNodeArgs),
    /// List the nodes that this one trusts or blocks
    #[command(after_help = "Examples:\n  jurat node peers\n  jurat node peers --json")]
    Peers(ListArgs),
    /// Show a peer and its terms
    #[command(
        after_help = "Examples:\n  jurat node show 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    )]
    Show { id: String },
    /// Trust a node, or change its terms
    #[command(after_help = TRUST_EXAMPLES)]
    Trust(TrustNodeArgs),
    /// Block a node; its connections end at once
    #[command(
        after_help = "Examples:\n  jurat node block 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    )]
    Block { id: String },
    /// Forget a node; what was booked stays
    #[command(
        after_help = "Examples:\n  jurat node remove 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    )]
    Remove { id: String },
    /// Ask a peer which executors it lends to this node
    #[command(
        after_help = "Examples:\n  jurat node offers 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c"
    )]
    Offers { id: String },
    /// List the jobs that this node and a peer did for each other
    #[command(
        after_help = "Examples:\n  jurat node bookings 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c --limit 10"
    )]
    Bookings {
        id: String,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Compare the books of both nodes; exit with 1 unless they agree
    #[command(
        after_help = "Examples:\n  jurat node statement 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c\n  jurat node statement 8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c --json"
    )]
    Statement { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct InviteNodeArgs {
    /// Label of the node that will use the invitation
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// How long the invitation is valid; one hour by default
    #[arg(long, value_name = "SECONDS")]
    pub(crate) valid_seconds: Option<u64>,
    #[command(flatten)]
    pub(crate) terms: PeerTermsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JoinNodeArgs {
    /// Invitation that the other node printed; `-` reads it from standard input
    pub(crate) ticket: String,
    /// Label of the other node [default: the name that it proposes]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) terms: PeerTermsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TrustNodeArgs {
    /// Id of the node, as `jurat node id` prints it there
    pub(crate) id: String,
    /// Label of the node
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Address at which the node is reached; repeatable
    #[arg(long = "address", value_name = "ADDRESS")]
    pub(crate) addresses: Vec<SocketAddr>,
    /// Relay through which the node is reached; repeatable
    #[arg(long = "relay", value_name = "URL")]
    pub(crate) relays: Vec<String>,
    #[command(flatten)]
    pub(crate) terms: PeerTermsArgs,
}

/// The terms for another node.
#[derive(Debug, Args)]
pub(crate) struct PeerTermsArgs {
    /// Do not do jobs of the peer
    #[arg(long)]
    pub(crate) no_work: bool,
    /// Do not send jobs to the peer
    #[arg(long)]
    pub(crate) no_hire: bool,
    /// Requests of the peer that are accepted in a minute [default: 600]
    #[arg(long, value_name = "N")]
    pub(crate) requests_per_minute: Option<u32>,
    /// Jobs of the peer that are done at the same time [default: 8]
    #[arg(long, value_name = "N")]
    pub(crate) concurrent_jobs: Option<u32>,
    /// Largest payload of a job of the peer, in bytes [default: 4194304]
    #[arg(long, value_name = "N")]
    pub(crate) payload_bytes: Option<u64>,
    /// Most that the peer is paid for one job, in millionths of a credit [default: the price of the
    /// session]
    #[arg(long, value_name = "N")]
    pub(crate) most_price_micros: Option<u64>,
    /// Type of task that the peer may ask for; repeat it for several, and leave it out for all
    #[arg(long = "task-type", value_name = "TYPE")]
    pub(crate) task_types: Vec<String>,
}

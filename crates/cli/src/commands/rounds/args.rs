//! `jurat rounds`, and the flags that lists share.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum RoundsCommand {
    /// List rounds, newest first
    List(ListRoundsArgs),
    /// Show a round with the answer of each replica
    #[command(
        after_help = "Examples:\n  jurat rounds show rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F\n  jurat rounds show rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F --wait 60"
    )]
    Show {
        id: String,
        /// Wait up to this long for the round to end, at most 60 seconds
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Cancel a round; it ends without a verdict
    #[command(after_help = "Examples:\n  jurat rounds cancel rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F")]
    Cancel { id: String },
    /// Erase the question and the answers of a round; the decision stays
    #[command(after_help = "Examples:\n  jurat rounds erase rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F")]
    Erase { id: String },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat rounds list\n  jurat rounds list --kind validate --outcome split --limit 10\n  jurat rounds list --state open\n\nTimes are UTC. A narrow terminal shows fewer columns; `--json` shows all."
)]
pub(crate) struct ListRoundsArgs {
    /// Only rounds of this kind
    #[arg(long, value_parser = ["delegate", "validate", "factcheck"])]
    pub(crate) kind: Option<String>,
    /// Only rounds with this outcome
    #[arg(long, value_parser = ["agreed", "split", "abstained", "failed"])]
    pub(crate) outcome: Option<String>,
    /// Only rounds in this state
    #[arg(long, value_parser = ["open", "closed", "expired", "cancelled"])]
    pub(crate) state: Option<String>,
    /// Only rounds opened at this time or later, such as 2026-11-15T09:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only rounds opened before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Maximum number of entries [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Continue an earlier list from this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// List everything
    #[arg(long)]
    pub(crate) all: bool,
}

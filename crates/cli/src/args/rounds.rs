//! `jurat rounds`, and what lists have in common.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Rounds {
    /// Lists the rounds, newest first
    List(ListRounds),
    /// Shows one round with what each replica said
    #[command(
        after_help = "Examples:\n  jurat rounds show rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F\n  jurat rounds show rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F --wait 60"
    )]
    Show {
        id: String,
        /// Waits so long for the end of the round, up to 60 seconds
        #[arg(long, value_name = "SECONDS")]
        wait: Option<u64>,
    },
    /// Calls a round off: it ends without a verdict
    #[command(after_help = "Examples:\n  jurat rounds cancel rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F")]
    Cancel { id: String },
    /// Erases what was asked and said in a round; its decision stays
    #[command(after_help = "Examples:\n  jurat rounds erase rnd_01K9ZQ3V7M8X4T2B6N0C5D1E2F")]
    Erase { id: String },
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat rounds list\n  jurat rounds list --kind validate --outcome split --limit 10\n  jurat rounds list --state open\n\nTimes are UTC. A narrow terminal shows fewer columns; `--json` has everything."
)]
pub(crate) struct ListRounds {
    /// Only rounds of this kind
    #[arg(long, value_parser = ["delegate", "validate", "factcheck"])]
    pub(crate) kind: Option<String>,
    /// Only rounds that ended so
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
    /// How many at most [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u32>,
    /// Goes on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Lists everything, however much it is
    #[arg(long)]
    pub(crate) all: bool,
}

//! `jurat prune`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat prune --dry-run\n  jurat prune --json\n\nA server prunes every ten minutes. The settings under `storage` and `agent_events` set how long\ndata is kept. Decisions and the ledger are never deleted."
)]
pub(crate) struct PruneArgs {
    /// Only count what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
}

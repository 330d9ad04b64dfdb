//! `jurat prune`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat prune --dry-run\n  jurat prune --json\n\nA server does this by itself every ten minutes. How long what is kept, the settings under `storage` and\n`agent_events` say. Decisions and the ledger never go."
)]
pub(crate) struct Prune {
    /// Only counts what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

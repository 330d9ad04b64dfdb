//! `jurat doctor`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat doctor\n  jurat doctor --all-entries --json\n\nThe exit code is 0 when there are only warnings, and 1 when there is a problem."
)]
pub(crate) struct Doctor {
    /// Checks every recorded decision, not only the newest 10,000
    #[arg(long)]
    pub(crate) all_entries: bool,
}

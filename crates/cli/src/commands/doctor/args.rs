//! `jurat doctor`.

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat doctor\n  jurat doctor --all-entries --json\n\nThe exit code is 1 if there is a problem; warnings alone leave it at 0."
)]
pub(crate) struct DoctorArgs {
    /// Check every recorded decision, not only the newest 10,000
    #[arg(long)]
    pub(crate) all_entries: bool,
}

//! `jurat backup` and `jurat restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const BACKUP_HELP: &str = "\
Examples:
  jurat backup /backups/jurat-monday
  jurat --state-dir /var/lib/jurat backup /backups/jurat-monday --json
  jurat backup verify /backups/jurat-monday

The server can keep running: the backup holds everything that it confirmed before the backup
started. The folder also holds the keys, so protect it as you protect them. Back up a PostgreSQL
store with pg_dump.";

const RESTORE_HELP: &str = "\
Examples:
  jurat --state-dir /var/lib/jurat restore /backups/jurat-monday

The state folder must not have a store or a running server. The next start of the server marks
rounds that were in progress at the time of the backup as expired.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = BACKUP_HELP)]
pub(crate) struct BackupArgs {
    /// New folder to write the backup to
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Check a backup without restoring it
    #[command(after_help = "Examples:\n  jurat backup verify /backups/jurat-monday")]
    Verify {
        /// Folder with the backup
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = RESTORE_HELP)]
pub(crate) struct RestoreArgs {
    /// Folder with the backup
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

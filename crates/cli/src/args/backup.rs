//! `jurat backup` and `jurat restore`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const BACKUP_HELP: &str = "\
Examples:
  jurat backup /backups/jurat-monday
  jurat --state-dir /var/lib/jurat backup /backups/jurat-monday --json
  jurat backup verify /backups/jurat-monday

The server may run and write meanwhile: all that it answered before is in the backup. The folder
holds the keys as well, so keep it as you keep those. A store in PostgreSQL is backed up with
pg_dump.";

const RESTORE_HELP: &str = "\
Examples:
  jurat --state-dir /var/lib/jurat restore /backups/jurat-monday

The state folder must have no store, and no server may run in it. Rounds that were under way at the
moment of the backup are ended as expired by the next start.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = BACKUP_HELP)]
pub(crate) struct Backup {
    /// New folder to write the backup to
    #[arg(value_name = "FOLDER", required = true)]
    pub(crate) folder: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Option<BackupCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Checks a backup without putting it back
    #[command(after_help = "Examples:\n  jurat backup verify /backups/jurat-monday")]
    Verify {
        /// Folder of the backup
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = RESTORE_HELP)]
pub(crate) struct Restore {
    /// Folder of the backup
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

//! `jurat config`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting with its value and source
    #[command(
        after_help = "Examples:\n  jurat config show\n  jurat config show --json\n  jurat --config /etc/jurat.toml config show\n\nPasswords and keys are not shown."
    )]
    Show,
    /// Check a config file
    #[command(
        after_help = "Examples:\n  jurat config check\n  jurat config check /etc/jurat.toml\n\nWithout FILE it checks the file that other commands would read, and the environment."
    )]
    Check { file: Option<PathBuf> },
    /// Print a sample config file with every setting
    #[command(after_help = "Examples:\n  jurat config example > .jurat/jurat.toml")]
    Example,
}

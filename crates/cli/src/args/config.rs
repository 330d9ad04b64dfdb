//! `jurat config`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Prints every setting with its value and where that comes from
    #[command(
        after_help = "Examples:\n  jurat config show\n  jurat config show --json\n  jurat --config /etc/jurat.toml config show\n\nPasswords and keys are not shown."
    )]
    Show,
    /// Says whether a file with settings is in order
    #[command(
        after_help = "Examples:\n  jurat config check\n  jurat config check /etc/jurat.toml\n\nWithout a file it checks the one that other commands would read, with the environment."
    )]
    Check { file: Option<PathBuf> },
    /// Prints a file with every setting, to begin with
    #[command(after_help = "Examples:\n  jurat config example > .jurat/jurat.toml")]
    Example,
}

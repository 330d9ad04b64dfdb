//! `jurat keys`.

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use jurat_core::account::caller::Scope;

use crate::args::ListArgs;

const CREATE_EXAMPLES: &str = "\
Examples:
  jurat keys create ci
  jurat keys create dashboard --scope rounds:read --scope metrics:read
  jurat keys create team-a --account acct_teamA --rate-per-minute 60 --concurrent-rounds 4
  jurat keys create visitor --expires-at 2030-01-31T12:00:00Z

Standard output contains only the key, so a script can store it:
  KEY=$(jurat keys create ci --quiet)
The key is not shown again.";

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Create a key and print it once
    Create(CreateKeyArgs),
    /// List keys, including revoked and expired ones
    List(ListKeysArgs),
    /// Revoke a key immediately and permanently
    #[command(
        after_help = "Examples:\n  jurat keys revoke ci\n  jurat keys revoke ci --account acct_teamA\n\nA name revokes every key of the account with that name, including one in its grace period."
    )]
    Revoke(KeyNameArgs),
    /// Replace a key; the old one still works for a grace period
    #[command(
        after_help = "Examples:\n  jurat keys rotate ci\n  jurat keys rotate ci --grace-seconds 0\n\nThe new key has the same scopes. If the old key is in `admin.key` of the state folder, the file\nis updated."
    )]
    Rotate(RotateKeyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub(crate) struct CreateKeyArgs {
    /// Name of the key, unique among the active keys of the account
    pub(crate) name: String,
    /// Scope of the key; repeatable [default: the scopes of your own key without `admin`; for an
    /// admin, all scopes that an account needs for itself]
    #[arg(long, value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::as_str)))]
    pub(crate) scope: Vec<String>,
    /// Account of the key, created if it does not exist [default: your own]
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
    /// Requests per minute, on each node
    #[arg(long, value_name = "N")]
    pub(crate) rate_per_minute: Option<u32>,
    /// Concurrent rounds, on each node
    #[arg(long, value_name = "N")]
    pub(crate) concurrent_rounds: Option<u32>,
    /// Expiry time with time zone, such as 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat keys list\n  jurat keys list --account acct_teamA --json\n\nTimes are UTC. A narrow terminal shows fewer columns; `--json` shows all. The secrets themselves\nare not stored."
)]
pub(crate) struct ListKeysArgs {
    /// Only keys of this account
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KeyNameArgs {
    /// Id of a key of any account, or a name
    #[arg(value_name = "ID|NAME")]
    pub(crate) key: String,
    /// Account that the name belongs to [default: your own]
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RotateKeyArgs {
    #[command(flatten)]
    pub(crate) named: KeyNameArgs,
    /// Grace period of the old key [default: one day]
    #[arg(long, value_name = "N")]
    pub(crate) grace_seconds: Option<u64>,
}

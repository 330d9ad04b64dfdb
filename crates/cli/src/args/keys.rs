//! `jurat keys`.

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use jurat_core::caller::Scope;

use super::ListArgs;

const CREATE_EXAMPLES: &str = "\
Examples:
  jurat keys create ci
  jurat keys create dashboard --scope rounds:read --scope metrics:read
  jurat keys create team-a --account acct_teamA --rate-per-minute 60 --concurrent-rounds 4
  jurat keys create visitor --expires-at 2030-01-31T12:00:00Z

Standard output has the key and nothing else, so that a script can keep it:
  KEY=$(jurat keys create ci --quiet)
It is not shown again.";

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Makes a key and prints it, this once
    Create(CreateKey),
    /// Lists the keys, also those that have ended
    List(ListKeys),
    /// Revokes a key at once and for ever
    #[command(
        after_help = "Examples:\n  jurat keys revoke ci\n  jurat keys revoke ci --account acct_teamA\n\nA name means every key of the account that has it, also one that a rotation left for a while."
    )]
    Revoke(NamedKey),
    /// Makes a key that takes the place of another, which ends after a time of grace
    #[command(
        after_help = "Examples:\n  jurat keys rotate ci\n  jurat keys rotate ci --grace-seconds 0\n\nThe new key may do what the old one may. When the old one is that of `admin.key` in the state\nfolder, the file gets the new one."
    )]
    Rotate(RotateKey),
}

#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub(crate) struct CreateKey {
    /// Name of the key; of the live keys of an account only one has it
    pub(crate) name: String,
    /// What the key may do; may be given again; by default all that your own key may but `admin`, and
    /// for an admin all that an account does with its own
    #[arg(long, value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::as_str)))]
    pub(crate) scope: Vec<String>,
    /// Account that the key speaks for, made if it is not there; by default your own
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
    /// Requests that the key may send a minute, on each node
    #[arg(long, value_name = "N")]
    pub(crate) rate_per_minute: Option<u32>,
    /// Rounds that the key may have under way at a time, on each node
    #[arg(long, value_name = "N")]
    pub(crate) concurrent_rounds: Option<u32>,
    /// When the key ends, with the zone, such as 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) expires_at: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat keys list\n  jurat keys list --account acct_teamA --json\n\nTimes are UTC. A narrow terminal shows fewer columns; `--json` has everything but the secrets,\nwhich nobody has."
)]
pub(crate) struct ListKeys {
    /// Only keys of this account
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NamedKey {
    /// The identifier of a key of any account, or a name
    #[arg(value_name = "ID|NAME")]
    pub(crate) key: String,
    /// Account of the name; by default your own
    #[arg(long, value_name = "ID")]
    pub(crate) account: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RotateKey {
    #[command(flatten)]
    pub(crate) named: NamedKey,
    /// How long the old key still serves; a day by default
    #[arg(long, value_name = "N")]
    pub(crate) grace_seconds: Option<u64>,
}

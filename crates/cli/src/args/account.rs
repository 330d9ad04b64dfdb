//! `jurat admin`: credit and accounts.

use clap::{Args, Subcommand};

use super::ListArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Gives an account credit, or takes some back with a negative amount
    #[command(
        after_help = "Examples:\n  jurat admin grant acct_teamA 25\n  jurat admin grant acct_teamA 0.50 --note 'for the pilot'\n  jurat admin grant acct_teamA -5 --note 'granted twice'\n\nOne credit is one US dollar. No more can be taken back than is available."
    )]
    Grant(Grant),
    /// Has nothing done for an account that costs
    #[command(after_help = "Examples:\n  jurat admin suspend acct_teamA")]
    Suspend {
        #[arg(value_name = "ACCOUNT")]
        account: String,
    },
    /// Lifts a suspension
    #[command(after_help = "Examples:\n  jurat admin resume acct_teamA")]
    Resume {
        #[arg(value_name = "ACCOUNT")]
        account: String,
    },
    /// Lists the accounts with their credit
    #[command(after_help = "Examples:\n  jurat admin accounts\n  jurat admin accounts --json")]
    Accounts(ListArgs),
    /// Lists how the credit of an account moved, newest first
    #[command(
        after_help = "Examples:\n  jurat admin transfers --limit 20\n  jurat admin transfers --account acct_teamA"
    )]
    Transfers(Transfers),
}

#[derive(Debug, Args)]
pub(crate) struct Transfers {
    /// Account, such as `acct_teamA`; by default your own
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// Account, such as `acct_teamA`
    pub(crate) account: String,
    /// In US dollars, with at most six places
    #[arg(value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) amount: String,
    /// Why, for the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Makes it safe to repeat the command: the same key and amount are granted once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

//! `jurat admin`: credit and accounts.

use clap::{Args, Subcommand};

use crate::args::ListArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Grant credit to an account, or take some back with a negative amount
    #[command(
        after_help = "Examples:\n  jurat admin grant acct_teamA 25\n  jurat admin grant acct_teamA 0.50 --note 'for the pilot'\n  jurat admin grant acct_teamA -5 --note 'granted twice'\n\nOne credit is one US dollar. You cannot take back more than is available."
    )]
    Grant(CreditGrantArgs),
    /// Suspend an account: the server refuses its paid work
    #[command(after_help = "Examples:\n  jurat admin suspend acct_teamA")]
    Suspend {
        #[arg(value_name = "ACCOUNT")]
        account: String,
    },
    /// Lift the suspension of an account
    #[command(after_help = "Examples:\n  jurat admin resume acct_teamA")]
    Resume {
        #[arg(value_name = "ACCOUNT")]
        account: String,
    },
    /// List accounts and their credit
    #[command(after_help = "Examples:\n  jurat admin accounts\n  jurat admin accounts --json")]
    Accounts(ListArgs),
    /// List the credit transfers of an account, newest first
    #[command(
        after_help = "Examples:\n  jurat admin transfers --limit 20\n  jurat admin transfers --account acct_teamA"
    )]
    Transfers(TransfersArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Account, such as `acct_teamA` [default: your own]
    #[arg(long, value_name = "ACCOUNT")]
    pub(crate) account: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CreditGrantArgs {
    /// Account, such as `acct_teamA`
    pub(crate) account: String,
    /// Amount in US dollars, with at most six decimal places
    #[arg(value_name = "AMOUNT", allow_hyphen_values = true)]
    pub(crate) amount: String,
    /// Reason, recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

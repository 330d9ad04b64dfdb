//! `jurat auth`, `jurat me`, `jurat teams` and `jurat invitations`.

use clap::{Args, Subcommand, ValueEnum};

use super::{CreateKey, ListArgs, ListKeys, NamedKey};

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Has a code sent to an address, for a new account
    #[command(
        after_help = "Examples:\n  jurat auth register ann@example.com\n  jurat auth register-verify ann@example.com 12345678\n\nThe answer is the same for every address."
    )]
    Register(Address),
    /// Makes the account with the code from the mail, and keeps its key
    #[command(after_help = "Examples:\n  jurat auth register-verify ann@example.com 12345678")]
    RegisterVerify(MailCode),
    /// Has a code sent to the address of an account
    #[command(
        after_help = "Examples:\n  jurat auth login ann@example.com\n  jurat auth login-verify ann@example.com 12345678"
    )]
    Login(Address),
    /// Logs in with the code from the mail, and keeps the key in the state folder
    #[command(
        after_help = "Examples:\n  jurat auth login-verify ann@example.com 12345678\n\nThe key is kept in `login.key` of the state folder, for the server that it is from."
    )]
    LoginVerify(MailCode),
    /// Revokes the key that a login kept, and forgets it
    #[command(
        after_help = "Examples:\n  jurat auth logout\n\nThe key is forgotten also when its server cannot be reached; then it says so."
    )]
    Logout,
    /// Makes a key of your account and prints it, this once
    CreateKey(CreateKey),
    /// Lists the keys of your account
    ListKeys(ListKeys),
    /// Revokes a key at once and for ever
    #[command(after_help = "Examples:\n  jurat auth revoke-key laptop")]
    RevokeKey(NamedKey),
    /// Lets a program in that shows a code, for your account
    #[command(
        after_help = "Examples:\n  jurat auth approve BCDF-GHJK\n  jurat auth approve BCDF-GHJK --deny\n\nLet in only what you started yourself: it gets a key of your account."
    )]
    Approve(Approve),
}

#[derive(Debug, Args)]
pub(crate) struct Address {
    /// E-mail address
    pub(crate) email: String,
}

#[derive(Debug, Args)]
pub(crate) struct MailCode {
    /// E-mail address that the code was sent to
    pub(crate) email: String,
    /// Code from the mail
    pub(crate) code: String,
    /// Prints the key instead of keeping it in the state folder
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// What the program shows
    #[arg(value_name = "CODE")]
    pub(crate) user_code: String,
    /// Turns the program away
    #[arg(long)]
    pub(crate) deny: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Me {
    /// Says who you are: account, address, handle and key
    #[command(after_help = "Examples:\n  jurat me show\n  jurat me show --json")]
    Show,
    /// Claims the handle by which others know you
    #[command(after_help = "Examples:\n  jurat me claim-handle ann")]
    ClaimHandle(Handle),
    /// Changes your handle; the one before leads to it for 90 days
    #[command(after_help = "Examples:\n  jurat me rename-handle anna")]
    RenameHandle(Handle),
}

#[derive(Debug, Args)]
pub(crate) struct Handle {
    /// 3 to 40 small letters, digits and hyphens
    pub(crate) handle: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Teams {
    /// Makes a team, which you own
    #[command(
        after_help = "Examples:\n  jurat teams create crew\n\nA team's handle never changes."
    )]
    Create(Handle),
    /// Lists your teams
    #[command(after_help = "Examples:\n  jurat teams list\n  jurat teams list --filter mine")]
    List {
        #[arg(long, value_name = "WHICH", default_value = "all")]
        filter: TeamFilter,
    },
    /// Lists the members of a team
    #[command(after_help = "Examples:\n  jurat teams members crew")]
    Members { team: String },
    /// Invites somebody to a team that you own
    #[command(
        after_help = "Examples:\n  jurat teams add-member crew bob@example.com\n  jurat teams add-member crew @bob"
    )]
    AddMember(Membership),
    /// Takes a member out of a team that you own
    #[command(after_help = "Examples:\n  jurat teams remove-member crew @bob")]
    RemoveMember(Membership),
    /// Leaves a team
    #[command(after_help = "Examples:\n  jurat teams leave crew")]
    Leave { team: String },
    /// Offers a team that you own to somebody
    #[command(after_help = "Examples:\n  jurat teams transfer-ownership crew @bob")]
    TransferOwnership(Membership),
    /// Deletes a team that you own, with all that was granted to it
    #[command(after_help = "Examples:\n  jurat teams delete crew --yes")]
    Delete {
        team: String,
        /// Does not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TeamFilter {
    All,
    Mine,
    Member,
}

#[derive(Debug, Args)]
pub(crate) struct Membership {
    /// Handle of the team, or its id
    pub(crate) team: String,
    /// E-mail address, handle or account
    pub(crate) user: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Shares {
    /// Lists workflows that others granted to you
    #[command(after_help = "Examples:\n  jurat shares list\n  jurat shares list --state declined")]
    List(ListShares),
    /// Accepts a share, so that searches find it
    #[command(
        after_help = "Examples:\n  jurat shares accept ID\n\nReading or running what is shared by its id or as `@owner/name` accepts it too."
    )]
    Accept { id: String },
    /// Declines a share; whoever granted it does not learn of it
    #[command(after_help = "Examples:\n  jurat shares decline ID")]
    Decline { id: String },
    /// Declines all that the owner of a share grants to you, now and later
    #[command(
        after_help = "Examples:\n  jurat shares block ID\n\nAccept one of their shares to take it back."
    )]
    Block { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct ListShares {
    /// Only those in this state; without it, all but those declined
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<ShareStates>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ShareStates {
    Pending,
    Accepted,
    Declined,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Invitations {
    /// Lists invitations, newest first
    #[command(
        after_help = "Examples:\n  jurat invitations list\n  jurat invitations list --filter sent --state all"
    )]
    List(ListInvitations),
    /// Takes what an invitation offers
    #[command(after_help = "Examples:\n  jurat invitations accept ID")]
    Accept { id: String },
    /// Turns an invitation down
    #[command(after_help = "Examples:\n  jurat invitations decline ID")]
    Decline { id: String },
    /// Calls back an invitation that you sent
    #[command(after_help = "Examples:\n  jurat invitations cancel ID")]
    Cancel { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct ListInvitations {
    #[arg(long, value_name = "WHICH", default_value = "received")]
    pub(crate) filter: InvitationFilter,
    #[arg(long, value_name = "STATE", default_value = "pending")]
    pub(crate) state: InvitationState,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InvitationFilter {
    Received,
    Sent,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InvitationState {
    Pending,
    All,
}

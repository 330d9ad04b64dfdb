//! `jurat auth`, `jurat me`, `jurat teams` and `jurat invitations`.

use clap::{Args, Subcommand, ValueEnum};

use super::{CreateKey, ListArgs, ListKeys, NamedKey};

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Send a code by e-mail to register a new account
    #[command(
        after_help = "Examples:\n  jurat auth register ann@example.com\n  jurat auth register-verify ann@example.com 12345678\n\nThe reply is the same for every address."
    )]
    Register(Address),
    /// Create the account with the code from the mail, and store its key
    #[command(after_help = "Examples:\n  jurat auth register-verify ann@example.com 12345678")]
    RegisterVerify(MailCode),
    /// Send a login code to the e-mail address of an account
    #[command(
        after_help = "Examples:\n  jurat auth login ann@example.com\n  jurat auth login-verify ann@example.com 12345678"
    )]
    Login(Address),
    /// Log in with the code from the mail, and store the key in the state folder
    #[command(
        after_help = "Examples:\n  jurat auth login-verify ann@example.com 12345678\n\nThe key is stored in `login.key` of the state folder, and used for that server only."
    )]
    LoginVerify(MailCode),
    /// Revoke and delete the key of the current login
    #[command(
        after_help = "Examples:\n  jurat auth logout\n\nThe local key is deleted even if the server cannot be reached to revoke it; a warning says so."
    )]
    Logout,
    /// Create a key of your account and print it once
    CreateKey(CreateKey),
    /// List the keys of your account
    ListKeys(ListKeys),
    /// Revoke a key immediately and permanently
    #[command(after_help = "Examples:\n  jurat auth revoke-key laptop")]
    RevokeKey(NamedKey),
    /// Approve a program that shows a code, for your account
    #[command(
        after_help = "Examples:\n  jurat auth approve BCDF-GHJK\n  jurat auth approve BCDF-GHJK --deny\n\nApprove only programs that you started yourself: they get a key of your account."
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
    /// Print the key instead of storing it in the state folder
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Code that the program shows
    #[arg(value_name = "CODE")]
    pub(crate) user_code: String,
    /// Deny access
    #[arg(long)]
    pub(crate) deny: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Me {
    /// Show your account, e-mail address, handle and key
    #[command(after_help = "Examples:\n  jurat me show\n  jurat me show --json")]
    Show,
    /// Claim a handle
    #[command(after_help = "Examples:\n  jurat me claim-handle ann")]
    ClaimHandle(Handle),
    /// Change your handle; the old one redirects for 90 days
    #[command(after_help = "Examples:\n  jurat me rename-handle anna")]
    RenameHandle(Handle),
}

#[derive(Debug, Args)]
pub(crate) struct Handle {
    /// 3 to 40 lowercase letters, digits and hyphens
    pub(crate) handle: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Teams {
    /// Create a team, with you as the owner
    #[command(
        after_help = "Examples:\n  jurat teams create crew\n\nA team's handle never changes."
    )]
    Create(Handle),
    /// List your teams
    #[command(after_help = "Examples:\n  jurat teams list\n  jurat teams list --filter mine")]
    List {
        #[arg(long, value_name = "WHICH", default_value = "all")]
        filter: TeamFilter,
    },
    /// List the members of a team
    #[command(after_help = "Examples:\n  jurat teams members crew")]
    Members { team: String },
    /// Invite a user to a team that you own
    #[command(
        after_help = "Examples:\n  jurat teams add-member crew bob@example.com\n  jurat teams add-member crew @bob"
    )]
    AddMember(Membership),
    /// Remove a member from a team that you own
    #[command(after_help = "Examples:\n  jurat teams remove-member crew @bob")]
    RemoveMember(Membership),
    /// Leave a team
    #[command(after_help = "Examples:\n  jurat teams leave crew")]
    Leave { team: String },
    /// Offer a team that you own to another user
    #[command(after_help = "Examples:\n  jurat teams transfer-ownership crew @bob")]
    TransferOwnership(Membership),
    /// Delete a team that you own, and everything granted to it
    #[command(after_help = "Examples:\n  jurat teams delete crew --yes")]
    Delete {
        team: String,
        /// Skip confirmation
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
    /// List workflows shared with you
    #[command(after_help = "Examples:\n  jurat shares list\n  jurat shares list --state declined")]
    List(ListShares),
    /// Accept a share, so that searches include it
    #[command(
        after_help = "Examples:\n  jurat shares accept ID\n\nUsing a shared workflow by id or as `@owner/name` also accepts the share."
    )]
    Accept { id: String },
    /// Decline a share; the owner is not notified
    #[command(after_help = "Examples:\n  jurat shares decline ID")]
    Decline { id: String },
    /// Block the owner of a share: decline all their current and future shares
    #[command(
        after_help = "Examples:\n  jurat shares block ID\n\nTo unblock the owner, accept one of their shares."
    )]
    Block { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct ListShares {
    /// Only shares in this state [default: all but declined]
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
    /// List invitations, newest first
    #[command(
        after_help = "Examples:\n  jurat invitations list\n  jurat invitations list --filter sent --state all"
    )]
    List(ListInvitations),
    /// Accept an invitation
    #[command(after_help = "Examples:\n  jurat invitations accept ID")]
    Accept { id: String },
    /// Decline an invitation
    #[command(after_help = "Examples:\n  jurat invitations decline ID")]
    Decline { id: String },
    /// Cancel an invitation that you sent
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

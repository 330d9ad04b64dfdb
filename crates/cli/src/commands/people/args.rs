//! `jurat auth`, `jurat me`, `jurat teams` and `jurat invitations`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::{CreateKeyArgs, KeyNameArgs, ListArgs, ListKeysArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Send a code by e-mail to register a new account
    #[command(
        after_help = "Examples:\n  jurat auth register ann@example.com\n  jurat auth register-verify ann@example.com 12345678\n\nThe reply is the same for every address."
    )]
    Register(EmailArgs),
    /// Create the account with the code from the mail, and store its key
    #[command(after_help = "Examples:\n  jurat auth register-verify ann@example.com 12345678")]
    RegisterVerify(MailCodeArgs),
    /// Send a login code to the e-mail address of an account
    #[command(
        after_help = "Examples:\n  jurat auth login ann@example.com\n  jurat auth login-verify ann@example.com 12345678"
    )]
    Login(EmailArgs),
    /// Log in with the code from the mail, and store the key in the state folder
    #[command(
        after_help = "Examples:\n  jurat auth login-verify ann@example.com 12345678\n\nThe key is stored in `login.key` of the state folder, and used for that server only."
    )]
    LoginVerify(MailCodeArgs),
    /// Revoke and delete the key of the current login
    #[command(
        after_help = "Examples:\n  jurat auth logout\n\nThe local key is deleted even if the server cannot be reached to revoke it; a warning says so."
    )]
    Logout,
    /// Create a key of your account and print it once
    CreateKey(CreateKeyArgs),
    /// List the keys of your account
    ListKeys(ListKeysArgs),
    /// Revoke a key immediately and permanently
    #[command(after_help = "Examples:\n  jurat auth revoke-key laptop")]
    RevokeKey(KeyNameArgs),
    /// Approve a program that shows a code, for your account
    #[command(
        after_help = "Examples:\n  jurat auth approve BCDF-GHJK\n  jurat auth approve BCDF-GHJK --deny\n\nApprove only programs that you started yourself: they get a key of your account."
    )]
    Approve(ApproveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EmailArgs {
    /// E-mail address
    pub(crate) email: String,
}

#[derive(Debug, Args)]
pub(crate) struct MailCodeArgs {
    /// E-mail address that the code was sent to
    pub(crate) email: String,
    /// Code from the mail
    pub(crate) code: String,
    /// Print the key instead of storing it in the state folder
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// Code that the program shows
    #[arg(value_name = "CODE")]
    pub(crate) user_code: String,
    /// Deny access
    #[arg(long)]
    pub(crate) deny: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MeCommand {
    /// Show your account, e-mail address, handle and key
    #[command(after_help = "Examples:\n  jurat me show\n  jurat me show --json")]
    Show,
    /// Claim a handle
    #[command(after_help = "Examples:\n  jurat me claim-handle ann")]
    ClaimHandle(HandleArgs),
    /// Change your handle; the old one redirects for 90 days
    #[command(after_help = "Examples:\n  jurat me rename-handle anna")]
    RenameHandle(HandleArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HandleArgs {
    /// 3 to 40 lowercase letters, digits and hyphens
    pub(crate) handle: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TeamsCommand {
    /// Create a team, with you as the owner
    #[command(
        after_help = "Examples:\n  jurat teams create crew\n\nA team's handle never changes."
    )]
    Create(HandleArgs),
    /// List your teams
    #[command(after_help = "Examples:\n  jurat teams list\n  jurat teams list --filter mine")]
    List {
        #[arg(long, value_name = "WHICH", default_value = "all")]
        filter: TeamFilterArg,
    },
    /// List the members of a team
    #[command(after_help = "Examples:\n  jurat teams members crew")]
    Members { team: String },
    /// Invite a user to a team that you own
    #[command(
        after_help = "Examples:\n  jurat teams add-member crew bob@example.com\n  jurat teams add-member crew @bob"
    )]
    AddMember(MembershipArgs),
    /// Remove a member from a team that you own
    #[command(after_help = "Examples:\n  jurat teams remove-member crew @bob")]
    RemoveMember(MembershipArgs),
    /// Leave a team
    #[command(after_help = "Examples:\n  jurat teams leave crew")]
    Leave { team: String },
    /// Offer a team that you own to another user
    #[command(after_help = "Examples:\n  jurat teams transfer-ownership crew @bob")]
    TransferOwnership(MembershipArgs),
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
pub(crate) enum TeamFilterArg {
    All,
    Mine,
    Member,
}

#[derive(Debug, Args)]
pub(crate) struct MembershipArgs {
    /// Handle of the team, or its id
    pub(crate) team: String,
    /// E-mail address, handle or account
    pub(crate) user: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SharesCommand {
    /// List workflows shared with you
    #[command(after_help = "Examples:\n  jurat shares list\n  jurat shares list --state declined")]
    List(ListSharesArgs),
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
pub(crate) struct ListSharesArgs {
    /// Only shares in this state [default: all but declined]
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<ShareStateArg>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ShareStateArg {
    Pending,
    Accepted,
    Declined,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InvitationsCommand {
    /// List invitations, newest first
    #[command(
        after_help = "Examples:\n  jurat invitations list\n  jurat invitations list --filter sent --state all"
    )]
    List(ListInvitationsArgs),
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
pub(crate) struct ListInvitationsArgs {
    #[arg(long, value_name = "WHICH", default_value = "received")]
    pub(crate) filter: InvitationFilterArg,
    #[arg(long, value_name = "STATE", default_value = "pending")]
    pub(crate) state: InvitationStateArg,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InvitationFilterArg {
    Received,
    Sent,
    All,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum InvitationStateArg {
    Pending,
    All,
}

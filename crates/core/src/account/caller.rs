//! Who asks, already authenticated, on behalf of an account.

use std::{collections::BTreeSet, str::FromStr};

use crate::id::AccountId;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything, on every account of the installation.
    Admin,
    /// Start rounds.
    RoundsCreate,
    /// Read the account's rounds.
    RoundsRead,
    /// Read the figures that the server counts.
    MetricsRead,
    /// Read the account's verifiers and their runs.
    VerifiersRead,
    /// Deploy, revoke and delete verifiers.
    VerifiersWrite,
    /// Run and measure verifiers.
    VerifiersRun,
    /// Read what the account has used, and its credit.
    UsageRead,
    /// Make, list and revoke keys of the account, which may do no more than this one.
    KeysWrite,
    /// Read workflows and templates, and who may use them.
    WorkflowsRead,
    /// Save, share, publish and delete workflows and templates.
    WorkflowsWrite,
    /// Change the account's handle, its teams and its invitations.
    AccountWrite,
    /// Read the account's tasks and runs.
    TasksRead,
    /// Submit and cancel tasks and runs.
    TasksWrite,
}

impl Scope {
    pub const ALL: [Self; 14] = [
        Self::Admin,
        Self::RoundsCreate,
        Self::RoundsRead,
        Self::MetricsRead,
        Self::VerifiersRead,
        Self::VerifiersWrite,
        Self::VerifiersRun,
        Self::UsageRead,
        Self::KeysWrite,
        Self::WorkflowsRead,
        Self::WorkflowsWrite,
        Self::AccountWrite,
        Self::TasksRead,
        Self::TasksWrite,
    ];

    /// What an account does with its own: the scopes of a key that an admin makes without a word.
    pub const OWN: [Self; 12] = [
        Self::RoundsCreate,
        Self::RoundsRead,
        Self::VerifiersRead,
        Self::VerifiersWrite,
        Self::VerifiersRun,
        Self::UsageRead,
        Self::KeysWrite,
        Self::WorkflowsRead,
        Self::WorkflowsWrite,
        Self::AccountWrite,
        Self::TasksRead,
        Self::TasksWrite,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::RoundsCreate => "rounds:create",
            Self::RoundsRead => "rounds:read",
            Self::MetricsRead => "metrics:read",
            Self::VerifiersRead => "verifiers:read",
            Self::VerifiersWrite => "verifiers:write",
            Self::VerifiersRun => "verifiers:run",
            Self::UsageRead => "usage:read",
            Self::KeysWrite => "keys:write",
            Self::WorkflowsRead => "workflows:read",
            Self::WorkflowsWrite => "workflows:write",
            Self::AccountWrite => "account:write",
            Self::TasksRead => "tasks:read",
            Self::TasksWrite => "tasks:write",
        }
    }
}

impl FromStr for Scope {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or(())
    }
}

/// The key that a caller came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerKey {
    /// The part of the key that is no secret; it may stand in logs.
    pub id: String,
    /// How many rounds the key may have under way at a time.
    pub concurrent_rounds: usize,
}

/// How the work of an account is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditMode {
    /// From its credit, and no further.
    Metered,
    /// Counted, and never refused: the operator's own account.
    Unmetered,
    /// Nothing that costs is done for it.
    Suspended,
    /// From the little credit of a network address, and within what all callers without a key may
    /// spend in a day.
    Anonymous,
}

#[derive(Debug, Clone)]
pub struct Caller {
    account: AccountId,
    scopes: BTreeSet<Scope>,
    key: CallerKey,
    credit: CreditMode,
}

impl Caller {
    /// Only `server::request::auth`, `engine::access` and the testkit may call this; clippy keeps it so.
    pub fn authenticated(
        account: AccountId,
        scopes: BTreeSet<Scope>,
        key: CallerKey,
        credit: CreditMode,
    ) -> Self {
        Self { account, scopes, key, credit }
    }

    pub fn credit(&self) -> CreditMode {
        self.credit
    }

    pub fn account(&self) -> &AccountId {
        &self.account
    }

    pub fn key(&self) -> &CallerKey {
        &self.key
    }

    /// What the key has, as it was given.
    pub fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&Scope::Admin) || self.scopes.contains(&scope)
    }
}

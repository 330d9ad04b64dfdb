//! The authenticated caller of a request, who acts for an account.

use std::{collections::BTreeSet, str::FromStr};

use crate::id::AccountId;

/// A right of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything, on every account of the installation.
    Admin,
    /// Start rounds.
    RoundsCreate,
    /// Read the account's rounds.
    RoundsRead,
    /// Read the server's metrics.
    MetricsRead,
    /// Read the account's verifiers and their runs.
    VerifiersRead,
    /// Deploy, revoke and delete verifiers.
    VerifiersWrite,
    /// Run and measure verifiers.
    VerifiersRun,
    /// Read the account's usage and credit.
    UsageRead,
    /// Create, list and revoke keys of the account. A new key never has more rights than this one.
    KeysWrite,
    /// Read workflows and templates, and their grants.
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
    /// Every scope.
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

    /// The scopes that let an account manage its own resources; the default for a key that an admin
    /// creates.
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

    /// The name of the scope in requests and replies.
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

/// The key of an authenticated caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerKey {
    /// The public part of the key, which may appear in logs.
    pub id: String,
    /// How many rounds the key may have in progress.
    pub concurrent_rounds: usize,
}

/// How the work of an account is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditMode {
    /// From its credit, up to the balance.
    Metered,
    /// Counted but never refused: the operator's own account.
    Unmetered,
    /// Paid work is refused.
    Suspended,
    /// From the small credit of a network address, within the daily limit of all callers without a
    /// key.
    Anonymous,
    /// By a payment for each request, outside the ledger.
    Prepaid,
    /// In the books between two nodes, outside the ledger.
    Booked,
}

/// An authenticated key and the account that it acts for.
#[derive(Debug, Clone)]
pub struct Caller {
    account: AccountId,
    scopes: BTreeSet<Scope>,
    key: CallerKey,
    credit: CreditMode,
}

impl Caller {
    /// Only `server::request::auth`, `engine::access` and the testkit may call this; clippy
    /// enforces it.
    pub fn authenticated(
        account: AccountId,
        scopes: BTreeSet<Scope>,
        key: CallerKey,
        credit: CreditMode,
    ) -> Self {
        Self { account, scopes, key, credit }
    }

    /// How the account pays for its work.
    pub fn credit(&self) -> CreditMode {
        self.credit
    }

    /// The account that the caller acts for.
    pub fn account(&self) -> &AccountId {
        &self.account
    }

    /// The key that authenticated the caller.
    pub fn key(&self) -> &CallerKey {
        &self.key
    }

    /// The scopes of the key, as they were granted.
    pub fn scopes(&self) -> &BTreeSet<Scope> {
        &self.scopes
    }

    /// Whether the key has the scope; `admin` includes every scope.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&Scope::Admin) || self.scopes.contains(&scope)
    }
}

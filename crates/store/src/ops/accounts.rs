//! Accounts, with their creation times, balances and suspensions.

use const_format::concatcp;
use jurat_core::{account::ledger::AccountState, id::AccountId, list::ListPage, time::Timestamp};

use super::ledger::balance_of;
use crate::{
    NotFound, Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Accounts of the installation.
    pub struct AccountOps = store.accounts();
    reads {
        fn get(account: &AccountId) -> Option<AccountState> = get;
        /// Accounts in the order of their identifiers.
        fn list(page: &ListPage) -> Vec<AccountState> = list;
    }
    changes {
        /// Creates the account if it is missing.
        fn ensure(account: &AccountId, now: &Timestamp) -> () = ensure;
    }
    writes {
        /// Suspends an account, or resumes it.
        fn suspend(suspension: &Suspension) -> AccountState, or NotFound = suspend;
    }
}

/// A change that stops or allows the paid work of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    pub account: AccountId,
    /// `None` resumes the account.
    pub since: Option<Timestamp>,
}

const ENSURE: &str = "insert into accounts (id, created_at) values ($1, $2) on conflict do nothing";
const SELECT: &str = "\
    select accounts.id, accounts.created_at, accounts.suspended_at, \
    coalesce(credit_balances.granted, 0) as granted, \
    coalesce(credit_balances.available, 0) as available, \
    coalesce(credit_balances.held, 0) as held, coalesce(credit_balances.spent, 0) as spent \
    from accounts left join credit_balances on credit_balances.account_id = accounts.id where ";
const GET: &str = concatcp!(SELECT, "accounts.id = $1");
const LIST: &str = concatcp!(SELECT, "accounts.id > $1 order by accounts.id limit $2");
/// An account that is already suspended keeps its earlier time.
const SUSPEND: &str = "update accounts set suspended_at = coalesce(suspended_at, $1) where id = $2";
const RESUME: &str = "update accounts set suspended_at = null where id = $1";

pub(super) async fn ensure(tx: &mut Tx<'_>, account: &AccountId, now: &Timestamp) -> Result<()> {
    tx.run(ENSURE, args![account, *now]).await.map(drop)
}

pub(super) async fn get(tx: &mut Tx<'_>, account: &AccountId) -> Result<Option<AccountState>> {
    tx.first(GET, args![account], read).await
}

async fn list(tx: &mut Tx<'_>, page: &ListPage) -> Result<Vec<AccountState>> {
    tx.all(LIST, args![page.after.as_deref().unwrap_or_default(), page.limit], read).await
}

async fn suspend(
    tx: &mut Tx<'_>,
    suspension: &Suspension,
) -> Result<Result<AccountState, NotFound>> {
    let account = &suspension.account;
    match suspension.since {
        Some(since) => tx.run(SUSPEND, args![since, account]).await?,
        None => tx.run(RESUME, args![account]).await?,
    };
    Ok(get(tx, account).await?.ok_or(NotFound))
}

fn read(cells: &dyn DbRow) -> Result<AccountState> {
    let columns = RowReader::new(cells, "accounts", "id")?;
    Ok(AccountState {
        account: columns.id("id", AccountId::parse)?,
        created_at: columns.time("created_at")?,
        suspended_at: columns.maybe_time("suspended_at")?,
        balance: balance_of(&columns)?,
    })
}

//! Users and teams by their names.

use const_format::concatcp;
use jurat_core::{
    account::{AccountName, AccountProfile, HANDLE_REST_MICROS, RENAMES_A_YEAR},
    id::AccountId,
    time::Timestamp,
};

use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Users and teams by their names.
    pub struct PeopleOps = store.people();
    reads {
        /// The account with the name. A handle that was given up leads to its account for a while,
        /// or for ever if something was published under it.
        fn profile(name: &AccountName, now: &Timestamp) -> Option<AccountProfile> = profile_get;
    }
    writes {
        /// Gives an account its first handle.
        fn claim_handle(claim: &HandleChange) -> AccountProfile, or HandleRefusal = handle_claim;
        /// Changes the handle of an account; the previous handle still leads to it, at least for a
        /// while.
        fn rename_handle(claim: &HandleChange) -> AccountProfile, or HandleRefusal = handle_rename;
    }
}

/// A handle for an account. The caller has checked its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandleChange {
    pub account: AccountId,
    pub handle: String,
    pub at: Timestamp,
}

/// Why an account did not get the handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HandleRefusal {
    UnknownAccount,
    /// Another account has the handle or had it recently, or something was published under it.
    Taken,
    /// The account already has this handle.
    Claimed(String),
    /// The account has no handle that could be changed.
    NotClaimed,
    /// The previous change is too recent.
    TooSoon {
        until: Timestamp,
    },
    TooOften,
}

const SELECT: &str = "\
    select accounts.id, accounts.kind, accounts.email, accounts.handle, \
    accounts.handle_claimed_at, accounts.created_at from accounts ";

/// The account that has a handle, had it recently, or published something under it.
macro_rules! of_handle {
    ($handle:literal, $since:literal) => {
        const_format::concatcp!(
            "(select handles.account_id from handles where handles.handle = ",
            $handle,
            " and (handles.left_at is null or handles.is_stamped = 1 or handles.left_at > ",
            $since,
            "))"
        )
    };
}
pub(crate) use of_handle;

/// A handle that was given up after this time is still found.
pub(crate) fn found_since(now: Timestamp) -> Timestamp {
    Timestamp::from_micros(now.micros().saturating_sub(HANDLE_REST_MICROS))
}

const BY_ID: &str = concatcp!(SELECT, "where accounts.id = $1");
const BY_EMAIL: &str = concatcp!(SELECT, "where accounts.email = $1");
const BY_HANDLE: &str = concatcp!(SELECT, "where accounts.id in ", of_handle!("$1", "$2"));
const HANDLE_FREE: &str = "\
    select handle, account_id, left_at, is_stamped from handles where handle = $1";
const HANDLE_PUT: &str = "\
    insert into handles (handle, account_id, claimed_at, is_stamped) values ($1, $2, $3, 0) \
    on conflict (handle) do update set account_id = excluded.account_id, \
    claimed_at = excluded.claimed_at, left_at = null";
const HANDLE_LEAVE: &str = "update handles set left_at = $1 where handle = $2";
const HANDLE_SET: &str = "update accounts set handle = $1, handle_claimed_at = $2 where id = $3";
const RENAMED_SINCE: &str = "\
    select account_id as id, count(*) as times from handles \
    where account_id = $1 and left_at >= $2 group by account_id";

pub(crate) fn read_profile(cells: &dyn DbRow) -> Result<AccountProfile> {
    let columns = RowReader::new(cells, "accounts", "id")?;
    Ok(AccountProfile {
        account: columns.id("id", AccountId::parse)?,
        kind: columns.word("kind")?,
        email: columns.maybe_text("email")?,
        handle: columns.maybe_text("handle")?,
        handle_claimed_at: columns.maybe_time("handle_claimed_at")?,
        created_at: columns.time("created_at")?,
    })
}

pub(crate) async fn profile_get(
    tx: &mut Tx<'_>,
    name: &AccountName,
    now: &Timestamp,
) -> Result<Option<AccountProfile>> {
    match name {
        AccountName::Id(id) => tx.first(BY_ID, args![id], read_profile).await,
        AccountName::Email(email) => tx.first(BY_EMAIL, args![email], read_profile).await,
        AccountName::Handle(handle) => {
            tx.first(BY_HANDLE, args![handle, found_since(*now)], read_profile).await
        }
    }
}

/// The profile of an account by its identifier, which need not be well-formed.
pub(crate) async fn profile_of(tx: &mut Tx<'_>, id: &str) -> Result<Option<AccountProfile>> {
    tx.first(BY_ID, args![id], read_profile).await
}

async fn handle_claim(
    tx: &mut Tx<'_>,
    claim: &HandleChange,
) -> Result<Result<AccountProfile, HandleRefusal>> {
    let profile = match held(tx, claim).await? {
        Err(refused) => return Ok(Err(refused)),
        Ok(profile) => profile,
    };
    if let Some(handle) = profile.handle {
        return Ok(Err(HandleRefusal::Claimed(handle)));
    }
    if !is_free(tx, claim).await? {
        return Ok(Err(HandleRefusal::Taken));
    }
    put(tx, claim, profile).await.map(Ok)
}

async fn handle_rename(
    tx: &mut Tx<'_>,
    claim: &HandleChange,
) -> Result<Result<AccountProfile, HandleRefusal>> {
    let profile = match held(tx, claim).await? {
        Err(refused) => return Ok(Err(refused)),
        Ok(profile) => profile,
    };
    let (Some(old), Some(since)) = (&profile.handle, profile.handle_claimed_at) else {
        return Ok(Err(HandleRefusal::NotClaimed));
    };
    if *old == claim.handle {
        return Ok(Ok(profile));
    }
    let until = Timestamp::from_micros(since.micros().saturating_add(HANDLE_REST_MICROS));
    if has_renamed(tx, &claim.account, Timestamp::from_micros(0)).await? != 0 && claim.at < until {
        return Ok(Err(HandleRefusal::TooSoon { until }));
    }
    if RENAMES_A_YEAR <= has_renamed(tx, &claim.account, claim.at.year()).await? {
        return Ok(Err(HandleRefusal::TooOften));
    }
    if !is_free(tx, claim).await? {
        return Ok(Err(HandleRefusal::Taken));
    }
    tx.run(HANDLE_LEAVE, args![claim.at, old]).await?;
    put(tx, claim, profile).await.map(Ok)
}

/// The account of a claim, locked together with the handle.
async fn held(
    tx: &mut Tx<'_>,
    claim: &HandleChange,
) -> Result<Result<AccountProfile, HandleRefusal>> {
    tx.lock("handles").await?;
    let found = tx.first(BY_ID, args![&claim.account], read_profile).await?;
    Ok(found.ok_or(HandleRefusal::UnknownAccount))
}

/// A handle is free if no account ever had it, if it was the account's own, or if it was given up
/// long ago and nothing was published under it.
pub(crate) async fn is_free(tx: &mut Tx<'_>, claim: &HandleChange) -> Result<bool> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "handles", "handle")?;
        let is_stamped = columns.number("is_stamped")? != 0;
        Ok((columns.text("account_id")?, columns.maybe_time("left_at")?, is_stamped))
    };
    let found = tx.first(HANDLE_FREE, args![&claim.handle], read).await?;
    let since = claim.at.micros().saturating_sub(HANDLE_REST_MICROS);
    Ok(found.is_none_or(|(account, left_at, is_stamped)| {
        let is_own = account == claim.account.as_str();
        let is_left = left_at.is_some_and(|at| at.micros() <= since);
        is_own || (is_left && !is_stamped)
    }))
}

async fn has_renamed(tx: &mut Tx<'_>, account: &AccountId, since: Timestamp) -> Result<u32> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "handles", "id")?.count("times");
    Ok(tx.first(RENAMED_SINCE, args![account, since], read).await?.unwrap_or(0))
}

async fn put(
    tx: &mut Tx<'_>,
    claim: &HandleChange,
    profile: AccountProfile,
) -> Result<AccountProfile> {
    tx.run(HANDLE_PUT, args![&claim.handle, &claim.account, claim.at]).await?;
    tx.run(HANDLE_SET, args![&claim.handle, claim.at, &claim.account]).await?;
    let (handle, handle_claimed_at) = (Some(claim.handle.clone()), Some(claim.at));
    Ok(AccountProfile { handle, handle_claimed_at, ..profile })
}

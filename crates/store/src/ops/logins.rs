//! Login codes sent by mail, and device logins.

use jurat_core::{
    account::{
        AccountKind, AccountName, AccountProfile,
        login::{
            CODE_REST_MICROS, CODE_TRIES_OF_ALL, DEVICE_INTERVAL_S, DEVICES_WAITING, DeviceState,
            HOUR_MICROS, LoginPurpose,
        },
    },
    id::AccountId,
    time::Timestamp,
};

use super::{
    invitations::{invitations_adopt, times},
    ledger::give,
    people::profile_get,
    workflows::grants_adopt,
};
use crate::{
    CreditGrant, Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Login codes sent by mail, and device logins.
    pub struct LoginOps = store.logins();
    reads {
        /// The state of a device login that has not expired.
        fn device(asked: &DeviceLookup) -> Option<DeviceState> = device_get;
    }
    writes {
        /// Stores a code for an address in place of the previous one. A valid code stays if it was
        /// sent a moment ago, or if it can create an account and the new one cannot.
        fn put_code(new: &NewLoginCode) -> LoginCodeOutcome, or LoginCodeRefusal = code_put;
        /// Counts a try, and returns the hash that the code must have; `None` if there is no code
        /// to try.
        fn try_code(tried: &LoginCodeTry) -> Option<String>, or LoginCodeRefusal = code_try;
        /// Uses up a correct code, and creates the account if the code is for a new one.
        fn use_code(used: &LoginCodeUse) -> LoginEntrant, or LoginCodeRefusal = code_use;
        /// Begins a device login.
        fn begin_device(new: &NewDevice) -> (), or DeviceRefusal = device_begin;
        /// Approves or denies a device login for an account.
        fn answer_device(answer: &DeviceAnswer) -> (), or DeviceRefusal = device_answer;
        /// The state of a device login. An approved login gets the token of the poll.
        fn poll_device(poll: &DevicePoll) -> DevicePollOutcome, or DeviceRefusal = device_poll;
        /// Uses up the token of an approved device login.
        fn use_device(used: &DeviceUse) -> AccountId, or DeviceRefusal = device_use;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLoginCode {
    /// In lower case.
    pub email: String,
    pub purpose: LoginPurpose,
    pub code_hash: String,
    pub at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginCodeTry {
    pub email: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginCodeUse {
    pub email: String,
    pub code_hash: String,
    /// The identifier of a new account.
    pub account: AccountId,
    /// The credit of a new account.
    pub grant_micros: i64,
    pub at: Timestamp,
}

/// The account that a code logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginEntrant {
    pub profile: AccountProfile,
    pub is_new: bool,
}

/// The outcome of storing a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginCodeOutcome {
    /// The previous code is valid, and stays.
    Kept,
    Replaced {
        /// Whether an account has the address.
        is_known: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginCodeRefusal {
    /// The code was used, was replaced or has expired, or there is no account to log in to.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDevice {
    pub device_hash: String,
    pub user_code: String,
    pub at: Timestamp,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLookup {
    pub user_code: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAnswer {
    pub user_code: String,
    pub account: AccountId,
    pub is_approved: bool,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevicePoll {
    pub device_hash: String,
    /// The hash of the token that the program presents after its approval.
    pub token_hash: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceUse {
    pub token_hash: String,
    pub at: Timestamp,
}

/// The answer to a program that polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DevicePollOutcome {
    Pending,
    /// The program polls too often.
    TooSoon,
    Denied,
    Approved,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceRefusal {
    /// There is no such device login, or it has ended or was answered.
    Unknown,
    /// The maximum number of device logins is waiting.
    TooMany,
}

const CODE_GET: &str = "\
    select email, purpose, code_hash, tries, sent, sent_since, created_at, expires_at \
    from login_codes \
    where email = $1";
const CODE_PUT: &str = "\
    insert into login_codes (email, purpose, code_hash, tries, sent, sent_since, created_at, \
    expires_at) values ($1, $2, $3, 0, $4, $5, $6, $7) \
    on conflict (email) do update set purpose = excluded.purpose, code_hash = excluded.code_hash, \
    tries = 0, sent = excluded.sent, sent_since = excluded.sent_since, \
    created_at = excluded.created_at, expires_at = excluded.expires_at";
const CODES_CLEAR: &str = "delete from login_codes where expires_at < $1 and sent_since < $2";
const CODE_TRY: &str = "update login_codes set tries = tries + 1 where email = $1";
/// Uses up all tries, so that a correct code does not allow more of them.
const CODE_END: &str = "update login_codes set tries = $1, code_hash = '' where email = $2";
const ACCOUNT_ADD: &str =
    "insert into accounts (id, created_at, kind, email) values ($1, $2, 'user', $3)";

struct LoginCodeRow {
    purpose: LoginPurpose,
    code_hash: String,
    tries: u32,
    sent: u32,
    sent_since: Timestamp,
    created_at: Timestamp,
    expires_at: Timestamp,
}

fn read_code(cells: &dyn DbRow) -> Result<LoginCodeRow> {
    let columns = RowReader::new(cells, "login_codes", "email")?;
    Ok(LoginCodeRow {
        purpose: columns.word("purpose")?,
        code_hash: columns.text("code_hash")?,
        tries: columns.count("tries")?,
        sent: columns.count("sent")?,
        sent_since: columns.time("sent_since")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.time("expires_at")?,
    })
}

async fn held(tx: &mut Tx<'_>, email: &str) -> Result<Option<LoginCodeRow>> {
    tx.lock(&format!("login {email}")).await?;
    tx.first(CODE_GET, args![email], read_code).await
}

async fn user(tx: &mut Tx<'_>, email: &str, at: &Timestamp) -> Result<Option<AccountProfile>> {
    profile_get(tx, &AccountName::Email(email.to_owned()), at).await
}

async fn code_put(
    tx: &mut Tx<'_>,
    new: &NewLoginCode,
) -> Result<Result<LoginCodeOutcome, LoginCodeRefusal>> {
    let found = held(tx, &new.email).await?;
    let is_known = user(tx, &new.email, &new.at).await?.is_some();
    if found.as_ref().is_some_and(|row| row.is_kept_from(new, is_known)) {
        return Ok(Ok(LoginCodeOutcome::Kept));
    }
    let hour_ago = Timestamp::from_micros(new.at.micros().saturating_sub(HOUR_MICROS));
    let window = found.filter(|row| hour_ago < row.sent_since);
    let (sent, since) = window.map_or((0, new.at), |row| (row.sent, row.sent_since));
    let (email, purpose) = (&new.email, new.purpose.as_str());
    let args = args![email, purpose, &new.code_hash, sent + 1, since, new.at, new.expires_at];
    tx.run(CODE_PUT, args).await?;
    tx.run(CODES_CLEAR, args![new.at, hour_ago]).await?;
    Ok(Ok(LoginCodeOutcome::Replaced { is_known }))
}

impl LoginCodeRow {
    /// Whether this code stays when another one is requested.
    fn is_kept_from(&self, new: &NewLoginCode, is_known: bool) -> bool {
        let is_good = !self.code_hash.is_empty()
            && self.tries < CODE_TRIES_OF_ALL
            && new.at < self.expires_at;
        // An address without an account is sent only codes to register.
        let was_sent = is_known || self.purpose == LoginPurpose::Register;
        let age = new.at.micros().saturating_sub(self.created_at.micros());
        // A code that creates an account is not replaced by one that cannot.
        let makes_more = !is_known && new.purpose == LoginPurpose::Login;
        is_good && was_sent && (age < CODE_REST_MICROS || makes_more)
    }
}

async fn code_try(
    tx: &mut Tx<'_>,
    tried: &LoginCodeTry,
) -> Result<Result<Option<String>, LoginCodeRefusal>> {
    let row = held(tx, &tried.email).await?;
    let Some(row) = row.filter(|row| row.tries < CODE_TRIES_OF_ALL && tried.at < row.expires_at)
    else {
        return Ok(Ok(None));
    };
    tx.run(CODE_TRY, args![&tried.email]).await?;
    Ok(Ok(Some(row.code_hash)))
}

async fn code_use(
    tx: &mut Tx<'_>,
    used: &LoginCodeUse,
) -> Result<Result<LoginEntrant, LoginCodeRefusal>> {
    let row = held(tx, &used.email).await?;
    let is_it = |row: &LoginCodeRow| row.code_hash == used.code_hash && used.at < row.expires_at;
    let Some(row) = row.filter(is_it) else { return Ok(Err(LoginCodeRefusal::Gone)) };
    tx.run(CODE_END, args![CODE_TRIES_OF_ALL, &used.email]).await?;
    if let Some(profile) = user(tx, &used.email, &used.at).await? {
        return Ok(Ok(LoginEntrant { profile, is_new: false }));
    }
    if row.purpose != LoginPurpose::Register {
        return Ok(Err(LoginCodeRefusal::Gone));
    }
    tx.run(ACCOUNT_ADD, args![&used.account, used.at, &used.email]).await?;
    let profile = AccountProfile {
        account: used.account.clone(),
        kind: AccountKind::User,
        email: Some(used.email.clone()),
        handle: None,
        handle_claimed_at: None,
        created_at: used.at,
    };
    invitations_adopt(tx, &profile).await?;
    grants_adopt(tx, &profile, used.at).await?;
    let note = Some("for a new account".to_owned());
    let account = profile.account.clone();
    give(tx, &CreditGrant { account, micros: used.grant_micros, note, at: used.at }).await?;
    Ok(Ok(LoginEntrant { profile, is_new: true }))
}

const DEVICES_CLEAR: &str = "delete from device_logins where expires_at <= $1";
const DEVICES_WAIT: &str = "select 'all' as id, count(*) as times from device_logins";
const DEVICE_ADD: &str = "\
    insert into device_logins (device_hash, user_code, state, created_at, expires_at) \
    values ($1, $2, 'pending', $3, $4)";
const BY_USER_CODE: &str = "\
    select device_hash as id, state, account_id, polled_at from device_logins \
    where user_code = $1 and expires_at > $2";
const BY_DEVICE: &str = "\
    select device_hash as id, state, account_id, polled_at from device_logins \
    where device_hash = $1 and expires_at > $2";
const BY_TOKEN: &str = "\
    select device_hash as id, state, account_id, polled_at from device_logins \
    where token_hash = $1 and expires_at > $2";
const DEVICE_ANSWER: &str =
    "update device_logins set state = $1, account_id = $2 where device_hash = $3";
const DEVICE_POLLED: &str = "update device_logins set polled_at = $1 where device_hash = $2";
const DEVICE_TOKEN: &str =
    "update device_logins set state = 'used', token_hash = $1 where device_hash = $2";
const DEVICE_END: &str = "delete from device_logins where device_hash = $1";

struct DeviceRow {
    device_hash: String,
    state: DeviceState,
    account: Option<String>,
    polled_at: Option<Timestamp>,
}

fn read_device(cells: &dyn DbRow) -> Result<DeviceRow> {
    let columns = RowReader::new(cells, "device_logins", "id")?;
    Ok(DeviceRow {
        device_hash: columns.text("id")?,
        state: columns.word("state")?,
        account: columns.maybe_text("account_id")?,
        polled_at: columns.maybe_time("polled_at")?,
    })
}

async fn device_get(tx: &mut Tx<'_>, asked: &DeviceLookup) -> Result<Option<DeviceState>> {
    let found = tx.first(BY_USER_CODE, args![&asked.user_code, asked.at], read_device).await?;
    Ok(found.map(|row| row.state))
}

async fn device_begin(tx: &mut Tx<'_>, new: &NewDevice) -> Result<Result<(), DeviceRefusal>> {
    tx.lock("devices").await?;
    tx.run(DEVICES_CLEAR, args![new.at]).await?;
    if DEVICES_WAITING <= times(tx, DEVICES_WAIT, args![]).await? {
        return Ok(Err(DeviceRefusal::TooMany));
    }
    let args = args![&new.device_hash, &new.user_code, new.at, new.expires_at];
    tx.run(DEVICE_ADD, args).await?;
    Ok(Ok(()))
}

async fn device_answer(
    tx: &mut Tx<'_>,
    answer: &DeviceAnswer,
) -> Result<Result<(), DeviceRefusal>> {
    tx.lock(&format!("device {}", answer.user_code)).await?;
    let found = tx.first(BY_USER_CODE, args![&answer.user_code, answer.at], read_device).await?;
    let Some(row) = found.filter(|row| row.state == DeviceState::Pending) else {
        return Ok(Err(DeviceRefusal::Unknown));
    };
    let state = if answer.is_approved { DeviceState::Approved } else { DeviceState::Denied };
    tx.run(DEVICE_ANSWER, args![state.as_str(), &answer.account, &row.device_hash]).await?;
    Ok(Ok(()))
}

async fn device_poll(
    tx: &mut Tx<'_>,
    poll: &DevicePoll,
) -> Result<Result<DevicePollOutcome, DeviceRefusal>> {
    tx.lock(&format!("device {}", poll.device_hash)).await?;
    let found = tx.first(BY_DEVICE, args![&poll.device_hash, poll.at], read_device).await?;
    let Some(row) = found else { return Ok(Err(DeviceRefusal::Unknown)) };
    let waited = match row.state {
        DeviceState::Used => return Ok(Err(DeviceRefusal::Unknown)),
        DeviceState::Denied => DevicePollOutcome::Denied,
        DeviceState::Approved => {
            tx.run(DEVICE_TOKEN, args![&poll.token_hash, &poll.device_hash]).await?;
            DevicePollOutcome::Approved
        }
        DeviceState::Pending => {
            // One second less than the interval that the program knows, because clocks differ.
            let rest = u64::from(DEVICE_INTERVAL_S - 1) * 1_000;
            let is_early = |at: Timestamp| poll.at.millis_since(at) < rest;
            if row.polled_at.is_some_and(is_early) {
                DevicePollOutcome::TooSoon
            } else {
                DevicePollOutcome::Pending
            }
        }
    };
    tx.run(DEVICE_POLLED, args![poll.at, &poll.device_hash]).await?;
    Ok(Ok(waited))
}

async fn device_use(tx: &mut Tx<'_>, used: &DeviceUse) -> Result<Result<AccountId, DeviceRefusal>> {
    tx.lock(&format!("device {}", used.token_hash)).await?;
    let found = tx.first(BY_TOKEN, args![&used.token_hash, used.at], read_device).await?;
    let account = found.as_ref().and_then(|row| AccountId::parse(row.account.as_deref()?).ok());
    let (Some(row), Some(account)) = (found, account) else {
        return Ok(Err(DeviceRefusal::Unknown));
    };
    tx.run(DEVICE_END, args![&row.device_hash]).await?;
    Ok(Ok(account))
}

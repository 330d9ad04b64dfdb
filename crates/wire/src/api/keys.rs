//! The resource `/v1/api-keys`.

use std::{borrow::Cow, collections::BTreeSet};

use jurat_core::{
    account::{
        caller::Scope,
        key::{ApiKey, Key, NewKey},
    },
    code::ProblemCode,
    id::AccountId,
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{KnownFormat, SchemaFormat},
};

use super::kit::{
    json::short,
    request::{
        self, FieldFault, request, text, values,
        values::{Whole, filled_text, list_of, text_of, texts_of},
    },
    time::{self, Time},
    words,
};
use crate::problem::Problem;

const LONGEST_NAME: usize = 64;
const LONGEST_GRACE_S: u64 = 30 * 86_400;
const DEFAULT_GRACE_S: u64 = 86_400;

request! {
    /// A request to create a key. Unknown fields are ignored, unless one looks like a misspelt field.
    pub open struct CreateKeyRequest, draft CreateKeyDraft {
        /// Name of the key; no `/`, no control characters, and no `-`, `.` or space at its start.
        name: KeyName,
        /// Scopes of the key. Defaults to all scopes of the creating key except `admin`; for an admin,
        /// to all scopes that an account needs for its own resources.
        scopes: Option<ScopeList>,
        /// Account of the key; defaults to the caller's own. Only an admin may name another, which is
        /// created if it does not exist.
        account: Option<AccountField>,
        /// Requests per minute; defaults to the installation's limit. A limited key cannot create one
        /// with a higher limit.
        rate_per_minute: Option<Whole<1, 1_000_000>>,
        /// Concurrent rounds; defaults to the installation's limit.
        concurrent_rounds: Option<Whole<1, 100_000>>,
        /// Expiry time, in the future and with any UTC offset; if left out, the key does not expire.
        expires_at: Option<ExpiryTime>,
    }

    /// How to rotate a key.
    pub strict struct RotateKeyRequest, draft RotateKeyDraft {
        /// How long the old key stays valid; defaults to one day.
        grace_seconds: Option<Whole<0, LONGEST_GRACE_S>>,
    }
}

values! {
    /// A name that can be part of a URL and is not mistaken for a command-line flag.
    pub struct KeyName(String):
        text()
            .max_length(Some(LONGEST_NAME))
            .pattern(Some(r"^[^\s/.\x00-\x1f\x7f-\x9f-]([^/\x00-\x1f\x7f-\x9f]*[^\s/\x00-\x1f\x7f-\x9f])?$"))
        => name;

    /// At least one scope.
    pub struct ScopeList(BTreeSet<Scope> as Vec<String>):
        list_of::<words::Scope>().min_items(Some(1)) => scope_list, with words::Scope;

    /// The id of an account in a request.
    pub struct AccountField(AccountId as String):
        text().pattern(Some("^acct_[A-Za-z0-9]{1,40}$")) => account_id;

    /// A time with any UTC offset.
    pub struct ExpiryTime(Timestamp as String):
        text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))) => expiry;
}

/// A created key; the only reply that contains the key itself.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct CreatedKey {
    pub id: String,
    pub name: String,
    /// The key in clear text, shown only once; null if the request is repeated with its idempotency
    /// key.
    #[schema(required = true)]
    pub key: Option<String>,
    pub created_at: Time,
    pub scopes: Vec<words::Scope>,
    pub account: String,
    /// Requests per minute; null for the installation's limit.
    #[schema(required = true)]
    pub rate_per_minute: Option<u32>,
    /// Concurrent rounds; null for the installation's limit.
    #[schema(required = true)]
    pub concurrent_rounds: Option<u32>,
    #[schema(required = true)]
    pub expires_at: Option<Time>,
    /// The id of the key that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub replaces: Option<String>,
}

/// A key in a list, without its secret.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ListedKey {
    pub id: String,
    pub name: String,
    pub account: String,
    pub scopes: Vec<words::Scope>,
    /// Requests per minute; null for the installation's limit.
    #[schema(required = true)]
    pub rate_per_minute: Option<u32>,
    /// Concurrent rounds; null for the installation's limit.
    #[schema(required = true)]
    pub concurrent_rounds: Option<u32>,
    pub created_at: Time,
    #[schema(required = true)]
    pub expires_at: Option<Time>,
    #[schema(required = true)]
    pub revoked_at: Option<Time>,
    /// Time of last use, to the minute.
    #[schema(required = true)]
    pub last_used_at: Option<Time>,
}

/// A page of keys.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ApiKeyPage)]
pub struct KeyPage {
    pub items: Vec<ListedKey>,
    /// Send it as `cursor` to get the next page; null on the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// A revoked key, for tools.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RevokedKey<'a> {
    pub id: Cow<'a, str>,
    pub revoked: bool,
}

impl CreatedKey {
    /// A created key, with the key itself unless the request is repeated.
    pub fn new(key: &Key, clear: Option<&ApiKey>, replaces: Option<String>) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            key: clear.map(ApiKey::reveal),
            created_at: Time(key.created_at),
            scopes: scopes(key),
            account: key.account.to_string(),
            rate_per_minute: key.rate_per_minute,
            concurrent_rounds: key.concurrent_rounds,
            expires_at: key.expires_at.map(Time),
            replaces,
        }
    }
}

impl From<&Key> for ListedKey {
    fn from(key: &Key) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            account: key.account.to_string(),
            scopes: scopes(key),
            rate_per_minute: key.rate_per_minute,
            concurrent_rounds: key.concurrent_rounds,
            created_at: Time(key.created_at),
            expires_at: key.expires_at.map(Time),
            revoked_at: key.revoked_at.map(Time),
            last_used_at: key.last_used_at.map(Time),
        }
    }
}

fn scopes(key: &Key) -> Vec<words::Scope> {
    key.scopes.iter().copied().map(words::Scope).collect()
}

/// Reads a request to create a key.
pub fn decode_create(body: &Value, now: Timestamp) -> Result<NewKey, Problem> {
    // The registry ignores unknown fields, but a misspelt limit must not create a key without one.
    request::refuse_slips::<CreateKeyRequest>(body, ProblemCode::ValidationError)?;
    let new: CreateKeyRequest = request::read(body, ProblemCode::ValidationError)?;
    let expires_at = new.expires_at.map(|end| end.0);
    if expires_at.is_some_and(|end| end <= now) {
        return Err(request::wrong("expires_at", "must be in the future"));
    }
    Ok(NewKey {
        name: new.name.0,
        scopes: new.scopes.map(|scopes| scopes.0),
        account: new.account.map(|account| account.0),
        rate_per_minute: new.rate_per_minute.and_then(|it| u32::try_from(it.0).ok()),
        concurrent_rounds: new.concurrent_rounds.and_then(|it| u32::try_from(it.0).ok()),
        expires_at,
    })
}

/// Reads how long a replaced key stays valid, in milliseconds.
pub fn decode_rotate(body: &Value) -> Result<u64, Problem> {
    let order: RotateKeyRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(order.grace_seconds.map_or(DEFAULT_GRACE_S, |it| it.0) * 1_000)
}

/// The id of an account in a request.
pub fn account(text: &str) -> Result<AccountId, Problem> {
    let wrong = |_| request::wrong("account", &not_an_account(text));
    AccountId::parse(text).map_err(wrong)
}

fn account_id(value: &Value) -> Result<AccountId, FieldFault> {
    let text = text_of(value)?;
    AccountId::parse(text).map_err(|_| not_an_account(text).into())
}

fn not_an_account(text: &str) -> String {
    format!("must be `acct_` and 1 to 40 letters or digits, not `{}`", short(text))
}

fn name(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    let is_plain = text.chars().all(|symbol| !symbol.is_control() && symbol != '/');
    let is_framed = text.trim() == text && !text.starts_with(['-', '.']);
    if is_plain && is_framed && text.chars().count() <= LONGEST_NAME {
        return Ok(text.to_owned());
    }
    let reason = format!(
        "must have at most {LONGEST_NAME} characters, no `/` and no control characters, and not start with `-` or `.` or a space"
    );
    Err(reason.into())
}

fn scope_list(value: &Value) -> Result<BTreeSet<Scope>, FieldFault> {
    let wrong = |what: &str| -> FieldFault {
        let known = Scope::ALL.map(Scope::as_str).join(", ");
        format!("{what}; known are {known}").into()
    };
    let scopes: BTreeSet<Scope> = texts_of(value)?
        .into_iter()
        .map(|word| word.parse().map_err(|()| wrong(&format!("has no `{}`", short(word)))))
        .collect::<Result<_, _>>()?;
    if scopes.is_empty() { Err(wrong("must name at least one scope")) } else { Ok(scopes) }
}

fn expiry(value: &Value) -> Result<Timestamp, FieldFault> {
    let reason = "must be an RFC 3339 time with a time zone, such as 2030-01-31T12:00:00Z";
    time::parse(text_of(value)?).ok_or_else(|| reason.into())
}

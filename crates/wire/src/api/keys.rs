//! The resource `/v1/api-keys`.

use std::collections::BTreeSet;

use jurat_core::{
    account::{
        caller::Scope,
        key::{ApiKey, Key, NewKey},
    },
    code::ProblemCode,
    id::AccountId,
    time::Timestamp,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    fields::{RequestFields, short},
    time::{self, Time},
    words,
};
use crate::problem::Problem;

const LONGEST_NAME: usize = 64;
const HIGHEST_RATE: u64 = 1_000_000;
const MOST_ROUNDS: u64 = 100_000;
const LONGEST_GRACE_S: u64 = 30 * 86_400;
const DEFAULT_GRACE_S: u64 = 86_400;

/// A request to create a key. Unknown fields are ignored, unless one looks like a misspelt field.
#[derive(Debug, ToSchema)]
pub struct CreateKeyRequest {
    /// Name of the key; no `/` and no control characters.
    #[schema(
        max_length = 64,
        pattern = r"^[^\s/.\x00-\x1f\x7f-\x9f-]([^/\x00-\x1f\x7f-\x9f]*[^\s/\x00-\x1f\x7f-\x9f])?$"
    )]
    pub name: String,
    /// Scopes of the key. Defaults to all scopes of the creating key except `admin`; for an admin,
    /// to all scopes that an account needs for its own resources.
    #[schema(min_items = 1)]
    pub scopes: Option<Vec<words::Scope>>,
    /// Account of the key; defaults to the caller's own. Only an admin may name another, which is
    /// created if it does not exist.
    #[schema(pattern = "^acct_[A-Za-z0-9]{1,40}$")]
    pub account: Option<String>,
    /// Requests per minute; defaults to the installation's limit. A limited key cannot create one
    /// with a higher limit.
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub rate_per_minute: Option<u64>,
    /// Concurrent rounds; defaults to the installation's limit.
    #[schema(minimum = 1, maximum = 100_000)]
    pub concurrent_rounds: Option<u64>,
    /// Expiry time, in the future and with any UTC offset; if left out, the key does not expire.
    #[schema(format = "date-time")]
    pub expires_at: Option<String>,
}

/// How to rotate a key.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKeyRequest {
    /// How long the old key stays valid; defaults to one day.
    #[schema(maximum = 2_592_000)]
    pub grace_seconds: Option<u64>,
}

/// A created key; the only reply that contains the key itself.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CreatedKey {
    pub id: String,
    pub name: String,
    /// The key in clear text, shown only once; null if the request is repeated with its idempotency
    /// key.
    #[schema(required = true)]
    pub key: Option<String>,
    #[schema(value_type = Time)]
    pub created_at: String,
    #[schema(value_type = Vec<words::Scope>)]
    pub scopes: Vec<&'static str>,
    pub account: String,
    /// Requests per minute; null for the installation's limit.
    #[schema(required = true)]
    pub rate_per_minute: Option<u32>,
    /// Concurrent rounds; null for the installation's limit.
    #[schema(required = true)]
    pub concurrent_rounds: Option<u32>,
    #[schema(value_type = Option<Time>, required = true)]
    pub expires_at: Option<String>,
    /// The id of the key that it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub replaces: Option<String>,
}

/// A key in a list, without its secret.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub struct ListedKey {
    pub id: String,
    pub name: String,
    pub account: String,
    #[schema(value_type = Vec<words::Scope>)]
    pub scopes: Vec<&'static str>,
    /// Requests per minute; null for the installation's limit.
    #[schema(required = true)]
    pub rate_per_minute: Option<u32>,
    /// Concurrent rounds; null for the installation's limit.
    #[schema(required = true)]
    pub concurrent_rounds: Option<u32>,
    #[schema(value_type = Time)]
    pub created_at: String,
    #[schema(value_type = Option<Time>, required = true)]
    pub expires_at: Option<String>,
    #[schema(value_type = Option<Time>, required = true)]
    pub revoked_at: Option<String>,
    /// Time of last use, to the minute.
    #[schema(value_type = Option<Time>, required = true)]
    pub last_used_at: Option<String>,
}

/// A page of keys.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ApiKeyPage)]
pub struct KeyPage {
    pub items: Vec<ListedKey>,
    /// Send it as `cursor` to get the next page; null on the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// A revoked key, for tools.
#[derive(Debug, Serialize, ToSchema)]
pub struct RevokedKey<'a> {
    pub id: &'a str,
    pub revoked: bool,
}

impl CreatedKey {
    pub fn new(key: &Key, clear: Option<&ApiKey>, replaces: Option<String>) -> Self {
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            key: clear.map(ApiKey::reveal),
            created_at: time::text(key.created_at),
            scopes: scopes(key),
            account: key.account.to_string(),
            rate_per_minute: key.rate_per_minute,
            concurrent_rounds: key.concurrent_rounds,
            expires_at: key.expires_at.map(time::text),
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
            created_at: time::text(key.created_at),
            expires_at: key.expires_at.map(time::text),
            revoked_at: key.revoked_at.map(time::text),
            last_used_at: key.last_used_at.map(time::text),
        }
    }
}

fn scopes(key: &Key) -> Vec<&'static str> {
    key.scopes.iter().map(|scope| scope.as_str()).collect()
}

pub fn decode_create(body: &Value, now: Timestamp) -> Result<NewKey, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    // The registry ignores what it does not know, but a key must not lose a limit to a slip.
    body.refuse_slips::<CreateKeyRequest>()?;
    Ok(NewKey {
        name: name(&body)?,
        scopes: wanted_scopes(&body)?,
        account: body.text("account")?.map(account).transpose()?,
        rate_per_minute: count(&body, "rate_per_minute", HIGHEST_RATE)?,
        concurrent_rounds: count(&body, "concurrent_rounds", MOST_ROUNDS)?,
        expires_at: end(&body, now)?,
    })
}

/// For how many milliseconds a key that is replaced stays valid.
pub fn decode_rotate(body: &Value) -> Result<u64, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.keep_to::<RotateKeyRequest>()?;
    Ok(body.whole("grace_seconds", 0, LONGEST_GRACE_S)?.unwrap_or(DEFAULT_GRACE_S) * 1_000)
}

/// An account that a request names.
pub fn account(text: &str) -> Result<AccountId, Problem> {
    AccountId::parse(text).map_err(|_| {
        let reason = format!(
            "`account` must be `acct_` and 1 to 40 letters or digits, not `{}`",
            short(text)
        );
        Problem::new(ProblemCode::ValidationError, reason).at("account")
    })
}

/// A name that can stand in a URL, and is no flag on a command line.
fn name(body: &RequestFields<'_>) -> Result<String, Problem> {
    let text = body.required_text("name")?;
    let is_plain = text.chars().all(|symbol| !symbol.is_control() && symbol != '/');
    let is_framed = text.trim() == text && !text.starts_with(['-', '.']);
    if is_plain && is_framed && text.chars().count() <= LONGEST_NAME {
        return Ok(text.to_owned());
    }
    let reason = format!(
        "must have at most {LONGEST_NAME} characters, no `/` and no control characters, and not start with `-` or `.` or a space"
    );
    Err(body.wrong("name", &reason))
}

fn wanted_scopes(body: &RequestFields<'_>) -> Result<Option<BTreeSet<Scope>>, Problem> {
    if body.get("scopes").is_none() {
        return Ok(None);
    }
    let wrong = |what: &str| {
        let known = Scope::ALL.map(Scope::as_str).join(", ");
        body.wrong("scopes", &format!("{what}; known are {known}"))
    };
    let words = body.texts("scopes")?;
    let scopes: BTreeSet<Scope> = words
        .into_iter()
        .map(|word| word.parse().map_err(|()| wrong(&format!("has no `{}`", short(word)))))
        .collect::<Result<_, _>>()?;
    if scopes.is_empty() { Err(wrong("must name at least one scope")) } else { Ok(Some(scopes)) }
}

fn count(body: &RequestFields<'_>, field: &str, most: u64) -> Result<Option<u32>, Problem> {
    Ok(body.whole(field, 1, most)?.and_then(|number| u32::try_from(number).ok()))
}

fn end(body: &RequestFields<'_>, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = body.text("expires_at")? else { return Ok(None) };
    match time::parse(text) {
        Some(end) if now < end => Ok(Some(end)),
        Some(_) => Err(body.wrong("expires_at", "must be in the future")),
        None => Err(body.wrong(
            "expires_at",
            "must be an RFC 3339 time with a time zone, such as 2030-01-31T12:00:00Z",
        )),
    }
}

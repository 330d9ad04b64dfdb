//! The resource `/v1/sessions`.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{code::ProblemCode, executor::session::Session, time::Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::schema::{Object, ObjectBuilder, SchemaType, Type},
};

use super::kit::{
    choices::NewSessionId,
    fields::{RequestFields, whole_number},
    time::Time,
    words,
};
use crate::problem::Problem;

const LONGEST_NAME: usize = 64;

/// A request to add a session. `session_id` is an alias of `id`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddSessionRequest {
    pub id: NewSessionId,
    /// The name of its executor.
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
    pub executor: String,
    /// One of the profiles that the executor declares; defaults to `default`.
    #[schema(pattern = r"\S")]
    pub profile: Option<String>,
    pub tier: Option<words::Tier>,
    pub labels: Option<Vec<String>>,
    /// Maps task types to the executor's names for them; the key `*` matches any.
    #[schema(schema_with = task_type_names)]
    pub task_types: Option<BTreeMap<String, String>>,
    /// Expected share of correct answers; defaults to the value of the tier. Stored in thousandths.
    #[schema(minimum = 0.01, maximum = 0.99)]
    pub reliability: Option<f64>,
    /// Price per call in millionths of a credit.
    #[schema(maximum = 1_000_000_000_000u64)]
    pub price_micros: Option<u64>,
}

/// A session that is added with an executor; named like it by default.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionOfExecutor {
    pub id: Option<NewSessionId>,
    /// One of the profiles that the executor declares; defaults to `default`.
    #[schema(pattern = r"\S")]
    pub profile: Option<String>,
    pub tier: Option<words::Tier>,
    pub labels: Option<Vec<String>>,
    /// Maps task types to the executor's names for them; the key `*` matches any.
    #[schema(schema_with = task_type_names)]
    pub task_types: Option<BTreeMap<String, String>>,
    /// Expected share of correct answers; defaults to the value of the tier. Stored in thousandths.
    #[schema(minimum = 0.01, maximum = 0.99)]
    pub reliability: Option<f64>,
    /// Price per call in millionths of a credit.
    #[schema(maximum = 1_000_000_000_000u64)]
    pub price_micros: Option<u64>,
}

fn task_type_names() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .description(Some(
            "Maps task types to the executor's names for them; the key `*` matches any.",
        ))
        .additional_properties(Some(
            ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)),
        ))
        .build()
}

pub fn decode_add(body: &Value, now: Timestamp) -> Result<Session, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.keep_to::<AddSessionRequest>()?;
    decode_fields(&body, None, now)
}

/// A session with the defaults, named like its executor.
pub fn plain(name: &str, now: Timestamp) -> Session {
    Session {
        id: name.to_owned(),
        executor: name.to_owned(),
        profile: "default".to_owned(),
        tier: None,
        labels: BTreeSet::new(),
        task_types: BTreeMap::new(),
        reliability_permille: None,
        price_micros: 0,
        created_at: now,
    }
}

/// A session; `executor` is given when it is registered together with one.
pub(super) fn decode_fields(
    body: &RequestFields<'_>,
    executor: Option<&str>,
    now: Timestamp,
) -> Result<Session, Problem> {
    let id = match (id(body)?, executor) {
        (Some(id), _) => id,
        (None, Some(executor)) => executor.to_owned(),
        (None, None) => return Err(body.wrong("id", "is required")),
    };
    let executor = match (body.get("executor"), executor) {
        (None, Some(executor)) => executor.to_owned(),
        (Some(_), Some(_)) => {
            return Err(body.wrong("executor", "is the executor being added; leave it out"));
        }
        (_, None) => name(body, "executor")?,
    };
    let mut session = plain(&id, now);
    session.executor = executor;
    if body.get("profile").is_some() {
        body.required_text("profile")?.clone_into(&mut session.profile);
    }
    session.tier = body.word("tier", &["fast", "safe", "oracle"])?;
    session.labels = body.texts("labels")?.into_iter().map(str::to_owned).collect();
    session.task_types = task_types(body)?;
    session.reliability_permille = reliability(body)?;
    session.price_micros = body.whole("price_micros", 0, 1_000_000_000_000)?.unwrap_or(0);
    Ok(session)
}

/// Session ids may come as integers.
fn id(body: &RequestFields<'_>) -> Result<Option<String>, Problem> {
    if body.get("id").is_some() && body.get("session_id").is_some() {
        return Err(body.wrong("session_id", "means the same as `id`; leave one out"));
    }
    let field = if body.get("id").is_some() { "id" } else { "session_id" };
    match body.get(field) {
        None => Ok(None),
        Some(value) => match whole_number(value) {
            Some(number) => Ok(Some(number.to_string())),
            None => name(body, field).map(Some),
        },
    }
}

/// A name that can stand in a URL and on a command line.
pub(super) fn name(body: &RequestFields<'_>, field: &str) -> Result<String, Problem> {
    let text = body.required_text(field)?;
    let is_plain =
        text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if is_plain && text.len() <= LONGEST_NAME && !text.starts_with(['-', '.']) {
        Ok(text.to_owned())
    } else {
        let reason = format!(
            "must have at most {LONGEST_NAME} letters, digits, `-`, `_` or `.`, and start with a letter, a digit or `_`"
        );
        Err(body.wrong(field, &reason))
    }
}

/// How often the session is right, kept in thousandths.
fn reliability(body: &RequestFields<'_>) -> Result<Option<u16>, Problem> {
    let Some(value) = body.get("reliability") else { return Ok(None) };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    match value.as_f64() {
        Some(number) if (0.01..=0.99).contains(&number) => {
            Ok(Some((number * 1_000.0).round() as u16))
        }
        Some(_) | None => Err(body.wrong("reliability", "must be a number from 0.01 to 0.99")),
    }
}

fn task_types(body: &RequestFields<'_>) -> Result<BTreeMap<String, String>, Problem> {
    let Some(value) = body.get("task_types") else { return Ok(BTreeMap::new()) };
    let wrong = || {
        body.wrong("task_types", "must be an object of strings, such as {\"delegate\": \"swarm\"}")
    };
    let members = value.as_object().ok_or_else(wrong)?;
    members
        .iter()
        .map(|(wanted, name)| match name.as_str() {
            Some(name) if !name.is_empty() => Ok((wanted.clone(), name.to_owned())),
            Some(_) | None => Err(wrong()),
        })
        .collect()
}

/// A session: a named route to one executor.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionBody<'a> {
    id: &'a str,
    /// Same value as `id`.
    session_id: &'a str,
    /// The name of its executor.
    executor: &'a str,
    profile: &'a str,
    #[schema(required = true)]
    tier: Option<words::Tier>,
    labels: &'a BTreeSet<String>,
    /// Maps task types to the executor's names for them; the key `*` matches any.
    task_types: &'a BTreeMap<String, String>,
    /// Assumed share of correct answers.
    #[schema(minimum = 0, maximum = 1)]
    reliability: f64,
    /// Price per call in millionths of a credit.
    price_micros: u64,
    created_at: Time,
}

pub fn body(session: &Session) -> SessionBody<'_> {
    SessionBody {
        id: &session.id,
        session_id: &session.id,
        executor: &session.executor,
        profile: &session.profile,
        tier: session.tier.map(words::Tier),
        labels: &session.labels,
        task_types: &session.task_types,
        reliability: session.reliability(),
        price_micros: session.price_micros,
        created_at: Time(session.created_at),
    }
}

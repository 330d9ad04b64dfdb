//! The resource `/v1/sessions`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jurat_core::{code::ProblemCode, executor::session::Session, time::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    json::whole_number,
    request::{
        self, FieldFault, Hidden, integer, object, one_of, request, text, values,
        values::{NAME, NotBlank, ResourceName, Whole, name, number},
    },
    time::Time,
    words,
};
use crate::problem::Problem;

request! {
    /// A request to add a session. `session_id` is an alias of `id`.
    pub strict struct AddSessionRequest, draft AddSessionDraft {
        id | session_id: NewSessionId,
        /// The name of its executor.
        executor: ResourceName;
        ..terms: SessionTerms
    }

    /// A session that is added with an executor; named like it by default.
    pub strict struct SessionOfExecutor, draft SessionOfExecutorDraft {
        id | session_id: Option<NewSessionId>,
        executor: Hidden<OwnExecutor>;
        ..terms: SessionTerms
    }

    /// The properties of a new session besides its names.
    pub open struct SessionTerms, draft SessionTermsDraft {
        /// One of the profiles that the executor declares; defaults to `default`.
        profile: Option<NotBlank>,
        tier: Option<words::Tier>,
        /// Words that requests can route by; none by default.
        labels: Option<Vec<String>>,
        /// Maps task types to the executor's names for them; the key `*` matches any.
        task_types: Option<TaskTypeNames>,
        /// Expected share of correct answers; defaults to the value of the tier. Stored in thousandths.
        reliability: Option<Reliability>,
        /// Price per call in millionths of a credit; 0 by default.
        price_micros: Option<Whole<0, 1_000_000_000_000>>,
    }
}

values! {
    /// The id of a new session, as a string or an integer.
    pub named struct NewSessionId(String):
        one_of("The id of a session.")
            .item(text().pattern(Some(NAME)))
            .item(integer().minimum(Some(0)))
        => session_id;

    /// The field `executor` of a session that is added with its executor, which is always refused.
    pub struct OwnExecutor(()): text() => own_executor;

    /// The executor's names for task types.
    pub struct TaskTypeNames(BTreeMap<String, String>):
        object().additional_properties(Some(text().min_length(Some(1)))) => task_types;

    /// Expected share of correct answers, in thousandths.
    pub struct Reliability(u16 as f64):
        number().minimum(Some(0.01)).maximum(Some(0.99)) => reliability;
}

/// Reads a request to add a session.
pub fn decode_add(body: &Value, now: Timestamp) -> Result<Session, Problem> {
    let new: AddSessionRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(new.terms.session(&new.id.0, new.executor.0, now))
}

/// A session with default properties, named like its executor.
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

impl SessionOfExecutor {
    /// The session to add with this executor.
    pub(super) fn session(self, executor: &str, now: Timestamp) -> Session {
        let id = self.id.map_or_else(|| executor.to_owned(), |id| id.0);
        self.terms.session(&id, executor.to_owned(), now)
    }
}

impl SessionTerms {
    fn session(self, id: &str, executor: String, now: Timestamp) -> Session {
        Session {
            executor,
            profile: self.profile.map_or_else(|| "default".to_owned(), |profile| profile.0),
            tier: self.tier.map(|tier| tier.0),
            labels: self.labels.unwrap_or_default().into_iter().collect(),
            task_types: self.task_types.map(|names| names.0).unwrap_or_default(),
            reliability_permille: self.reliability.map(|it| it.0),
            price_micros: self.price_micros.map_or(0, |it| it.0),
            ..plain(id, now)
        }
    }
}

fn session_id(value: &Value) -> Result<String, FieldFault> {
    whole_number(value).map_or_else(|| name(value), |number| Ok(number.to_string()))
}

fn own_executor(_: &Value) -> Result<(), FieldFault> {
    Err("is the executor being added; leave it out".into())
}

fn reliability(value: &Value) -> Result<u16, FieldFault> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be in range"
    )]
    match value.as_f64() {
        Some(number) if (0.01..=0.99).contains(&number) => Ok((number * 1_000.0).round() as u16),
        Some(_) | None => Err("must be a number from 0.01 to 0.99".into()),
    }
}

fn task_types(value: &Value) -> Result<BTreeMap<String, String>, FieldFault> {
    let named = |(wanted, name): (&String, &Value)| match name.as_str() {
        Some(name) if !name.is_empty() => Some((wanted.clone(), name.to_owned())),
        Some(_) | None => None,
    };
    let names = value.as_object().and_then(|members| members.iter().map(named).collect());
    names.ok_or_else(|| "must be an object of strings, such as {\"delegate\": \"swarm\"}".into())
}

/// A session: a named route to one executor.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Session)]
pub struct SessionBody<'a> {
    pub id: Cow<'a, str>,
    /// Same value as `id`.
    pub session_id: Cow<'a, str>,
    /// The name of its executor.
    pub executor: Cow<'a, str>,
    pub profile: Cow<'a, str>,
    #[schema(required = true)]
    pub tier: Option<words::Tier>,
    pub labels: Cow<'a, BTreeSet<String>>,
    /// Maps task types to the executor's names for them; the key `*` matches any.
    pub task_types: Cow<'a, BTreeMap<String, String>>,
    /// Assumed share of correct answers.
    #[schema(minimum = 0, maximum = 1)]
    pub reliability: f64,
    /// Price per call in millionths of a credit.
    pub price_micros: u64,
    pub created_at: Time,
}

/// A session as replies show it.
pub fn body(session: &Session) -> SessionBody<'_> {
    SessionBody {
        id: Cow::Borrowed(&session.id),
        session_id: Cow::Borrowed(&session.id),
        executor: Cow::Borrowed(&session.executor),
        profile: Cow::Borrowed(&session.profile),
        tier: session.tier.map(words::Tier),
        labels: Cow::Borrowed(&session.labels),
        task_types: Cow::Borrowed(&session.task_types),
        reliability: session.reliability(),
        price_micros: session.price_micros,
        created_at: Time(session.created_at),
    }
}

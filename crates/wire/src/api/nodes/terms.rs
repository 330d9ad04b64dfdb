//! The terms on which two nodes work for each other.

use std::{borrow::Cow, collections::BTreeSet};

use jurat_core::peer::terms::PeerTerms;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{ToSchema, openapi::schema::ArrayBuilder};

use crate::api::kit::{
    json::short,
    request::{
        FieldFault, request, text, values,
        values::{Count, PLAIN, Whole, texts_of},
    },
};

/// The most types of tasks, and the length of one.
const MOST_TASK_TYPES: usize = 100;
const LONGEST_TASK_TYPE: usize = 128;
/// The largest payload that may be allowed.
const MOST_PAYLOAD_BYTES: u64 = 64 * 1024 * 1024;
/// The highest price of a session.
const MOST_PRICE_MICROS: u64 = 1_000_000_000_000;

request! {
    /// The terms on which two nodes work for each other. A field that is left out has its default.
    pub strict struct PeerTermsRequest, draft PeerTermsDraft {
        /// Whether jobs of the peer are done here; defaults to `true`.
        works_for: Option<bool>,
        /// Whether jobs are sent to the peer; defaults to `true`.
        hires: Option<bool>,
        /// How many requests of the peer are accepted in a minute; defaults to 600.
        requests_per_minute: Option<Count<1, 1_000_000>>,
        /// How many jobs of the peer are done at the same time; defaults to 8.
        concurrent_jobs: Option<Count<1, 10_000>>,
        /// The largest payload of a job of the peer, in bytes; defaults to 4 MiB.
        payload_bytes: Option<Whole<1, MOST_PAYLOAD_BYTES>>,
        /// The most that the peer is paid for one job, in millionths of a credit. It is never paid
        /// more than the price of the session here.
        most_price_micros: Option<Whole<0, MOST_PRICE_MICROS>>,
        /// The types of tasks that the peer may ask for; none means all of them.
        task_types: Option<TaskTypeList>,
    }
}

values! {
    /// Types of tasks, each once.
    pub struct TaskTypeList(BTreeSet<String> as Vec<String>):
        ArrayBuilder::new()
            .items(text().pattern(Some(PLAIN)).max_length(Some(LONGEST_TASK_TYPE)))
            .max_items(Some(MOST_TASK_TYPES))
        => task_types;
}

/// The terms for a peer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PeerTerms)]
pub struct PeerTermsBody<'a> {
    /// Whether jobs of the peer are done here.
    pub works_for: bool,
    /// Whether jobs are sent to the peer.
    pub hires: bool,
    /// How many requests of the peer are accepted in a minute.
    pub requests_per_minute: u32,
    /// How many jobs of the peer are done at the same time.
    pub concurrent_jobs: u32,
    /// The largest payload of a job of the peer, in bytes.
    pub payload_bytes: u64,
    /// The most that the peer is paid for one job, in millionths of a credit; null if only the
    /// price of the session limits it.
    #[schema(required = true)]
    pub most_price_micros: Option<u64>,
    /// The types of tasks that the peer may ask for; empty for all of them.
    pub task_types: Cow<'a, BTreeSet<String>>,
}

impl From<PeerTermsRequest> for PeerTerms {
    fn from(given: PeerTermsRequest) -> Self {
        let usual = Self::default();
        Self {
            works_for: given.works_for.unwrap_or(usual.works_for),
            hires: given.hires.unwrap_or(usual.hires),
            requests_per_minute: given
                .requests_per_minute
                .map_or(usual.requests_per_minute, |it| it.0),
            concurrent_jobs: given.concurrent_jobs.map_or(usual.concurrent_jobs, |it| it.0),
            payload_bytes: given.payload_bytes.map_or(usual.payload_bytes, |it| it.0),
            most_price_micros: given.most_price_micros.map(|it| it.0).or(usual.most_price_micros),
            task_types: given.task_types.map_or(usual.task_types, |it| it.0),
        }
    }
}

impl<'a> From<&'a PeerTerms> for PeerTermsBody<'a> {
    fn from(terms: &'a PeerTerms) -> Self {
        Self {
            works_for: terms.works_for,
            hires: terms.hires,
            requests_per_minute: terms.requests_per_minute,
            concurrent_jobs: terms.concurrent_jobs,
            payload_bytes: terms.payload_bytes,
            most_price_micros: terms.most_price_micros,
            task_types: Cow::Borrowed(&terms.task_types),
        }
    }
}

fn task_types(value: &Value) -> Result<BTreeSet<String>, FieldFault> {
    let types = texts_of(value)?;
    if MOST_TASK_TYPES < types.len() {
        return Err(format!("must have at most {MOST_TASK_TYPES} types of tasks").into());
    }
    let is_type = |text: &str| {
        !text.trim().is_empty() && !text.contains('\0') && text.chars().count() <= LONGEST_TASK_TYPE
    };
    match types.iter().find(|it| !is_type(it)) {
        None => Ok(types.into_iter().map(str::to_owned).collect()),
        Some(wrong) => {
            let reason = format!(
                "has `{}`, which is not a type of tasks: 1 to {LONGEST_TASK_TYPE} characters, not blank, and without NUL",
                short(wrong)
            );
            Err(reason.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use jurat_core::code::ProblemCode;
    use serde_json::json;

    use super::*;
    use crate::api::kit::request::read;

    #[test]
    fn terms_that_are_left_out_have_the_defaults_of_the_core() {
        let read = |body: Value| {
            PeerTerms::from(read::<PeerTermsRequest>(&body, ProblemCode::ValidationError).unwrap())
        };
        assert_eq!(read(json!({})), PeerTerms::default());
        let some =
            read(json!({ "hires": false, "most_price_micros": 7, "task_types": ["b", "a", "b"] }));
        let task_types = ["a", "b"].map(str::to_owned).into();
        let expected = PeerTerms {
            hires: false,
            most_price_micros: Some(7),
            task_types,
            ..PeerTerms::default()
        };
        assert_eq!(some, expected);
    }

    #[test]
    fn terms_are_written_as_they_are_read() {
        let terms = PeerTerms { most_price_micros: Some(3), ..PeerTerms::default() };
        let written = json!(PeerTermsBody::from(&terms));
        let again = read::<PeerTermsRequest>(&written, ProblemCode::ValidationError).unwrap();
        assert_eq!(PeerTerms::from(again), terms);
    }
}

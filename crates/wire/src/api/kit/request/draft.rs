//! Drafts of requests: the fields as a caller writes them, before the server checks them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    Hidden, ListOf,
    values::{BoundedText, Count, PlainText, Whole},
};

/// A type for fields of requests that a client can write.
pub trait DraftField {
    /// The value as a caller writes it: any text or number, which the server then checks.
    type Draft: DraftValue;
}

/// The value of a field in a draft.
pub trait DraftValue: Serialize {
    /// Whether the field is left out of the request.
    fn is_left_out(&self) -> bool {
        false
    }
}

/// Implements the traits for types that are written as they are read.
macro_rules! written_as_read {
    ($($ty:ty),+ $(,)?) => {$(
        impl DraftValue for $ty {}

        impl DraftField for $ty {
            type Draft = Self;
        }
    )+};
}

written_as_read!(Value, String, bool, BTreeMap<String, String>);

impl DraftValue for u8 {}
impl DraftValue for u32 {}
impl DraftValue for u64 {}
impl DraftValue for i32 {}
impl DraftValue for f64 {}
impl DraftValue for BTreeMap<String, i64> {}
impl<T: Serialize> DraftValue for Vec<T> {}

impl<T: DraftValue> DraftValue for Option<T> {
    fn is_left_out(&self) -> bool {
        self.is_none()
    }
}

/// The value of a field that exists only to be refused.
impl DraftValue for () {
    fn is_left_out(&self) -> bool {
        true
    }
}

impl<T: DraftField> DraftField for Option<T> {
    type Draft = Option<T::Draft>;
}

impl<T: DraftField> DraftField for Vec<T> {
    type Draft = Vec<T::Draft>;
}

impl<T: DraftField, const LEAST: usize, const MOST: usize> DraftField for ListOf<T, LEAST, MOST> {
    type Draft = Vec<T::Draft>;
}

/// A client has no use for aliases and for fields that are always refused.
impl<T> DraftField for Hidden<T> {
    type Draft = ();
}

impl<const MOST: usize> DraftField for BoundedText<MOST> {
    type Draft = String;
}

impl<const MOST: usize> DraftField for PlainText<MOST> {
    type Draft = String;
}

impl<const LEAST: u64, const MOST: u64> DraftField for Whole<LEAST, MOST> {
    type Draft = u64;
}

impl<const LEAST: u32, const MOST: u32> DraftField for Count<LEAST, MOST> {
    type Draft = u32;
}

#[cfg(test)]
mod tests {
    use jurat_core::code::ProblemCode;
    use serde_json::json;

    use crate::api::{
        consensus_request::{RoundFieldsDraft, ValidateDraft, ValidateRequest},
        executors::{AddExecutorDraft, AddExecutorRequest, SessionChoiceDraft},
        kit::{request::read, terms::ConsensusTermsDraft},
        sessions::{SessionOfExecutorDraft, SessionTermsDraft},
    };

    #[test]
    fn a_draft_has_the_fields_that_are_set_under_the_names_of_the_request() {
        let draft = AddExecutorDraft {
            name: "one".to_owned(),
            url: "http://127.0.0.1:1".to_owned(),
            session: Some(SessionChoiceDraft::Session(SessionOfExecutorDraft {
                id: None,
                executor: (),
                terms: SessionTermsDraft {
                    tier: Some("safe".to_owned()),
                    reliability: Some(0.9),
                    ..SessionTermsDraft::default()
                },
            })),
            ..AddExecutorDraft::default()
        };
        let body = json!(draft);
        assert_eq!(
            body,
            json!({
                "name": "one", "url": "http://127.0.0.1:1",
                "session": { "tier": "safe", "reliability": 0.9 },
            })
        );
        read::<AddExecutorRequest>(&body, ProblemCode::ValidationError).unwrap();
    }

    #[test]
    fn fields_that_several_requests_share_are_written_beside_the_others() {
        let consensus = ConsensusTermsDraft {
            replicas: Some(3),
            session_pool: Some(vec!["label:fast".to_owned(), "7".to_owned()]),
            ..ConsensusTermsDraft::default()
        };
        let draft = ValidateDraft {
            claim: json!("2 + 2 = 4"),
            round: RoundFieldsDraft { consensus: Some(consensus), session_id: None },
            ..ValidateDraft::default()
        };
        let body = json!(draft);
        assert_eq!(
            body,
            json!({
                "claim": "2 + 2 = 4",
                "consensus": { "replicas": 3, "session_pool": ["label:fast", "7"] },
            })
        );
        read::<ValidateRequest>(&body, ProblemCode::RequestInvalid).unwrap();
    }
}

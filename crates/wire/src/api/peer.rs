//! The prompt-oriented API of the Cortensor router, translated to version 3 and back.
//!
//! Its names stay in this module: a miner is a session, a task is a round.

pub mod node;
pub mod reply;
pub mod request;
pub mod task;

use jurat_core::{executor::Independence, id::RoundId};
use serde_json::{Value, json};

use super::consensus_reply::ReplicaBody;

/// The session that leaves the choice to routing.
const ANY_SESSION: u64 = 0;
/// The largest whole number that every JSON reader keeps exact.
const LARGEST_EXACT: u64 = 9_007_199_254_740_991;
/// Members of an output that hold its text.
const TEXT_MEMBERS: [&str; 5] = ["answer", "text", "content", "output", "result"];

/// A session id as its clients send it: text, a number, or an id that leaves the choice to routing.
pub fn session_named(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text != "0").then(|| text.to_owned())
}

/// A session id as its clients know it: a number if it reads like one.
pub fn session_id(session: Option<&str>) -> Value {
    let Some(text) = session else { return json!(ANY_SESSION) };
    let number: Option<u64> = text.parse().ok();
    let number = number.filter(|number| *number <= LARGEST_EXACT && number.to_string() == text);
    number.map_or_else(|| json!(text), |number| json!(number))
}

/// The id of a task: the digits of a number, because some clients take only text and others turn it
/// into a number.
pub(super) fn task_id(round: &str) -> String {
    let number = RoundId::parse(round).ok().and_then(|id| id.number());
    number.map_or_else(|| round.to_owned(), |number| number.to_string())
}

/// When a round was opened, in seconds since 1970.
pub(super) fn opened_s(round: &str) -> u64 {
    RoundId::parse(round).ok().and_then(|id| id.millis()).unwrap_or_default() / 1_000
}

/// The text of an output, for clients that read only text.
pub fn text_of(output: &Value) -> String {
    if let Value::String(text) = output {
        return text.clone();
    }
    let member = TEXT_MEMBERS.iter().find_map(|name| output.get(name)?.as_str());
    member.map_or_else(|| output.to_string(), str::to_owned)
}

/// The model of a replica.
pub(super) fn model_of(replica: &ReplicaBody<'_>) -> String {
    Independence::of_key(&replica.independence, &replica.executor).model_id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_a_number_if_it_reads_like_one() {
        for (text, expected) in [
            (Some("35"), json!(35)),
            (Some("alpha"), json!("alpha")),
            (Some("035"), json!("035")),
            (Some("18446744073709551615"), json!("18446744073709551615")),
            (None, json!(0)),
        ] {
            assert_eq!(session_id(text), expected);
        }
        assert_eq!(session_named(" 35 "), Some("35".to_owned()));
        assert_eq!((session_named("0"), session_named("")), (None, None));
    }

    #[test]
    fn the_text_of_an_output_is_its_answer() {
        assert_eq!(text_of(&json!("plain")), "plain");
        assert_eq!(text_of(&json!({ "answer": "yes", "confidence": 0.9 })), "yes");
        assert_eq!(text_of(&json!({ "total": 12 })), r#"{"total":12}"#);
    }
}

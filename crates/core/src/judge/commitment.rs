//! The expectations that a judge writes down before it sees the candidate, so that the candidate
//! cannot steer it.

use serde_json::{Value, json};

use super::{
    JudgmentError, MessageRole, Prompt, PromptMessage, Question, prompt::repair_text,
    read::document,
};
use crate::canonical::{canonical, sha256_hex};

const MOST_STATEMENTS: usize = 12;
const STATEMENT_CHARS: usize = 500;

/// The message that asks for the commitment. It is the same for every question; the system text
/// holds the task.
pub(super) const COMMIT_REQUEST: &str = r#"{"task":"write down what the data must show"}"#;

/// The addition to the system text once the judge has committed itself.
pub(super) const COMMITTED: &str = "\
Before you saw the data, you wrote down what it must show and must not show. Hold the data against \
that list, statement by statement, and do not change the list now.";

const COMMIT: &str = "\
You will be shown data, and will judge whether it meets the criterion below. You do not see it yet. \
Write down now what the data must show to meet the criterion, and what it must not show, so that your \
judgment does not depend on how the data presents itself.

Answer with one JSON object and nothing else. It has exactly these members, in this order:
- `must_not_show`: a list of at most 12 short statements, which may be empty.
- `must_show`: a list of 1 to 12 short statements.";

/// A checklist in the words of the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitment {
    pub must_not_show: Vec<String>,
    pub must_show: Vec<String>,
}

impl Commitment {
    fn document(&self) -> Value {
        json!({ "must_not_show": self.must_not_show, "must_show": self.must_show })
    }

    /// The text of the judge's own message.
    pub(super) fn text(&self) -> String {
        self.document().to_string()
    }

    /// The SHA-256 of its canonical JSON, in hex.
    pub fn digest(&self) -> String {
        sha256_hex(&canonical(&self.document()))
    }

    /// The longest commitment that can be read, which gives the maximum cost of a prompt with one.
    pub fn longest() -> Self {
        // Four bytes are the longest character, and this one needs no escape.
        let list = || vec!["😀".repeat(STATEMENT_CHARS); MOST_STATEMENTS];
        Self { must_not_show: list(), must_show: list() }
    }
}

/// The conversation that asks for a commitment. It contains nothing of the candidate.
pub fn commit_prompt(question: &Question, repair: Option<&JudgmentError>) -> Prompt {
    let names: Vec<String> = question.fields.iter().map(|name| format!("`{name}`")).collect();
    let image = if question.contract.has_image() { " An image comes with it." } else { "" };
    let fields = if names.is_empty() { "no texts".to_owned() } else { names.join(", ") };
    let mut system = format!(
        "{COMMIT}\n\nThe data will have these fields: {fields}.{image}\n\n\
         The criterion, in the words of its owner:\n{}",
        question.criterion
    );
    if let Some(problem) = repair {
        system.push_str("\n\n");
        system.push_str(&repair_text(problem));
    }
    let messages = vec![PromptMessage::new(MessageRole::User, COMMIT_REQUEST)];
    Prompt { system, messages, schema: schema() }
}

fn schema() -> Value {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "properties": { "must_not_show": list, "must_show": list },
        "required": ["must_not_show", "must_show"],
        "additionalProperties": false,
    })
}

/// Reads the answer to [`commit_prompt`].
pub fn read_commitment(text: &str) -> Result<Commitment, JudgmentError> {
    let document = document(text)?;
    let members = document.as_object().filter(|members| members.len() == 2);
    let members = members.ok_or(JudgmentError::Members("`must_not_show` and `must_show`"))?;
    let list = |name| {
        let list = members.get(name).and_then(Value::as_array);
        list.and_then(|list| statements(list)).ok_or(JudgmentError::Statements)
    };
    let commitment =
        Commitment { must_not_show: list("must_not_show")?, must_show: list("must_show")? };
    if commitment.must_show.is_empty() {
        return Err(JudgmentError::Statements);
    }
    Ok(commitment)
}

fn statements(list: &[Value]) -> Option<Vec<String>> {
    if MOST_STATEMENTS < list.len() {
        return None;
    }
    let statement = |item: &Value| {
        let (text, _) = super::clean::clean(item.as_str()?.trim());
        let is_short = !text.is_empty() && text.chars().count() <= STATEMENT_CHARS;
        is_short.then_some(text)
    };
    list.iter().map(statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commitment_reads_back_and_has_a_digest_of_its_own() {
        let text = r#"{"must_not_show":[],"must_show":["a source"]}"#;
        let commitment = read_commitment(text).unwrap();
        assert_eq!(commitment.text(), text);
        let other = read_commitment(r#"{"must_show":["x"],"must_not_show":["y"]}"#).unwrap();
        assert_ne!(commitment.digest(), other.digest());
    }

    #[test]
    fn an_invalid_checklist_is_refused() {
        let many = format!(r#"{{"must_not_show":[],"must_show":{:?}}}"#, vec!["x"; 13]);
        for text in [
            "",
            "yes",
            "[]",
            "{}",
            r#"{"must_show":["x"]}"#,
            r#"{"must_not_show":[],"must_show":[]}"#,
            r#"{"must_not_show":[],"must_show":[" "]}"#,
            r#"{"must_not_show":[1],"must_show":["x"]}"#,
            r#"{"must_not_show":[],"must_show":["x"],"verdict":"met"}"#,
            r#"{"must_not_show":[],"must_show":["x"],"must_show":["y"]}"#,
            &many,
        ] {
            assert!(read_commitment(text).is_err(), "{text}");
        }
    }
}

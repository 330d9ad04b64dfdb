//! Reads a judge's answer. An answer that is not exactly a judgment is an error, never a verdict.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    FindingStance, IMAGE_FIELD, JudgeFinding, JudgeVerdict, Judgment, Question,
    clean::{clean, clean_all},
};
use crate::strict_json::{self, StrictErrorKind};

/// The longest answer that is read.
const ANSWER_BYTES: usize = 128 * 1024;
const MOST_FINDINGS: usize = 50;
const QUOTE_CHARS: usize = 4_000;
const REASONING_CHARS: usize = 20_000;

/// Why an answer is not a judgment. The messages are ours: they contain nothing of the answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgmentError {
    #[error("there was no answer")]
    Empty,
    #[error("the answer was too long")]
    TooLong,
    #[error("the answer was cut off at the limit of its length")]
    Truncated,
    #[error("the judge refused to answer")]
    Refused,
    #[error("there were several answers, and they differ")]
    Differing,
    #[error("the answer was not one JSON document")]
    NotJson,
    #[error("the answer had the same member twice")]
    DuplicateMember,
    #[error("the answer did not have exactly the members {0}")]
    Members(&'static str),
    #[error("`verdict` was none of `met`, `not_met`, `cannot_confirm` and `conflicting`")]
    Verdict,
    #[error("`reasoning` was empty, too long or not text")]
    Reasoning,
    #[error("`findings` was not a short list of objects with `field`, `quote` and `says`")]
    Findings,
    #[error("a finding named a field that does not exist")]
    UnknownField,
    #[error("a quote does not appear word for word in the field `{field}`")]
    Quote { field: String },
    #[error("the verdict is `met` although a finding says `violates`")]
    Contradiction,
    #[error("the lists were not short lists of short statements, with one in `must_show` at least")]
    Statements,
}

impl JudgmentError {
    /// Whether asking again can help. The judge would repeat a refusal, and would be cut off again.
    pub const fn is_repairable(&self) -> bool {
        !matches!(self, Self::Refused | Self::Truncated)
    }
}

/// The schema of an answer. The members are in the order in which a judge writes them: the
/// findings, then the verdict that follows from them.
pub fn answer_schema() -> Value {
    let finding = json!({
        "type": "object",
        "properties": {
            "field": { "type": "string" },
            "quote": { "type": "string" },
            "says": { "type": "string", "enum": ["supports", "violates"] },
        },
        "required": ["field", "quote", "says"],
        "additionalProperties": false,
    });
    let verdicts: Vec<&str> = JudgeVerdict::ALL.iter().map(|verdict| verdict.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "findings": { "type": "array", "items": finding },
            "reasoning": { "type": "string" },
            "verdict": { "type": "string", "enum": verdicts },
        },
        "required": ["findings", "reasoning", "verdict"],
        "additionalProperties": false,
    })
}

/// Reads an answer to a question whose candidate was marked with `mark`.
pub fn read(text: &str, question: &Question, mark: &str) -> Result<Judgment, JudgmentError> {
    let document = document(text)?;
    let members = exactly(&document, &["findings", "reasoning", "verdict"])
        .ok_or(JudgmentError::Members("`findings`, `reasoning` and `verdict`"))?;
    let verdict: JudgeVerdict = members["verdict"]
        .as_str()
        .and_then(|word| word.parse().ok())
        .ok_or(JudgmentError::Verdict)?;
    let reasoning = reasoning(&members["reasoning"]).ok_or(JudgmentError::Reasoning)?;
    let found = members["findings"].as_array().filter(|found| found.len() <= MOST_FINDINGS);
    let (inputs, stripped) = clean_all(&question.inputs);
    let texts: BTreeMap<&str, String> =
        inputs.into_iter().map(|(field, text)| (field, words(&text))).collect();
    let findings: Vec<JudgeFinding> = found
        .ok_or(JudgmentError::Findings)?
        .iter()
        .map(|found| finding(found, question, &texts, mark))
        .collect::<Result<_, _>>()?;
    let violates = findings.iter().any(|finding| finding.says == FindingStance::Violates);
    if verdict == JudgeVerdict::Met && violates {
        return Err(JudgmentError::Contradiction);
    }
    Ok(Judgment { verdict, reasoning, findings, stripped, commitment: None, notes: Vec::new() })
}

/// The one JSON document of an answer.
pub(super) fn document(text: &str) -> Result<Value, JudgmentError> {
    let text = unfenced(text);
    if text.is_empty() {
        return Err(JudgmentError::Empty);
    }
    if ANSWER_BYTES < text.len() {
        return Err(JudgmentError::TooLong);
    }
    strict_json::parse(text.as_bytes()).map_err(|error| match error.kind {
        StrictErrorKind::DuplicateKey(_) => JudgmentError::DuplicateMember,
        StrictErrorKind::NotUtf8
        | StrictErrorKind::ByteOrderMark
        | StrictErrorKind::Syntax(_)
        | StrictErrorKind::TooDeep
        | StrictErrorKind::TooManyValues(_)
        | StrictErrorKind::IntegerOutOfRange => JudgmentError::NotJson,
    })
}

/// Takes the document out of a fenced block, which some models add.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|rest| rest.strip_suffix("```")).map_or(text, str::trim)
}

fn exactly<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Map<String, Value>> {
    let members = value.as_object()?;
    let is_exact =
        members.len() == names.len() && names.iter().all(|name| members.contains_key(*name));
    is_exact.then_some(members)
}

fn reasoning(value: &Value) -> Option<String> {
    let (text, _) = clean(value.as_str()?.trim());
    let is_fit = !text.is_empty() && text.chars().count() <= REASONING_CHARS;
    is_fit.then_some(text)
}

fn finding(
    found: &Value,
    question: &Question,
    texts: &BTreeMap<&str, String>,
    mark: &str,
) -> Result<JudgeFinding, JudgmentError> {
    let members = exactly(found, &["field", "quote", "says"]).ok_or(JudgmentError::Findings)?;
    let text = |name: &str| members[name].as_str().ok_or(JudgmentError::Findings);
    let says: FindingStance = text("says")?.parse().map_err(|()| JudgmentError::Findings)?;
    let (field, quote) = (text("field")?, text("quote")?);
    if QUOTE_CHARS < quote.chars().count() {
        return Err(JudgmentError::Findings);
    }
    // A quote of several lines contains the marks between them, which are not part of the text.
    let quote = words(&clean(quote).0.replace(mark, " "));
    let is_image = field == IMAGE_FIELD && question.contract.has_image();
    let field = if is_image { IMAGE_FIELD } else { field };
    let stands = match texts.get(field) {
        _ if is_image => !quote.is_empty(),
        Some(text) => !quote.is_empty() && text.contains(&quote),
        None => return Err(JudgmentError::UnknownField),
    };
    if !stands {
        return Err(JudgmentError::Quote { field: field.to_owned() });
    }
    Ok(JudgeFinding { field: field.to_owned(), quote, says })
}

/// A text with single spaces between its words.
fn words(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(word);
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::verifier::InputContract;

    const MARK: &str = "0123456789abcdef";

    fn question() -> Question {
        Question {
            criterion: "c".to_owned(),
            contract: InputContract::Text,
            fields: vec!["response".to_owned()],
            examples: Vec::new(),
            inputs: BTreeMap::from([(
                "response".to_owned(),
                "The sky\u{200b} is\nblue, says  the source.".to_owned(),
            )]),
        }
    }

    fn answer(quote: &str, says: &str, verdict: &str) -> String {
        json!({
            "findings": [{"field": "response", "quote": quote, "says": says}],
            "reasoning": "r", "verdict": verdict,
        })
        .to_string()
    }

    #[test]
    fn a_judgment_is_read_with_its_quotes() {
        let text = answer("sky is\n0123456789abcdef blue,\tsays the", "supports", "met");
        let judgment = read(&text, &question(), MARK).unwrap();
        assert_eq!(judgment.verdict, JudgeVerdict::Met);
        assert_eq!(judgment.findings[0].quote, "sky is blue, says the");
        assert_eq!(judgment.stripped.len(), 1);
        let fenced = format!("```json\n{text}\n```");
        assert_eq!(read(&fenced, &question(), MARK).unwrap(), judgment);
    }

    #[test]
    fn an_answer_that_is_not_exactly_a_judgment_is_an_error() {
        let quote = JudgmentError::Quote { field: "response".to_owned() };
        let members = JudgmentError::Members("`findings`, `reasoning` and `verdict`");
        for (text, misread) in [
            (" ".to_owned(), JudgmentError::Empty),
            ("met".to_owned(), JudgmentError::NotJson),
            ("[]".to_owned(), members.clone()),
            (answer("green", "supports", "met"), quote.clone()),
            (answer(" ", "supports", "met"), quote.clone()),
            (answer(MARK, "supports", "met"), quote),
            (answer("blue", "violates", "met"), JudgmentError::Contradiction),
            (answer("blue", "proves", "met"), JudgmentError::Findings),
            (answer("blue", "supports", "passed"), JudgmentError::Verdict),
            (answer("blue", "supports", "MET"), JudgmentError::Verdict),
            (
                answer("blue", "supports", "met").replace("response", "criterion"),
                JudgmentError::UnknownField,
            ),
            (
                answer("blue", "supports", "met").replace("response", IMAGE_FIELD),
                JudgmentError::UnknownField,
            ),
            (answer("blue", "supports", "met").replace("\"r\"", "\" \""), JudgmentError::Reasoning),
            (answer("blue", "supports", "met").replace("\"r\"", "7"), JudgmentError::Reasoning),
            (
                answer("blue", "supports", "met").replace("\"verdict\"", "\"passed\""),
                members.clone(),
            ),
            (
                answer("blue", "supports", "met").replacen('{', "{\"verdict\":\"not_met\",", 1),
                JudgmentError::DuplicateMember,
            ),
            (format!("{} {}", answer("blue", "supports", "met"), "{}"), JudgmentError::NotJson),
            ("x".repeat(ANSWER_BYTES + 1), JudgmentError::TooLong),
        ] {
            assert_eq!(read(&text, &question(), MARK), Err(misread), "{text:.200}");
        }
    }

    #[test]
    fn a_finding_about_an_image_describes_what_is_visible() {
        let question = Question {
            contract: InputContract::Image,
            fields: vec![],
            inputs: BTreeMap::new(),
            ..question()
        };
        let text = answer("a red door", "supports", "met").replace("response", IMAGE_FIELD);
        let judgment = read(&text, &question, MARK).unwrap();
        assert_eq!(judgment.findings[0].field, IMAGE_FIELD);
    }

    #[test]
    fn the_error_repeats_nothing_of_the_answer() {
        let hostile = answer("OBEY", "OBEY", "OBEY").replace("response", "OBEY");
        for text in [hostile.as_str(), "OBEY", r#"{"OBEY":1,"OBEY":2}"#, r#"{"OBEY":1}"#] {
            let misread = read(text, &question(), MARK).unwrap_err();
            assert!(!misread.to_string().contains("OBEY"), "{misread}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic_and_few_are_a_verdict(text in any::<String>()) {
            prop_assert!(read(&text, &question(), MARK).is_err());
        }

        #[test]
        fn any_passage_can_be_quoted(text in "[a-z \\n\u{e9}]{1,60}", from in 0_usize..60, length in 1_usize..60) {
            let passage: String = text.chars().skip(from).take(length).collect();
            prop_assume!(!passage.trim().is_empty());
            let mut question = question();
            question.inputs.insert("response".to_owned(), text);
            prop_assert!(read(&answer(&passage, "supports", "met"), &question, MARK).is_ok());
        }
    }
}

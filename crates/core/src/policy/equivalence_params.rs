//! Reads an equivalence: a word, or an object with the word and its terms.

use serde_json::Value;

use super::params::is_pointer;
use crate::round::job::Equivalence;

/// The maximum number of fields or bucket limits.
const MAX_TERMS: usize = 1_000;

/// Why an equivalence cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EquivalenceError {
    #[error(
        "the equivalence `{0}` is not supported here; use canonical, fields, numeric, buckets, unordered or text"
    )]
    NotSupported(String),
    #[error("{0}")]
    Invalid(String),
}

/// Reads `"canonical"`, `{"numeric": {"tolerance": 0.01}}`, `{"fields": ["/a"]}` and the like.
pub fn parse_equivalence(given: &Value) -> Result<Equivalence, EquivalenceError> {
    match given {
        Value::String(word) => named(word, None),
        Value::Object(members) => {
            let mut members = members.iter();
            match (members.next(), members.next()) {
                (Some((word, terms)), None) => named(word, Some(terms)),
                _ => Err(invalid(
                    "must have exactly one member, such as {\"numeric\": {\"tolerance\": 0.01}}",
                )),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(invalid(
            "must be a word such as \"canonical\", or an object such as {\"numeric\": {\"tolerance\": 0.01}}",
        )),
    }
}

fn named(word: &str, terms: Option<&Value>) -> Result<Equivalence, EquivalenceError> {
    match word {
        "canonical" => without_terms(word, terms, Equivalence::Canonical),
        "unordered" => without_terms(word, terms, Equivalence::Unordered),
        "text" => without_terms(word, terms, Equivalence::Text),
        "fields" => fields(terms),
        "numeric" => numeric(terms),
        "buckets" => buckets(terms),
        "similarity" | "judge" => Err(EquivalenceError::NotSupported(word.to_owned())),
        _ => {
            let word: String = word.chars().take(60).collect();
            Err(invalid(&format!(
                "`{word}` is not known; use canonical, fields, numeric, buckets, unordered or text"
            )))
        }
    }
}

fn without_terms(
    word: &str,
    terms: Option<&Value>,
    equivalence: Equivalence,
) -> Result<Equivalence, EquivalenceError> {
    match terms {
        None | Some(Value::Null) => Ok(equivalence),
        Some(Value::Object(members)) if members.is_empty() => Ok(equivalence),
        Some(_) => Err(invalid(&format!("`{word}` takes no terms; use the word alone"))),
    }
}

fn fields(terms: Option<&Value>) -> Result<Equivalence, EquivalenceError> {
    let problem = "`fields` needs a list of JSON Pointers, such as \"/answer\"";
    let pointers = terms.and_then(Value::as_array).filter(|list| !list.is_empty());
    let pointers = at_most(pointers.ok_or_else(|| invalid(problem))?, "fields")?;
    let pointers = pointers.iter().map(Value::as_str);
    let pointers: Option<Vec<String>> =
        pointers.map(|text| text.filter(|text| is_pointer(text)).map(str::to_owned)).collect();
    pointers.map(Equivalence::Fields).ok_or_else(|| invalid(problem))
}

fn numeric(terms: Option<&Value>) -> Result<Equivalence, EquivalenceError> {
    let members = terms.and_then(Value::as_object).filter(|members| members.len() == 1);
    let tolerance = members.and_then(|members| members.get("tolerance")).and_then(Value::as_f64);
    match tolerance {
        Some(tolerance) if tolerance.is_finite() && 0.0 <= tolerance => {
            Ok(Equivalence::Numeric { tolerance })
        }
        _ => Err(invalid(
            "`numeric` needs a tolerance of 0 or more: {\"numeric\": {\"tolerance\": 0.01}}",
        )),
    }
}

fn buckets(terms: Option<&Value>) -> Result<Equivalence, EquivalenceError> {
    let problem = "`buckets` needs ascending numbers, such as 0, 10, 100";
    let bounds = terms.and_then(Value::as_array).filter(|list| !list.is_empty());
    let bounds = at_most(bounds.ok_or_else(|| invalid(problem))?, "buckets")?;
    let bounds = bounds.iter().map(Value::as_f64);
    let bounds: Vec<f64> = bounds.collect::<Option<_>>().ok_or_else(|| invalid(problem))?;
    if bounds.windows(2).all(|pair| pair[0] < pair[1]) {
        Ok(Equivalence::Buckets(bounds))
    } else {
        Err(invalid(problem))
    }
}

fn at_most<'a>(terms: &'a [Value], word: &str) -> Result<&'a [Value], EquivalenceError> {
    if terms.len() <= MAX_TERMS {
        Ok(terms)
    } else {
        Err(invalid(&format!("`{word}` takes at most {MAX_TERMS} entries")))
    }
}

fn invalid(problem: &str) -> EquivalenceError {
    EquivalenceError::Invalid(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(given: &Value, expect: &str) {
        let read = match parse_equivalence(given) {
            Ok(equivalence) => format!("{equivalence:?}"),
            Err(error) => error.to_string(),
        };
        assert!(read.starts_with(expect), "{given}: {read}");
    }

    #[test]
    fn words_and_objects_are_read() {
        check(&json!("canonical"), "Canonical");
        check(&json!("text"), "Text");
        check(&json!({"unordered": {}}), "Unordered");
        check(&json!({"numeric": {"tolerance": 0.01}}), "Numeric { tolerance: 0.01 }");
        check(&json!({"fields": ["/a", ""]}), "Fields([\"/a\", \"\"])");
        check(&json!({"buckets": [0, 10, 1e3]}), "Buckets([0.0, 10.0, 1000.0])");
    }

    #[test]
    fn an_invalid_equivalence_names_the_valid_forms() {
        check(&json!("numeric"), "`numeric` needs a tolerance");
        check(&json!({"numeric": {"tolerance": -1}}), "`numeric` needs a tolerance");
        check(&json!({"fields": ["a"]}), "`fields` needs a list");
        check(&json!({"fields": ["/a~2"]}), "`fields` needs a list");
        check(&json!({"buckets": [2, 1]}), "`buckets` needs ascending");
        check(&json!({"text": {"case": true}}), "`text` takes no terms");
        check(&json!({"text": {}, "canonical": {}}), "must have exactly one member");
        let many = vec!["/a"; 1_001];
        check(&json!({ "fields": many }), "`fields` takes at most 1000 entries");
        let bounds: Vec<u32> = (0..1_001).collect();
        check(&json!({ "buckets": bounds }), "`buckets` takes at most 1000 entries");
        check(&json!("fuzzy"), "`fuzzy` is not known");
        check(&json!(3), "must be a word");
    }

    #[test]
    fn an_unsupported_equivalence_has_its_own_error() {
        for word in ["similarity", "judge"] {
            let expect = Err(EquivalenceError::NotSupported(word.to_owned()));
            assert_eq!(parse_equivalence(&json!(word)), expect);
            assert_eq!(parse_equivalence(&json!({word: {"threshold": 0.9}})), expect);
        }
    }
}

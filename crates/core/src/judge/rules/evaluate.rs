//! Evaluates a rule over the inputs, and names the part of it that decided.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{LengthUnit, PathCondition, Rule, RuleKind};
use crate::{
    canonical::canonical,
    judge::{JudgeVerdict, Judgment, Question, clean::clean_all},
    strict_json,
};

/// The first sentence of every reasoning.
const OPENING: &str = "This is a rule evaluation; no language model was called.";
/// How many values a document may have for a path to be applied to it.
const MOST_NODES: usize = 20_000;

/// Whether a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RuleTruth {
    Yes,
    No,
    /// The field does not have the type that the rule needs. `not` does not invert this.
    Unreadable,
}

impl RuleTruth {
    const fn from(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// An outcome, and the sentences about the rules that led to it.
struct RuleOutcome {
    holds: RuleTruth,
    why: Vec<String>,
}

pub(super) fn judge(root: &Rule, question: &Question) -> Judgment {
    let (inputs, stripped) = clean_all(&question.inputs);
    let outcome = evaluate(root, &inputs);
    let verdict = match outcome.holds {
        RuleTruth::Yes => JudgeVerdict::Met,
        RuleTruth::No | RuleTruth::Unreadable => JudgeVerdict::NotMet,
    };
    let reasoning = format!("{OPENING} {}", outcome.why.join(" "));
    Judgment {
        verdict,
        reasoning,
        findings: Vec::new(),
        stripped,
        commitment: None,
        notes: Vec::new(),
    }
}

fn evaluate(rule: &Rule, inputs: &BTreeMap<&str, String>) -> RuleOutcome {
    let text = |field: &String| inputs.get(field.as_str()).map_or("", String::as_str);
    let location = &rule.location;
    match &rule.kind {
        RuleKind::All(rules) => every(rules, inputs, RuleTruth::No),
        RuleKind::Any(rules) => every(rules, inputs, RuleTruth::Yes),
        RuleKind::Not(inner) => {
            let inner = evaluate(inner, inputs);
            let holds = match inner.holds {
                RuleTruth::Yes => RuleTruth::No,
                RuleTruth::No => RuleTruth::Yes,
                RuleTruth::Unreadable => RuleTruth::Unreadable,
            };
            RuleOutcome { holds, why: inner.why }
        }
        RuleKind::Contains { field, text: sought, ignores_case } => {
            let holds = if *ignores_case {
                text(field).to_lowercase().contains(&sought.to_lowercase())
            } else {
                text(field).contains(sought.as_str())
            };
            let what = if holds { "contains the text" } else { "does not contain the text" };
            leaf(RuleTruth::from(holds), format!("`{location}`: `{field}` {what}."))
        }
        RuleKind::Regex { field, pattern } => {
            let holds = pattern.is_match(text(field));
            let what = if holds { "matches the pattern" } else { "does not match the pattern" };
            leaf(RuleTruth::from(holds), format!("`{location}`: `{field}` {what}."))
        }
        RuleKind::Length { field, min, max, unit } => {
            let count = match unit {
                LengthUnit::Chars => text(field).chars().count(),
                LengthUnit::Words => text(field).split_whitespace().count(),
            };
            let length = u64::try_from(count).unwrap_or(u64::MAX);
            let holds = min.is_none_or(|min| min <= length) && max.is_none_or(|max| length <= max);
            let what = if holds { "which is within the bounds" } else { "which is out of bounds" };
            let unit = unit.as_str();
            leaf(
                RuleTruth::from(holds),
                format!("`{location}`: `{field}` has {length} {unit}, {what}."),
            )
        }
        RuleKind::JsonPath { field, path, wants } => {
            let name =
                format!("`{location}`: `{}` in `{field}`", path.as_str().replace(['[', ']'], "'"));
            evaluate_path(&name, text(field), |document| wanted(&path.find(document), wants))
        }
    }
}

/// Parses the text as JSON and applies the condition to it.
fn evaluate_path(
    name: &str,
    text: &str,
    rule: impl FnOnce(&Value) -> (bool, String),
) -> RuleOutcome {
    let unreadable =
        |why: String| leaf(RuleTruth::Unreadable, format!("{name} cannot be evaluated: {why}."));
    match strict_json::parse(text.trim().as_bytes()) {
        Ok(document) if nodes(&document) <= MOST_NODES => {
            let (holds, what) = rule(&document);
            leaf(RuleTruth::from(holds), format!("{name} {what}."))
        }
        Ok(_) => unreadable(format!("the document has more than {MOST_NODES} values")),
        Err(_) => unreadable("the field is not one JSON document".to_owned()),
    }
}

fn leaf(holds: RuleTruth, why: String) -> RuleOutcome {
    RuleOutcome { holds, why: vec![why] }
}

/// Evaluates rules until one decides; if none does, all of them together decide.
fn every(rules: &[Rule], inputs: &BTreeMap<&str, String>, decides: RuleTruth) -> RuleOutcome {
    let otherwise = if decides == RuleTruth::No { RuleTruth::Yes } else { RuleTruth::No };
    let mut all = RuleOutcome { holds: otherwise, why: Vec::new() };
    for rule in rules {
        let outcome = evaluate(rule, inputs);
        if outcome.holds == decides {
            return outcome;
        }
        if outcome.holds == RuleTruth::Unreadable {
            all.holds = RuleTruth::Unreadable;
        }
        all.why.extend(outcome.why);
    }
    all
}

fn wanted(found: &[&Value], wants: &PathCondition) -> (bool, String) {
    let count = found.len();
    match wants {
        PathCondition::Exists(exists) => {
            (*exists != found.is_empty(), format!("finds {count} values"))
        }
        PathCondition::Equals(value) => {
            // In canonical form `1` and `1.0` are equal.
            let sought = canonical(value);
            let holds = found.iter().any(|node| canonical(node) == sought);
            let what = if holds { "one of which is" } else { "none of which is" };
            (holds, format!("finds {count} values, {what} the wanted one"))
        }
        PathCondition::Matches(pattern) => {
            let holds =
                found.iter().any(|node| node.as_str().is_some_and(|text| pattern.is_match(text)));
            let what = if holds { "one of which matches" } else { "none of which matches" };
            (holds, format!("finds {count} values, {what} the pattern"))
        }
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(nodes).sum::<usize>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::check_rules;
    use crate::verifier::InputContract;

    fn judged(criterion: &str, response: &str) -> (JudgeVerdict, String) {
        let question = Question {
            criterion: criterion.to_owned(),
            contract: InputContract::Text,
            fields: vec!["a".to_owned()],
            examples: Vec::new(),
            inputs: BTreeMap::from([("a".to_owned(), response.to_owned())]),
        };
        let judgment = check_rules(criterion).unwrap().judge(&question);
        assert!(judgment.reasoning.starts_with(OPENING));
        assert!(!judgment.reasoning.contains(['[', ']']), "{}", judgment.reasoning);
        let why = judgment.reasoning[OPENING.len()..].trim().to_owned();
        (judgment.verdict, why)
    }

    #[track_caller]
    fn check(criterion: &str, response: &str, is_met: bool, why: &str) {
        let verdict = if is_met { JudgeVerdict::Met } else { JudgeVerdict::NotMet };
        assert_eq!(judged(criterion, response), (verdict, why.to_owned()), "{criterion}");
    }

    #[test]
    fn each_operator_decides_and_explains_itself() {
        let contains = r#"{"contains":{"field":"a","text":"Source:"}}"#;
        check(contains, "Source: x", true, "`contains`: `a` contains the text.");
        check(contains, "source: x", false, "`contains`: `a` does not contain the text.");
        check(contains, "Sour\u{200b}ce:", true, "`contains`: `a` contains the text.");
        let loose = r#"{"contains":{"field":"a","text":"SOURCE","ignore_case":true}}"#;
        check(loose, "source", true, "`contains`: `a` contains the text.");
        let regex = r#"{"regex":{"field":"a","pattern":"^\\d+$"}}"#;
        check(regex, "123", true, "`regex`: `a` matches the pattern.");
        check(regex, "12x", false, "`regex`: `a` does not match the pattern.");
        let words = r#"{"length":{"field":"a","min":2,"max":3,"unit":"words"}}"#;
        check(words, "one two", true, "`length`: `a` has 2 words, which is within the bounds.");
        check(words, "one", false, "`length`: `a` has 1 words, which is out of bounds.");
        let chars = r#"{"length":{"field":"a","max":2}}"#;
        check(chars, "éé", true, "`length`: `a` has 2 chars, which is within the bounds.");
    }

    #[test]
    fn a_path_looks_into_a_field_that_is_json() {
        let equals = r#"{"json_path":{"field":"a","path":"$.x[*].n","equals":1}}"#;
        let found =
            "`json_path`: `$.x'*'.n` in `a` finds 2 values, one of which is the wanted one.";
        check(equals, r#"{"x":[{"n":2},{"n":1.0}]}"#, true, found);
        let exists = r#"{"json_path":{"field":"a","path":"$.x","exists":false}}"#;
        check(exists, "{}", true, "`json_path`: `$.x` in `a` finds 0 values.");
        check(exists, r#"{"x":null}"#, false, "`json_path`: `$.x` in `a` finds 1 values.");
        let matches = r#"{"json_path":{"field":"a","path":"$.x","matches":"^a"}}"#;
        let found = "`json_path`: `$.x` in `a` finds 1 values, none of which matches the pattern.";
        check(matches, r#"{"x":7}"#, false, found);
    }

    #[test]
    fn a_field_that_is_not_json_satisfies_no_json_rule_even_negated() {
        let leaf = r#"{"json_path":{"field":"a","path":"$.x","exists":true}}"#;
        let why =
            "`json_path`: `$.x` in `a` cannot be evaluated: the field is not one JSON document.";
        for text in ["not json", r#"{"x":1,"x":2}"#] {
            check(leaf, text, false, why);
            let turned = judged(&format!(r#"{{"not":{leaf}}}"#), text);
            assert_eq!(turned.0, JudgeVerdict::NotMet);
        }
    }

    #[test]
    fn rules_combine_and_the_one_that_decided_is_named() {
        let both = r#"{"all":[{"contains":{"field":"a","text":"x"}},{"not":{"contains":{"field":"a","text":"y"}}}]}"#;
        check(
            both,
            "x",
            true,
            "`all.0.contains`: `a` contains the text. `all.1.not.contains`: `a` does not contain the text.",
        );
        check(both, "xy", false, "`all.1.not.contains`: `a` contains the text.");
        let either = r#"{"any":[{"contains":{"field":"a","text":"x"}},{"contains":{"field":"a","text":"y"}}]}"#;
        check(either, "y", true, "`any.1.contains`: `a` contains the text.");
        check(
            either,
            "z",
            false,
            "`any.0.contains`: `a` does not contain the text. `any.1.contains`: `a` does not contain the text.",
        );
    }
}

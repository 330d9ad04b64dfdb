//! Parses a criterion as a rule, within limits, and names the path of a fault.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::{
    LengthUnit, MOST_DEPTH, MOST_RULES, PATTERN_BYTES, PathCondition, REGEX_BYTES, Rule, RuleKind,
    RulesError, TEXT_CHARS, path::RulePath,
};
use crate::strict_json;

const OPERATORS: &str = "`all`, `any`, `not`, `contains`, `regex`, `length`, `json_path`";

type RulesResult<T> = std::result::Result<T, RulesError>;

pub(super) fn parse(criterion: &str) -> RulesResult<Rule> {
    let document = strict_json::parse(criterion.trim().as_bytes()).map_err(|error| RulesError {
        field: "criterion".to_owned(),
        problem: format!("must be a rule in JSON for the judge `builtin/rules`: {error}"),
    })?;
    let mut reader = RuleParser { rules: 0 };
    reader.rule(&document, "", MOST_DEPTH)
}

struct RuleParser {
    rules: usize,
}

fn wrong<T>(place: &str, problem: impl Into<String>) -> RulesResult<T> {
    let field =
        if place.is_empty() { "criterion".to_owned() } else { format!("criterion.{place}") };
    Err(RulesError { field, problem: problem.into() })
}

fn below(place: &str, name: impl std::fmt::Display) -> String {
    if place.is_empty() { name.to_string() } else { format!("{place}.{name}") }
}

impl RuleParser {
    fn rule(&mut self, document: &Value, place: &str, depth: usize) -> RulesResult<Rule> {
        self.rules += 1;
        if MOST_RULES < self.rules {
            return wrong(place, format!("is one rule too many; the limit is {MOST_RULES}"));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return wrong(place, format!("is nested deeper than {MOST_DEPTH} levels"));
        };
        let members = document.as_object().filter(|members| members.len() == 1);
        let Some((operator, content)) = members.and_then(|members| members.iter().next()) else {
            return wrong(place, format!("must be an object with one operator: {OPERATORS}"));
        };
        let place = below(place, operator);
        let kind = match operator.as_str() {
            "all" => RuleKind::All(self.list(content, &place, depth)?),
            "any" => RuleKind::Any(self.list(content, &place, depth)?),
            "not" => RuleKind::Not(Box::new(self.rule(content, &place, depth)?)),
            "contains" => contains(content, &place)?,
            "regex" => matching(content, &place)?,
            "length" => length(content, &place)?,
            "json_path" => json_path(content, &place)?,
            _ => return wrong("", format!("has an unknown operator; use one of {OPERATORS}")),
        };
        Ok(Rule { place, kind })
    }

    fn list(&mut self, content: &Value, place: &str, depth: usize) -> RulesResult<Vec<Rule>> {
        let Some(rules) = content.as_array().filter(|rules| !rules.is_empty()) else {
            return wrong(place, "must be a list with at least one rule");
        };
        let rule = |(at, rule): (usize, &Value)| self.rule(rule, &below(place, at), depth);
        rules.iter().enumerate().map(rule).collect()
    }
}

/// The members of an operator; an unknown member is a fault.
fn members<'a>(
    content: &'a Value,
    place: &str,
    known: &[&str],
) -> RulesResult<&'a Map<String, Value>> {
    let listed = known.join("`, `");
    match content.as_object() {
        Some(members) if members.keys().all(|name| known.contains(&name.as_str())) => Ok(members),
        Some(_) | None => wrong(place, format!("must be an object with some of `{listed}`")),
    }
}

fn text(members: &Map<String, Value>, place: &str, name: &str) -> RulesResult<String> {
    match members.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() && text.chars().count() <= TEXT_CHARS => Ok(text.to_owned()),
        Some(_) | None => {
            wrong(&below(place, name), format!("must be a string of 1 to {TEXT_CHARS} characters"))
        }
    }
}

fn contains(content: &Value, place: &str) -> RulesResult<RuleKind> {
    let members = members(content, place, &["field", "text", "ignore_case"])?;
    let ignores_case = match members.get("ignore_case") {
        None => false,
        Some(Value::Bool(ignores)) => *ignores,
        Some(_) => return wrong(&below(place, "ignore_case"), "must be true or false"),
    };
    let (field, text) = (text(members, place, "field")?, text(members, place, "text")?);
    Ok(RuleKind::Contains { field, text, ignores_case })
}

fn matching(content: &Value, place: &str) -> RulesResult<RuleKind> {
    let members = members(content, place, &["field", "pattern"])?;
    let pattern = pattern(&text(members, place, "pattern")?, &below(place, "pattern"))?;
    Ok(RuleKind::Regex { field: text(members, place, "field")?, pattern })
}

fn pattern(pattern: &str, place: &str) -> RulesResult<Regex> {
    if PATTERN_BYTES < pattern.len() {
        return wrong(place, format!("must have at most {PATTERN_BYTES} bytes"));
    }
    let built =
        RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
    built.or_else(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            wrong(place, "takes too much memory; use fewer or smaller repetitions")
        } else {
            wrong(place, "is not a regular expression in the syntax of the Rust crate `regex`")
        }
    })
}

fn length(content: &Value, place: &str) -> RulesResult<RuleKind> {
    let members = members(content, place, &["field", "min", "max", "unit"])?;
    let bound = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(number) => match number.as_u64() {
            Some(number) => Ok(Some(number)),
            None => wrong(&below(place, name), "must be a whole number, 0 or more"),
        },
    };
    let unit = match members.get("unit").map(Value::as_str) {
        None | Some(Some("chars")) => LengthUnit::Chars,
        Some(Some("words")) => LengthUnit::Words,
        Some(_) => return wrong(&below(place, "unit"), "must be `chars` or `words`"),
    };
    let (min, max) = (bound("min")?, bound("max")?);
    if min.is_none() && max.is_none() {
        return wrong(place, "needs `min`, `max` or both");
    }
    if let (Some(min), Some(max)) = (min, max)
        && max < min
    {
        return wrong(&below(place, "max"), "must not be smaller than `min`");
    }
    Ok(RuleKind::Length { field: text(members, place, "field")?, min, max, unit })
}

fn json_path(content: &Value, place: &str) -> RulesResult<RuleKind> {
    let members = members(content, place, &["field", "path", "exists", "equals", "matches"])?;
    let path = text(members, place, "path")?;
    let path = match RulePath::parse(&path) {
        Ok(path) => path,
        Err(problem) => return wrong(&below(place, "path"), problem),
    };
    let wants = match (members.get("exists"), members.get("equals"), members.get("matches")) {
        (Some(Value::Bool(exists)), None, None) => PathCondition::Exists(*exists),
        (None, Some(value), None) => PathCondition::Equals(value.clone()),
        (None, None, Some(Value::String(_))) => {
            let place = below(place, "matches");
            PathCondition::Matches(pattern(
                members["matches"].as_str().unwrap_or_default(),
                &place,
            )?)
        }
        _ => {
            let problem = "needs exactly one of `exists` with true or false, `equals` with a value, \
                           and `matches` with a pattern";
            return wrong(place, problem);
        }
    };
    Ok(RuleKind::JsonPath { field: text(members, place, "field")?, path, wants })
}

#[cfg(test)]
mod tests {
    use crate::judge::rules::check_rules;
    use crate::verifier::InputContract;

    fn refusal(criterion: &str) -> String {
        check_rules(criterion).unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_criterion_is_refused_with_its_path() {
        for (criterion, refused) in [
            ("Is it kind?", "`criterion` must be a rule in JSON"),
            ("[]", "`criterion` must be an object with one operator"),
            ("{}", "`criterion` must be an object with one operator"),
            (r#"{"all":[],"any":[]}"#, "`criterion` must be an object with one operator"),
            (r#"{"xor":[]}"#, "`criterion` has an unknown operator; use one of `all`"),
            (r#"{"all":[]}"#, "`criterion.all` must be a list with at least one rule"),
            (
                r#"{"all":[{"regex":{"field":"a","pattern":"("}}]}"#,
                "`criterion.all.0.regex.pattern` is not a regular expression",
            ),
            (
                r#"{"regex":{"field":"a","pattern":"((a{90}){90}){90}"}}"#,
                "`criterion.regex.pattern` takes too much memory",
            ),
            (r#"{"contains":{"field":"a"}}"#, "`criterion.contains.text` must be a string"),
            (
                r#"{"contains":{"field":"a","text":"b","case":1}}"#,
                "`criterion.contains` must be an",
            ),
            (r#"{"length":{"field":"a"}}"#, "`criterion.length` needs `min`, `max` or both"),
            (r#"{"length":{"field":"a","min":2,"max":1}}"#, "`criterion.length.max` must not be"),
            (r#"{"length":{"field":"a","min":-1}}"#, "`criterion.length.min` must be a whole"),
            (r#"{"length":{"field":"a","min":1,"unit":"bytes"}}"#, "`criterion.length.unit` must"),
            (
                r#"{"json_path":{"field":"a","path":"x","exists":true}}"#,
                "`criterion.json_path.path`",
            ),
            (r#"{"json_path":{"field":"a","path":"$.x"}}"#, "`criterion.json_path` needs exactly"),
            (r#"{"not":{"not":1,"not":2}}"#, "`criterion` must be a rule in JSON"),
        ] {
            assert!(refusal(criterion).starts_with(refused), "{criterion}: {}", refusal(criterion));
        }
    }

    #[test]
    fn rules_have_limits() {
        let leaf = r#"{"contains":{"field":"a","text":"b"}}"#;
        let nested =
            |levels: usize| format!("{}{leaf}{}", "{\"not\":".repeat(levels), "}".repeat(levels));
        assert!(check_rules(&nested(7)).is_ok());
        assert!(refusal(&nested(8)).contains("deeper than 8 levels"));
        let many = |count: usize| format!("{{\"all\":[{}]}}", vec![leaf; count].join(","));
        assert!(check_rules(&many(63)).is_ok());
        assert!(refusal(&many(64)).contains("one rule too many"));
    }

    #[test]
    fn fields_must_be_declared_and_the_contract_must_be_text() {
        let rules = check_rules(r#"{"all":[{"not":{"length":{"field":"b","min":1}}}]}"#).unwrap();
        let fields =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(rules.check_fields(InputContract::Text, &fields(&["a", "b"])), Ok(()));
        let error = rules.check_fields(InputContract::Text, &fields(&["a"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`criterion.all.0.not.length.field` must be one of the input fields: a"
        );
        let error = rules.check_fields(InputContract::TextImage, &fields(&["b"])).unwrap_err();
        assert_eq!(error.field, "input_contract");
    }
}

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

fn wrong<T>(location: &str, problem: impl Into<String>) -> RulesResult<T> {
    let field =
        if location.is_empty() { "criterion".to_owned() } else { format!("criterion.{location}") };
    Err(RulesError { field, problem: problem.into() })
}

fn below(location: &str, name: impl std::fmt::Display) -> String {
    if location.is_empty() { name.to_string() } else { format!("{location}.{name}") }
}

impl RuleParser {
    fn rule(&mut self, document: &Value, location: &str, depth: usize) -> RulesResult<Rule> {
        self.rules += 1;
        if MOST_RULES < self.rules {
            return wrong(location, format!("is one rule too many; the limit is {MOST_RULES}"));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return wrong(location, format!("is nested deeper than {MOST_DEPTH} levels"));
        };
        let members = document.as_object().filter(|members| members.len() == 1);
        let Some((operator, content)) = members.and_then(|members| members.iter().next()) else {
            return wrong(location, format!("must be an object with one operator: {OPERATORS}"));
        };
        let location = below(location, operator);
        let kind = match operator.as_str() {
            "all" => RuleKind::All(self.list(content, &location, depth)?),
            "any" => RuleKind::Any(self.list(content, &location, depth)?),
            "not" => RuleKind::Not(Box::new(self.rule(content, &location, depth)?)),
            "contains" => contains(content, &location)?,
            "regex" => matching(content, &location)?,
            "length" => length(content, &location)?,
            "json_path" => json_path(content, &location)?,
            _ => return wrong("", format!("has an unknown operator; use one of {OPERATORS}")),
        };
        Ok(Rule { location, kind })
    }

    fn list(&mut self, content: &Value, location: &str, depth: usize) -> RulesResult<Vec<Rule>> {
        let Some(rules) = content.as_array().filter(|rules| !rules.is_empty()) else {
            return wrong(location, "must be a list with at least one rule");
        };
        let rule = |(at, rule): (usize, &Value)| self.rule(rule, &below(location, at), depth);
        rules.iter().enumerate().map(rule).collect()
    }
}

/// The members of an operator; an unknown member is a fault.
fn members<'a>(
    content: &'a Value,
    location: &str,
    known: &[&str],
) -> RulesResult<&'a Map<String, Value>> {
    let listed = known.join("`, `");
    match content.as_object() {
        Some(members) if members.keys().all(|name| known.contains(&name.as_str())) => Ok(members),
        Some(_) | None => wrong(location, format!("must be an object with some of `{listed}`")),
    }
}

fn text(members: &Map<String, Value>, location: &str, name: &str) -> RulesResult<String> {
    match members.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() && text.chars().count() <= TEXT_CHARS => Ok(text.to_owned()),
        Some(_) | None => wrong(
            &below(location, name),
            format!("must be a string of 1 to {TEXT_CHARS} characters"),
        ),
    }
}

fn contains(content: &Value, location: &str) -> RulesResult<RuleKind> {
    let members = members(content, location, &["field", "text", "ignore_case"])?;
    let ignores_case = match members.get("ignore_case") {
        None => false,
        Some(Value::Bool(ignores)) => *ignores,
        Some(_) => return wrong(&below(location, "ignore_case"), "must be true or false"),
    };
    let (field, text) = (text(members, location, "field")?, text(members, location, "text")?);
    Ok(RuleKind::Contains { field, text, ignores_case })
}

fn matching(content: &Value, location: &str) -> RulesResult<RuleKind> {
    let members = members(content, location, &["field", "pattern"])?;
    let pattern = pattern(&text(members, location, "pattern")?, &below(location, "pattern"))?;
    Ok(RuleKind::Regex { field: text(members, location, "field")?, pattern })
}

fn pattern(pattern: &str, location: &str) -> RulesResult<Regex> {
    if PATTERN_BYTES < pattern.len() {
        return wrong(location, format!("must have at most {PATTERN_BYTES} bytes"));
    }
    let built =
        RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
    built.or_else(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            wrong(location, "takes too much memory; use fewer or smaller repetitions")
        } else {
            wrong(location, "is not a regular expression in the syntax of the Rust crate `regex`")
        }
    })
}

fn length(content: &Value, location: &str) -> RulesResult<RuleKind> {
    let members = members(content, location, &["field", "min", "max", "unit"])?;
    let limit = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(number) => match number.as_u64() {
            Some(number) => Ok(Some(number)),
            None => wrong(&below(location, name), "must be a whole number, 0 or more"),
        },
    };
    let unit = match members.get("unit").map(Value::as_str) {
        None | Some(Some("chars")) => LengthUnit::Chars,
        Some(Some("words")) => LengthUnit::Words,
        Some(_) => return wrong(&below(location, "unit"), "must be `chars` or `words`"),
    };
    let (min, max) = (limit("min")?, limit("max")?);
    if min.is_none() && max.is_none() {
        return wrong(location, "needs `min`, `max` or both");
    }
    if let (Some(min), Some(max)) = (min, max)
        && max < min
    {
        return wrong(&below(location, "max"), "must not be smaller than `min`");
    }
    Ok(RuleKind::Length { field: text(members, location, "field")?, min, max, unit })
}

fn json_path(content: &Value, location: &str) -> RulesResult<RuleKind> {
    let members = members(content, location, &["field", "path", "exists", "equals", "matches"])?;
    let path = text(members, location, "path")?;
    let path = match RulePath::parse(&path) {
        Ok(path) => path,
        Err(problem) => return wrong(&below(location, "path"), problem),
    };
    let wants = match (members.get("exists"), members.get("equals"), members.get("matches")) {
        (Some(Value::Bool(exists)), None, None) => PathCondition::Exists(*exists),
        (None, Some(value), None) => PathCondition::Equals(value.clone()),
        (None, None, Some(Value::String(_))) => {
            let location = below(location, "matches");
            PathCondition::Matches(pattern(
                members["matches"].as_str().unwrap_or_default(),
                &location,
            )?)
        }
        _ => {
            let problem = "needs exactly one of `exists` with true or false, `equals` with a value, \
                           and `matches` with a pattern";
            return wrong(location, problem);
        }
    };
    Ok(RuleKind::JsonPath { field: text(members, location, "field")?, path, wants })
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

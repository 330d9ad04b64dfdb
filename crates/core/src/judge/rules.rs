//! The judge `builtin/rules`: a criterion that is a rule in JSON, decided without a language model.

mod evaluate;
mod parse;
mod path;

use regex::Regex;
use serde_json::Value;

use self::path::RulePath;
use super::{Judgment, Question};
use crate::verifier::InputContract;

/// How deep rules may lie inside one another.
const MOST_DEPTH: usize = 8;
/// How many rules there may be in all.
const MOST_RULES: usize = 64;
/// The longest text to look for.
const TEXT_CHARS: usize = 2_000;
/// The longest pattern, and the memory that it may take when it is compiled.
const PATTERN_BYTES: usize = 512;
const REGEX_BYTES: usize = 128 * 1024;

/// Why a criterion is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct RulesError {
    /// The place in the criterion, such as `criterion.all.0.regex.pattern`.
    pub field: String,
    pub problem: String,
}

/// A criterion that was read and can be decided.
#[derive(Debug, Clone)]
pub struct CriterionRules {
    root: Rule,
}

/// A rule with its place in the criterion, by which the reasoning names it.
#[derive(Debug, Clone)]
struct Rule {
    place: String,
    kind: RuleKind,
}

#[derive(Debug, Clone)]
enum RuleKind {
    All(Vec<Rule>),
    Any(Vec<Rule>),
    Not(Box<Rule>),
    Contains { field: String, text: String, ignores_case: bool },
    Regex { field: String, pattern: Regex },
    Length { field: String, min: Option<u64>, max: Option<u64>, unit: LengthUnit },
    JsonPath { field: String, path: RulePath, wants: PathCondition },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LengthUnit {
    Chars,
    Words,
}

impl LengthUnit {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Chars => "chars",
            Self::Words => "words",
        }
    }
}

/// What must be true of the nodes that a path finds.
#[derive(Debug, Clone)]
enum PathCondition {
    /// There is one, or there is none.
    Exists(bool),
    /// One equals the value.
    Equals(Value),
    /// One is a text that matches.
    Matches(Regex),
}

/// Reads a criterion as a rule, and says where it is none.
pub fn check_rules(criterion: &str) -> Result<CriterionRules, RulesError> {
    parse::parse(criterion).map(|root| CriterionRules { root })
}

impl CriterionRules {
    /// Whether the rules can be used with a contract and its fields.
    pub fn check_fields(
        &self,
        contract: InputContract,
        fields: &[String],
    ) -> Result<(), RulesError> {
        if contract.has_image() {
            return Err(RulesError {
                field: "input_contract".to_owned(),
                problem: "must be `text`: the judge `builtin/rules` sees no images".to_owned(),
            });
        }
        let mut stack = vec![&self.root];
        while let Some(rule) = stack.pop() {
            let field = match &rule.kind {
                RuleKind::All(rules) | RuleKind::Any(rules) => {
                    stack.extend(rules);
                    continue;
                }
                RuleKind::Not(inner) => {
                    stack.push(inner);
                    continue;
                }
                RuleKind::Contains { field, .. }
                | RuleKind::Regex { field, .. }
                | RuleKind::Length { field, .. }
                | RuleKind::JsonPath { field, .. } => field,
            };
            if !fields.contains(field) {
                let declared = fields.join(", ");
                let problem = format!("must be one of the input fields: {declared}");
                return Err(RulesError {
                    field: format!("criterion.{}.field", rule.place),
                    problem,
                });
            }
        }
        Ok(())
    }

    /// Decides the inputs of a question. It reads them as a judge would, without invisible
    /// characters.
    pub fn judge(&self, question: &Question) -> Judgment {
        evaluate::judge(&self.root, question)
    }
}

//! The judge `builtin/rules`: a criterion that is a rule in JSON, decided without a language model.

mod evaluate;
mod parse;
mod path;

use regex::Regex;
use serde_json::Value;

use self::path::RulePath;
use super::{Judgment, Question};
use crate::verifier::InputContract;

/// How deeply rules may be nested.
const MOST_DEPTH: usize = 8;
/// How many rules a criterion may have.
const MOST_RULES: usize = 64;
/// The maximum length of a text to search for.
const TEXT_CHARS: usize = 2_000;
/// The maximum length of a pattern, and the memory that its compiled form may take.
const PATTERN_BYTES: usize = 512;
const REGEX_BYTES: usize = 128 * 1024;

/// Why a criterion is not a valid rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {problem}")]
pub struct RulesError {
    /// The path in the criterion, such as `criterion.all.0.regex.pattern`.
    pub field: String,
    pub problem: String,
}

/// A parsed criterion.
#[derive(Debug, Clone)]
pub struct CriterionRules {
    root: Rule,
}

/// A rule and its path in the criterion, by which the reasoning names it.
#[derive(Debug, Clone)]
struct Rule {
    location: String,
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

/// The condition on the nodes that a path finds.
#[derive(Debug, Clone)]
enum PathCondition {
    /// Whether a node must exist.
    Exists(bool),
    /// At least one node equals the value.
    Equals(Value),
    /// At least one node is a text that matches.
    Matches(Regex),
}

/// Parses a criterion, and names the path of a fault.
pub fn check_rules(criterion: &str) -> Result<CriterionRules, RulesError> {
    parse::parse(criterion).map(|root| CriterionRules { root })
}

impl CriterionRules {
    /// Checks that the rules fit a contract and its fields.
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
                    field: format!("criterion.{}.field", rule.location),
                    problem,
                });
            }
        }
        Ok(())
    }

    /// Decides the inputs of a question. Like any judge, it reads them without invisible
    /// characters.
    pub fn judge(&self, question: &Question) -> Judgment {
        evaluate::judge(&self.root, question)
    }
}

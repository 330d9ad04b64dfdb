//! `vp.schema_thresholds.v1`: the output matches the schema, and its fields satisfy thresholds.

use std::{cmp::Ordering, fmt};

use jurat_limits::{
    quote::plain,
    size::{size, text_size},
    work::MAX_APPLICATIONS,
};
use serde_json::{Map, Number, Value};

use super::{
    Evaluation, Policy, PolicyRules,
    params::{self, BindError, is_pointer},
    schema_only,
};
use crate::{
    canonical::same_json,
    reason,
    schema::{Schema, WorkEstimate},
};

const MAX_THRESHOLDS: usize = 1_000;
const MAX_NOTES: usize = 5;
const PARAMS: &[&str] = &["thresholds", "min_confidence", "max_len"];

/// The conditions on the output besides the schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutputThresholds {
    pub thresholds: Vec<Threshold>,
    /// The minimum of the output's `confidence`.
    pub min_confidence: Option<f64>,
    /// The maximum size of the output as compact JSON, in bytes.
    pub max_len: Option<u64>,
}

/// A comparison of one output member with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    /// A JSON Pointer into the output.
    pub path: String,
    pub comparison: ThresholdOperator,
    pub value: Value,
}

/// The comparison of a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThresholdOperator {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
    NotEqual,
}

impl ThresholdOperator {
    /// Every operator.
    pub const ALL: &[Self] =
        &[Self::More, Self::AtLeast, Self::Less, Self::AtMost, Self::Equal, Self::NotEqual];

    /// The operator as it is written in parameters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }

    /// Whether the operator compares sizes, which needs numbers.
    const fn is_ordering(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
        }
    }
}

impl fmt::Display for ThresholdOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub(super) fn bind(rules: PolicyRules, given: &Value) -> Result<Policy, BindError> {
    let limits = match rules {
        PolicyRules::Jurat => limits(given)?,
        // WattSwarm ignores parameters that it does not know.
        PolicyRules::WattSwarm => OutputThresholds {
            thresholds: Vec::new(),
            min_confidence: given.get("min_confidence").and_then(Value::as_f64),
            max_len: given.get("max_len").and_then(Value::as_u64),
        },
    };
    Ok(Policy::SchemaThresholds { rules, limits })
}

fn limits(given: &Value) -> Result<OutputThresholds, BindError> {
    let Some(members) = params::members(given, PARAMS)? else {
        return Ok(OutputThresholds::default());
    };
    let min_confidence = match members.get("min_confidence") {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) => number.as_f64(),
        Some(_) => {
            return Err(BindError::params("policy_params.min_confidence", "must be a number"));
        }
    };
    let max_len = match members.get("max_len") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_u64().ok_or_else(|| {
            BindError::params("policy_params.max_len", "must be a whole number, 0 or more")
        })?),
    };
    let given = params::list(members, "thresholds", MAX_THRESHOLDS)?;
    let thresholds = given.iter().enumerate().map(|(index, item)| threshold(index, item));
    Ok(OutputThresholds {
        thresholds: thresholds.collect::<Result<_, _>>()?,
        min_confidence,
        max_len,
    })
}

fn threshold(index: usize, item: &Value) -> Result<Threshold, BindError> {
    let here = format!("policy_params.thresholds.{index}");
    let Value::Object(members) = item else {
        return Err(BindError::params(
            here,
            "must be an object such as {\"path\": \"/score\", \"op\": \">=\", \"value\": 0.8}",
        ));
    };
    if let Some(name) =
        members.keys().find(|name| !["path", "op", "value"].contains(&name.as_str()))
    {
        return Err(BindError::params(
            format!("{here}.{}", plain(name, 60)),
            "is not part of a threshold; known are: path, op, value",
        ));
    }
    let path = text(members, "path").filter(|path| is_pointer(path)).ok_or_else(|| {
        BindError::params(format!("{here}.path"), "must be a JSON Pointer such as /score")
    })?;
    let comparison = text(members, "op")
        .and_then(|op| ThresholdOperator::ALL.iter().copied().find(|known| known.as_str() == op))
        .ok_or_else(|| BindError::params(format!("{here}.op"), "must be one of > >= < <= == !="))?;
    let value = members
        .get("value")
        .ok_or_else(|| BindError::params(format!("{here}.value"), "is missing"))?;
    if comparison.is_ordering() && !value.is_number() {
        return Err(BindError::params(
            format!("{here}.value"),
            format!("must be a number, because `{comparison}` compares numbers"),
        ));
    }
    Ok(Threshold { path: path.to_owned(), comparison, value: value.clone() })
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

/// The work of following each path and comparing its value.
///
/// A comparison ends with the smaller side, so a threshold costs at most the size of the output,
/// and at most the size of its own value.
pub(super) fn estimate(limits: &OutputThresholds, output: &Value) -> WorkEstimate {
    let whole = size(output);
    let compared = limits.thresholds.iter().map(|threshold| {
        let value = size(&threshold.value).min(whole);
        value.saturating_add(text_size(&threshold.path))
    });
    // Finding the length takes writing the output once.
    let written = if limits.max_len.is_some() { whole } else { 0 };
    WorkEstimate {
        applications: compared.fold(written, u64::saturating_add),
        ..WorkEstimate::default()
    }
}

pub(super) fn evaluate(limits: &OutputThresholds, output: &Value, schema: &Schema) -> Evaluation {
    if MAX_APPLICATIONS < estimate(limits, output).applications {
        let note = "Comparing the output with the thresholds would take too much work.";
        return Evaluation::inconclusive(reason::EVALUATION_REFUSED, note);
    }
    if let Some(evaluation) = schema_only::unmatched(output, schema) {
        return evaluation;
    }
    let mut unmet = Vec::new();
    if let Some(least) = limits.min_confidence {
        unmet.extend(confidence(least, output));
    }
    if let Some(most) = limits.max_len {
        let length = compact_len(output);
        if most < length {
            let note = format!("The output has {length} bytes, more than `max_len` {most}.");
            unmet.push((reason::OUTPUT_TOO_LARGE, note));
        }
    }
    unmet.extend(limits.thresholds.iter().filter_map(|threshold| threshold.unmet(output)));
    if unmet.is_empty() {
        return Evaluation::passed(Vec::new());
    }
    let mut codes: Vec<u16> = unmet.iter().map(|(code, _)| *code).collect();
    codes.sort_unstable();
    codes.dedup();
    let notes = unmet.into_iter().map(|(_, note)| note).take(MAX_NOTES).collect();
    Evaluation::failed(codes, notes)
}

/// A missing confidence fails.
fn confidence(least: f64, output: &Value) -> Option<(u16, String)> {
    let note = match output.get("confidence").and_then(Value::as_f64) {
        Some(given) if least <= given => return None,
        Some(given) => format!("`confidence` is {given}, below {least}."),
        None => format!("`confidence` is not a number; at least {least} is needed."),
    };
    Some((reason::CONFIDENCE_TOO_LOW, note))
}

/// The length of the value as compact JSON.
pub(super) fn compact_len(value: &Value) -> u64 {
    u64::try_from(value.to_string().len()).unwrap_or(u64::MAX)
}

impl Threshold {
    fn unmet(&self, output: &Value) -> Option<(u16, String)> {
        let Self { path, comparison, value } = self;
        let Some(found) = output.pointer(path) else {
            return Some((reason::THRESHOLD_FIELD_MISSING, format!("`{path}` is missing.")));
        };
        let is_met = match (found, value) {
            (Value::Number(found), Value::Number(value)) => {
                compare(found, value).is_some_and(|order| comparison.holds(order))
            }
            _ if comparison.is_ordering() => {
                let note = format!("`{path}` is not a number.");
                return Some((reason::THRESHOLD_FIELD_MISSING, note));
            }
            _ => (*comparison == ThresholdOperator::Equal) == same_json(found, value),
        };
        if is_met {
            return None;
        }
        let found = shown(found);
        let note = format!("`{path}` is {found}; it must be {comparison} {}.", shown(value));
        Some((reason::THRESHOLD_NOT_MET, note))
    }
}

/// Integers compare exactly, other numbers as floating point.
pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    let whole = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// A value in a note: numbers, booleans and short texts only.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => {
            let short: String = text.chars().take(40).collect();
            format!("\"{short}{}\"", if short.len() < text.len() { "…" } else { "" })
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

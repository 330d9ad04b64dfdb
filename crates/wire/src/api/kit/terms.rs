//! The `consensus` block of a request.

use jurat_core::{
    code::ProblemCode,
    policy::{EquivalenceError, parse_equivalence},
    round::job::{AgreementTerms, PoolEntry, ScoreAggregation, Toggle},
};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    choices::{EquivalenceChoice, Include, Replicas, SessionRef},
    fields::{RequestFields, short, whole_number},
    words,
};
use crate::problem::Problem;

/// The terms of consensus. `weight_by` and `target_confidence` are refused with `not_supported`.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConsensusTerms {
    /// Number of sessions to call; defaults to that of the tier, or 1.
    pub replicas: Option<Replicas>,
    /// Sessions that may be called; defaults to all.
    #[schema(min_items = 1, max_items = 100)]
    pub session_pool: Option<Vec<SessionRef>>,
    /// How many spare sessions of the pool may replace failed ones; defaults to the number of
    /// replicas, 0 for none.
    #[schema(minimum = 0, maximum = 10)]
    pub spares: Option<u8>,
    pub aggregation: Option<words::Aggregation>,
    /// Alias of `aggregation`.
    pub strategy: Option<words::Aggregation>,
    /// What to return when the replicas do not agree; defaults to `return_all`.
    pub disagreement_policy: Option<words::DisagreementPolicy>,
    /// Minimum share that must agree, in addition to a majority.
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub min_agreement: Option<f64>,
    /// How a replica without an answer counts; defaults to `count`.
    pub timeout_policy: Option<words::TimeoutPolicy>,
    /// When two delegate outputs count as equal; depends on the outputs if left out.
    pub equivalence: Option<EquivalenceChoice>,
    /// How the output is built from the winners' outputs; defaults to `medoid`.
    pub merge: Option<words::Merge>,
    /// Stop as soon as no outstanding replica can change the winner.
    pub early_stop: Option<bool>,
    pub include: Option<Vec<Include>>,
}

/// Outputs are equal if they are equal at these JSON Pointers.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldsEquivalence {
    #[schema(min_items = 1, max_items = 1000)]
    pub fields: Vec<Pointer>,
}

/// Outputs are equal if their numbers differ by at most the tolerance.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NumericEquivalence {
    pub numeric: Tolerance,
}

/// Maximum difference between numbers.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    #[schema(minimum = 0)]
    pub tolerance: f64,
}

/// Outputs are equal if their numbers are between the same two of these ascending bounds.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BucketsEquivalence {
    #[schema(min_items = 1, max_items = 1000)]
    pub buckets: Vec<f64>,
}

/// A JSON Pointer.
#[derive(Debug, ToSchema)]
#[schema(pattern = "^(/([^~/]|~[01])*)*$")]
pub struct Pointer(pub String);

const LATER: &[&str] = &["weighted", "median_of_means", "model_ensemble", "ensemble_model"];
const LARGEST_POOL: usize = 100;
const MOST_SPARES: u64 = 10;

/// Terms for a request; `tier_replicas` is what the tier asks for when the block does not say.
pub fn decode(body: &RequestFields<'_>, tier_replicas: u8) -> Result<AgreementTerms, Problem> {
    let mut terms =
        AgreementTerms { spares: None, ..AgreementTerms::plain(tier_replicas, Vec::new()) };
    let Some(block) = body.object("consensus")? else { return Ok(terms) };
    for name in ["weight_by", "target_confidence"] {
        if block.get(name).is_some() {
            return Err(block.unsupported(name, "is not supported; leave it out"));
        }
    }
    if let Some(replicas) = replicas(&block)? {
        terms.replicas = replicas;
    }
    terms.pool = pool(&block)?;
    let spares = block.whole("spares", 0, MOST_SPARES)?;
    terms.spares = spares.and_then(|spares| u8::try_from(spares).ok());
    if let Some(aggregation) = aggregation(&block)? {
        terms.aggregation = aggregation;
    }
    terms.min_agreement = min_agreement(&block)?;
    if let Some(word) =
        block.word("disagreement_policy", &["return_all", "fail_hard", "best_effort"])?
    {
        terms.disagreement = word;
    }
    if let Some(word) = block.word("timeout_policy", &["count", "ignore", "negative"])? {
        terms.timeout_policy = word;
    }
    if let Some(word) = block.word("merge", &["medoid", "fields"])? {
        terms.merge = word;
    }
    if block.flag("early_stop")? == Some(true) {
        terms.early_stop = Toggle::On;
    }
    if let Some(value) = block.get("equivalence") {
        terms.equivalence = Some(parse_equivalence(value).map_err(|error| match error {
            EquivalenceError::NotSupported(name) => block.unsupported(
                "equivalence",
                &format!("`{name}` is not supported; use canonical, fields, numeric, buckets, unordered or text"),
            ),
            EquivalenceError::Invalid(reason) => block.wrong("equivalence", &reason),
        })?);
    }
    for word in block.texts("include")? {
        match word {
            "traces" => terms.traces = Toggle::On,
            other => {
                let reason = format!("accepts only `traces`, not `{}`", short(other));
                return Err(block.wrong("include", &reason));
            }
        }
    }
    Ok(terms)
}

fn replicas(block: &RequestFields<'_>) -> Result<Option<u8>, Problem> {
    match block.get("replicas") {
        None => Ok(None),
        Some(Value::String(word)) if word == "adaptive" => {
            Err(block.unsupported("replicas", "`adaptive` is not supported; use 1, 3 or 5"))
        }
        Some(value) => match whole_number(value) {
            Some(1) => Ok(Some(1)),
            Some(3) => Ok(Some(3)),
            Some(5) => Ok(Some(5)),
            _ => Err(block.wrong("replicas", "must be 1, 3 or 5")),
        },
    }
}

fn pool(block: &RequestFields<'_>) -> Result<Vec<PoolEntry>, Problem> {
    let Some(value) = block.get("session_pool") else { return Ok(Vec::new()) };
    let wrong =
        || block.wrong("session_pool", "must be a list of session ids, `label:…` or `profile:…`");
    let items = value.as_array().ok_or_else(wrong)?;
    if items.is_empty() {
        return Err(
            block.wrong("session_pool", "must not be empty; leave it out to let the server choose")
        );
    }
    if LARGEST_POOL < items.len() {
        return Err(
            block.wrong("session_pool", &format!("must have at most {LARGEST_POOL} entries"))
        );
    }
    let mut pool = Vec::with_capacity(items.len());
    for item in items {
        let entry = pool_entry(item).ok_or_else(wrong)?;
        if pool.contains(&entry) {
            return Err(
                block.wrong("session_pool", &format!("has `{}` twice", short(&name_of(&entry))))
            );
        }
        pool.push(entry);
    }
    Ok(pool)
}

/// A session id, as a string or an integer, a label or a profile.
pub fn pool_entry(item: &Value) -> Option<PoolEntry> {
    let text = match item {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number.to_string(),
            // `3.0` is 3 in JSON.
            None => format!("{:.0}", number.as_f64().filter(|number| number.fract() == 0.0)?),
        },
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            return None;
        }
    };
    Some(match text.split_once(':') {
        Some(("label", label)) => PoolEntry::Label(label.to_owned()),
        Some(("profile", profile)) => PoolEntry::Profile(profile.to_owned()),
        Some(_) | None => PoolEntry::Session(text),
    })
}

fn name_of(entry: &PoolEntry) -> String {
    match entry {
        PoolEntry::Session(id) => id.clone(),
        PoolEntry::Label(label) => format!("label:{label}"),
        PoolEntry::Profile(profile) => format!("profile:{profile}"),
        // No request names one: steps of tasks do.
        PoolEntry::Executor { name, .. } => format!("executor:{name}"),
    }
}

fn aggregation(block: &RequestFields<'_>) -> Result<Option<ScoreAggregation>, Problem> {
    let (aggregation, strategy) = (block.text("aggregation")?, block.text("strategy")?);
    if let (Some(left), Some(right)) = (aggregation, strategy)
        && left != right
    {
        return Err(block
            .wrong("strategy", "contradicts `aggregation`, which means the same; leave one out"));
    }
    let name = if aggregation.is_some() { "aggregation" } else { "strategy" };
    match aggregation.or(strategy) {
        None => Ok(None),
        Some(word) if LATER.contains(&word) => Err(block.unsupported(
            name,
            &format!("`{word}` is not supported; use majority, mean or median"),
        )),
        Some(_) => block.word(name, &["majority", "mean", "median"]),
    }
}

fn min_agreement(block: &RequestFields<'_>) -> Result<Option<f64>, Problem> {
    let Some(value) = block.get("min_agreement") else { return Ok(None) };
    match value.as_f64() {
        Some(number) if 0.0 < number && number <= 1.0 => Ok(Some(number)),
        _ => Err(block.wrong("min_agreement", "must be a number above 0 and at most 1")),
    }
}

/// The code of a wrong field on the consensus API.
pub const CODE: ProblemCode = ProblemCode::RequestInvalid;

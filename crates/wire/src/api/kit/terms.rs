//! The `consensus` block of a request.

use jurat_core::{
    code::ProblemCode,
    policy::{EquivalenceError, parse_equivalence},
    round::job::{AgreementTerms, Equivalence, PoolEntry, ScoreAggregation, Toggle},
};
use serde_json::Value;
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, Schema},
};

use super::{
    faults::RequestFaults,
    json::{short, whole_number},
    request::{
        DraftField, FieldFault, FieldPath, Hidden, ListOf, RequestField, SchemaParts,
        add_component, component, integer, named, noted, one_of, request, text,
        unknown::FieldShape,
        values,
        values::{Count, any_text, anything, list_of, number, text_of, texts_of, word},
    },
    words::{self, one_of as one_word},
};
use crate::problem::Problem;

request! {
    /// The terms of consensus. `weight_by` and `target_confidence` are refused with `not_supported`.
    pub strict struct ConsensusTerms, draft ConsensusTermsDraft {
        weight_by: Hidden<Unsupported>,
        target_confidence: Hidden<Unsupported>,
        /// Number of sessions to call; defaults to that of the tier, or 1.
        replicas: Option<Replicas>,
        /// Sessions that may be called; defaults to all.
        session_pool: Option<SessionList>,
        /// How many spare sessions of the pool may replace failed ones; defaults to the number of
        /// replicas, 0 for none.
        spares: Option<Count<0, 10>>,
        /// How the scores of the winners are combined; defaults to `majority`.
        aggregation: Option<SupportedAggregation>,
        /// Alias of `aggregation`.
        strategy: Option<SupportedAggregation>,
        /// What to return when the replicas do not agree; defaults to `return_all`.
        disagreement_policy: Option<words::DisagreementPolicy>,
        /// Minimum share that must agree, in addition to a majority.
        min_agreement: Option<MinAgreement>,
        /// How a replica without an answer counts; defaults to `count`.
        timeout_policy: Option<words::TimeoutPolicy>,
        /// When two delegate outputs count as equal; depends on the outputs if left out.
        equivalence: Option<EquivalenceChoice>,
        /// How the output is built from the winners' outputs; defaults to `medoid`.
        merge: Option<words::Merge>,
        /// Stop as soon as no outstanding replica can change the winner.
        early_stop: Option<bool>,
        /// `traces` adds inline evidence to the replicas.
        include: Option<IncludeList>,
    }

    /// Outputs are equal if they are equal at these JSON Pointers.
    pub strict struct FieldsEquivalence {
        fields: ListOf<Pointer, 1, 1000>,
    }

    /// Outputs are equal if their numbers differ by at most the tolerance.
    pub strict struct NumericEquivalence {
        numeric: Tolerance,
    }

    /// Maximum difference between numbers.
    pub strict struct Tolerance {
        tolerance: Difference,
    }

    /// Outputs are equal if their numbers are between the same two of these ascending bounds.
    pub strict struct BucketsEquivalence {
        buckets: Buckets,
    }
}

values! {
    /// A session to call, by its id, a label or a profile.
    pub named struct SessionRef(PoolEntry as String):
        one_of("A session id, `label:…` or `profile:…`.")
            .item(text().min_length(Some(1)))
            .item(integer())
        => session_ref;

    /// The sessions that may be called.
    pub struct SessionList(Vec<PoolEntry> as Vec<String>):
        list_of::<SessionRef>().min_items(Some(1)).max_items(Some(LARGEST_POOL)) => pool,
        with SessionRef;

    /// Number of sessions to call.
    pub named struct Replicas(u8 as u64):
        integer().enum_values(Some([1, 3, 5])).description(Some("Number of sessions to call."))
        => replicas;

    /// A name of additional content for a reply.
    pub named struct Include(() as String):
        text()
            .enum_values(Some(["traces"]))
            .description(Some("`traces` adds inline evidence to the replicas."))
        => include;

    /// Additional content for a reply: whether it includes traces.
    pub struct IncludeList(Toggle as Vec<String>): list_of::<Include>() => traces, with Include;

    /// How scores are combined; unsupported ways are refused.
    pub struct SupportedAggregation(ScoreAggregation as String) like words::Aggregation => aggregation;

    /// Minimum share that must agree.
    pub struct MinAgreement(f64):
        number().exclusive_minimum(Some(0)).maximum(Some(1)) => min_agreement;

    /// A JSON Pointer.
    pub named struct Pointer(String):
        text().pattern(Some("^(/([^~/]|~[01])*)*$")).description(Some("A JSON Pointer.")) => any_text;

    /// A difference between two numbers.
    pub struct Difference(f64): number().minimum(Some(0)) => any_number;

    /// Ascending bounds.
    pub struct Buckets(Value):
        ArrayBuilder::new().items(number()).min_items(Some(1)).max_items(Some(1000)) => anything;

    /// A field that is known but always refused.
    pub struct Unsupported(()): text() => unsupported;
}

/// When two delegate outputs count as equal.
#[derive(Debug, Clone, PartialEq)]
pub struct EquivalenceChoice(pub Equivalence);

impl RequestField for EquivalenceChoice {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let read = parse_equivalence(value).map_err(|error| match error {
            EquivalenceError::NotSupported(name) => FieldFault::Unsupported(
                format!("`{name}` is not supported; use canonical, fields, numeric, buckets, unordered or text").into(),
            ),
            EquivalenceError::Invalid(reason) => reason.into(),
        });
        noted(read, at, faults).map(Self)
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }

    fn shape() -> FieldShape {
        let with_fields = FieldsEquivalence::shape().or(NumericEquivalence::shape());
        with_fields.or(BucketsEquivalence::shape())
    }
}

/// A word, or an object with parameters.
impl DraftField for EquivalenceChoice {
    type Draft = Value;
}

named!(
    EquivalenceChoice:
        one_of("When two outputs count as equal.")
            .item(one_word("A relation without parameters.", ["canonical", "text", "unordered"].into_iter()))
            .item(component::<FieldsEquivalence>())
            .item(component::<NumericEquivalence>())
            .item(component::<BucketsEquivalence>()),
    with FieldsEquivalence, NumericEquivalence, BucketsEquivalence
);

const LATER: &[&str] = &["weighted", "median_of_means", "model_ensemble", "ensemble_model"];
const LARGEST_POOL: usize = 100;

/// The terms of a request; the tier sets the number of replicas if the block does not.
pub fn agreement_terms(
    block: Option<ConsensusTerms>,
    tier_replicas: u8,
    at: &FieldPath<'_>,
) -> Result<AgreementTerms, Problem> {
    let mut terms =
        AgreementTerms { spares: None, ..AgreementTerms::plain(tier_replicas, Vec::new()) };
    let Some(block) = block else { return Ok(terms) };
    if let Some(Replicas(replicas)) = block.replicas {
        terms.replicas = replicas;
    }
    terms.pool = block.session_pool.map(|pool| pool.0).unwrap_or_default();
    terms.spares = block.spares.and_then(|spares| u8::try_from(spares.0).ok());
    if let (Some(left), Some(right)) = (&block.aggregation, &block.strategy)
        && left != right
    {
        let reason = "contradicts `aggregation`, which means the same; leave one out";
        return Err(at.member("consensus").member("strategy").wrong(reason));
    }
    if let Some(aggregation) = block.aggregation.or(block.strategy) {
        terms.aggregation = aggregation.0;
    }
    terms.min_agreement = block.min_agreement.map(|share| share.0);
    if let Some(word) = block.disagreement_policy {
        terms.disagreement = word.0;
    }
    if let Some(word) = block.timeout_policy {
        terms.timeout_policy = word.0;
    }
    if let Some(word) = block.merge {
        terms.merge = word.0;
    }
    if block.early_stop == Some(true) {
        terms.early_stop = Toggle::On;
    }
    terms.equivalence = block.equivalence.map(|relation| relation.0);
    if let Some(IncludeList(traces)) = block.include {
        terms.traces = traces;
    }
    Ok(terms)
}

fn unsupported(_: &Value) -> Result<(), FieldFault> {
    Err(FieldFault::Unsupported("is not supported; leave it out".into()))
}

fn replicas(value: &Value) -> Result<u8, FieldFault> {
    if value == "adaptive" {
        let reason = "`adaptive` is not supported; use 1, 3 or 5";
        return Err(FieldFault::Unsupported(reason.into()));
    }
    replica_count(value)
}

/// Reads a number of replicas: 1, 3 or 5.
pub fn replica_count(value: &Value) -> Result<u8, FieldFault> {
    match whole_number(value) {
        Some(1) => Ok(1),
        Some(3) => Ok(3),
        Some(5) => Ok(5),
        _ => Err("must be 1, 3 or 5".into()),
    }
}

fn session_ref(value: &Value) -> Result<PoolEntry, FieldFault> {
    pool_entry(value).ok_or_else(|| "must be a string or an integer".into())
}

fn pool(value: &Value) -> Result<Vec<PoolEntry>, FieldFault> {
    let wrong = || "must be a list of session ids, `label:…` or `profile:…`";
    let items = value.as_array().ok_or_else(wrong)?;
    if items.is_empty() {
        return Err("must not be empty; leave it out to let the server choose".into());
    }
    if LARGEST_POOL < items.len() {
        return Err(format!("must have at most {LARGEST_POOL} entries").into());
    }
    let mut pool = Vec::with_capacity(items.len());
    for item in items {
        let entry = pool_entry(item).ok_or_else(wrong)?;
        if pool.contains(&entry) {
            return Err(format!("has `{}` twice", short(&name_of(&entry))).into());
        }
        pool.push(entry);
    }
    Ok(pool)
}

/// A session id (as a string or an integer), a label or a profile.
fn pool_entry(item: &Value) -> Option<PoolEntry> {
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
        // Only task calls name an executor; requests do not.
        PoolEntry::Executor { name, .. } => format!("executor:{name}"),
    }
}

fn aggregation(value: &Value) -> Result<ScoreAggregation, FieldFault> {
    let text = text_of(value)?;
    if LATER.contains(&text) {
        let reason = format!("`{text}` is not supported; use majority, mean or median");
        return Err(FieldFault::Unsupported(reason.into()));
    }
    word(value, ScoreAggregation::ALL.iter().map(|word| word.as_str()))
}

fn min_agreement(value: &Value) -> Result<f64, FieldFault> {
    match value.as_f64() {
        Some(number) if 0.0 < number && number <= 1.0 => Ok(number),
        _ => Err("must be a number above 0 and at most 1".into()),
    }
}

fn include(value: &Value) -> Result<(), FieldFault> {
    match text_of(value)? {
        "traces" => Ok(()),
        other => Err(format!("accepts only `traces`, not `{}`", short(other)).into()),
    }
}

fn traces(value: &Value) -> Result<Toggle, FieldFault> {
    let mut traces = Toggle::Off;
    for word in texts_of(value)? {
        if word != "traces" {
            return Err(format!("accepts only `traces`, not `{}`", short(word)).into());
        }
        traces = Toggle::On;
    }
    Ok(traces)
}

fn any_number(value: &Value) -> Result<f64, FieldFault> {
    value.as_f64().ok_or_else(|| "must be a number".into())
}

/// The code for a faulty field in the consensus API.
pub const CODE: ProblemCode = ProblemCode::RequestInvalid;

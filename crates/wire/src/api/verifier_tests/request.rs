//! Requests to measure a verifier.

use std::collections::BTreeMap;

use jurat_core::{
    code::ProblemCode,
    verifier::{ModelRef, URL_CHARS},
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::{
        kit::{
            choices::{JudgeModel, Replicas},
            fields::{RequestFields, short},
        },
        verifier_runs::{judges, limited, replicas, verifier_run_timeout, version},
    },
    problem::Problem,
};

const MOST_CASES: usize = 1_000;
const ID_CHARS: usize = 128;
const MOST_FAMILIES: usize = 32;

/// The cases and settings of a test.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestVerifierRequest {
    /// The cases; defaults to the version's own examples, each judged without showing it to the
    /// judge as an example.
    #[schema(min_items = 1, max_items = 1_000)]
    pub cases: Option<Vec<LabelledCase>>,
    /// Use the cases of the newest test of the previous version.
    pub previous_cases: Option<bool>,
    /// The version to test; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
    /// Number of judges per case.
    pub replicas: Option<Replicas>,
    /// Judges to use instead of the version's own judge.
    #[schema(min_items = 1, max_items = 5)]
    pub judges: Option<Vec<JudgeModel>>,
    /// Call the judges even if a verdict on the same inputs is cached.
    pub fresh: Option<bool>,
    /// Also test the previous version on the same cases, unless it was tested on them before.
    pub compare: Option<bool>,
    /// The deadline of each case.
    #[schema(minimum = 1, maximum = 300_000)]
    pub timeout_ms: Option<u64>,
}

/// Inputs whose verdict is known.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledCase {
    /// Unique id of the case; derived from its content if left out.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 128)]
    pub id: Option<String>,
    pub inputs: Option<BTreeMap<String, String>>,
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 2048)]
    pub media_url: Option<String>,
    /// Whether it should pass.
    pub passed: bool,
    /// Explanation for readers of the cases; not shown to judges.
    pub reasoning: Option<String>,
}

/// The known injections to try on a version, and the settings.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttackVerifierRequest {
    /// Only attacks of these families; defaults to all.
    #[schema(min_items = 1, max_items = 32)]
    pub families: Option<Vec<String>>,
    /// The version to attack; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
    /// Number of judges per attack.
    pub replicas: Option<Replicas>,
    /// Judges to use instead of the version's own judge.
    #[schema(min_items = 1, max_items = 5)]
    pub judges: Option<Vec<JudgeModel>>,
    /// Call the judges even if a verdict on the same inputs is cached.
    pub fresh: Option<bool>,
    /// The deadline of each attack.
    #[schema(minimum = 1, maximum = 300_000)]
    pub timeout_ms: Option<u64>,
}

/// What is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseSource {
    Own,
    Previous,
    Given(Vec<CaseOrder>),
    Attacks(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOrder {
    pub id: Option<String>,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub passed: bool,
}

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureOrder {
    pub cases: CaseSource,
    pub version: Option<u32>,
    pub replicas: u8,
    pub judges: Vec<ModelRef>,
    pub is_fresh: bool,
    pub compare: bool,
    pub timeout_ms: u64,
}

pub fn decode_test(body: &Value) -> Result<MeasureOrder, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.keep_to::<TestVerifierRequest>()?;
    let cases = match (body.get("cases"), body.flag("previous_cases")?) {
        (Some(_), Some(true)) => {
            return Err(body.wrong("previous_cases", "contradicts `cases`; leave one out"));
        }
        (Some(_), _) => CaseSource::Given(given(&body)?),
        (None, Some(true)) => CaseSource::Previous,
        (None, _) => CaseSource::Own,
    };
    let compare = body.flag("compare")?.unwrap_or(false);
    order(&body, cases, compare)
}

pub fn decode_attack(body: &Value) -> Result<MeasureOrder, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.keep_to::<AttackVerifierRequest>()?;
    let families = body.texts("families")?;
    if families.len() < usize::from(body.get("families").is_some())
        || MOST_FAMILIES < families.len()
    {
        let reason = format!("must have 1 to {MOST_FAMILIES} names; leave it out for all of them");
        return Err(body.wrong("families", &reason));
    }
    let families = families.into_iter().map(short).collect();
    order(&body, CaseSource::Attacks(families), false)
}

fn order(
    body: &RequestFields<'_>,
    cases: CaseSource,
    compare: bool,
) -> Result<MeasureOrder, Problem> {
    let judges = judges(body)?;
    Ok(MeasureOrder {
        cases,
        version: version(body, "version")?,
        replicas: replicas(body, judges.len())?,
        judges,
        is_fresh: body.flag("fresh")?.unwrap_or(false),
        compare,
        timeout_ms: verifier_run_timeout(body)?,
    })
}

fn given(body: &RequestFields<'_>) -> Result<Vec<CaseOrder>, Problem> {
    let cases = body.objects("cases")?;
    if cases.is_empty() || MOST_CASES < cases.len() {
        let reason = format!(
            "must have 1 to {MOST_CASES} cases; leave it out for the examples of the version"
        );
        return Err(body.wrong("cases", &reason));
    }
    cases.iter().map(case).collect()
}

fn case(case: &RequestFields<'_>) -> Result<CaseOrder, Problem> {
    let passed = case.flag("passed")?;
    Ok(CaseOrder {
        id: limited(case, "id", ID_CHARS)?,
        inputs: case.text_map("inputs")?,
        media_url: limited(case, "media_url", URL_CHARS)?,
        passed: passed.ok_or_else(|| case.wrong("passed", "is required: true or false"))?,
    })
}

//! Requests to measure a verifier.

use std::collections::BTreeMap;

use jurat_core::{code::ProblemCode, verifier::ModelRef};
use serde_json::Value;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Type};

use crate::{
    api::{
        kit::{
            json::{kind, short},
            request::{
                self, DraftField, FieldFault, ListOf, request, text, values,
                values::{BoundedText, MediaUrl, VersionNumber, texts_of},
            },
        },
        verifier_runs::{JudgeCount, JudgeList, RunTimeoutMs, replicas, timeout_ms},
    },
    problem::Problem,
};

const MOST_CASES: usize = 1_000;
const MOST_FAMILIES: usize = 32;

request! {
    /// The cases and settings of a test.
    pub strict struct TestVerifierRequest, draft TestVerifierDraft {
        /// The cases; defaults to the version's own examples, each judged without showing it to the
        /// judge as an example.
        cases: Option<ListOf<LabelledCase, 1, MOST_CASES>>,
        /// Use the cases of the newest test of the previous version; cannot be combined with `cases`.
        previous_cases: Option<bool>,
        /// The version to test; defaults to the current one.
        version: Option<VersionNumber>,
        /// Number of judges per case.
        replicas: Option<JudgeCount>,
        /// Judges to use instead of the version's own judge.
        judges: Option<JudgeList>,
        /// Call the judges even if a verdict on the same inputs is cached.
        fresh: Option<bool>,
        /// Also test the previous version on the same cases, unless it was tested on them before.
        compare: Option<bool>,
        /// The deadline of each case; defaults to two minutes.
        timeout_ms: Option<RunTimeoutMs>,
    }

    /// Inputs whose verdict is known.
    pub strict struct LabelledCase {
        /// Unique id of the case; if left out, 12 hexadecimal digits derived from its content.
        id: Option<BoundedText<128>>,
        /// Exactly the fields of the version's contract, each with text that is not blank.
        inputs: Option<BTreeMap<String, String>>,
        /// The URL of a public image, if the contract has one.
        media_url: Option<MediaUrl>,
        /// Whether it should pass.
        passed: CaseLabel,
        /// Explanation for readers of the cases; not shown to judges.
        reasoning: Option<String>,
    }

    /// The known injections to try on a version, and the settings.
    pub strict struct AttackVerifierRequest, draft AttackVerifierDraft {
        /// Only attacks of these families; defaults to all.
        families: Option<FamilyList>,
        /// The version to attack; defaults to the current one.
        version: Option<VersionNumber>,
        /// Number of judges per attack.
        replicas: Option<JudgeCount>,
        /// Judges to use instead of the version's own judge.
        judges: Option<JudgeList>,
        /// Call the judges even if a verdict on the same inputs is cached.
        fresh: Option<bool>,
        /// The deadline of each attack; defaults to two minutes.
        timeout_ms: Option<RunTimeoutMs>,
    }
}

values! {
    /// Whether a case should pass.
    pub struct CaseLabel(bool): ObjectBuilder::new().schema_type(Type::Boolean) => label,
        absent "is required: true or false";

    /// Families of attacks.
    pub struct FamilyList(Vec<String>):
        ArrayBuilder::new().items(text()).min_items(Some(1)).max_items(Some(MOST_FAMILIES))
        => families;
}

/// Cases come from a user's file and are sent as they are.
impl DraftField for LabelledCase {
    type Draft = Value;
}

/// The cases of a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseSource {
    /// The version's own examples.
    Own,
    /// The cases of the newest test of the previous version.
    Previous,
    /// The cases of the request.
    Given(Vec<CaseOrder>),
    /// Attacks of these families.
    Attacks(Vec<String>),
}

/// A case with its expected verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseOrder {
    pub id: Option<String>,
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub passed: bool,
}

/// A decoded request to measure a verifier.
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

/// Reads a request to test a verifier.
pub fn decode_test(body: &Value) -> Result<MeasureOrder, Problem> {
    let request: TestVerifierRequest = request::read(body, ProblemCode::ValidationError)?;
    let cases = match (request.cases, request.previous_cases) {
        (Some(_), Some(true)) => {
            return Err(request::wrong("previous_cases", "contradicts `cases`; leave one out"));
        }
        (Some(ListOf(cases)), _) => CaseSource::Given(given(cases)?),
        (None, Some(true)) => CaseSource::Previous,
        (None, _) => CaseSource::Own,
    };
    let judges = request.judges.map(|judges| judges.0).unwrap_or_default();
    Ok(MeasureOrder {
        cases,
        version: request.version.map(|version| version.0),
        replicas: replicas(request.replicas, judges.len())?,
        judges,
        is_fresh: request.fresh.unwrap_or(false),
        compare: request.compare.unwrap_or(false),
        timeout_ms: timeout_ms(request.timeout_ms),
    })
}

/// Reads a request to attack a verifier.
pub fn decode_attack(body: &Value) -> Result<MeasureOrder, Problem> {
    let request: AttackVerifierRequest = request::read(body, ProblemCode::ValidationError)?;
    let judges = request.judges.map(|judges| judges.0).unwrap_or_default();
    Ok(MeasureOrder {
        cases: CaseSource::Attacks(request.families.map(|it| it.0).unwrap_or_default()),
        version: request.version.map(|version| version.0),
        replicas: replicas(request.replicas, judges.len())?,
        judges,
        is_fresh: request.fresh.unwrap_or(false),
        compare: false,
        timeout_ms: timeout_ms(request.timeout_ms),
    })
}

fn given(cases: Vec<LabelledCase>) -> Result<Vec<CaseOrder>, Problem> {
    if cases.is_empty() || MOST_CASES < cases.len() {
        let reason = format!(
            "must have 1 to {MOST_CASES} cases; leave it out for the examples of the version"
        );
        return Err(request::wrong("cases", &reason));
    }
    let case = |case: LabelledCase| CaseOrder {
        id: case.id.map(|id| id.0),
        inputs: case.inputs.unwrap_or_default(),
        media_url: case.media_url.map(|url| url.0),
        passed: case.passed.0,
    };
    Ok(cases.into_iter().map(case).collect())
}

fn label(value: &Value) -> Result<bool, FieldFault> {
    value.as_bool().ok_or_else(|| format!("must be true or false, not {}", kind(value)).into())
}

fn families(value: &Value) -> Result<Vec<String>, FieldFault> {
    let families = texts_of(value)?;
    if families.is_empty() || MOST_FAMILIES < families.len() {
        let reason = format!("must have 1 to {MOST_FAMILIES} names; leave it out for all of them");
        return Err(reason.into());
    }
    Ok(families.into_iter().map(short).collect())
}

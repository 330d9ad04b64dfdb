//! Requests to run a verifier.

use std::collections::BTreeMap;

use jurat_core::{
    canonical::digest_json,
    code::ProblemCode,
    verifier::{ModelRef, run::Provenance},
};
use serde_json::{Map, Value};

use crate::{
    api::kit::{
        json::short,
        request::{
            self, FieldFault, request, values,
            values::{BoundedText, JudgeModel, MediaUrl, VersionNumber, Whole, list_of, texts_of},
        },
        terms::{Replicas, replica_count},
    },
    problem::Problem,
};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MOST_JUDGES: usize = 5;

request! {
    /// What to judge, and how. Unknown fields are ignored.
    pub open struct RunVerifierRequest, draft RunVerifierDraft {
        /// Exactly the fields of the version's contract, each with non-blank text.
        inputs: Option<BTreeMap<String, String>>,
        /// The URL of a public image, if the contract has one.
        media_url: Option<MediaUrl>,
        /// The version to run; defaults to the current one.
        version: Option<VersionNumber>,
        /// The workflow that the run belongs to, according to the caller; `skill_id` is an alias.
        workflow_id: Option<BoundedText<200>>,
        /// The version of the workflow; `skill_version` is an alias.
        workflow_version: Option<VersionNumber>,
        /// Another name of the workflow; `skill_ref` is an alias.
        workflow_ref: Option<BoundedText<200>>,
        /// Alias of `workflow_id`.
        skill_id: Option<BoundedText<200>>,
        /// Alias of `workflow_version`.
        skill_version: Option<VersionNumber>,
        /// Alias of `workflow_ref`.
        skill_ref: Option<BoundedText<200>>,
        /// The caller's own id for the context of the run.
        run_id: Option<BoundedText<200>>,
        /// Number of judges; defaults to the number in `judges`, or one.
        replicas: Option<JudgeCount>,
        /// Judges to use instead of the version's own judge, each once. A metered account cannot
        /// name a model without a price if other models of its provider have one.
        judges: Option<JudgeList>,
        /// Call the judges even if a verdict on the same inputs is cached.
        fresh: Option<bool>,
        /// Whether the judges write their own answer before they see the candidate; defaults to the
        /// version's setting.
        commit_first: Option<bool>,
        /// Deadline of the whole run; defaults to two minutes. Without a key at least 10,000.
        timeout_ms: Option<RunTimeoutMs>,
    }
}

/// Deadline of a run, in milliseconds.
pub(crate) type RunTimeoutMs = Whole<1, 300_000>;

values! {
    /// Number of judges.
    pub struct JudgeCount(u8) like Replicas => replica_count;

    /// Judges, each once.
    pub struct JudgeList(Vec<ModelRef> as Vec<String>):
        list_of::<JudgeModel>().min_items(Some(1)).max_items(Some(MOST_JUDGES)) => judge_list,
        with JudgeModel;
}

/// A decoded request to run a verifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRunRequest {
    pub inputs: BTreeMap<String, String>,
    pub media_url: Option<String>,
    pub version: Option<u32>,
    pub replicas: u8,
    pub judges: Vec<ModelRef>,
    pub is_fresh: bool,
    pub commit_first: Option<bool>,
    pub timeout_ms: u64,
    pub provenance: Provenance,
    /// Digest of the canonical request.
    pub request_digest: String,
    /// Members whose names begin with `x_`, which are the caller's own.
    pub notes: Map<String, Value>,
}

/// Reads a request to run a verifier.
pub fn decode_verifier_run(body: &Value) -> Result<VerifierRunRequest, Problem> {
    let request: RunVerifierRequest = request::read(body, ProblemCode::ValidationError)?;
    let judges = request.judges.map(|judges| judges.0).unwrap_or_default();
    let either = |names, one: Option<BoundedText<200>>, other: Option<BoundedText<200>>| {
        Ok(same(names, one, other)?.map(|text| text.0))
    };
    let versions = ("workflow_version", "skill_version");
    let workflow_version = same(versions, request.workflow_version, request.skill_version)?;
    let provenance = Provenance {
        workflow_id: either(("workflow_id", "skill_id"), request.workflow_id, request.skill_id)?,
        workflow_version: workflow_version.map(|version| version.0),
        workflow_ref: either(
            ("workflow_ref", "skill_ref"),
            request.workflow_ref,
            request.skill_ref,
        )?,
        run_id: request.run_id.map(|id| id.0),
    };
    Ok(VerifierRunRequest {
        inputs: request.inputs.unwrap_or_default(),
        media_url: request.media_url.map(|url| url.0),
        version: request.version.map(|version| version.0),
        replicas: replicas(request.replicas, judges.len())?,
        judges,
        is_fresh: request.fresh.unwrap_or(false),
        commit_first: request.commit_first,
        timeout_ms: timeout_ms(request.timeout_ms),
        provenance,
        request_digest: digest_json(body),
        notes: notes(body),
    })
}

/// Reads a request to run a verifier, and refuses unknown fields by name.
pub fn decode_strict_verifier_run(body: &Value) -> Result<VerifierRunRequest, Problem> {
    request::refuse_unknown::<RunVerifierRequest>(body, ProblemCode::ValidationError)?;
    decode_verifier_run(body)
}

/// The members that the caller keeps for itself.
fn notes(body: &Value) -> Map<String, Value> {
    let members = body.as_object().into_iter().flatten();
    let own = members.filter(|(name, _)| name.starts_with("x_"));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The deadline of a run, or the default.
pub(crate) fn timeout_ms(given: Option<RunTimeoutMs>) -> u64 {
    given.map_or(DEFAULT_TIMEOUT_MS, |given| given.0)
}

/// The value of a field with an alias; two different values contradict each other.
fn same<T: PartialEq>(
    (name, alias): (&str, &str),
    one: Option<T>,
    other: Option<T>,
) -> Result<Option<T>, Problem> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(request::wrong(alias, &format!("contradicts `{name}`; leave one out")))
        }
        (one, other) => Ok(one.or(other)),
    }
}

fn judge_list(value: &Value) -> Result<Vec<ModelRef>, FieldFault> {
    let texts = texts_of(value)?;
    if texts.is_empty() || MOST_JUDGES < texts.len() {
        let reason = format!(
            "must have 1 to {MOST_JUDGES} models; leave it out to use the version's own judge"
        );
        return Err(reason.into());
    }
    let is_twice = |(at, text): &(usize, &&str)| texts[..*at].contains(*text);
    if let Some((_, twice)) = texts.iter().enumerate().find(is_twice) {
        return Err(format!("names `{}` twice; each judge has one vote", short(twice)).into());
    }
    let read = |text: &str| {
        text.parse().map_err(|()| format!("has `{}`; a judge is `provider/model`", short(text)))
    };
    Ok(texts.into_iter().map(read).collect::<Result<_, _>>()?)
}

/// The number of judges: the given number, or the number of named judges, or one.
pub(crate) fn replicas(given: Option<JudgeCount>, judges: usize) -> Result<u8, Problem> {
    match (given, judges) {
        (Some(JudgeCount(number)), _) => Ok(number),
        (None, 0 | 1) => Ok(1),
        (None, 3) => Ok(3),
        (None, 5) => Ok(5),
        (None, _) => {
            let reason =
                format!("is required: `judges` names {judges}, but the number must be 1, 3 or 5");
            Err(request::wrong("replicas", &reason))
        }
    }
}

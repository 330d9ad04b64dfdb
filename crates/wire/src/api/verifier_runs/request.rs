//! A request to run a verifier.

use std::collections::BTreeMap;

use jurat_core::{
    canonical::digest_json,
    code::ProblemCode,
    verifier::{ModelRef, URL_CHARS, run::Provenance},
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::kit::{
        choices::{JudgeModel, Replicas},
        fields::{RequestFields, short, whole_number},
    },
    problem::Problem,
};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const LONGEST_TIMEOUT_MS: u64 = 300_000;
const MOST_JUDGES: usize = 5;
/// The longest text with which a caller says where a run comes from.
const PROVENANCE_CHARS: usize = 200;

/// What to judge, and how. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
pub struct RunVerifierRequest {
    /// Exactly the fields of the version's contract, each with non-blank text.
    pub inputs: Option<BTreeMap<String, String>>,
    /// The URL of a public image, if the contract has one.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 2048)]
    pub media_url: Option<String>,
    /// The version to run; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
    /// The workflow that the run belongs to, according to the caller; `skill_id` is an alias.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub workflow_id: Option<String>,
    /// The version of the workflow; `skill_version` is an alias.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub workflow_version: Option<u32>,
    /// Another name of the workflow; `skill_ref` is an alias.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub workflow_ref: Option<String>,
    /// Alias of `workflow_id`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub skill_id: Option<String>,
    /// Alias of `workflow_version`.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub skill_version: Option<u32>,
    /// Alias of `workflow_ref`.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub skill_ref: Option<String>,
    /// The caller's own id for the context of the run.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub run_id: Option<String>,
    /// Number of judges; defaults to the number in `judges`, or one.
    pub replicas: Option<Replicas>,
    /// Judges to use instead of the version's own judge.
    #[schema(min_items = 1, max_items = 5)]
    pub judges: Option<Vec<JudgeModel>>,
    /// Call the judges even if a verdict on the same inputs is cached.
    pub fresh: Option<bool>,
    /// Whether the judges write their own answer before they see the candidate; defaults to the
    /// version's setting.
    pub commit_first: Option<bool>,
    /// Deadline of the whole run; defaults to two minutes. Without a key at least 10,000.
    #[schema(minimum = 1, maximum = 300_000)]
    pub timeout_ms: Option<u64>,
}

/// A request that was read.
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
}

pub fn decode_verifier_run(body: &Value) -> Result<VerifierRunRequest, Problem> {
    let request_digest = digest_json(body);
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let judges = judges(&body)?;
    Ok(VerifierRunRequest {
        inputs: body.text_map("inputs")?,
        media_url: limited(&body, "media_url", URL_CHARS)?,
        version: version(&body, "version")?,
        replicas: replicas(&body, judges.len())?,
        judges,
        is_fresh: body.flag("fresh")?.unwrap_or(false),
        commit_first: body.flag("commit_first")?,
        timeout_ms: verifier_run_timeout(&body)?,
        provenance: provenance(&body)?,
        request_digest,
    })
}

/// The one deadline of a run.
pub(crate) fn verifier_run_timeout(body: &RequestFields<'_>) -> Result<u64, Problem> {
    let timeout_ms = body.whole("timeout_ms", 1, LONGEST_TIMEOUT_MS)?;
    Ok(timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS))
}

/// Where the run comes from; a workflow has two names.
fn provenance(body: &RequestFields<'_>) -> Result<Provenance, Problem> {
    let text = |field: &str| limited(body, field, PROVENANCE_CHARS);
    let either = |names: [&str; 2]| same(body, names, text(names[0])?, text(names[1])?);
    let versions = ["workflow_version", "skill_version"];
    Ok(Provenance {
        workflow_id: either(["workflow_id", "skill_id"])?,
        workflow_version: same(
            body,
            versions,
            version(body, versions[0])?,
            version(body, versions[1])?,
        )?,
        workflow_ref: either(["workflow_ref", "skill_ref"])?,
        run_id: text("run_id")?,
    })
}

fn same<T: PartialEq>(
    body: &RequestFields<'_>,
    names: [&str; 2],
    one: Option<T>,
    other: Option<T>,
) -> Result<Option<T>, Problem> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => {
            Err(body.wrong(names[1], &format!("contradicts `{}`; leave one out", names[0])))
        }
        (one, other) => Ok(one.or(other)),
    }
}

pub(crate) fn version(body: &RequestFields<'_>, field: &str) -> Result<Option<u32>, Problem> {
    let version = body.whole(field, 1, u64::from(u32::MAX))?;
    Ok(version.and_then(|version| u32::try_from(version).ok()))
}

pub(crate) fn limited(
    body: &RequestFields<'_>,
    field: &str,
    most: usize,
) -> Result<Option<String>, Problem> {
    let Some(text) = body.text(field)? else { return Ok(None) };
    if text.trim().is_empty() || text.contains('\0') || most < text.chars().count() {
        let reason = format!(
            "must have 1 to {most} characters, must not be blank, and must not contain NUL"
        );
        return Err(body.wrong(field, &reason));
    }
    Ok(Some(text.to_owned()))
}

pub(crate) fn judges(body: &RequestFields<'_>) -> Result<Vec<ModelRef>, Problem> {
    let texts = body.texts("judges")?;
    if texts.len() < usize::from(body.get("judges").is_some()) || MOST_JUDGES < texts.len() {
        let reason = format!(
            "must have 1 to {MOST_JUDGES} models; leave it out to use the version's own judge"
        );
        return Err(body.wrong("judges", &reason));
    }
    if let Some(twice) =
        texts.iter().enumerate().find(|(at, text)| texts[..*at].contains(*text)).map(|(_, it)| it)
    {
        let reason = format!("names `{}` twice; each judge has one vote", short(twice));
        return Err(body.wrong("judges", &reason));
    }
    let read = |text: &str| {
        text.parse().map_err(|()| {
            let reason = format!("has `{}`; a judge is `provider/model`", short(text));
            body.wrong("judges", &reason)
        })
    };
    texts.into_iter().map(read).collect()
}

/// How many are asked: what is said, else all that are named, else one.
pub(crate) fn replicas(body: &RequestFields<'_>, judges: usize) -> Result<u8, Problem> {
    let known = |number: u64| match number {
        1 => Some(1),
        3 => Some(3),
        5 => Some(5),
        _ => None,
    };
    match body.get("replicas") {
        Some(value) => {
            let number = whole_number(value).and_then(known);
            number.ok_or_else(|| body.wrong("replicas", "must be 1, 3 or 5"))
        }
        None if judges == 0 => Ok(1),
        None => known(judges as u64).ok_or_else(|| {
            let reason =
                format!("is required: `judges` names {judges}, but the number must be 1, 3 or 5");
            body.wrong("replicas", &reason)
        }),
    }
}

//! Reads the contract of a task, member by member, and says all that is wrong with it.

use jurat_core::{
    code::ProblemCode,
    policy::{self, policy_hash},
};
use serde_json::{Value, json};

use super::TaskContractBody;
use crate::{
    api::kit::{faults::RequestFaults, fields::RequestFields, known_fields::SearchDepth},
    executor::{
        Acceptance, Assignment, BadPenalty, ContractBudget, ContractClaim, ContractExplore,
        ContractFeedback, ContractFinalize, ContractSettlement, ContractVerify, ContractVote,
        DiminishingReturns, EvidencePolicy, ExploreStop, MaxConcurrency, TaskContract,
        WirePolicyBinding,
    },
    problem::Problem,
};

/// The most of anything that is counted.
const MOST: u32 = 64;
const MOST_STEPS: u32 = 100_000;
const MOST_COST: u64 = 1_000_000_000;
/// A year.
const MOST_MS: u64 = 31_536_000_000;
/// Leases and reveals: from a tenth of a second to a day.
const SPAN_MS: std::ops::RangeInclusive<u64> = 100..=86_400_000;
/// The end of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;
const MOST_PENALTY: i64 = 1_000_000;
const EVIDENCE_BYTES: u64 = 65_536;
const MIMES: [&str; 4] = ["application/json", "text/plain", "text/markdown", "text/csv"];
const MOST_MIMES: usize = 32;
const LONGEST_NAME: usize = 128;
const LONGEST_VERSION: usize = 64;

/// The contract; `None` when something is wrong, which the faults then tell.
pub(super) fn decode(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
) -> Option<TaskContract> {
    faults.note_unknown::<TaskContractBody>(fields, SearchDepth::All);
    let protocol_version = name(fields, faults, ("protocol_version", LONGEST_VERSION));
    let task_id = faults.take(task_id(fields));
    let task_type = name(fields, faults, ("task_type", LONGEST_NAME));
    let inputs = fields.get("inputs").cloned();
    if inputs.is_none() {
        faults.add(fields.wrong("inputs", "is required; use {} for none"));
    }
    let output_schema = object(fields, faults, "output_schema");
    let budget = budget(fields, faults);
    let assignment = assignment(fields, faults);
    let acceptance = acceptance(fields, faults);
    let task_mode = word(fields, faults, ("task_mode", &["ONE_SHOT", "CONTINUOUS"]));
    let expiry_ms = faults.whole(fields, "expiry_ms", 1..=LAST_MS);
    let evidence_policy = evidence_policy(fields, faults);
    Some(TaskContract {
        protocol_version: protocol_version?,
        task_id: task_id?,
        task_type: task_type?,
        inputs: inputs?,
        output_schema: output_schema?,
        budget: budget?,
        assignment: assignment?,
        acceptance: acceptance?,
        task_mode: task_mode?,
        expiry_ms: expiry_ms?,
        evidence_policy: evidence_policy?,
    })
}

fn task_id(fields: &RequestFields<'_>) -> Result<String, Problem> {
    let id = fields.required_text("task_id")?;
    if is_id(id) { Ok(id.to_owned()) } else { Err(fields.wrong("task_id", ID_RULE)) }
}

const ID_RULE: &str = "must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`";
/// Addresses with these mean something else.
const RESERVED: [&str; 3] = [".", "..", "sample"];

/// Whether no task and no run can have the name.
pub(in crate::api) fn is_reserved(id: &str) -> bool {
    RESERVED.contains(&id)
}

/// The name of a task that stands in a query.
pub fn checked_id(id: &str) -> Result<&str, Problem> {
    let problem =
        || Problem::new(ProblemCode::ValidationError, format!("`task_id` {ID_RULE}")).at("task_id");
    if is_id(id) { Ok(id) } else { Err(problem()) }
}

fn is_id(id: &str) -> bool {
    let is_name = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.:".contains(symbol);
    (1..=LONGEST_NAME).contains(&id.len()) && id.chars().all(is_name) && !is_reserved(id)
}

/// A text that must be there, not blank, without a NUL, and not too long.
fn name(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
    (name, most): (&str, usize),
) -> Option<String> {
    let text = faults.take(fields.plain_text(name))?;
    limited(fields, faults, (name, text, most))
}

fn limited(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
    (name, text, most): (&str, &str, usize),
) -> Option<String> {
    if text.chars().count() <= most {
        return Some(text.to_owned());
    }
    faults.add(fields.wrong(name, &format!("must have at most {most} characters")));
    None
}

/// A word of a set; the first one when it is left out.
fn word(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
    (name, known): (&str, &[&str]),
) -> Option<String> {
    let Some(text) = faults.take(fields.text(name))? else {
        return known.first().map(|it| (*it).to_owned());
    };
    if known.contains(&text) {
        return Some(text.to_owned());
    }
    faults.add(fields.wrong(name, &format!("must be {}", known.join(" or "))));
    None
}

fn object(fields: &RequestFields<'_>, faults: &mut RequestFaults, name: &str) -> Option<Value> {
    match fields.get(name) {
        Some(value @ Value::Object(_)) => Some(value.clone()),
        Some(_) => {
            faults.add(fields.wrong(name, "must be an object"));
            None
        }
        None => {
            faults.add(fields.wrong(name, "is required; use {} for none"));
            None
        }
    }
}

fn budget(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractBudget> {
    let fields = &faults.section(parent, "budget")?;
    let time_ms = faults.whole(fields, "time_ms", 1..=MOST_MS);
    let max_steps = faults.count(fields, "max_steps", 1..=MOST_STEPS);
    let cost_units = faults.whole(fields, "cost_units", 1..=MOST_COST);
    let mode = word(fields, faults, ("mode", &["LIFETIME", "EPOCH_RENEW"]));
    let explore_cost_units = faults.whole(fields, "explore_cost_units", 1..=MOST_COST);
    let verify_cost_units = faults.whole(fields, "verify_cost_units", 1..=MOST_COST);
    let finalize_cost_units = faults.whole(fields, "finalize_cost_units", 1..=MOST_COST);
    let reuse_verify_time_ms = faults.whole(fields, "reuse_verify_time_ms", 0..=MOST_MS);
    let reuse_verify_cost_units = faults.whole(fields, "reuse_verify_cost_units", 0..=MOST_COST);
    let reuse_max_attempts = faults.count(fields, "reuse_max_attempts", 1..=MOST);
    Some(ContractBudget {
        time_ms: time_ms?,
        max_steps: max_steps?,
        cost_units: cost_units?,
        mode: mode?,
        explore_cost_units: explore_cost_units?,
        verify_cost_units: verify_cost_units?,
        finalize_cost_units: finalize_cost_units?,
        reuse_verify_time_ms: reuse_verify_time_ms?,
        reuse_verify_cost_units: reuse_verify_cost_units?,
        reuse_max_attempts: reuse_max_attempts?,
    })
}

fn assignment(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<Assignment> {
    let fields = &faults.section(parent, "assignment")?;
    let is_mode = match faults.take(fields.required_text("mode")) {
        Some("CLAIM" | "open") => true,
        Some(_) => {
            faults.add(fields.wrong("mode", "must be CLAIM; `open` means the same"));
            false
        }
        None => false,
    };
    let claim = claim(fields, faults);
    let explore = explore(fields, faults);
    let verify = verify(fields, faults);
    let finalize = match faults.optional(fields, "finalize") {
        None => Some(ContractFinalize::default()),
        Some(it) => faults
            .count_or(&it, "max_finalizers", (1..=MOST, 1))
            .map(|max_finalizers| ContractFinalize { max_finalizers }),
    };
    let mode = is_mode.then(|| "CLAIM".to_owned())?;
    Some(Assignment {
        mode,
        claim: claim?,
        explore: explore?,
        verify: verify?,
        finalize: finalize?,
    })
}

fn claim(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractClaim> {
    let fields = &faults.section(parent, "claim")?;
    let lease_ms = faults.whole(fields, "lease_ms", SPAN_MS);
    let at_once = faults.section(fields, "max_concurrency")?;
    let propose = faults.count(&at_once, "propose", 1..=MOST);
    let verify = faults.count(&at_once, "verify", 1..=MOST);
    let max_concurrency = MaxConcurrency { propose: propose?, verify: verify? };
    Some(ContractClaim { lease_ms: lease_ms?, max_concurrency })
}

fn explore(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractExplore> {
    let Some(fields) = faults.optional(parent, "explore") else {
        return Some(ContractExplore::default());
    };
    let max_proposers = faults.count_or(&fields, "max_proposers", (1..=MOST, 1));
    let topk = faults.count_or(&fields, "topk", (1..=MOST, 3));
    let stop = match faults.optional(&fields, "stop") {
        None => Some(ExploreStop::default()),
        Some(stop) => faults
            .count_or(&stop, "no_new_evidence_rounds", (1..=MOST, 3))
            .map(|no_new_evidence_rounds| ExploreStop { no_new_evidence_rounds }),
    };
    let max_retries = faults.take(fields.whole("max_retries", 0, u64::from(MOST)));
    let backoff_ms = faults.take(fields.whole("backoff_ms", 1, *SPAN_MS.end()));
    Some(ContractExplore {
        max_proposers: max_proposers?,
        topk: topk?,
        stop: stop?,
        max_retries: small(max_retries?),
        backoff_ms: backoff_ms?,
    })
}

fn verify(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractVerify> {
    let Some(fields) = faults.optional(parent, "verify") else {
        return Some(ContractVerify::default());
    };
    let max_verifiers = faults.count_or(&fields, "max_verifiers", (1..=MOST, 1));
    let max_repeats = faults.take(fields.whole("max_repeats", 0, u64::from(MOST)));
    Some(ContractVerify { max_verifiers: max_verifiers?, max_repeats: small(max_repeats?) })
}

/// A number that was checked to be small.
fn small(number: Option<u64>) -> Option<u32> {
    number.and_then(|it| u32::try_from(it).ok())
}

fn acceptance(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<Acceptance> {
    let fields = &faults.section(parent, "acceptance")?;
    let quorum_threshold = faults.count(fields, "quorum_threshold", 1..=MOST);
    let verifier_policy = verifier_policy(fields, faults);
    let vote = vote(fields, faults);
    let settlement = settlement(fields, faults);
    let da = faults.take(fields.whole("da_quorum_threshold", 1, u64::from(MOST)));
    let known = ["QUORUM", "CONFIDENCE_WEIGHTED", "REPUTATION_WEIGHTED"];
    let aggregation = faults.take(fields.word("aggregation", &known));
    Some(Acceptance {
        quorum_threshold: quorum_threshold?,
        verifier_policy: verifier_policy?,
        vote: vote?,
        settlement: settlement?,
        da_quorum_threshold: small(da?),
        aggregation: aggregation?,
    })
}

fn verifier_policy(
    parent: &RequestFields<'_>,
    faults: &mut RequestFaults,
) -> Option<WirePolicyBinding> {
    let Some(fields) = &faults.optional(parent, "verifier_policy") else {
        return Some(policy::PolicyBinding::new(policy::SCHEMA_ONLY, json!({})).into());
    };
    let policy_id = name(fields, faults, ("policy_id", LONGEST_NAME));
    let policy_version = match fields.get("policy_version") {
        None => Some("1".to_owned()),
        Some(_) => name(fields, faults, ("policy_version", LONGEST_VERSION)),
    };
    let policy_params = match fields.get("policy_params") {
        None => Some(json!({})),
        Some(_) => object(fields, faults, "policy_params"),
    };
    let given = faults.take(fields.text("policy_hash"));
    if given.flatten().is_some_and(|hash| !is_hash(hash)) {
        let reason = "must be `sha256:` and 64 hex digits, or the digits alone; leave it out to have it computed";
        faults.add(fields.wrong("policy_hash", reason));
        return None;
    }
    let (policy_id, policy_params) = (policy_id?, policy_params?);
    let policy_hash = match given? {
        Some(hash) => hash.to_owned(),
        None => policy_hash(&policy_id, &policy_params),
    };
    Some(WirePolicyBinding {
        policy_id,
        policy_version: policy_version?,
        policy_hash,
        policy_params,
    })
}

fn is_hash(text: &str) -> bool {
    let digits = match text.get(..7) {
        Some(prefix) if prefix.eq_ignore_ascii_case("sha256:") => text.get(7..).unwrap_or_default(),
        _ => text,
    };
    is_hex(digits)
}

fn is_hex(digits: &str) -> bool {
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn vote(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractVote> {
    let fields = &faults.section(parent, "vote")?;
    match faults.take(fields.flag("commit_reveal")) {
        Some(Some(true)) | None => {}
        Some(Some(false)) => {
            let reason = "must be true: votes are always committed before they are revealed";
            faults.add(fields.wrong("commit_reveal", reason));
        }
        Some(None) => faults.add(fields.wrong("commit_reveal", "is required, and must be true")),
    }
    let reveal_deadline_ms = faults.whole(fields, "reveal_deadline_ms", SPAN_MS)?;
    Some(ContractVote { commit_reveal: true, reveal_deadline_ms })
}

fn settlement(
    parent: &RequestFields<'_>,
    faults: &mut RequestFaults,
) -> Option<ContractSettlement> {
    let fields = &faults.section(parent, "settlement")?;
    let window_ms = faults.whole(fields, "window_ms", 0..=MOST_MS);
    let implicit_weight = number(fields, faults, ("implicit_weight", 0.0, 1.0));
    let returns = faults.section(fields, "implicit_diminishing_returns");
    let returns = returns.and_then(|it| {
        let w = faults.count(&it, "W", 0..=u32::MAX);
        let k = faults.count(&it, "K", 1..=u32::MAX);
        Some(DiminishingReturns { w: w?, k: k? })
    });
    let penalty = faults.section(fields, "bad_penalty");
    let penalty = penalty.and_then(|it| {
        let p = faults.whole(&it, "P", 0..=MOST_PENALTY.unsigned_abs())?;
        i64::try_from(p).ok().map(|p| BadPenalty { p })
    });
    let feedback = feedback(fields, faults);
    Some(ContractSettlement {
        window_ms: window_ms?,
        implicit_weight: implicit_weight?,
        implicit_diminishing_returns: returns?,
        bad_penalty: penalty?,
        feedback: feedback?,
    })
}

fn number(
    fields: &RequestFields<'_>,
    faults: &mut RequestFaults,
    (name, least, most): (&str, f64, f64),
) -> Option<f64> {
    let problem = match fields.get(name) {
        None => fields.wrong(name, "is required"),
        Some(value) => match value.as_f64() {
            Some(number) if (least..=most).contains(&number) => return Some(number),
            _ => fields.wrong(name, &format!("must be a number from {least} to {most}")),
        },
    };
    faults.add(problem);
    None
}

fn feedback(parent: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<ContractFeedback> {
    let fields = &faults.section(parent, "feedback")?;
    let mode = faults.take(fields.required_text("mode"));
    if mode.is_some_and(|mode| mode != "CAPABILITY") {
        faults.add(fields.wrong("mode", "must be CAPABILITY"));
    }
    let key = faults.take(fields.required_text("authority_pubkey"))?;
    let digits = key.strip_prefix("ed25519:").unwrap_or_default();
    if digits != "placeholder" && !is_hex(digits) {
        let reason = "must be `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key";
        faults.add(fields.wrong("authority_pubkey", reason));
    }
    Some(ContractFeedback { mode: mode?.to_owned(), authority_pubkey: key.to_owned() })
}

fn evidence_policy(
    parent: &RequestFields<'_>,
    faults: &mut RequestFaults,
) -> Option<EvidencePolicy> {
    let fields = &faults.section(parent, "evidence_policy")?;
    let exactly = |it: u64| it..=it;
    let inline = faults.whole(fields, "max_inline_evidence_bytes", exactly(EVIDENCE_BYTES));
    let media = faults.whole(fields, "max_inline_media_bytes", exactly(0));
    let mimes = faults.take(fields.texts("inline_mime_allowlist"));
    if mimes.iter().flatten().any(|mime| mime.contains('\0')) {
        faults.add(fields.wrong("inline_mime_allowlist", "must not contain a NUL character"));
    }
    let has_all = |it: &Vec<&str>| MIMES.iter().all(|mime| it.contains(mime));
    if mimes.as_ref().is_some_and(|it| MOST_MIMES < it.len() || !has_all(it)) {
        let reason = format!("must have {}, and at most {MOST_MIMES} in total", MIMES.join(", "));
        faults.add(fields.wrong("inline_mime_allowlist", &reason));
    }
    let bytes = faults.whole_or(fields, "max_snippet_bytes", (1..=MOST_COST, 8_192));
    let tokens = faults.whole_or(fields, "max_snippet_tokens", (1..=MOST_COST, 2_048));
    Some(EvidencePolicy {
        max_inline_evidence_bytes: inline?,
        max_inline_media_bytes: media?,
        inline_mime_allowlist: mimes?.into_iter().map(str::to_owned).collect(),
        max_snippet_bytes: bytes?,
        max_snippet_tokens: tokens?,
    })
}

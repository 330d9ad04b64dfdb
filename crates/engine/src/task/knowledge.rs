//! What is remembered of decisions, and how it is handed to those who decide on the like.

use jurat_core::{
    candidate::Candidate,
    canonical::digest_json,
    consensus::{reliability_prior, verdict_confidence},
    executor::Independence,
    id::AccountId,
    knowledge::Words,
    policy::Status,
    task::{Proposal, Weigher},
};
use jurat_store::{
    Knowledge, KnowledgeAsked, KnowledgeDigests, KnowledgeHits, Learned, TaskCandidate,
};
use serde_json::{Value, json};

use super::{Append, Remembered};

/// How many decisions a bundle carries, and how like the inputs must be.
const MOST_SIMILAR: usize = 5;
const LEAST_SIMILARITY: f64 = 0.3;
/// How many of the newest others are looked through.
pub(super) const LOOKED_THROUGH: u32 = 200;
/// The largest answer of before that is handed on, and the largest bundle, in bytes.
const LARGEST_PAYLOAD: usize = 32_768;
const LARGEST_BUNDLE: usize = 65_536;

fn policy(contract: &Value) -> &Value {
    &contract["acceptance"]["verifier_policy"]
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn digests(contract: &Value) -> KnowledgeDigests {
    KnowledgeDigests {
        policy_id: text(&policy(contract)["policy_id"]),
        inputs: digest_json(&contract["inputs"]),
        schema: digest_json(&contract["output_schema"]),
        params: digest_json(&policy(contract)["policy_params"]),
    }
}

/// What to ask for before work on a contract begins.
pub(super) fn asked(
    account: &AccountId,
    contract: &Value,
    (exact, others): (u32, u32),
) -> KnowledgeAsked {
    KnowledgeAsked {
        account: account.clone(),
        task_type: text(&contract["task_type"]),
        digests: digests(contract),
        exact,
        others,
    }
}

/// A decision on the same, as a candidate that is verified anew.
pub(super) fn remembered(
    learned: &Learned,
    made: TaskCandidate,
    proposers: Option<Vec<String>>,
) -> Remembered {
    let Learned { task_id, knowledge } = learned;
    Remembered {
        source: format!("knowledge:{task_id}#{}", knowledge.epoch),
        proposers: proposers.unwrap_or_else(|| vec![made.executor]),
        candidate: Candidate {
            candidate_id: format!("cand-known-{}", &knowledge.final_hash[7..23]),
            execution_id: made.execution_id,
            output: made.output,
            evidence: made.evidence,
        },
    }
}

/// What is to be remembered of a decision that an append makes final.
pub(super) fn learned(
    append: &Append,
    (epoch, seq): (u64, u64),
    made: &Candidate,
    contract: &Value,
) -> Knowledge {
    let proposal = append.task.proposal(&made.candidate_id);
    let (approvals, rejections) = proposal.map_or((0, 0), sides);
    let mut reason_codes: Vec<u16> = proposal.map(codes).unwrap_or_default();
    reason_codes.sort_unstable();
    reason_codes.dedup();
    Knowledge {
        epoch,
        task_type: text(&contract["task_type"]),
        digests: digests(contract),
        words: Words::of(&contract["inputs"]).to_string(),
        candidate: made.candidate_id.clone(),
        output: made.output.clone(),
        reason_codes,
        confidence: proposal.map_or(0.0, |it| confidence(it, &append.known)),
        quorum: json!({
            "threshold": append.task.terms.quorum,
            "approvals": approvals,
            "rejections": rejections,
        }),
        final_hash: digest_json(&json!({
            "domain": "jurat.decision.v1",
            "account": append.key.account.as_str(),
            "task": append.key.id,
            "epoch": epoch,
            "event": seq,
            "candidate": made.candidate_id,
            "output": digest_json(&made.output),
        })),
        created_at: append.at,
        deprecated_at: None,
    }
}

fn sides(proposal: &Proposal) -> (usize, usize) {
    let of = |status: Status| {
        let counts = proposal.votes.values().filter_map(|vote| vote.ballot());
        counts.filter(|ballot| ballot.status == status).count()
    };
    (of(Status::Passed), of(Status::Failed))
}

fn codes(proposal: &Proposal) -> Vec<u16> {
    let ballots = proposal.votes.values().filter_map(|vote| vote.ballot());
    ballots.flat_map(|ballot| ballot.reason_codes.iter().copied()).collect()
}

/// How likely the decision is right: what a round would say of these verdicts.
fn confidence(proposal: &Proposal, known: &Weigher) -> f64 {
    let verdicts: Vec<(bool, f64, Independence)> = proposal
        .votes
        .iter()
        .filter_map(|(voter, vote)| {
            let is_for = match vote.ballot()?.status {
                Status::Passed => true,
                Status::Failed => false,
                Status::Inconclusive => return None,
            };
            let right = known.get(voter).copied().unwrap_or_else(|| reliability_prior(None));
            Some((is_for, right, Independence::of_key(&vote.independence, voter)))
        })
        .collect();
    verdict_confidence(verdicts.iter().map(|(is_for, right, shared)| (*is_for, *right, shared)))
}

/// Earlier decisions for an executor that proposes, as the executor contract has them.
pub(super) fn bundle(hits: &KnowledgeHits, contract: &Value, refused: &[String]) -> Option<Value> {
    let words = Words::of(&contract["inputs"]);
    let mut found: Vec<(&'static str, f64, &Learned)> =
        hits.exact.iter().map(|it| ("Exact", 1.0, it)).collect();
    let mut similar: Vec<(&'static str, f64, &Learned)> = hits
        .others
        .iter()
        .map(|it| ("Similar", words.similarity(&Words::parse(&it.knowledge.words)), it))
        .filter(|(_, similarity, _)| LEAST_SIMILARITY <= *similarity)
        .collect();
    similar.sort_by(|left, right| right.1.total_cmp(&left.1));
    found.extend(similar.into_iter().take(MOST_SIMILAR));
    let mut hits: Vec<Value> = found.into_iter().filter_map(hit).collect();
    if hits.is_empty() && refused.is_empty() {
        return None;
    }
    let claims = [
        format!(
            "policy:{}:{}",
            text(&policy(contract)["policy_id"]),
            text(&policy(contract)["policy_version"])
        ),
        format!("task_type:{}", text(&contract["task_type"])),
    ];
    loop {
        let bundle = json!({
            "seed_type": "SIMILAR_HITS_V1",
            "hits": hits,
            "constraints": {
                "must_consider_claims": claims,
                "must_avoid_blacklist_candidate_hashes": refused,
            },
        });
        if hits.is_empty() || bundle.to_string().len() <= LARGEST_BUNDLE {
            return Some(bundle);
        }
        // The least similar stands last.
        hits.pop();
    }
}

fn hit((hit_type, similarity, learned): (&str, f64, &Learned)) -> Option<Value> {
    let Learned { task_id, knowledge } = learned;
    if LARGEST_PAYLOAD < knowledge.output.to_string().len() {
        return None;
    }
    Some(json!({
        "hit_type": hit_type,
        "decision_ref": {
            "task_id": task_id,
            "epoch": knowledge.epoch,
            "final_commit_hash": knowledge.final_hash,
        },
        "reuse_payload": knowledge.output,
        "evidence_digests": [],
        "reason_codes_summary": { "reason_codes": knowledge.reason_codes },
        // Never surer than the decision itself was.
        "confidence_hint": similarity * knowledge.confidence,
    }))
}

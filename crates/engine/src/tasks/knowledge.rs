//! Remembers decisions, and gives them to executors with similar inputs.

use jurat_core::{
    canonical::digest_json,
    executor::Independence,
    id::AccountId,
    policy::EvaluationStatus,
    round::{
        candidate::Candidate,
        consensus::{reliability_prior, verdict_confidence},
    },
    task::{
        Proposal, TaskCandidateRow, TaskEvent, VoterReliability,
        knowledge::{Knowledge, KnowledgeDigests, KnowledgeKey, KnowledgeRecord, WordCounts},
    },
};
use jurat_store::{KnowledgeFetch, KnowledgeHits, KnowledgeLookup, KnowledgeSummary};
use serde_json::{Value, json};

use super::{PriorDecision, TaskRoster, TaskWrite};

/// How many decisions a bundle holds, and how similar the inputs must be.
const MOST_SIMILAR: usize = 5;
const LEAST_SIMILARITY: f64 = 0.3;
/// How many of the newest others are searched.
pub(super) const LOOKED_THROUGH: u32 = 200;
/// How many decisions on the same inputs are considered, without their outputs.
pub const MOST_SAME: u32 = 64;
/// How many decisions on the same inputs an executor sees, and an answer is compared with.
const MOST_EXACT: usize = 3;
const MOST_PRIOR: usize = 8;
/// The largest earlier answer that is passed on, and the largest bundle, in bytes.
const LARGEST_PAYLOAD: u64 = 32_768;
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

/// The query before work on a contract starts.
pub fn knowledge_query(
    account: &AccountId,
    contract: &Value,
    exact: u32,
    others: u32,
) -> KnowledgeLookup {
    KnowledgeLookup {
        account: account.clone(),
        task_type: text(&contract["task_type"]),
        digests: digests(contract),
        exact,
        others,
    }
}

/// How many earlier decisions are tried.
const MOST_REUSED: usize = 4;

/// The decisions on the same inputs that a task may reuse, ranked. The next epoch of a task decides
/// afresh and reuses none.
pub fn reusable<'a>(
    exact: &'a [KnowledgeSummary],
    task: &'a str,
    panel: &'a TaskRoster,
) -> impl Iterator<Item = &'a KnowledgeSummary> {
    let is_other = move |it: &&KnowledgeSummary| it.key.task_id != task;
    exact.iter().filter(is_other).filter(|it| could_be_of(it, panel)).take(MOST_REUSED)
}

/// Whether a decision may count as a proposal of this roster: everybody who proposed it could also
/// propose for the roster, and under the same profile.
fn could_be_of(known: &KnowledgeSummary, panel: &TaskRoster) -> bool {
    let is_there = |it: &String| panel.proposers.contains(it);
    let are_there = !known.proposers.is_empty() && known.proposers.iter().all(is_there);
    are_there && known.profile == panel.profile
}

/// A decision on the same inputs, as a candidate to vote on. It is a new candidate in each epoch.
pub fn prior_decision(
    known: &KnowledgeSummary,
    epoch: u64,
    made: TaskCandidateRow,
) -> PriorDecision {
    // The original decision, however often it was reused.
    let source = known.source.as_ref().unwrap_or(&known.key);
    PriorDecision {
        source: source_name(source),
        proposers: known.proposers.clone(),
        candidate: Candidate {
            candidate_id: format!("cand-known-{epoch}-{}", &known.final_hash[7..23]),
            execution_id: made.execution_id,
            output: made.output,
            evidence: made.evidence,
        },
    }
}

/// The name of a decision as the source of another.
pub fn source_name(key: &KnowledgeKey) -> String {
    format!("knowledge:{}#{}", key.task_id, key.epoch)
}

/// Reads what [`source_name`] wrote.
fn parse_source(source: &str) -> Option<KnowledgeKey> {
    let (task, epoch) = source.strip_prefix("knowledge:")?.rsplit_once('#')?;
    Some(KnowledgeKey { task_id: task.to_owned(), epoch: epoch.parse().ok()? })
}

/// The decision that an event reuses.
pub fn reused_key(event: &TaskEvent) -> Option<KnowledgeKey> {
    let TaskEvent::Reused { source, .. } = event else { return None };
    parse_source(source)
}

/// The knowledge from a decision that a write makes final.
pub fn knowledge_of(append: &TaskWrite, epoch: u64, seq: u64, made: &Candidate) -> Knowledge {
    let filed = &append.before;
    let contract = &filed.contract;
    let proposal = append.task.proposal(&made.candidate_id);
    let (approvals, rejections) = proposal.map_or((0, 0), sides);
    let mut reason_codes: Vec<u16> = proposal.map(codes).unwrap_or_default();
    reason_codes.sort_unstable();
    reason_codes.dedup();
    Knowledge {
        epoch,
        task_type: text(&contract["task_type"]),
        digests: digests(contract),
        words: WordCounts::of(&contract["inputs"]).to_string(),
        candidate: made.candidate_id.clone(),
        output: made.output.clone(),
        output_digest: digest_json(&made.output),
        profile: filed.roster.profile.clone(),
        proposers: proposal.map(|it| it.proposers.iter().cloned().collect()).unwrap_or_default(),
        source: proposal.and_then(|it| it.source.as_deref()).and_then(parse_source),
        reason_codes,
        confidence: proposal.map_or(0.0, |it| confidence(it, &append.weigher)),
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
    let of = |status: EvaluationStatus| {
        let counts = proposal.votes.values().filter_map(|vote| vote.ballot());
        counts.filter(|ballot| ballot.status == status).count()
    };
    (of(EvaluationStatus::Passed), of(EvaluationStatus::Failed))
}

fn codes(proposal: &Proposal) -> Vec<u16> {
    let ballots = proposal.votes.values().filter_map(|vote| vote.ballot());
    ballots.flat_map(|ballot| ballot.reason_codes.iter().copied()).collect()
}

/// The confidence in the decision: what a round would compute from these verdicts.
fn confidence(proposal: &Proposal, known: &VoterReliability) -> f64 {
    let verdicts: Vec<(bool, f64, Independence)> = proposal
        .votes
        .iter()
        .filter_map(|(voter, vote)| {
            let is_for = match vote.ballot()?.status {
                EvaluationStatus::Passed => true,
                EvaluationStatus::Failed => false,
                EvaluationStatus::Inconclusive => return None,
            };
            let right = known.get(voter).copied().unwrap_or_else(|| reliability_prior(None));
            Some((is_for, right, Independence::of_key(&vote.independence, voter)))
        })
        .collect();
    verdict_confidence(verdicts.iter().map(|(is_for, right, shared)| (*is_for, *right, shared)))
}

/// A decision for an executor.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KnowledgePick {
    key: KnowledgeKey,
    hit_type: &'static str,
    similarity: f64,
}

/// The few decisions that say most about a contract, the best first. Their outputs are not read
/// yet.
pub(super) fn picks(hits: &KnowledgeHits, contract: &Value) -> Vec<KnowledgePick> {
    let words = WordCounts::of(&contract["inputs"]);
    let fits = |bytes: u64| bytes <= LARGEST_PAYLOAD;
    let pick = |hit_type, similarity, key: &KnowledgeKey| KnowledgePick {
        key: key.clone(),
        hit_type,
        similarity,
    };
    let exact = hits.exact.iter().filter(|it| fits(it.output_bytes)).take(MOST_EXACT);
    let mut picks: Vec<KnowledgePick> = exact.map(|it| pick("Exact", 1.0, &it.key)).collect();
    let mut similar: Vec<KnowledgePick> = hits
        .others
        .iter()
        .filter(|it| fits(it.output_bytes))
        .map(|it| pick("Similar", words.similarity(&WordCounts::parse(&it.words)), &it.key))
        .filter(|it| LEAST_SIMILARITY <= it.similarity)
        .collect();
    similar.sort_by(|left, right| right.similarity.total_cmp(&left.similarity));
    picks.extend(similar.into_iter().take(MOST_SIMILAR));
    picks
}

pub(super) fn keys(picks: &[KnowledgePick]) -> Vec<KnowledgeKey> {
    picks.iter().map(|it| it.key.clone()).collect()
}

/// The decisions on the same inputs that an answer is compared with, the newest first: each
/// original decision counts once, and reused ones add nothing. The decision that the answer itself
/// comes from is left out, because nothing confirms itself.
pub fn prior(hits: &KnowledgeHits, taken_from: Option<&str>) -> Vec<KnowledgeKey> {
    let own = taken_from.and_then(parse_source);
    let counts = |it: &&KnowledgeSummary| it.source.is_none() && own.as_ref() != Some(&it.key);
    let fits = |it: &&KnowledgeSummary| it.output_bytes <= LARGEST_PAYLOAD;
    let found = hits.exact.iter().filter(counts).filter(fits);
    found.map(|it| it.key.clone()).take(MOST_PRIOR).collect()
}

/// A query for the outputs of some decisions.
pub(super) fn output_query(account: &AccountId, keys: Vec<KnowledgeKey>) -> KnowledgeFetch {
    KnowledgeFetch { account: account.clone(), keys, largest: LARGEST_PAYLOAD }
}

/// Earlier decisions for an executor that proposes, in the form of the executor contract.
pub(super) fn bundle(
    picks: &[KnowledgePick],
    learned: &[KnowledgeRecord],
    contract: &Value,
    refused: &[String],
) -> Option<Value> {
    let found =
        |pick: &KnowledgePick| Some(hit(pick, learned.iter().find(|it| it.key() == pick.key)?));
    let mut hits: Vec<Value> = picks.iter().filter_map(found).collect();
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
        // The least similar is last.
        hits.pop();
    }
}

fn hit(pick: &KnowledgePick, KnowledgeRecord { task_id, knowledge }: &KnowledgeRecord) -> Value {
    json!({
        "hit_type": pick.hit_type,
        "decision_ref": {
            "task_id": task_id,
            "epoch": knowledge.epoch,
            "final_commit_hash": knowledge.final_hash,
        },
        "reuse_payload": knowledge.output,
        "evidence_digests": [],
        "reason_codes_summary": { "reason_codes": knowledge.reason_codes },
        // Never surer than the decision itself.
        "confidence_hint": pick.similarity * knowledge.confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: &str) -> KnowledgeKey {
        KnowledgeKey { task_id: task.to_owned(), epoch: 1 }
    }

    fn known(task: &str, source: Option<&str>, output_bytes: u64) -> KnowledgeSummary {
        KnowledgeSummary {
            key: key(task),
            candidate: "cand-1".to_owned(),
            output_bytes,
            profile: "default".to_owned(),
            proposers: vec!["alpha".to_owned()],
            source: source.map(key),
            final_hash: String::new(),
        }
    }

    #[test]
    fn nothing_confirms_itself_and_copies_do_not_count() {
        let exact = vec![
            known("t4", None, 10),
            known("t3", Some("t1"), 10),
            known("large", None, LARGEST_PAYLOAD + 1),
            known("t1", None, 10),
        ];
        let hits = KnowledgeHits { exact, others: Vec::new() };
        assert_eq!(prior(&hits, None), [key("t4"), key("t1")]);
        assert_eq!(prior(&hits, Some("knowledge:t1#1")), [key("t4")]);
    }

    #[test]
    fn a_source_name_reads_back() {
        let key = KnowledgeKey { task_id: "a:b.c".to_owned(), epoch: 12 };
        assert_eq!(parse_source(&source_name(&key)), Some(key));
    }
}

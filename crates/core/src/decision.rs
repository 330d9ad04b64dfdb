//! The decision entry: the canonical document that closing a round writes and that receipts are made of.

use serde::{Deserialize, Serialize};

use crate::{
    canonical::{self, digest_json},
    consensus::Consensus,
    replica::Replica,
    round::{Ending, OpenRound},
    time::Timestamp,
};

/// The version of the entry's form.
pub const FORMAT: &str = "jurat.decision.v1";

/// A document: its canonical JSON is hashed, so its fields are its meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionEntry {
    pub format: String,
    pub round_id: String,
    pub account_id: String,
    pub kind: String,
    pub ending: String,
    pub request_digest: String,
    pub policy_id: String,
    pub policy_hash: String,
    pub strategy: String,
    pub equivalence: String,
    pub disagreement_policy: String,
    pub outcome: String,
    pub verdict: Option<String>,
    pub output_digest: Option<String>,
    pub agreement: f64,
    pub confidence: f64,
    pub effective_votes: f64,
    pub tie_broken: bool,
    pub replicas: Vec<DecisionReplica>,
    pub opened_at_us: i64,
    pub closed_at_us: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionReplica {
    pub session_id: String,
    pub executor: String,
    pub independence: String,
    pub label: String,
    pub group: Option<usize>,
    pub answer_digest: Option<String>,
    pub result_hash: Option<String>,
    pub failure: Option<String>,
}

/// The canonical text of the entry and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedEntry {
    pub text: String,
    pub digest: String,
}

impl DecisionEntry {
    pub fn new(
        open: &OpenRound,
        ending: Ending,
        replicas: &[Replica],
        consensus: &Consensus,
        closed_at: Timestamp,
    ) -> Self {
        let replicas = replicas.iter().map(|replica| {
            DecisionReplica::new(replica, consensus.groups.get(replica.index).copied().flatten())
        });
        Self {
            format: FORMAT.to_owned(),
            round_id: open.id.to_string(),
            account_id: open.account.to_string(),
            kind: open.kind.to_string(),
            ending: ending.to_string(),
            request_digest: open.request_digest.clone(),
            policy_id: open.policy_id.clone(),
            policy_hash: open.policy_hash.clone(),
            strategy: consensus.strategy.clone(),
            equivalence: consensus.equivalence.clone(),
            disagreement_policy: open.disagreement.to_string(),
            outcome: consensus.outcome.to_string(),
            verdict: consensus.verdict.map(|label| label.to_string()),
            output_digest: consensus.output.as_ref().map(digest_json),
            agreement: consensus.agreement,
            confidence: consensus.confidence,
            effective_votes: consensus.effective_votes,
            tie_broken: consensus.tie_broken,
            replicas: replicas.collect(),
            opened_at_us: open.opened_at.micros(),
            closed_at_us: closed_at.micros(),
        }
    }

    pub fn seal(&self) -> SealedEntry {
        // A struct of strings and finite numbers always serializes.
        let bytes = serde_json_canonicalizer::to_vec(self).unwrap_or_default();
        let digest = canonical::digest(&bytes);
        SealedEntry { text: String::from_utf8(bytes).unwrap_or_default(), digest }
    }
}

impl DecisionReplica {
    fn new(replica: &Replica, group: Option<usize>) -> Self {
        let said = replica.answer.said();
        Self {
            session_id: replica.session_id.clone(),
            executor: replica.executor.clone(),
            independence: replica.independence.to_string(),
            label: replica.answer.label().to_string(),
            group,
            answer_digest: said.and_then(|said| said.output.as_ref()).map(digest_json),
            result_hash: said.and_then(|said| said.result_hash.clone()),
            failure: replica.answer.failure().map(|failure| failure.code.to_string()),
        }
    }
}

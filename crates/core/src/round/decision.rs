//! The decision entry: the canonical document that closing a round writes, and the source of
//! receipts.

use serde::{Deserialize, Serialize};

use super::{OpenRound, RoundEnding, consensus::Consensus, replica::Replica};
use crate::{
    canonical::{self, digest_json},
    time::Timestamp,
};

/// The version of the entry format.
pub const FORMAT: &str = "jurat.decision.v1";

/// A document whose canonical JSON is hashed, so its fields are its meaning. They are declared in
/// canonical order, by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionEntry {
    pub account_id: String,
    pub agreement: f64,
    /// Absent in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    pub closed_at_us: i64,
    pub confidence: f64,
    pub disagreement_policy: String,
    pub effective_votes: f64,
    pub ending: String,
    pub equivalence: String,
    pub format: String,
    pub kind: String,
    pub opened_at_us: i64,
    pub outcome: String,
    pub output_digest: Option<String>,
    pub policy_hash: String,
    pub policy_id: String,
    pub replicas: Vec<DecisionReplica>,
    pub request_digest: String,
    pub round_id: String,
    pub strategy: String,
    pub tie_broken: bool,
    pub verdict: Option<String>,
}

/// One replica in a decision entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecisionReplica {
    pub answer_digest: Option<String>,
    pub executor: String,
    pub failure: Option<String>,
    pub group: Option<usize>,
    pub independence: String,
    pub label: String,
    /// The index of the replica that replaced it. Absent in entries of rounds without replacements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<usize>,
    pub result_hash: Option<String>,
    pub session_id: String,
}

/// The canonical text of an entry and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalEntry {
    pub text: String,
    pub digest: String,
}

impl DecisionEntry {
    /// The entry of a round that ends with this closing.
    pub fn new(
        open: &OpenRound,
        ending: RoundEnding,
        replicas: &[Replica],
        consensus: &Consensus,
        closed_at: Timestamp,
    ) -> Self {
        let replicas = replicas
            .iter()
            .map(|replica| DecisionReplica::new(replica, consensus.group_of(replica)));
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
            basis: consensus.basis.map(|basis| basis.to_string()),
            confidence: consensus.confidence,
            effective_votes: consensus.effective_votes,
            tie_broken: consensus.tie_broken,
            replicas: replicas.collect(),
            opened_at_us: open.opened_at.micros(),
            closed_at_us: closed_at.micros(),
        }
    }

    /// The canonical text of the entry, with its digest.
    pub fn canonical_entry(&self) -> CanonicalEntry {
        let bytes = canonical::in_order(self);
        let digest = canonical::digest(&bytes);
        CanonicalEntry { text: String::from_utf8(bytes).unwrap_or_default(), digest }
    }
}

impl DecisionReplica {
    fn new(replica: &Replica, group: Option<usize>) -> Self {
        let said = replica.answer.content();
        Self {
            session_id: replica.session_id.clone(),
            executor: replica.executor.clone(),
            independence: replica.independence.to_string(),
            label: replica.answer.label().to_string(),
            group,
            replaced_by: replica.replaced_by,
            answer_digest: said.and_then(|said| said.output.as_ref()).map(digest_json),
            result_hash: said.and_then(|said| said.result_hash.clone()),
            failure: replica.answer.failure().map(|failure| failure.code.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_in_canonical_order() {
        let replica = DecisionReplica {
            answer_digest: None,
            executor: "e".to_owned(),
            failure: None,
            group: Some(0),
            independence: "f/m@h".to_owned(),
            label: "VALID".to_owned(),
            replaced_by: Some(3),
            result_hash: None,
            session_id: "s".to_owned(),
        };
        let entry = DecisionEntry {
            account_id: "a".to_owned(),
            agreement: 1.0,
            basis: Some("executors".to_owned()),
            closed_at_us: 2,
            confidence: 0.75,
            disagreement_policy: "return_all".to_owned(),
            effective_votes: 1.0,
            ending: "closed".to_owned(),
            equivalence: "label".to_owned(),
            format: FORMAT.to_owned(),
            kind: "validate".to_owned(),
            opened_at_us: 1,
            outcome: "agreed".to_owned(),
            output_digest: None,
            policy_hash: "h".to_owned(),
            policy_id: "p".to_owned(),
            replicas: vec![replica],
            request_digest: "d".to_owned(),
            round_id: "r".to_owned(),
            strategy: "majority".to_owned(),
            tie_broken: false,
            verdict: None,
        };
        let sorted = serde_json_canonicalizer::to_string(&entry).unwrap();
        assert_eq!(entry.canonical_entry().text, sorted);
    }
}

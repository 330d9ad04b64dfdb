//! What is remembered of decisions, for those who ask for the same or the like.

use jurat_core::time::Timestamp;
use serde_json::Value;

use crate::{
    Result,
    both::{Tx, args},
    rows::json,
    tasks::TaskKey,
};

/// A decision that is final. The task and its account stand elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    pub epoch: u64,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// What similar inputs are known by.
    pub words: String,
    pub candidate: String,
    pub output: Value,
    pub reason_codes: Vec<u16>,
    pub confidence: f64,
    /// How the votes stood.
    pub quorum: Value,
    pub final_hash: String,
    pub created_at: Timestamp,
    /// Since when it is not to be used any more.
    pub deprecated_at: Option<Timestamp>,
}

/// What makes two tasks the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeDigests {
    pub policy_id: String,
    pub inputs: String,
    pub schema: String,
    pub params: String,
}

const ADD: &str = "\
    insert into knowledge (\
        account_id, task_id, epoch, task_type, policy_id, input_digest, schema_digest, \
        params_digest, words, candidate_id, output, reason_codes, confidence, quorum, final_hash, \
        created_at, deprecated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

pub(crate) async fn add(tx: &mut impl Tx, task: &TaskKey, knowledge: &Knowledge) -> Result<()> {
    let digests = &knowledge.digests;
    let args = args![
        &task.account,
        &task.id,
        knowledge.epoch,
        &knowledge.task_type,
        &digests.policy_id,
        &digests.inputs,
        &digests.schema,
        &digests.params,
        &knowledge.words,
        &knowledge.candidate,
        json(&knowledge.output)?,
        json(&knowledge.reason_codes)?,
        json(&knowledge.confidence)?,
        json(&knowledge.quorum)?,
        &knowledge.final_hash,
        knowledge.created_at,
        knowledge.deprecated_at
    ];
    tx.run(ADD, args).await.map(drop)
}

//! A final decision as it is remembered and listed.

use serde_json::Value;

use crate::time::Timestamp;

/// A decision that is final, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    pub epoch: u64,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// What similar inputs are known by.
    pub words: String,
    pub candidate: String,
    pub output: Value,
    /// Of the output as canonical JSON.
    pub output_digest: String,
    /// The profile under which it was made.
    pub profile: String,
    /// Everybody who proposed it.
    pub proposers: Vec<String>,
    /// The decision that it was taken from, where nobody proposed it anew.
    pub source: Option<KnowledgeKey>,
    pub reason_codes: Vec<u16>,
    pub confidence: f64,
    /// How the votes stood.
    pub quorum: Value,
    pub final_hash: String,
    pub created_at: Timestamp,
    /// Since when it is not to be used any more.
    pub deprecated_at: Option<Timestamp>,
}

/// Which decision of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnowledgeKey {
    pub task_id: String,
    pub epoch: u64,
}

/// What makes two tasks of a type the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeDigests {
    pub policy_id: String,
    pub inputs: String,
    pub schema: String,
    pub params: String,
}

/// A decision with the task that it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeRecord {
    pub task_id: String,
    pub knowledge: Knowledge,
}

impl KnowledgeRecord {
    pub fn key(&self) -> KnowledgeKey {
        KnowledgeKey { task_id: self.task_id.clone(), epoch: self.knowledge.epoch }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeScope {
    TaskType(String),
    Task(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgePosition {
    pub created_at: Timestamp,
    pub task_id: String,
    pub epoch: u64,
}

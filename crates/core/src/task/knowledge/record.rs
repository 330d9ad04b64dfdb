//! Defines a final decision as it is remembered and listed.

use serde_json::Value;

use crate::time::Timestamp;

/// A final decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    pub epoch: u64,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// The word counts of the inputs, by which similar inputs are found.
    pub words: String,
    pub candidate: String,
    pub output: Value,
    /// The digest of the output as canonical JSON.
    pub output_digest: String,
    /// The profile of the session that produced it.
    pub profile: String,
    /// All executors that proposed it.
    pub proposers: Vec<String>,
    /// The decision that was reused, if no executor proposed it again.
    pub source: Option<KnowledgeKey>,
    pub reason_codes: Vec<u16>,
    pub confidence: f64,
    /// The votes, as a document.
    pub quorum: Value,
    pub final_hash: String,
    pub created_at: Timestamp,
    /// When it was withdrawn from use.
    pub deprecated_at: Option<Timestamp>,
}

/// Names a decision of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnowledgeKey {
    pub task_id: String,
    pub epoch: u64,
}

/// Two tasks of a type are the same if these digests are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeDigests {
    pub policy_id: String,
    pub inputs: String,
    pub schema: String,
    pub params: String,
}

/// A decision with its task.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeRecord {
    pub task_id: String,
    pub knowledge: Knowledge,
}

impl KnowledgeRecord {
    /// The name of the decision.
    pub fn key(&self) -> KnowledgeKey {
        KnowledgeKey { task_id: self.task_id.clone(), epoch: self.knowledge.epoch }
    }
}

/// Selects the decisions of a type of tasks, or of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeScope {
    TaskType(String),
    Task(String),
}

/// The position after which a page of decisions starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgePosition {
    pub created_at: Timestamp,
    pub task_id: String,
    pub epoch: u64,
}

/// Selects decisions for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeFilter {
    pub of: KnowledgeScope,
    /// Starts after this decision, towards older ones.
    pub before: Option<KnowledgePosition>,
    pub limit: u32,
}

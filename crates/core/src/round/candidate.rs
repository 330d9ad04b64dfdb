//! A candidate: an output under verification, with its evidence.

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub candidate_id: String,
    pub execution_id: String,
    pub output: Value,
    pub evidence: Evidence,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    pub inline: Vec<InlineEvidence>,
    pub refs: Vec<ArtifactRef>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineEvidence {
    pub mime: String,
    pub content: String,
}

/// A pointer to evidence that is kept elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRef {
    pub uri: String,
    pub digest: String,
    pub size_bytes: u64,
    pub mime: String,
    pub created_at: u64,
    pub producer: String,
}

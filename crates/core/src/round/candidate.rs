//! A candidate: an output under verification, with its evidence.

use serde_json::Value;

/// An output under verification.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub candidate_id: String,
    pub execution_id: String,
    pub output: Value,
    pub evidence: Evidence,
}

/// The evidence of a candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    pub inline: Vec<InlineEvidence>,
    pub refs: Vec<ArtifactRef>,
}

/// Evidence whose content is part of the candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineEvidence {
    pub mime: String,
    pub content: String,
}

/// A reference to evidence that is stored elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRef {
    pub uri: String,
    pub digest: String,
    pub size_bytes: u64,
    pub mime: String,
    pub created_at: u64,
    pub producer: String,
}

//! The bodies of a fake executor's answers to `/execute` and `/verify`, with their hash.

use std::collections::BTreeMap;

use jurat_core::canonical::digest;
use jurat_core::executor::Capabilities;
use serde_json::{Value, json};

/// The answers to `/execute` and `/verify`.
#[derive(Debug, Clone)]
pub struct FakeAnswer {
    pub output: Value,
    pub evidence_inline: Vec<Value>,
    pub evidence_refs: Vec<Value>,
    pub verdict: FakeVerdict,
}

/// The answer to `/verify`.
#[derive(Debug, Clone)]
pub struct FakeVerdict {
    pub passed: bool,
    /// Any JSON, so that a test may write a number differently, or no number at all.
    pub score: Value,
    pub reason_codes: Vec<u16>,
    /// `verification_status`; absent if `None`.
    pub status: Option<String>,
    pub hash: ResultHashForm,
    /// A status and a body that are sent instead of a verdict.
    pub refusal: Option<(u16, Value)>,
}

/// How `verifier_result_hash` is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultHashForm {
    Right,
    /// Correct, without the `sha256:` prefix.
    Bare,
    /// Well formed, but of something else.
    Wrong,
    /// `sha256:placeholder`.
    Placeholder,
    Absent,
}

impl Default for FakeAnswer {
    fn default() -> Self {
        Self {
            output: json!({ "answer": "yes" }),
            evidence_inline: Vec::new(),
            evidence_refs: Vec::new(),
            verdict: FakeVerdict::valid(),
        }
    }
}

impl FakeVerdict {
    pub fn valid() -> Self {
        Self::new(true, "passed", &[])
    }

    pub fn invalid() -> Self {
        Self::new(false, "failed", &[101])
    }

    pub fn inconclusive() -> Self {
        Self::new(false, "inconclusive", &[200])
    }

    fn new(passed: bool, status: &str, reason_codes: &[u16]) -> Self {
        Self {
            passed,
            score: json!(1.0),
            reason_codes: reason_codes.to_vec(),
            status: Some(status.to_owned()),
            hash: ResultHashForm::Right,
            refusal: None,
        }
    }
}

impl FakeAnswer {
    pub(super) fn to_execute(&self) -> (u16, Value) {
        let body = json!({
            "candidate_output": self.output,
            "evidence_inline": self.evidence_inline,
            "evidence_refs": self.evidence_refs,
        });
        (200, body)
    }

    pub(super) fn to_verify(&self, request: &Value, declared: &Capabilities) -> (u16, Value) {
        let verdict = &self.verdict;
        if let Some(refusal) = &verdict.refusal {
            return refusal.clone();
        }
        let mut body = json!({
            "passed": verdict.passed,
            "score": verdict.score,
            "reason_codes": verdict.reason_codes,
            "provider_family": declared.provider_family,
            "model_id": declared.model_id,
        });
        if let Some(status) = &verdict.status {
            body["verification_status"] = json!(status);
        }
        if let Some(hash) = verdict.hash.write(&result_hash(request, &body)) {
            body["verifier_result_hash"] = json!(hash);
        }
        (200, body)
    }
}

impl ResultHashForm {
    fn write(self, right: &str) -> Option<String> {
        match self {
            Self::Right => Some(right.to_owned()),
            Self::Bare => Some(right.trim_start_matches("sha256:").to_owned()),
            Self::Wrong => Some(digest(right.as_bytes())),
            Self::Placeholder => Some("sha256:placeholder".to_owned()),
            Self::Absent => None,
        }
    }
}

/// Returns `sha256:` and the digest of the eight fields, keys sorted, compact, numbers as
/// `serde_json` writes them.
///
/// Deliberately written independently of the code under test, so that one checks the other.
pub fn result_hash(request: &Value, answer: &Value) -> String {
    let candidate = &request["candidate"];
    let fields = BTreeMap::from([
        ("candidate_id", &candidate["candidate_id"]),
        ("execution_id", &candidate["execution_id"]),
        ("model_id", &answer["model_id"]),
        ("passed", &answer["passed"]),
        ("policy_hash", &request["policy"]["policy_hash"]),
        ("provider_family", &answer["provider_family"]),
        ("reason_codes", &answer["reason_codes"]),
        ("score", &answer["score"]),
    ]);
    // A map with text keys always serialises; an empty text would fail every comparison.
    digest(&serde_json::to_vec(&fields).unwrap_or_default())
}

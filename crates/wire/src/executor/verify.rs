//! `POST /verify`: a candidate, a schema and a policy in, a verdict out.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use jurat_core::policy::EvaluationStatus;
use jurat_core::{policy, reason, round::candidate};

use super::{ShapeError, WireArtifactRef, WireCandidate, WireInlineEvidence, WirePolicyBinding};

/// A candidate to verify, with its schema and policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VerifyRequest {
    pub candidate: WireCandidate,
    /// What the output must match, as a JSON Schema.
    pub output_schema: Value,
    pub policy: WirePolicyBinding,
}

/// Verdict on a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerificationStatus {
    Passed,
    Failed,
    Inconclusive,
}

/// The verdict on a candidate, with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VerifyResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_status: Option<VerificationStatus>,
    pub passed: bool,
    /// Confidence in the verdict, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier_result_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_family: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// The bytes of a [`VerifyRequest`], serialized from borrowed parts to avoid copies.
pub fn verify_request_bytes(
    candidate: &candidate::Candidate,
    output_ref: &WireArtifactRef,
    output_schema: &Value,
    policy: &policy::PolicyBinding,
) -> Vec<u8> {
    #[derive(Serialize)]
    struct BorrowedRequest<'a> {
        candidate: BorrowedCandidate<'a>,
        output_schema: &'a Value,
        policy: BorrowedPolicy<'a>,
    }
    #[derive(Serialize)]
    struct BorrowedCandidate<'a> {
        candidate_id: &'a str,
        execution_id: &'a str,
        output_ref: &'a WireArtifactRef,
        output: &'a Value,
        evidence_inline: Vec<WireInlineEvidence>,
        evidence_refs: Vec<WireArtifactRef>,
    }
    #[derive(Serialize)]
    struct BorrowedPolicy<'a> {
        policy_id: &'a str,
        policy_version: &'a str,
        policy_hash: &'a str,
        policy_params: &'a Value,
    }
    let request = BorrowedRequest {
        candidate: BorrowedCandidate {
            candidate_id: &candidate.candidate_id,
            execution_id: &candidate.execution_id,
            output_ref,
            output: &candidate.output,
            evidence_inline: candidate.evidence.inline.iter().cloned().map(Into::into).collect(),
            evidence_refs: candidate.evidence.refs.iter().cloned().map(Into::into).collect(),
        },
        output_schema,
        policy: BorrowedPolicy {
            policy_id: &policy.policy_id,
            policy_version: &policy.policy_version,
            policy_hash: &policy.policy_hash,
            policy_params: &policy.policy_params,
        },
    };
    // Strings, JSON values and integers always serialize.
    serde_json::to_vec(&request).unwrap_or_default()
}

impl VerifyResponse {
    /// The verdict: as stated, or inferred from `passed` and the reason codes.
    pub fn status(&self) -> Result<VerificationStatus, ShapeError> {
        let inferred = if self.passed {
            VerificationStatus::Passed
        } else if reason::is_inconclusive(&self.reason_codes) {
            VerificationStatus::Inconclusive
        } else {
            VerificationStatus::Failed
        };
        let Some(stated) = self.verification_status else { return Ok(inferred) };
        if self.passed == (stated == VerificationStatus::Passed) {
            Ok(stated)
        } else {
            let problem = format!("`{}` contradicts `passed: {}`", stated.as_str(), self.passed);
            Err(ShapeError::new("verification_status", problem))
        }
    }
}

impl VerificationStatus {
    /// The verdict as replies write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl From<VerificationStatus> for EvaluationStatus {
    fn from(outer: VerificationStatus) -> Self {
        match outer {
            VerificationStatus::Passed => Self::Passed,
            VerificationStatus::Failed => Self::Failed,
            VerificationStatus::Inconclusive => Self::Inconclusive,
        }
    }
}

impl From<EvaluationStatus> for VerificationStatus {
    fn from(inner: EvaluationStatus) -> Self {
        match inner {
            EvaluationStatus::Passed => Self::Passed,
            EvaluationStatus::Failed => Self::Failed,
            EvaluationStatus::Inconclusive => Self::Inconclusive,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_bytes_read_back_as_the_request() {
        let candidate = candidate::Candidate {
            candidate_id: "c".to_owned(),
            execution_id: "e".to_owned(),
            output: json!({"a": [1, "é"]}),
            evidence: candidate::Evidence {
                inline: vec![candidate::InlineEvidence {
                    mime: "text/plain".to_owned(),
                    content: "seen".to_owned(),
                }],
                refs: Vec::new(),
            },
        };
        let binding = policy::PolicyBinding::new("vp.schema_only.v1", json!({}));
        let output_ref = WireArtifactRef::to_output(&candidate.output, 7, "acct_admin");
        let schema = json!({"type": "object"});
        let bytes = verify_request_bytes(&candidate, &output_ref, &schema, &binding);
        let expected = VerifyRequest {
            candidate: WireCandidate::new(candidate, 7, "acct_admin"),
            output_schema: schema,
            policy: binding.into(),
        };
        assert_eq!(bytes, serde_json::to_vec(&expected).unwrap());
    }
}

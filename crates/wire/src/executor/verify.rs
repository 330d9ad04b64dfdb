//! `POST /verify`: a candidate, a schema and a policy in, a verdict out.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use jurat_core::policy::Status;
use jurat_core::reason;

use super::{Candidate, PolicyBinding, ShapeError};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifyRequest {
    pub candidate: Candidate,
    pub output_schema: Value,
    pub policy: PolicyBinding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VerificationStatus {
    Passed,
    Failed,
    Inconclusive,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl From<VerificationStatus> for Status {
    fn from(outer: VerificationStatus) -> Self {
        match outer {
            VerificationStatus::Passed => Self::Passed,
            VerificationStatus::Failed => Self::Failed,
            VerificationStatus::Inconclusive => Self::Inconclusive,
        }
    }
}

impl From<Status> for VerificationStatus {
    fn from(inner: Status) -> Self {
        match inner {
            Status::Passed => Self::Passed,
            Status::Failed => Self::Failed,
            Status::Inconclusive => Self::Inconclusive,
        }
    }
}

//! Verifier runs in requests and replies.

mod reply;
mod request;

pub(crate) use self::request::{RunTimeoutMs, replicas, timeout_ms};
pub use self::{
    reply::{JudgeBody, VerifierRunBody, VerifierRunStatus, anonymous, line, whole},
    request::{
        JudgeCount, JudgeList, RunVerifierDraft, RunVerifierRequest, VerifierRunRequest,
        decode_strict_verifier_run, decode_verifier_run,
    },
};

//! Runs of verifiers: what is sent to begin one, and how one is shown.

mod reply;
mod request;

pub(crate) use self::request::{judges, limited, replicas, verifier_run_timeout, version};
pub use self::{
    reply::{VerifierRunBody, anonymous, line, whole},
    request::{RunVerifierRequest, VerifierRunRequest, decode_verifier_run},
};

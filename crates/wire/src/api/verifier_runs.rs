//! Runs of verifiers: what is sent to begin one, and how one is shown.

mod reply;
mod request;

pub(crate) use self::request::{bounded, judges, replicas, run_timeout, version};
pub use self::{
    reply::{RunBody, anonymous, line, whole},
    request::{RunOrder, RunVerifierRequest, decode_run},
};

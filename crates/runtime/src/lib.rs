//! Turns a program or a model into an executor: implement [`ExecutorService`], call [`serve`].

mod accept;
mod background;
pub mod engines;
mod events;
mod execute;
mod executor;
mod http;
mod options;
mod refusal;
mod signature;
mod verify;

pub use executor::{
    AgentDecision, AgentEvent, Execute, Execution, ExecutorError, ExecutorService, JudgeRequest,
};
pub use http::{ServeError, router, serve};
pub use jurat_core::executor::Capabilities;
pub use jurat_core::policy::{Evaluation, EvaluationStatus, PolicyBinding};
pub use jurat_core::reason;
pub use jurat_core::round::candidate::{ArtifactRef, Candidate, Evidence, InlineEvidence};
pub use jurat_guard::public::Range;
pub use options::{ExecutorLimits, ExecutorOptions, KernelCompat, Secret};
pub use signature::NodePublicKey;

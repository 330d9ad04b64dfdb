//! Turns a program or a model into an executor: implement [`Executor`], call [`serve`].

mod accept;
pub mod engines;
mod events;
mod execute;
mod executor;
mod http;
mod options;
mod refusal;
mod signed;
mod tasks;
mod verify;

pub use executor::{
    AgentDecision, AgentEvent, Execute, Execution, Executor, ExecutorError, Judgement,
};
pub use http::{ServeError, router, serve};
pub use jurat_core::candidate::{ArtifactRef, Candidate, Evidence, InlineEvidence};
pub use jurat_core::executor::Capabilities;
pub use jurat_core::policy::{Evaluation, PolicyBinding, Status};
pub use jurat_core::reason;
pub use jurat_guard::public::Range;
pub use options::{Compat, Limits, Options, Secret};
pub use signed::NodeKey;

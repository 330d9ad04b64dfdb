//! Small replies: whether the server is there, and what was removed.

use serde::Serialize;
use utoipa::ToSchema;

/// Whether the server is there, and can serve.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// `ok` from `/health`, `ready` from `/ready`.
    #[schema(example = "ok")]
    pub status: &'static str,
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Removed<'a> {
    /// The name or the id of what is gone.
    pub removed: &'a str,
}

/// An executor that was removed, and what went with it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedExecutor<'a> {
    /// The name of the executor that is gone.
    pub removed: &'a str,
    /// The ids of its sessions, which are gone too.
    pub sessions: &'a [String],
}

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

/// What there is to look at.
#[derive(Debug, Serialize, ToSchema)]
pub struct Index {
    /// `Jurat`.
    #[schema(example = "Jurat")]
    pub name: &'static str,
    /// The version of the server.
    pub version: &'static str,
    /// A page to read and try the API.
    pub docs: &'static str,
    /// The API as an OpenAPI document.
    pub openapi: &'static str,
    /// Whether the server is there.
    pub health: &'static str,
    /// Whether the server can serve.
    pub ready: &'static str,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            name: "Jurat",
            version: env!("CARGO_PKG_VERSION"),
            docs: "/docs",
            openapi: "/openapi.json",
            health: "/health",
            ready: "/ready",
        }
    }
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

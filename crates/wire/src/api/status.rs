//! Small replies: whether the server is there, and what was removed.

use serde::Serialize;
use utoipa::ToSchema;

/// Whether the server is alive and ready.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Status)]
pub struct ServerStatus {
    /// `ok` from `/health`, `ready` from `/ready`.
    #[schema(example = "ok")]
    pub status: &'static str,
}

/// Entry points of the server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Index)]
pub struct ApiIndex {
    /// `Jurat`.
    #[schema(example = "Jurat")]
    pub name: &'static str,
    /// The version of the server.
    pub version: &'static str,
    /// URL of the interactive API page.
    pub docs: &'static str,
    /// URL of the OpenAPI document.
    pub openapi: &'static str,
    /// URL of the liveness check.
    pub health: &'static str,
    /// URL of the readiness check.
    pub ready: &'static str,
}

impl Default for ApiIndex {
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

/// A removed resource.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Removed)]
pub struct RemovalBody<'a> {
    /// The name or id of the removed resource.
    pub removed: &'a str,
}

/// A removed executor and its sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedExecutor<'a> {
    /// The name of the removed executor.
    pub removed: &'a str,
    /// The ids of its sessions, which were removed too.
    pub sessions: &'a [String],
}

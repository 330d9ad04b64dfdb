//! Small replies: the status of the server, and removed resources.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the server is alive and ready.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Status)]
pub struct ServerStatus {
    /// `ok` from `/health`, `ready` from `/ready`.
    #[schema(example = "ok")]
    pub status: Cow<'static, str>,
}

/// Entry points of the server.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Index)]
pub struct ApiIndex {
    /// `Jurat`.
    #[schema(example = "Jurat")]
    pub name: Cow<'static, str>,
    /// The version of the server.
    pub version: Cow<'static, str>,
    /// URL of the interactive API page.
    pub docs: Cow<'static, str>,
    /// URL of the OpenAPI document.
    pub openapi: Cow<'static, str>,
    /// URL of the liveness check.
    pub health: Cow<'static, str>,
    /// URL of the readiness check.
    pub ready: Cow<'static, str>,
}

impl Default for ApiIndex {
    fn default() -> Self {
        Self {
            name: Cow::Borrowed("Jurat"),
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            docs: Cow::Borrowed("/docs"),
            openapi: Cow::Borrowed("/openapi.json"),
            health: Cow::Borrowed("/health"),
            ready: Cow::Borrowed("/ready"),
        }
    }
}

/// A removed resource.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Removed)]
pub struct RemovalBody<'a> {
    /// The name or id of the removed resource.
    pub removed: Cow<'a, str>,
}

/// A removed executor and its sessions.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RemovedExecutor<'a> {
    /// The name of the removed executor.
    pub removed: Cow<'a, str>,
    /// The ids of its sessions, which were removed too.
    pub sessions: Cow<'a, [String]>,
}

//! One call of a tool: who asks, for what, and who wants to hear how it goes.

use futures::future::BoxFuture;
use jurat_core::account::caller::Caller;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What a tool returns in the end.
pub(super) type ToolFuture<'a> = BoxFuture<'a, Result<Value, Problem>>;

pub(super) struct ToolCall<'a> {
    pub(super) engine: &'a Engine,
    pub(super) caller: &'a Caller,
    /// What the tool was given, as a body of the API.
    pub(super) arguments: &'a Value,
    pub(super) progress: ProgressReporter,
    /// Cancelled when the caller is gone or wants no answer any more.
    pub(super) gone: CancellationToken,
}

/// Tells the caller how a call goes, if the caller asked for it.
pub(super) struct ProgressReporter {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    sent: u32,
}

impl ProgressReporter {
    pub(super) fn new(peer: Peer<RoleServer>, token: Option<ProgressToken>) -> Self {
        Self { to: token.map(|token| (peer, token)), sent: 0 }
    }

    pub(super) const fn is_wanted(&self) -> bool {
        self.to.is_some()
    }

    /// One step more, of so many.
    pub(super) async fn tell(&mut self, of: usize, text: String) {
        let Some((peer, token)) = &self.to else { return };
        self.sent += 1;
        let total = u32::try_from(of).unwrap_or(u32::MAX);
        let step = ProgressNotificationParam::new(token.clone(), f64::from(self.sent))
            .with_total(f64::from(total))
            .with_message(text);
        // A caller who does not hear it gets the result, or is gone.
        let _unheard = peer.notify_progress(step).await;
    }
}

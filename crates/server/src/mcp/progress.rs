//! Reports the progress of a tool call to its caller.

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};

/// Reports progress, if the caller asked for it.
pub(crate) struct ProgressReporter {
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

    /// Reports one more step of a total of `of`.
    pub(super) async fn tell(&mut self, of: usize, text: String) {
        let Some((peer, token)) = &self.to else { return };
        self.sent += 1;
        let total = u32::try_from(of).unwrap_or(u32::MAX);
        let step = ProgressNotificationParam::new(token.clone(), f64::from(self.sent))
            .with_total(f64::from(total))
            .with_message(text);
        // A caller that misses a notification still gets the result, or has disconnected.
        let _unheard = peer.notify_progress(step).await;
    }
}

//! What happens in a round while it runs, for those who watch.

use jurat_core::{
    id::RoundId,
    round::{RoundClosing, Seat, job::JobKind, replica::Replica},
};
use tokio::sync::mpsc;

#[derive(Debug, Clone)]
pub enum RoundProgress {
    ReplicaStarted { round: RoundId, index: usize, seat: Seat },
    ReplicaDone { round: RoundId, kind: JobKind, replica: Box<Replica> },
    Decided { round: RoundId, closing: Box<RoundClosing> },
}

/// Where progress goes; to nobody when there is no watcher.
#[derive(Debug, Clone, Default)]
pub struct RoundWatcher(Option<mpsc::UnboundedSender<RoundProgress>>);

impl RoundWatcher {
    pub fn nobody() -> Self {
        Self(None)
    }

    /// A round has two events for each seat and each spare, so the channel needs no bound.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<RoundProgress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(Some(sender)), receiver)
    }

    pub(crate) fn send(&self, progress: impl FnOnce() -> RoundProgress) {
        if let Some(sender) = &self.0 {
            // A watcher that went away does not stop the round.
            let _gone = sender.send(progress());
        }
    }
}

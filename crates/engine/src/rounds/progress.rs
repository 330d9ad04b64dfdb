//! The progress of a round, for its watcher.

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

/// The receiver of progress, if there is one.
#[derive(Debug, Clone, Default)]
pub struct RoundWatcher(Option<mpsc::UnboundedSender<RoundProgress>>);

impl RoundWatcher {
    pub fn nobody() -> Self {
        Self(None)
    }

    /// A round has two events for each seat and each spare, so the channel needs no limit.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<RoundProgress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(Some(sender)), receiver)
    }

    pub(crate) fn send(&self, progress: impl FnOnce() -> RoundProgress) {
        if let Some(sender) = &self.0 {
            // A watcher that left does not stop the round.
            let _gone = sender.send(progress());
        }
    }
}

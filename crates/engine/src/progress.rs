//! What happens in a round while it runs, for those who watch.

use jurat_core::{
    id::RoundId,
    job::Kind,
    replica::Replica,
    round::{Closing, Seat},
};
use tokio::sync::mpsc;

#[derive(Debug, Clone)]
pub enum Progress {
    ReplicaStarted { round: RoundId, index: usize, seat: Seat },
    ReplicaDone { round: RoundId, kind: Kind, replica: Box<Replica> },
    Decided { round: RoundId, closing: Box<Closing> },
}

/// Where progress goes; to nobody when there is no watcher.
#[derive(Debug, Clone, Default)]
pub struct Watcher(Option<mpsc::UnboundedSender<Progress>>);

impl Watcher {
    pub fn nobody() -> Self {
        Self(None)
    }

    /// A round has two events for each seat and each spare, so the channel needs no bound.
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Progress>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(Some(sender)), receiver)
    }

    pub(crate) fn tell(&self, progress: impl FnOnce() -> Progress) {
        if let Some(sender) = &self.0 {
            // A watcher that went away does not stop the round.
            let _gone = sender.send(progress());
        }
    }
}

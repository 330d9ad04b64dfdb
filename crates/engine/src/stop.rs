//! The end of a node: no round begins any more, and those under way end or are released.

use crate::{Engine, EngineError, pressure::Load, under_way::Stop};

/// So many rounds may always be under way, however late the node is.
const FEW: usize = 32;

impl Engine {
    /// Whether a round may begin now. Asked before the body of a request is read.
    pub fn admit(&self) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        self.inner.pressure.admit(self.load())
    }

    /// Few rounds under way cannot be what makes a node late, and refusing one would help nobody.
    fn load(&self) -> Load {
        let under_way = self.inner.limits.rounds - self.inner.rounds.available_permits();
        if under_way < FEW { Load::Light } else { Load::Heavy }
    }

    /// Whether a round would be refused because this node is late. Cheaper than to ask for one, and
    /// nobody's place is taken; the refusal is counted.
    pub fn is_late(&self) -> bool {
        let is_full = self.inner.pressure.is_full(self.load());
        if is_full {
            self.inner.pressure.note_refusal();
        }
        is_full
    }

    /// From now on no round begins; those under way go on.
    pub fn stop_rounds(&self) {
        self.inner.stopping.cancel();
    }

    /// Whether this node is about to end.
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.is_cancelled()
    }

    /// Done when this node is about to end, for those who wait for something that takes long.
    pub async fn stopping(&self) {
        self.inner.stopping.cancelled().await;
    }

    /// Waits until no round is under way; those that come in meanwhile are refused.
    pub async fn drain(&self) {
        let all = u32::try_from(self.inner.limits.rounds).unwrap_or(u32::MAX);
        // It fails only when the semaphore is closed, which nobody does.
        let _all = self.inner.rounds.acquire_many(all).await;
    }

    /// Ends the rounds that are still under way as expired, at once instead of after their lease.
    pub async fn release(&self) {
        self.inner.under_way.stop_all(Stop::Node);
        self.drain().await;
    }
}

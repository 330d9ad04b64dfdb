//! The end of a node: no round begins any more, and those under way end or are released.

use jurat_core::{account::caller::Caller, id::AccountId};

use super::{
    capacity::{SharedCapacity, capacity_owner},
    pressure::LoadLevel,
};
use crate::{Engine, EngineError, rounds::in_flight::StopReason};

/// So many rounds may always be under way, however late the node is.
const FREE_ROUNDS: usize = 32;
/// So many of one account as well: it is the others that make the node late.
const FREE_ACCOUNT_ROUNDS: usize = 4;

impl Engine {
    /// Whether a round may begin now. Asked before the body of a request is read.
    pub fn admit(&self, caller: &Caller) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        self.inner.pressure.admit(self.load_level(&capacity_owner(caller)))
    }

    fn load_level(&self, account: &AccountId) -> LoadLevel {
        load(&self.inner.round_capacity, account)
    }

    /// Whether a round would be refused because this node is late. Cheaper than to ask for one, and
    /// nobody's place is taken; the refusal is counted. The key is not checked here, only whose it
    /// says it is; one that nobody has used lately is let on.
    pub fn is_late(&self, key: Option<&str>) -> bool {
        let account = match key {
            Some(key) => self.inner.keys.account_of(key),
            None => Some(AccountId::anonymous(0)),
        };
        let load = account.map_or(LoadLevel::Light, |account| self.load_level(&account));
        let is_full = self.inner.pressure.is_full(load);
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
        self.inner.round_capacity.idle().await;
    }

    /// Ends the rounds that are still under way as expired, at once instead of after their lease.
    pub async fn release(&self) {
        self.inner.rounds_in_flight.stop_all(StopReason::Node);
        self.drain().await;
    }
}

/// Few rounds under way cannot be what makes a node late, and refusing one would help nobody. Nor can
/// the few of one account: whoever has more waits, so that accounts take turns.
fn load(rounds: &SharedCapacity, account: &AccountId) -> LoadLevel {
    let is_light = rounds.in_use() < FREE_ROUNDS || rounds.held_by(account) < FREE_ACCOUNT_ROUNDS;
    if is_light { LoadLevel::Light } else { LoadLevel::Heavy }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::{capacity::CapacityPermit, pressure::Pressure};

    #[tokio::test(start_paused = true)]
    async fn a_late_node_still_takes_the_few_rounds_of_an_account() {
        let pressure = Pressure::new(Arc::default());
        pressure.limit(Some(0.001));
        let rounds = SharedCapacity::new(1_024);
        let [alice, bob] = ["acct_alice", "acct_bob"].map(|it| AccountId::parse(it).unwrap());
        // Takes a place if a round of the account may begin.
        let begins = |account: &AccountId| -> Option<CapacityPermit> {
            pressure.admit(load(&rounds, account)).ok()?;
            rounds.take(account, 1, 1_024).ok()
        };
        let held: Vec<CapacityPermit> = (0..200).filter_map(|_| begins(&alice)).collect();
        // Those that make no node late, and what the limit lets through at once.
        assert!((FREE_ROUNDS..FREE_ROUNDS + 16).contains(&held.len()), "{}", held.len());
        assert!(begins(&alice).is_none());
        let others: Vec<CapacityPermit> = (0..200).filter_map(|_| begins(&bob)).collect();
        assert_eq!(others.len(), FREE_ACCOUNT_ROUNDS, "however many the other one has");
        drop(held);
        assert!(begins(&alice).is_some() && begins(&bob).is_some(), "few are under way");
    }
}

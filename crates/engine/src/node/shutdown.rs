//! Admits rounds, and drains or releases them when the node stops.

use jurat_core::{account::caller::Caller, id::AccountId};

use super::{
    capacity::{SharedCapacity, capacity_owner},
    pressure::LoadLevel,
};
use crate::{Engine, EngineError, rounds::in_flight::StopReason};

/// This many rounds may always be in progress, however late the node is.
const FREE_ROUNDS: usize = 32;
/// This many rounds of one account, too: other accounts make the node late.
const FREE_ACCOUNT_ROUNDS: usize = 4;

impl Engine {
    /// Whether a round may start now. Checked before the body of a request is read.
    pub fn admit(&self, caller: &Caller) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        self.inner.pressure.admit(self.load_level(&capacity_owner(caller)))
    }

    fn load_level(&self, account: &AccountId) -> LoadLevel {
        load(&self.inner.round_capacity, account)
    }

    /// Whether a round would be refused because this node is late. Cheaper than asking for a
    /// permit, and takes none; the refusal is counted. The key is not checked, only the account
    /// that it claims; a key that was not used recently is let through.
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

    /// From now on no round starts; those in progress continue.
    pub fn stop_rounds(&self) {
        self.inner.stopping.cancel();
    }

    /// Whether this node is shutting down.
    pub fn is_stopping(&self) -> bool {
        self.inner.stopping.is_cancelled()
    }

    /// Resolves when this node shuts down, for long waits.
    pub async fn stopping(&self) {
        self.inner.stopping.cancelled().await;
    }

    /// Waits until no round is in progress; new ones are refused meanwhile.
    pub async fn drain(&self) {
        self.inner.round_capacity.idle().await;
    }

    /// Ends the rounds still in progress as expired, without waiting for their leases.
    pub async fn release(&self) {
        self.inner.rounds_in_flight.stop_all(StopReason::Node);
        self.drain().await;
    }
}

/// A few rounds cannot make a node late, so refusing one would not help. Neither can a few rounds
/// of one account; further ones wait, so that accounts share the node fairly.
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
    async fn a_late_node_still_accepts_a_few_rounds_of_an_account() {
        let pressure = Pressure::new(Arc::default());
        pressure.limit(Some(0.001));
        let rounds = SharedCapacity::new(1_024);
        let [alice, bob] = ["acct_alice", "acct_bob"].map(|it| AccountId::parse(it).unwrap());
        // Takes a permit if a round of the account may start.
        let begins = |account: &AccountId| -> Option<CapacityPermit> {
            pressure.admit(load(&rounds, account)).ok()?;
            rounds.take(account, 1, 1_024).ok()
        };
        let held: Vec<CapacityPermit> = (0..200).filter_map(|_| begins(&alice)).collect();
        // The rounds that never make a node late, plus the burst of the limit.
        assert!((FREE_ROUNDS..FREE_ROUNDS + 16).contains(&held.len()), "{}", held.len());
        assert!(begins(&alice).is_none());
        let others: Vec<CapacityPermit> = (0..200).filter_map(|_| begins(&bob)).collect();
        assert_eq!(others.len(), FREE_ACCOUNT_ROUNDS, "however many the other one has");
        drop(held);
        assert!(begins(&alice).is_some() && begins(&bob).is_some(), "few are under way");
    }
}

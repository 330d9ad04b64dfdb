//! The end of a node: no round begins any more, and those under way end or are released.

use jurat_core::{caller::Caller, id::AccountId};

use crate::{
    Engine, EngineError,
    fair_shares::{Shared, sharer},
    pressure::Load,
    under_way::Stop,
};

/// So many rounds may always be under way, however late the node is.
const FEW: usize = 32;
/// So many of one account as well: it is the others that make the node late.
const FEW_OF_ACCOUNT: usize = 4;

impl Engine {
    /// Whether a round may begin now. Asked before the body of a request is read.
    pub fn admit(&self, caller: &Caller) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        self.inner.pressure.admit(self.load(&sharer(caller)))
    }

    fn load(&self, account: &AccountId) -> Load {
        load(&self.inner.rounds, account)
    }

    /// Whether a round would be refused because this node is late. Cheaper than to ask for one, and
    /// nobody's place is taken; the refusal is counted. The key is not checked here, only whose it
    /// says it is; one that nobody has used lately is let on.
    pub fn is_late(&self, key: Option<&str>) -> bool {
        let account = match key {
            Some(key) => self.inner.keys.account_of(key),
            None => Some(AccountId::anonymous(0)),
        };
        let load = account.map_or(Load::Light, |account| self.load(&account));
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
        self.inner.rounds.all_back().await;
    }

    /// Ends the rounds that are still under way as expired, at once instead of after their lease.
    pub async fn release(&self) {
        self.inner.under_way.stop_all(Stop::Node);
        self.drain().await;
    }
}

/// Few rounds under way cannot be what makes a node late, and refusing one would help nobody. Nor can
/// the few of one account: whoever has more waits, so that accounts take turns.
fn load(rounds: &Shared, account: &AccountId) -> Load {
    let is_light = rounds.in_use() < FEW || rounds.held(account) < FEW_OF_ACCOUNT;
    if is_light { Load::Light } else { Load::Heavy }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{fair_shares::Share, pressure::Pressure};

    #[tokio::test(start_paused = true)]
    async fn a_late_node_still_takes_the_few_rounds_of_an_account() {
        let pressure = Pressure::new(Arc::default());
        pressure.limit(Some(0.001));
        let rounds = Shared::new(1_024);
        let [alice, bob] = ["acct_alice", "acct_bob"].map(|it| AccountId::parse(it).unwrap());
        // Takes a place if a round of the account may begin.
        let begins = |account: &AccountId| -> Option<Share> {
            pressure.admit(load(&rounds, account)).ok()?;
            rounds.take(account, 1, 1_024).ok()
        };
        let held: Vec<Share> = (0..200).filter_map(|_| begins(&alice)).collect();
        // Those that make no node late, and what the limit lets through at once.
        assert!((FEW..FEW + 16).contains(&held.len()), "{}", held.len());
        assert!(begins(&alice).is_none());
        let others: Vec<Share> = (0..200).filter_map(|_| begins(&bob)).collect();
        assert_eq!(others.len(), FEW_OF_ACCOUNT, "however many the other one has");
        drop(held);
        assert!(begins(&alice).is_some() && begins(&bob).is_some(), "few are under way");
    }
}

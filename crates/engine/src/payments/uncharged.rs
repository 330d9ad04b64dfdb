//! Work that was done for payers and never paid for: a payer may cause a little of it, and all new
//! payers together somewhat more. The limits apply to this node, as those of keys do.

use std::collections::VecDeque;

use jurat_core::{id::AccountId, time::Timestamp};
use parking_lot::Mutex;

use super::PayerLimits;
use crate::LimitExceeded;

/// How long uncharged work counts.
const WINDOW_MS: u64 = 600_000;

/// The rounds that ended without a charge, or whose payment failed for good, in their order.
#[derive(Debug, Default)]
pub(crate) struct UnchargedWork(Mutex<VecDeque<(Timestamp, AccountId)>>);

impl UnchargedWork {
    /// Counts a round.
    pub(super) fn note(&self, account: &AccountId, now: Timestamp) {
        self.recent(now).push_back((now, account.clone()));
    }

    /// Refuses a payer that has caused too much of it.
    pub(super) fn check(
        &self,
        account: &AccountId,
        limits: PayerLimits,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let recent = self.recent(now);
        let times = recent.iter().filter(|(_, of)| of == account).map(|(at, _)| *at);
        let most = limits.uncharged_rounds;
        let wait = until_fewer(times, most, now);
        wait.map_or(Ok(()), |more_in_s| Err(LimitExceeded::Uncharged { most, more_in_s }))
    }

    /// Refuses everybody who has never paid, if all payers together have caused too much of it.
    /// Addresses on a chain cost nothing, so a limit for each would be none.
    pub(super) fn check_all(
        &self,
        limits: PayerLimits,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let recent = self.recent(now);
        let wait = until_fewer(recent.iter().map(|(at, _)| *at), limits.uncharged_of_all, now);
        wait.map_or(Ok(()), |more_in_s| Err(LimitExceeded::UnchargedOfAll { more_in_s }))
    }

    /// What still counts.
    fn recent(
        &self,
        now: Timestamp,
    ) -> parking_lot::MutexGuard<'_, VecDeque<(Timestamp, AccountId)>> {
        let mut ended = self.0.lock();
        while ended.pop_front_if(|(at, _)| WINDOW_MS <= now.millis_since(*at)).is_some() {}
        ended
    }
}

/// In how many seconds fewer than `most` of these count; `None` if that is so now.
fn until_fewer(
    times: impl DoubleEndedIterator<Item = Timestamp>,
    most: u32,
    now: Timestamp,
) -> Option<u64> {
    let back = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(1);
    let decisive = times.rev().nth(back)?;
    Some(WINDOW_MS.saturating_sub(now.millis_since(decisive)).div_ceil(1_000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn limits(uncharged_rounds: u32, uncharged_of_all: u32) -> PayerLimits {
        PayerLimits { uncharged_rounds, uncharged_of_all, ..PayerLimits::default() }
    }

    #[test]
    fn a_payer_waits_until_its_oldest_round_no_longer_counts() {
        let work = UnchargedWork::default();
        let (alice, bob) = (AccountId::payer(1), AccountId::payer(2));
        for seconds in [0, 100] {
            work.note(&alice, at(seconds));
            assert_eq!(work.check(&alice, limits(3, 9), at(seconds)), Ok(()));
        }
        work.note(&alice, at(200));
        let refused = |more_in_s| Err(LimitExceeded::Uncharged { most: 3, more_in_s });
        assert_eq!(work.check(&alice, limits(3, 9), at(200)), refused(400));
        assert_eq!(work.check(&alice, limits(3, 9), at(599)), refused(1));
        assert_eq!(work.check(&bob, limits(3, 9), at(200)), Ok(()));
        assert_eq!(work.check(&alice, limits(3, 9), at(600)), Ok(()));
    }

    #[test]
    fn all_payers_together_have_a_limit() {
        let work = UnchargedWork::default();
        for number in 0..4 {
            assert_eq!(work.check_all(limits(3, 4), at(10)), Ok(()));
            work.note(&AccountId::payer(number), at(10));
        }
        let refused = Err(LimitExceeded::UnchargedOfAll { more_in_s: 600 });
        assert_eq!(work.check_all(limits(3, 4), at(10)), refused);
        assert_eq!(work.check_all(limits(3, 4), at(610)), Ok(()));
        assert!(work.0.lock().is_empty());
    }
}

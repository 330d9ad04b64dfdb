//! Counts the deliveries of each account in the current minute.

use std::collections::BTreeMap;

use jurat_core::{id::AccountId, time::Timestamp};
use parking_lot::Mutex;

const MINUTE_MS: i64 = 60_000;

/// Deliveries by account, in one minute. Deliveries that are taken together are counted together, so
/// that a few may exceed a limit: waiting for each other would slow down other accounts.
#[derive(Debug, Default)]
pub(super) struct MinuteCounts(Mutex<CountedMinute>);

#[derive(Debug, Default)]
struct CountedMinute {
    minute: i64,
    counts: BTreeMap<AccountId, u32>,
}

impl MinuteCounts {
    /// Counts a delivery.
    pub(super) fn add(&self, account: &AccountId, now: Timestamp) {
        let mut counted = self.0.lock();
        counted.turn(now);
        *counted.counts.entry(account.clone()).or_default() += 1;
    }

    /// The accounts that have reached the limit in this minute.
    pub(super) fn at_limit(&self, most: u32, now: Timestamp) -> Vec<String> {
        let mut counted = self.0.lock();
        counted.turn(now);
        let full = counted.counts.iter().filter(|(_, count)| most <= **count);
        full.map(|(account, _)| account.to_string()).collect()
    }
}

impl CountedMinute {
    fn turn(&mut self, now: Timestamp) {
        let minute = now.millis().div_euclid(MINUTE_MS);
        if minute != self.minute {
            *self = Self { minute, counts: BTreeMap::new() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_at_its_limit_waits_until_the_next_minute() {
        let (counts, account) = (MinuteCounts::default(), AccountId::admin());
        let at = |millis| Timestamp::from_millis(millis);
        counts.add(&account, at(60_000));
        assert_eq!(counts.at_limit(2, at(60_001)), [""; 0]);
        counts.add(&account, at(119_998));
        assert_eq!(counts.at_limit(2, at(119_999)), [account.as_str()]);
        assert_eq!(counts.at_limit(2, at(120_000)), [""; 0]);
    }
}

//! Counts what happens for each account in the current period, such as a minute.

use std::collections::BTreeMap;

use jurat_core::{id::AccountId, time::Timestamp};
use parking_lot::Mutex;

/// Events by account, in one period. Deliveries that are taken together are counted together, so
/// that a few may exceed a limit: waiting for each other would slow down other accounts.
#[derive(Debug)]
pub(super) struct PeriodCounts {
    period_ms: i64,
    counted: Mutex<CountedPeriod>,
}

#[derive(Debug, Default)]
struct CountedPeriod {
    number: i64,
    counts: BTreeMap<AccountId, u32>,
}

impl PeriodCounts {
    pub(super) fn by_minute() -> Self {
        Self { period_ms: 60 * 1_000, counted: Mutex::default() }
    }

    pub(super) fn by_day() -> Self {
        Self { period_ms: 24 * 60 * 60 * 1_000, counted: Mutex::default() }
    }

    /// Counts one more for an account.
    pub(super) fn add(&self, account: &AccountId, now: Timestamp) {
        *self.counted.lock().of(self.number(now), account) += 1;
    }

    /// Counts one more for an account, unless it has reached the limit in this period.
    pub(super) fn add_within(&self, account: &AccountId, most: u32, now: Timestamp) -> bool {
        let mut counted = self.counted.lock();
        let count = counted.of(self.number(now), account);
        let is_within = *count < most;
        *count += u32::from(is_within);
        is_within
    }

    /// The accounts that have reached the limit in this period.
    pub(super) fn at_limit(&self, most: u32, now: Timestamp) -> Vec<String> {
        let mut counted = self.counted.lock();
        counted.turn(self.number(now));
        let full = counted.counts.iter().filter(|(_, count)| most <= **count);
        full.map(|(account, _)| account.to_string()).collect()
    }

    const fn number(&self, now: Timestamp) -> i64 {
        now.millis().div_euclid(self.period_ms)
    }
}

impl CountedPeriod {
    fn of(&mut self, number: i64, account: &AccountId) -> &mut u32 {
        self.turn(number);
        self.counts.entry(account.clone()).or_default()
    }

    fn turn(&mut self, number: i64) {
        if number != self.number {
            *self = Self { number, counts: BTreeMap::new() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_at_its_limit_waits_until_the_next_period() {
        let (counts, account) = (PeriodCounts::by_minute(), AccountId::admin());
        let at = |millis| Timestamp::from_millis(millis);
        counts.add(&account, at(60_000));
        assert_eq!(counts.at_limit(2, at(60_001)), [""; 0]);
        counts.add(&account, at(119_998));
        assert_eq!(counts.at_limit(2, at(119_999)), [account.as_str()]);
        assert!(!counts.add_within(&account, 2, at(119_999)));
        assert_eq!(counts.at_limit(2, at(120_000)), [""; 0]);
        assert!(counts.add_within(&account, 1, at(120_000)));
        assert!(!counts.add_within(&account, 1, at(120_001)));
    }
}

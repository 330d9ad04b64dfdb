//! The breakers of one executor: when it is paused, and for which accounts.
//!
//! An account may cause failures itself, by its requests or by short timeouts. So failures that one
//! account sees pause the executor for that account only. It is paused for all accounts after
//! failures that several accounts see, or that no request can cause. Accounts that cost nothing,
//! such as those of visitors and payers, are one for that.

use std::collections::BTreeMap;

use super::{Breaker, BreakerState};
use crate::{id::AccountId, time::Timestamp};

/// The shortest timeout that counts as fair while the usual latency is unknown, and the shortest
/// one if answers are immediate.
const FAIR_TO_STRANGERS_MS: u64 = 1_000;
const LEAST_FAIR_MS: u64 = 250;
/// The approximate number of answers that the usual latency averages over.
const LOOKS_BACK: u64 = 8;
/// How many failures of one account count for all accounts: fewer than open the breaker.
const MOST_OF_ONE: u32 = 3;
/// How many accounts are remembered for one executor.
const MOST_ACCOUNTS: usize = 1_000;

/// The result of a call, as far as it counts for or against the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorCallResult {
    Answered {
        took_ms: u64,
    },
    /// It answered with a failure or with an invalid answer.
    Failed,
    /// It could not be reached, which no request can cause.
    Unreachable,
    /// It did not answer within its timeout.
    Silent {
        given_ms: u64,
    },
}

/// The account of a call, and the owner that it counts for beside others: one owner for all
/// accounts that anybody can make.
#[derive(Debug, Clone, Copy)]
pub struct ExecutorCaller<'a> {
    pub account: &'a AccountId,
    pub owner: &'a AccountId,
}

/// The accounts for which the executor is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseScope {
    All,
    /// The accounts for which it failed.
    Some,
}

/// The breakers of one executor, for each account and for all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutorBreakers {
    for_all: Breaker,
    by_account: BTreeMap<AccountId, Breaker>,
    /// Failures that each owner saw since the last answer to anybody.
    unanswered: BTreeMap<AccountId, u32>,
    usual_ms: Option<u64>,
}

impl ExecutorBreakers {
    /// Whether the account may call the executor.
    pub fn state(&self, account: &AccountId, now: Timestamp) -> BreakerState {
        let own = self.by_account.get(account).map(|breaker| breaker.state(now));
        stricter(self.for_all.state(now), own.unwrap_or(BreakerState::Closed))
    }

    /// Whether any account may call the executor.
    pub fn state_for_all(&self, now: Timestamp) -> BreakerState {
        self.for_all.state(now)
    }

    /// The strictest state, and the accounts that it applies to.
    pub fn strictest(&self, now: Timestamp) -> (BreakerState, PauseScope) {
        let own = self.by_account.values().map(|breaker| breaker.state(now));
        let own = own.fold(BreakerState::Closed, stricter);
        let all = self.for_all.state(now);
        if all == BreakerState::Closed && own != BreakerState::Closed {
            return (own, PauseScope::Some);
        }
        (all, PauseScope::All)
    }

    /// Whether a pause is over, so that the next probe decides whether calls continue.
    pub fn awaits_probe(&self, now: Timestamp) -> bool {
        let mut breakers = self.by_account.values().chain([&self.for_all]);
        breakers.any(|breaker| breaker.state(now) == BreakerState::HalfOpen)
    }

    /// Whether a successful call would change nothing but the usual latency.
    pub fn is_clean(&self) -> bool {
        self.for_all == Breaker::closed()
            && self.by_account.is_empty()
            && self.unanswered.is_empty()
    }

    /// Records the result of a call by an account.
    pub fn after_call(
        &mut self,
        caller: ExecutorCaller<'_>,
        seen: ExecutorCallResult,
        now: Timestamp,
    ) {
        match seen {
            ExecutorCallResult::Answered { took_ms } => {
                self.usual_ms = Some(self.usual_ms.map_or(took_ms, |usual| {
                    (usual * (LOOKS_BACK - 1) + took_ms).div_ceil(LOOKS_BACK)
                }));
                self.for_all = Breaker::closed();
                self.unanswered.clear();
                self.by_account.remove(caller.account);
            }
            // A timeout shorter than the usual latency proves nothing.
            ExecutorCallResult::Silent { given_ms } if given_ms < self.fair_ms() => {}
            ExecutorCallResult::Unreachable => self.for_all = self.for_all.after_failure(now),
            ExecutorCallResult::Failed | ExecutorCallResult::Silent { .. } => {
                self.after_failure(caller, now);
            }
        }
    }

    fn after_failure(&mut self, caller: ExecutorCaller<'_>, now: Timestamp) {
        let ExecutorCaller { account, owner } = caller;
        make_room(&mut self.by_account, account);
        let own = self.by_account.entry(account.clone()).or_default();
        *own = own.after_failure(now);
        make_room(&mut self.unanswered, owner);
        *self.unanswered.entry(owner.clone()).or_default() += 1;
        let failures: u32 = self.unanswered.values().map(|it| MOST_OF_ONE.min(*it)).sum();
        if Breaker::THRESHOLD <= failures {
            self.for_all = self.for_all.after_failures(now);
        }
    }

    /// Records a probe, which ends a pause that is over, or starts a longer one. No call is risked
    /// for that.
    pub fn after_probe(&mut self, is_well: bool, at: Timestamp) {
        self.for_all = self.for_all.after_probe(is_well, at);
        for breaker in self.by_account.values_mut() {
            *breaker = breaker.after_probe(is_well, at);
        }
    }

    /// The shortest timeout after which silence counts against the executor.
    fn fair_ms(&self) -> u64 {
        let usual = |usual: u64| usual.saturating_add(usual / 2).max(LEAST_FAIR_MS);
        self.usual_ms.map_or(FAIR_TO_STRANGERS_MS, usual)
    }
}

/// Forgets another account if too many are remembered.
fn make_room<T>(remembered: &mut BTreeMap<AccountId, T>, account: &AccountId) {
    if MOST_ACCOUNTS <= remembered.len() && !remembered.contains_key(account) {
        remembered.pop_first();
    }
}

fn stricter(left: BreakerState, right: BreakerState) -> BreakerState {
    match (left, right) {
        (BreakerState::Open(left), BreakerState::Open(right)) => {
            BreakerState::Open(left.max(right))
        }
        (open @ BreakerState::Open(_), _) | (_, open @ BreakerState::Open(_)) => open,
        (BreakerState::HalfOpen, _) | (_, BreakerState::HalfOpen) => BreakerState::HalfOpen,
        (BreakerState::Closed, BreakerState::Closed) => BreakerState::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn account(name: &str) -> AccountId {
        AccountId::parse(&format!("acct_{name}")).unwrap()
    }

    fn seen(conduct: &mut ExecutorBreakers, by: &str, what: ExecutorCallResult, times: usize) {
        seen_of(conduct, (by, by), what, times);
    }

    /// The results of calls by an account that counts for an owner.
    fn seen_of(
        conduct: &mut ExecutorBreakers,
        (by, owner): (&str, &str),
        what: ExecutorCallResult,
        times: usize,
    ) {
        let (account, owner) = (account(by), account(owner));
        for _ in 0..times {
            let caller = ExecutorCaller { account: &account, owner: &owner };
            conduct.after_call(caller, what, at(0));
        }
    }

    const SHORT: ExecutorCallResult = ExecutorCallResult::Silent { given_ms: 40 };
    const FAIR: ExecutorCallResult = ExecutorCallResult::Silent { given_ms: 3_000 };

    #[test]
    fn failures_of_one_account_do_not_affect_others() {
        for what in [FAIR, ExecutorCallResult::Failed] {
            let mut conduct = ExecutorBreakers::default();
            seen(&mut conduct, "hasty", what, 20);
            assert_eq!(conduct.state(&account("hasty"), at(1)), BreakerState::Open(at(5)));
            assert_eq!(conduct.state(&account("other"), at(1)), BreakerState::Closed);
            assert_eq!(conduct.strictest(at(1)), (BreakerState::Open(at(5)), PauseScope::Some));
        }
    }

    #[test]
    fn failures_of_several_accounts_affect_all() {
        let mut conduct = ExecutorBreakers::default();
        seen(&mut conduct, "a", FAIR, 4);
        seen(&mut conduct, "b", ExecutorCallResult::Failed, 1);
        assert_eq!(conduct.state(&account("c"), at(1)), BreakerState::Closed);
        seen(&mut conduct, "b", ExecutorCallResult::Failed, 1);
        assert_eq!(conduct.state(&account("c"), at(1)), BreakerState::Open(at(5)));
    }

    #[test]
    fn accounts_that_cost_nothing_are_one() {
        let mut conduct = ExecutorBreakers::default();
        for name in ["visitor", "payer1", "payer2"] {
            seen_of(&mut conduct, (name, "strangers"), ExecutorCallResult::Failed, 5);
            assert_eq!(conduct.state(&account(name), at(1)), BreakerState::Open(at(5)));
        }
        assert_eq!(conduct.state(&account("payer3"), at(1)), BreakerState::Closed);
        assert_eq!(conduct.state_for_all(at(1)), BreakerState::Closed);
        seen(&mut conduct, "tenant", ExecutorCallResult::Failed, 2);
        assert_eq!(conduct.state_for_all(at(1)), BreakerState::Open(at(5)));
    }

    #[test]
    fn failures_that_no_request_can_cause_affect_all() {
        let mut conduct = ExecutorBreakers::default();
        seen(&mut conduct, "a", ExecutorCallResult::Unreachable, 5);
        assert_eq!(conduct.state(&account("b"), at(1)), BreakerState::Open(at(5)));
    }

    #[test]
    fn a_timeout_counts_only_if_it_exceeds_the_usual_latency() {
        let mut conduct = ExecutorBreakers::default();
        seen(&mut conduct, "a", SHORT, 20);
        seen(&mut conduct, "b", SHORT, 20);
        assert!(conduct.is_clean());
        seen(&mut conduct, "a", ExecutorCallResult::Answered { took_ms: 10_000 }, 1);
        seen(&mut conduct, "a", FAIR, 20);
        assert!(conduct.is_clean(), "it usually takes longer");
        seen(&mut conduct, "a", ExecutorCallResult::Answered { took_ms: 20 }, 60);
        seen(&mut conduct, "a", FAIR, 5);
        assert_eq!(conduct.state(&account("a"), at(1)), BreakerState::Open(at(5)));
    }

    #[test]
    fn an_answer_to_one_account_resets_the_shared_failures() {
        let mut conduct = ExecutorBreakers::default();
        seen(&mut conduct, "a", ExecutorCallResult::Failed, 4);
        seen(&mut conduct, "b", ExecutorCallResult::Answered { took_ms: 5 }, 1);
        seen(&mut conduct, "c", ExecutorCallResult::Failed, 1);
        assert_eq!(conduct.state_for_all(at(1)), BreakerState::Closed);
    }

    #[test]
    fn after_the_pause_a_probe_decides() {
        let mut conduct = ExecutorBreakers::default();
        seen(&mut conduct, "a", ExecutorCallResult::Failed, 5);
        conduct.after_probe(true, at(4));
        assert_eq!(conduct.state(&account("a"), at(4)), BreakerState::Open(at(5)), "too early");
        assert!(conduct.awaits_probe(at(5)));
        let mut sick = conduct.clone();
        sick.after_probe(false, at(5));
        assert_eq!(sick.state(&account("a"), at(6)), BreakerState::Open(at(15)));
        conduct.after_probe(true, at(5));
        assert_eq!(conduct.state(&account("a"), at(5)), BreakerState::Closed);
        // It failed often before, so one more failure is enough.
        let a = account("a");
        let caller = ExecutorCaller { account: &a, owner: &a };
        conduct.after_call(caller, ExecutorCallResult::Failed, at(5));
        assert_eq!(conduct.state(&account("a"), at(6)), BreakerState::Open(at(15)));
    }

    #[test]
    fn the_number_of_remembered_accounts_is_limited() {
        let mut conduct = ExecutorBreakers::default();
        for number in 0..MOST_ACCOUNTS * 2 {
            seen(&mut conduct, &format!("n{number}"), ExecutorCallResult::Failed, 1);
        }
        assert!(conduct.by_account.len() <= MOST_ACCOUNTS);
        assert!(conduct.unanswered.len() <= MOST_ACCOUNTS);
    }
}

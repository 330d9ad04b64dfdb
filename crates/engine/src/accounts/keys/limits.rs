//! The rate and the concurrency of each key and account. The limits apply to this node; other nodes
//! count separately.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use governor::{
    Quota, RateLimiter,
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};
use jurat_core::{
    account::{
        caller::{Caller, CallerKey},
        fair_share::FairShareRefusal,
        key::Key,
    },
    id::AccountId,
    time::Timestamp,
};
use jurat_store::Behalf;
use parking_lot::Mutex;

use crate::{
    Clock, Engine, EngineError,
    node::{
        capacity::{CapacityPermit, capacity_owner},
        keyed_permits::{KeyedPermit, KeyedPermits},
    },
};

/// The minimum interval between two writes of a key's last use.
const WRITTEN_EVERY_MS: u64 = 60_000;
/// After this time without a request, a key has its whole quota again and can be forgotten.
const KEY_IDLE_MS: u64 = 60_000;

/// The remaining allowance of a key with a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    pub per_minute: u32,
    /// Requests that it may send now.
    pub remaining: u32,
    /// Seconds until one more request is allowed.
    pub more_in_s: u64,
}

/// The limit that a key or its account has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    #[error("the key may send {} per minute", requests(.0.per_minute))]
    Rate(Allowance),
    #[error("the key has reached its limit on concurrent rounds, which is {0}")]
    Rounds(usize),
    #[error("the account's keys may send {} per minute in total", requests(.0.per_minute))]
    AccountRate(Allowance),
    #[error("the account has reached its limit on concurrent rounds, which is {0}")]
    AccountRounds(usize),
    #[error(
        "the account's requests and rounds in progress use {0} bytes of memory, which is the limit; send smaller ones, or wait until some have ended"
    )]
    Bytes(usize),
    #[error("too many requests without a key; wait, or send a key")]
    Address,
    #[error(
        "the executor has reached its limit of {0} waiting events; wait until it has received some"
    )]
    AgentEvents(u32),
    #[error(
        "the webhook has reached its limit of {0} waiting deliveries; wait until it has received some"
    )]
    WebhookDeliveries(u32),
    #[error(
        "the payer has {0} payments in progress or with an unknown settlement, which is the limit; wait until some have ended"
    )]
    Payments(u32),
    #[error(
        "{most} rounds of the payer within ten minutes were not paid for, which is the limit; wait {more_in_s} s"
    )]
    Uncharged { most: u32, more_in_s: u64 },
    #[error(
        "too many rounds of new payers were not paid for within ten minutes; wait {more_in_s} s, or send a key"
    )]
    UnchargedOfAll { more_in_s: u64 },
}

impl LimitExceeded {
    /// How many seconds to wait, if that is known.
    pub const fn more_in_s(self) -> Option<u64> {
        match self {
            Self::Rate(allowance) | Self::AccountRate(allowance) => Some(allowance.more_in_s),
            Self::Uncharged { more_in_s, .. } | Self::UnchargedOfAll { more_in_s } => {
                Some(more_in_s)
            }
            Self::Rounds(_)
            | Self::AccountRounds(_)
            | Self::Bytes(_)
            | Self::Address
            | Self::AgentEvents(_)
            | Self::WebhookDeliveries(_)
            | Self::Payments(_) => None,
        }
    }
}

/// The keys in use on this node.
pub(crate) struct KeysInUse {
    clock: Arc<dyn Clock>,
    keys: Mutex<BTreeMap<String, Arc<KeyInUse>>>,
    /// The request rate of all keys of an account together, if it is limited.
    accounts: Mutex<BTreeMap<AccountId, AccountInUse>>,
    /// The rounds that each key has in progress.
    rounds: Arc<KeyedPermits<String>>,
}

struct AccountInUse {
    limiter: RequestLimiter,
    last: Timestamp,
}

struct KeyInUse {
    limiter: Option<RequestLimiter>,
    uses: Mutex<KeyUses>,
}

/// When a key was used.
#[derive(Clone, Copy)]
struct KeyUses {
    last: Timestamp,
    /// The latest use that was written to the store.
    written: Option<Timestamp>,
}

type RequestLimiter =
    RateLimiter<NotKeyed, InMemoryState, LimiterClock, StateInformationMiddleware>;

/// Our clock, as the limiter reads it.
#[derive(Debug, Clone)]
struct LimiterClock(Arc<dyn Clock>);

impl governor::clock::Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Everything that a round holds until it ends.
#[derive(Debug)]
pub(crate) struct RoundPermit {
    _of_key: KeyedPermit<String>,
    _of_account: CapacityPermit,
    _memory: CapacityPermit,
}

impl Engine {
    /// Takes a permit for a round from its key, its account and the node, and reserves its memory.
    pub(crate) fn round_permit(
        &self,
        caller: &Caller,
        bytes: usize,
    ) -> Result<RoundPermit, EngineError> {
        let of_key = self.inner.keys_in_use.key_round_permit(caller.key())?;
        let most = self.inner.limits.rounds_per_account;
        let of_account = self.inner.round_capacity.take(&capacity_owner(caller), 1, most);
        let of_account = of_account.map_err(|refused| match refused {
            FairShareRefusal::OfAccount => LimitExceeded::AccountRounds(most).into(),
            FairShareRefusal::OfAll => EngineError::Busy("too many rounds are in progress"),
        })?;
        let memory = self.round_memory(caller, bytes)?;
        Ok(RoundPermit { _of_key: of_key, _of_account: of_account, _memory: memory })
    }

    /// Writes the last uses of keys, and forgets keys that are no longer in use. Called repeatedly
    /// in the background.
    pub async fn key_uses_write(&self) -> Result<(), EngineError> {
        let now = self.inner.clock.now();
        let due = self.inner.keys_in_use.due_uses(now);
        if !due.is_empty() {
            self.inner.store.keys().note_uses(&Behalf::Platform, &due).await?;
            self.inner.keys_in_use.uses_written(&due);
        }
        self.inner.keys_in_use.forget_idle(now);
        Ok(())
    }
}

impl KeysInUse {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            keys: Mutex::default(),
            accounts: Mutex::default(),
            rounds: KeyedPermits::new(),
        }
    }

    /// Counts a request; returns the remaining allowance if the key has a limit.
    pub(super) fn request(
        &self,
        key: &Key,
        per_minute: Option<u32>,
        now: Timestamp,
    ) -> Result<Option<Allowance>, LimitExceeded> {
        let in_use = self.key_in_use(key, per_minute, now);
        let (Some(limiter), Some(per_minute)) = (&in_use.limiter, per_minute) else {
            return Ok(None);
        };
        self.check(limiter, per_minute).map(Some).map_err(LimitExceeded::Rate)
    }

    /// Counts a request for the account of its key, which may have several keys.
    pub(crate) fn request_of_account(
        &self,
        account: &AccountId,
        per_minute: Option<u32>,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let Some(quota) = per_minute.and_then(NonZeroU32::new) else { return Ok(()) };
        let mut accounts = self.accounts.lock();
        let fresh = || AccountInUse { limiter: self.limiter(quota), last: now };
        let in_use = accounts.entry(account.clone()).or_insert_with(fresh);
        in_use.last = in_use.last.max(now);
        self.check(&in_use.limiter, quota.get()).map(drop).map_err(LimitExceeded::AccountRate)
    }

    /// Takes one request, or says when the next one is allowed.
    fn check(&self, limiter: &RequestLimiter, per_minute: u32) -> Result<Allowance, Allowance> {
        match limiter.check() {
            Ok(state) => Ok(Allowance {
                per_minute,
                remaining: state.remaining_burst_capacity(),
                more_in_s: seconds(state.quota().replenish_interval()),
            }),
            Err(not_until) => {
                let wait = not_until.wait_time_from(self.clock.elapsed());
                Err(Allowance { per_minute, remaining: 0, more_in_s: seconds(wait) })
            }
        }
    }

    fn limiter(&self, per_minute: NonZeroU32) -> RequestLimiter {
        let quota = Quota::per_minute(per_minute);
        RateLimiter::direct_with_clock(quota, LimiterClock(Arc::clone(&self.clock)))
            .with_middleware()
    }

    fn key_in_use(&self, key: &Key, per_minute: Option<u32>, now: Timestamp) -> Arc<KeyInUse> {
        let mut keys = self.keys.lock();
        if let Some(known) = keys.get(&key.id) {
            let mut uses = known.uses.lock();
            uses.last = uses.last.max(now);
            return Arc::clone(known);
        }
        let limiter = per_minute.and_then(NonZeroU32::new).map(|quota| self.limiter(quota));
        let uses = Mutex::new(KeyUses { last: now, written: key.last_used_at });
        let fresh = Arc::new(KeyInUse { limiter, uses });
        keys.insert(key.id.clone(), Arc::clone(&fresh));
        fresh
    }

    fn key_round_permit(&self, key: &CallerKey) -> Result<KeyedPermit<String>, LimitExceeded> {
        let most = key.concurrent_rounds;
        self.rounds.take(&key.id, most).ok_or(LimitExceeded::Rounds(most))
    }

    /// The uses that are due to be written.
    fn due_uses(&self, now: Timestamp) -> BTreeMap<String, Timestamp> {
        let mut due = BTreeMap::new();
        for (id, in_use) in &*self.keys.lock() {
            let uses = *in_use.uses.lock();
            let is_due = uses.written.is_none_or(|written| {
                written < uses.last && WRITTEN_EVERY_MS <= now.millis_since(written)
            });
            if is_due {
                due.insert(id.clone(), uses.last);
            }
        }
        due
    }

    fn uses_written(&self, written: &BTreeMap<String, Timestamp>) {
        let keys = self.keys.lock();
        for (id, at) in written {
            if let Some(in_use) = keys.get(id) {
                in_use.uses.lock().written = Some(*at);
            }
        }
    }

    /// Forgets keys without losing information.
    fn forget_idle(&self, now: Timestamp) {
        self.accounts.lock().retain(|_, in_use| now.millis_since(in_use.last) < KEY_IDLE_MS);
        self.keys.lock().retain(|_, in_use| {
            let uses = *in_use.uses.lock();
            let is_idle = KEY_IDLE_MS <= now.millis_since(uses.last);
            let is_written = uses.written.is_some_and(|written| uses.last <= written);
            !(is_idle && is_written)
        });
    }
}

fn requests(count: u32) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// Whole seconds, at least one: a caller that returns earlier is refused again.
fn seconds(time: Duration) -> u64 {
    let whole = if time.subsec_nanos() == 0 { time.as_secs() } else { time.as_secs() + 1 };
    whole.max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct LimitsTestClock(AtomicI64);

    impl Clock for LimitsTestClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.0.load(Ordering::SeqCst))
        }

        fn bits(&self) -> u128 {
            0
        }
    }

    fn key(id: &str) -> Key {
        Key {
            id: id.to_owned(),
            account: AccountId::admin(),
            name: id.to_owned(),
            scopes: [].into(),
            rate_per_minute: None,
            concurrent_rounds: None,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            revoked_at: None,
            last_used_at: None,
        }
    }

    fn in_use() -> (Arc<LimitsTestClock>, KeysInUse) {
        let clock = Arc::new(LimitsTestClock::default());
        (Arc::clone(&clock), KeysInUse::new(clock))
    }

    #[test]
    fn an_idle_key_is_forgotten_once_its_use_is_written() {
        let (clock, in_use) = in_use();
        let ask = |id: &str| in_use.request(&key(id), Some(2), clock.now());
        assert_eq!(ask("k1").unwrap().unwrap().remaining, 1);
        assert_eq!(ask("k1").unwrap().unwrap().remaining, 0);
        assert!(ask("k1").is_err());
        clock.0.store(60_000, Ordering::SeqCst);
        in_use.forget_idle(clock.now());
        assert_eq!(in_use.keys.lock().len(), 1);
        let due = in_use.due_uses(clock.now());
        in_use.uses_written(&due);
        // Not yet: less than a minute has passed.
        in_use.forget_idle(Timestamp::from_millis(59_999));
        assert_eq!(in_use.keys.lock().len(), 1);
        in_use.forget_idle(clock.now());
        assert_eq!(in_use.keys.lock().len(), 0);
    }

    #[test]
    fn a_use_is_written_immediately_and_then_once_a_minute() {
        let (clock, in_use) = in_use();
        let k1 = key("k1");
        let mut writes = Vec::new();
        for second in 0..180 {
            clock.0.store(second * 1_000, Ordering::SeqCst);
            assert_eq!(in_use.request(&k1, None, clock.now()), Ok(None));
            let due = in_use.due_uses(clock.now());
            in_use.uses_written(&due);
            if !due.is_empty() {
                writes.push(second);
            }
        }
        assert_eq!(writes, [0, 60, 120]);
        // A use that an earlier process wrote counts, too.
        let known = Key { last_used_at: Some(Timestamp::from_millis(179_000)), ..key("k2") };
        assert_eq!(in_use.request(&known, None, clock.now()), Ok(None));
        assert!(!in_use.due_uses(clock.now()).contains_key("k2"));
    }

    #[test]
    fn keys_without_rounds_take_no_memory() {
        let (_, in_use) = in_use();
        let two = CallerKey { id: "k1".to_owned(), concurrent_rounds: 2 };
        let (first, second) =
            (in_use.key_round_permit(&two).unwrap(), in_use.key_round_permit(&two).unwrap());
        assert_eq!(in_use.key_round_permit(&two).unwrap_err(), LimitExceeded::Rounds(2));
        drop(first);
        let third = in_use.key_round_permit(&two).unwrap();
        drop((second, third));
        assert!(in_use.rounds.is_empty());
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(seconds(Duration::ZERO), 1);
        assert_eq!(seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(Duration::from_secs(5)), 5);
        assert_eq!(seconds(Duration::from_millis(5_001)), 6);
    }
}

//! Shares the capacity of this node between accounts: round permits, and the memory of requests and
//! rounds. Each account has a limit, and some capacity is always left for the next account.

use std::sync::Arc;

use jurat_core::{
    account::{
        caller::{Caller, CreditMode},
        fair_share::{FairShareRefusal, FairShares},
    },
    id::AccountId,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Engine, EngineError, LimitExceeded};

/// The maximum number of values in a body, counting lists and objects.
const MOST_BODY_VALUES: usize = 50_000;
/// The maximum without a key.
const MOST_VISITOR_VALUES: usize = 10_000;

/// A limited capacity that accounts share.
#[derive(Debug)]
pub(crate) struct SharedCapacity {
    shares: Mutex<FairShares>,
    /// A permit was returned.
    released: Notify,
}

/// A part that an account holds until this is dropped.
#[derive(Debug)]
pub(crate) struct CapacityPermit {
    of: Arc<SharedCapacity>,
    account: AccountId,
    amount: usize,
}

impl SharedCapacity {
    pub(crate) fn new(all: usize) -> Arc<Self> {
        Arc::new(Self { shares: Mutex::new(FairShares::new(all)), released: Notify::new() })
    }

    pub(crate) fn take(
        self: &Arc<Self>,
        account: &AccountId,
        amount: usize,
        most: usize,
    ) -> Result<CapacityPermit, FairShareRefusal> {
        self.shares.lock().take(account, amount, most)?;
        Ok(CapacityPermit { of: Arc::clone(self), account: account.clone(), amount })
    }

    pub(crate) fn in_use(&self) -> usize {
        self.shares.lock().in_use()
    }

    pub(crate) fn held_by(&self, account: &AccountId) -> usize {
        self.shares.lock().held(account)
    }

    /// Waits until nothing is held.
    pub(crate) async fn idle(&self) {
        loop {
            let returned = self.released.notified();
            tokio::pin!(returned);
            // Listens before it looks, so that nothing is missed in between.
            returned.as_mut().enable();
            if self.shares.lock().are_back() {
                return;
            }
            returned.await;
        }
    }
}

impl CapacityPermit {
    /// Changes the held amount.
    fn resize(&mut self, amount: usize, most: usize) -> Result<(), FairShareRefusal> {
        let mut shares = self.of.shares.lock();
        if amount <= self.amount {
            shares.give_back(&self.account, self.amount - amount);
        } else {
            shares.take(&self.account, amount - self.amount, most)?;
        }
        drop(shares);
        self.amount = amount;
        Ok(())
    }
}

impl Drop for CapacityPermit {
    fn drop(&mut self) {
        self.of.shares.lock().give_back(&self.account, self.amount);
        self.of.released.notify_waiters();
    }
}

/// The memory of one request, counted from its first byte to its reply, or longer if a part of it
/// is kept.
#[derive(Debug)]
pub struct RequestMemory {
    share: Mutex<CapacityPermit>,
    most: usize,
    most_values: usize,
}

impl RequestMemory {
    /// Counts this many bytes for the request, instead of those counted before.
    pub fn hold(&self, bytes: usize) -> Result<(), EngineError> {
        let mut share = self.share.lock();
        share.resize(bytes, self.most).map_err(|refused| memory_exceeded(refused, self.most))
    }

    /// Counts this many bytes more.
    pub fn hold_more(&self, bytes: usize) -> Result<(), EngineError> {
        let mut share = self.share.lock();
        let all = share.amount.saturating_add(bytes);
        share.resize(all, self.most).map_err(|refused| memory_exceeded(refused, self.most))
    }

    /// The maximum number of values in its body.
    pub const fn most_values(&self) -> usize {
        self.most_values
    }
}

impl Engine {
    /// Starts to count the memory of a request.
    pub fn request_memory(&self, caller: &Caller) -> RequestMemory {
        match caller.credit() {
            CreditMode::Anonymous | CreditMode::Prepaid => {
                self.memory_of(capacity_owner(caller), MOST_VISITOR_VALUES)
            }
            CreditMode::Metered
            | CreditMode::Unmetered
            | CreditMode::Booked
            | CreditMode::Suspended => self.memory_of(caller.account().clone(), MOST_BODY_VALUES),
        }
    }

    /// Starts to count the memory of a request without a known caller.
    pub fn visitor_memory(&self) -> RequestMemory {
        self.memory_of(AccountId::anonymous(0), MOST_VISITOR_VALUES)
    }

    fn memory_of(&self, account: AccountId, most_values: usize) -> RequestMemory {
        let share =
            CapacityPermit { of: Arc::clone(&self.inner.memory_capacity), account, amount: 0 };
        let most = self.inner.limits.bytes_per_account;
        RequestMemory { share: Mutex::new(share), most, most_values }
    }

    /// Takes the memory that a round needs until its end.
    pub(crate) fn round_memory(
        &self,
        caller: &Caller,
        bytes: usize,
    ) -> Result<CapacityPermit, EngineError> {
        let most = self.inner.limits.bytes_per_account;
        let taken = self.inner.memory_capacity.take(&capacity_owner(caller), bytes, most);
        taken.map_err(|refused| memory_exceeded(refused, most))
    }
}

/// The owner of a share: the account, all visitors together, or all payers together. Network
/// addresses and addresses on a chain cost nothing, so their number must not give anybody a larger
/// share. Visitors do not stop those who pay.
pub(crate) fn capacity_owner(caller: &Caller) -> AccountId {
    match caller.credit() {
        CreditMode::Anonymous => AccountId::anonymous(0),
        CreditMode::Prepaid => AccountId::payer(0),
        CreditMode::Metered
        | CreditMode::Unmetered
        | CreditMode::Booked
        | CreditMode::Suspended => caller.account().clone(),
    }
}

fn memory_exceeded(refused: FairShareRefusal, most: usize) -> EngineError {
    match refused {
        FairShareRefusal::OfAccount => LimitExceeded::Bytes(most).into(),
        FairShareRefusal::OfAll => EngineError::Busy(
            "requests and rounds in progress have used up this node's memory limit",
        ),
    }
}

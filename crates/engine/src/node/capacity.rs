//! What accounts share on this node: places for rounds, and the memory that requests and rounds take.
//! Each account has a limit, and some is always left for the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jurat_core::{
    account::{
        caller::{Caller, CreditMode},
        fair_share::{FairShareRefusal, FairShares},
    },
    id::AccountId,
};
use tokio::sync::Notify;

use crate::{Engine, EngineError, LimitExceeded};

/// Values that a body may hold, each list and object counted.
const MOST_BODY_VALUES: usize = 50_000;
/// The same without a key.
const MOST_VISITOR_VALUES: usize = 10_000;

/// Something that accounts hold parts of.
#[derive(Debug)]
pub(crate) struct SharedCapacity {
    shares: Mutex<FairShares>,
    /// A part was given back.
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
        self.lock().take(account, amount, most)?;
        Ok(CapacityPermit { of: Arc::clone(self), account: account.clone(), amount })
    }

    pub(crate) fn in_use(&self) -> usize {
        self.lock().in_use()
    }

    pub(crate) fn held_by(&self, account: &AccountId) -> usize {
        self.lock().held(account)
    }

    /// Waits until nobody holds anything.
    pub(crate) async fn idle(&self) {
        loop {
            let returned = self.released.notified();
            tokio::pin!(returned);
            // Listens before it looks, so that nothing is missed in between.
            returned.as_mut().enable();
            if self.lock().are_back() {
                return;
            }
            returned.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, FairShares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CapacityPermit {
    /// Holds another amount from now on.
    fn resize(&mut self, amount: usize, most: usize) -> Result<(), FairShareRefusal> {
        let mut shares = self.of.lock();
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
        self.of.lock().give_back(&self.account, self.amount);
        self.of.released.notify_waiters();
    }
}

/// The memory that one request takes, counted from its first byte to its answer, and further where
/// something of it is kept longer.
#[derive(Debug)]
pub struct RequestMemory {
    share: Mutex<CapacityPermit>,
    most: usize,
    most_values: usize,
}

impl RequestMemory {
    /// Counts so many bytes for the request, in place of those counted before.
    pub fn hold(&self, bytes: usize) -> Result<(), EngineError> {
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        share.resize(bytes, self.most).map_err(|refused| memory_exceeded(refused, self.most))
    }

    /// How many values its body may hold.
    pub const fn most_values(&self) -> usize {
        self.most_values
    }
}

impl Engine {
    /// Begins to count the memory that a request takes.
    pub fn request_memory(&self, caller: &Caller) -> RequestMemory {
        match caller.credit() {
            CreditMode::Anonymous => self.visitor_memory(),
            CreditMode::Metered | CreditMode::Unmetered | CreditMode::Suspended => {
                self.memory_of(caller.account().clone(), MOST_BODY_VALUES)
            }
        }
    }

    /// The same for whoever is not known.
    pub fn visitor_memory(&self) -> RequestMemory {
        self.memory_of(AccountId::anonymous(0), MOST_VISITOR_VALUES)
    }

    fn memory_of(&self, account: AccountId, most_values: usize) -> RequestMemory {
        let share =
            CapacityPermit { of: Arc::clone(&self.inner.memory_capacity), account, amount: 0 };
        let most = self.inner.limits.bytes_per_account;
        RequestMemory { share: Mutex::new(share), most, most_values }
    }

    /// Takes the memory that a round takes until its end.
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

/// Who a share belongs to: the account, or all who have no key together.
pub(crate) fn capacity_owner(caller: &Caller) -> AccountId {
    match caller.credit() {
        CreditMode::Anonymous => AccountId::anonymous(0),
        CreditMode::Metered | CreditMode::Unmetered | CreditMode::Suspended => {
            caller.account().clone()
        }
    }
}

fn memory_exceeded(refused: FairShareRefusal, most: usize) -> EngineError {
    match refused {
        FairShareRefusal::OfAccount => LimitExceeded::Bytes(most).into(),
        FairShareRefusal::OfAll => EngineError::Late(
            "requests and rounds in progress have used up this node's memory limit",
        ),
    }
}

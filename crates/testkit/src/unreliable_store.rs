//! A store that fails at the worst moment.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use jurat_store::{OperationName, Store};
use tokio::sync::watch;

pub use jurat_store::WriteFault;

/// Families that `without_tasks` takes away.
const TASKS: [&str; 6] =
    ["tasks", "agent_runs", "knowledge", "evidence", "agent_events", "open_work"];
/// Families that `without_sharing` takes away: what accounts share, and the cost of judge calls.
const SHARING: [&str; 9] = [
    "people",
    "teams",
    "invitations",
    "logins",
    "shares",
    "templates",
    "verifiers",
    "workflows",
    "judge_calls",
];

/// Makes a number of openings or closings of rounds fail, then works.
#[derive(Debug)]
pub struct UnreliableStore {
    store: Arc<Store>,
    faults: Arc<Faults>,
}

#[derive(Debug)]
struct Faults {
    fault: WriteFault,
    opens_left: AtomicU32,
    closes_left: AtomicU32,
    tasks: Outage,
    sharing: Outage,
}

/// Families that may be unavailable.
#[derive(Debug, Default)]
struct Outage {
    is_now: AtomicBool,
    /// The number of operations that failed because of it.
    missed: watch::Sender<u32>,
}

impl Outage {
    async fn until(&self, operations: u32) {
        let before = *self.missed.borrow();
        self.is_now.store(true, Ordering::SeqCst);
        let mut missed = self.missed.subscribe();
        missed.wait_for(|count| before + operations <= *count).await.unwrap();
        self.is_now.store(false, Ordering::SeqCst);
    }

    fn fault(&self) -> Option<WriteFault> {
        let is_now = self.is_now.load(Ordering::SeqCst);
        if is_now {
            self.missed.send_modify(|count| *count += 1);
        }
        is_now.then_some(WriteFault::Refused)
    }
}

impl Faults {
    fn of(&self, operation: OperationName) -> Option<WriteFault> {
        match operation {
            ("rounds", "open") => self.next(&self.opens_left),
            ("rounds", "close") => self.next(&self.closes_left),
            (family, _) if TASKS.contains(&family) => self.tasks.fault(),
            (family, _) if SHARING.contains(&family) => self.sharing.fault(),
            _ => None,
        }
    }

    fn next(&self, left: &AtomicU32) -> Option<WriteFault> {
        let is_due = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        is_due.is_ok().then_some(self.fault)
    }
}

impl UnreliableStore {
    /// A store that fails closings.
    pub fn new(fault: WriteFault, times: u32) -> Self {
        Self::with(fault, (0, times))
    }

    /// A store that fails openings.
    pub fn at_open(fault: WriteFault, times: u32) -> Self {
        Self::with(fault, (times, 0))
    }

    fn with(fault: WriteFault, (opens, closes): (u32, u32)) -> Self {
        let faults = Arc::new(Faults {
            fault,
            opens_left: AtomicU32::new(opens),
            closes_left: AtomicU32::new(closes),
            tasks: Outage::default(),
            sharing: Outage::default(),
        });
        let plan = Arc::clone(&faults);
        let store = Store::in_memory().unwrap();
        let store = store.with_faults(Arc::new(move |operation| plan.of(operation)));
        Self { store: Arc::new(store), faults }
    }

    /// The store itself.
    pub fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// Makes tasks and runs unavailable until so many operations on them failed.
    pub async fn without_tasks(&self, operations: u32) {
        self.faults.tasks.until(operations).await;
    }

    /// Makes the data that accounts share unavailable in the same way, and the cost of judge calls.
    pub async fn without_sharing(&self, operations: u32) {
        self.faults.sharing.until(operations).await;
    }
}

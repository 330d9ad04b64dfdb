//! Threads with large stacks, shared fairly between accounts.
//!
//! A thread cannot be stopped. Work whose caller has left, or that takes too long, keeps its thread
//! until it ends, but a spare thread replaces that thread, so that nobody waits behind it.

use std::{
    collections::{BTreeMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jurat_core::{account::fair_share::is_in_share, id::AccountId};
use parking_lot::{Condvar, Mutex};

/// The stack that a check may need at the limits of schema and instance, with a wide margin.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Spare threads per regular thread, which limits how much abandoned work may continue.
const SPARES: usize = 4;

pub(super) type PoolJob = Box<dyn FnOnce() + Send>;

/// The queue is full, for all accounts or for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueueFull;

pub(super) struct ThreadPool {
    state: Mutex<PoolState>,
    changed: Condvar,
    /// How many jobs of one account may run concurrently.
    at_once: usize,
    /// Threads that are not occupied by abandoned work: one more than `at_once`, so that other
    /// accounts find one.
    threads: usize,
    slots: usize,
}

#[derive(Default)]
struct PoolState {
    /// The queued jobs of each account, the oldest first.
    waiting: BTreeMap<AccountId, VecDeque<(u64, PoolJob)>>,
    queued: usize,
    /// The number of running jobs that a caller waits for, by account.
    running: BTreeMap<AccountId, usize>,
    /// The account of each running job; `None` once it is abandoned.
    under_way: BTreeMap<u64, Option<AccountId>>,
    /// The number of threads, and how many of them run abandoned jobs.
    alive: usize,
    abandoned: usize,
    next: u64,
    /// The account that was served last.
    last: Option<AccountId>,
    is_closed: bool,
}

/// A job that its sender waits for. Dropping the ticket abandons the job.
pub(super) struct PoolTicket {
    pool: Arc<ThreadPool>,
    account: AccountId,
    number: u64,
}

impl ThreadPool {
    pub(super) fn new(threads: usize, slots: usize) -> Arc<Self> {
        let at_once = threads.max(1);
        let pool = Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            at_once,
            threads: at_once + 1,
            slots,
        });
        let mut state = pool.state.lock();
        for _ in 0..pool.threads {
            pool.start_thread(&mut state);
        }
        drop(state);
        pool
    }

    /// Queues a job, unless the queue is full or the account has its share of it.
    pub(super) fn send(
        self: &Arc<Self>,
        account: &AccountId,
        job: PoolJob,
    ) -> Result<PoolTicket, QueueFull> {
        let mut state = self.state.lock();
        let own = state.waiting.get(account).map_or(0, VecDeque::len);
        // Without a thread no job would ever run.
        if state.alive == 0 || !is_in_share(own, 1, self.slots.saturating_sub(state.queued)) {
            return Err(QueueFull);
        }
        let number = state.next;
        state.next += 1;
        state.queued += 1;
        state.waiting.entry(account.clone()).or_default().push_back((number, job));
        drop(state);
        self.changed.notify_one();
        Ok(PoolTicket { pool: Arc::clone(self), account: account.clone(), number })
    }

    pub(super) fn waiting(&self) -> usize {
        self.state.lock().queued
    }

    /// Lets the threads end after the queued jobs.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn start_thread(self: &Arc<Self>, state: &mut PoolState) {
        let pool = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name("bounded".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || pool.work());
        if thread.is_ok() {
            state.alive += 1;
        }
    }

    /// Runs jobs until the pool is closed, or until a spare thread has replaced this one. A panic
    /// ends a job, never the thread.
    fn work(self: Arc<Self>) {
        while let Some((number, account, job)) = self.next() {
            drop(catch_unwind(AssertUnwindSafe(job)));
            if self.done(number, &account) {
                return;
            }
        }
    }

    fn next(&self) -> Option<(u64, AccountId, PoolJob)> {
        let mut state = self.state.lock();
        loop {
            if let Some((number, account, job)) = self.next_fairly(&mut state) {
                *state.running.entry(account.clone()).or_default() += 1;
                state.under_way.insert(number, Some(account.clone()));
                return Some((number, account, job));
            }
            if state.is_closed && state.queued == 0 {
                state.alive -= 1;
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// The next job: among the accounts with the fewest running jobs, the first after the account
    /// that was served last.
    fn next_fairly(&self, state: &mut PoolState) -> Option<(u64, AccountId, PoolJob)> {
        let rank = |account: &AccountId| {
            let running = state.running.get(account).copied().unwrap_or(0);
            let is_past = state.last.as_ref().is_some_and(|last| account <= last);
            (running, is_past)
        };
        let waiting = state.waiting.keys().filter(|account| rank(account).0 < self.at_once);
        let account = waiting.min_by_key(|account| rank(account))?.clone();
        let queue = state.waiting.get_mut(&account)?;
        let (number, job) = queue.pop_front()?;
        if queue.is_empty() {
            state.waiting.remove(&account);
        }
        state.queued -= 1;
        state.last = Some(account.clone());
        Some((number, account, job))
    }

    /// Records the end of a job; returns whether its thread was replaced.
    fn done(&self, number: u64, account: &AccountId) -> bool {
        let mut state = self.state.lock();
        let was_abandoned = state.under_way.remove(&number).is_some_and(|of| of.is_none());
        if was_abandoned {
            state.abandoned -= 1;
        } else {
            state.stop_running(account);
        }
        let is_surplus = self.threads + state.abandoned < state.alive;
        if is_surplus {
            state.alive -= 1;
        }
        drop(state);
        // Jobs that could not run concurrently with it may run now.
        self.changed.notify_all();
        is_surplus
    }

    /// Abandons a job: removes it from the queue, or replaces the thread that it occupies.
    fn abandon(self: &Arc<Self>, account: &AccountId, number: u64) {
        let mut state = self.state.lock();
        if let Some(queue) = state.waiting.get_mut(account) {
            let before = queue.len();
            queue.retain(|(queued, _)| *queued != number);
            let taken = before - queue.len();
            if queue.is_empty() {
                state.waiting.remove(account);
            }
            state.queued -= taken;
            if 0 < taken {
                return;
            }
        }
        // Beyond the spares the job keeps counting for its account, which therefore cannot get more
        // by leaving.
        let is_under_way = state.under_way.get(&number).is_some_and(Option::is_some);
        if !is_under_way || self.threads * SPARES <= state.abandoned {
            return;
        }
        state.under_way.insert(number, None);
        state.abandoned += 1;
        state.stop_running(account);
        if state.alive < self.threads + state.abandoned {
            self.start_thread(&mut state);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl PoolState {
    fn stop_running(&mut self, account: &AccountId) {
        match self.running.get_mut(account) {
            Some(running) if 1 < *running => *running -= 1,
            Some(_) | None => {
                self.running.remove(account);
            }
        }
    }
}

impl Drop for PoolTicket {
    fn drop(&mut self) {
        self.pool.abandon(&self.account, self.number);
    }
}

//! Threads with large stacks, shared fairly between accounts.
//!
//! A thread cannot be stopped. Work whose caller has left, or that takes too long, keeps its thread
//! until it ends, but a spare thread replaces that thread, so that nobody waits behind it.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use jurat_core::{
    account::{
        fair_queue::{FairQueue, ServedWaiter},
        fair_share::is_in_share,
    },
    id::AccountId,
};
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
    /// Threads that are not occupied by abandoned work: one more than one account may occupy, so
    /// that other accounts find one.
    threads: usize,
    most_queued: usize,
}

struct PoolState {
    /// The queued jobs, and the running jobs that a caller waits for. The threads limit how many jobs
    /// run in total, and the queue how many of one account.
    jobs: FairQueue<PoolJob>,
    /// The account of each running job; `None` once it is abandoned.
    under_way: BTreeMap<u64, Option<AccountId>>,
    /// The number of threads, and how many of them run abandoned jobs.
    alive: usize,
    abandoned: usize,
    is_closed: bool,
}

/// A job that its sender waits for. Dropping the ticket abandons the job.
pub(super) struct PoolTicket {
    pool: Arc<ThreadPool>,
    account: AccountId,
    number: u64,
}

impl ThreadPool {
    pub(super) fn new(threads: usize, most_queued: usize) -> Arc<Self> {
        let most_of_account = threads.max(1);
        let state = PoolState {
            jobs: FairQueue::new(usize::MAX, most_of_account),
            under_way: BTreeMap::new(),
            alive: 0,
            abandoned: 0,
            is_closed: false,
        };
        let pool = Arc::new(Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            threads: most_of_account + 1,
            most_queued,
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
        let free = self.most_queued.saturating_sub(state.jobs.waiting());
        // Without a thread no job would ever run.
        if state.alive == 0 || !is_in_share(state.jobs.waiting_of(account), 1, free) {
            return Err(QueueFull);
        }
        let number = state.jobs.enter(account, job);
        drop(state);
        self.changed.notify_one();
        Ok(PoolTicket { pool: Arc::clone(self), account: account.clone(), number })
    }

    pub(super) fn waiting(&self) -> usize {
        self.state.lock().jobs.waiting()
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
        while let Some(ServedWaiter { account, number, waiter: job }) = self.next() {
            drop(catch_unwind(AssertUnwindSafe(job)));
            if self.done(number, &account) {
                return;
            }
        }
    }

    fn next(&self) -> Option<ServedWaiter<PoolJob>> {
        let mut state = self.state.lock();
        loop {
            if let Some(served) = state.jobs.serve() {
                state.under_way.insert(served.number, Some(served.account.clone()));
                return Some(served);
            }
            if state.is_closed && !state.jobs.is_wanted() {
                state.alive -= 1;
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Records the end of a job; returns whether its thread was replaced.
    fn done(&self, number: u64, account: &AccountId) -> bool {
        let mut state = self.state.lock();
        let was_abandoned = state.under_way.remove(&number).is_some_and(|of| of.is_none());
        if was_abandoned {
            state.abandoned -= 1;
        } else {
            state.jobs.give_back(account);
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
        if state.jobs.leave(account, number).is_some() {
            return;
        }
        // Beyond the spares the job keeps counting for its account, which therefore cannot get more
        // by leaving.
        let is_under_way = state.under_way.get(&number).is_some_and(Option::is_some);
        if !is_under_way || self.threads * SPARES <= state.abandoned {
            return;
        }
        state.under_way.insert(number, None);
        state.abandoned += 1;
        state.jobs.give_back(account);
        if state.alive < self.threads + state.abandoned {
            self.start_thread(&mut state);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Drop for PoolTicket {
    fn drop(&mut self) {
        self.pool.abandon(&self.account, self.number);
    }
}

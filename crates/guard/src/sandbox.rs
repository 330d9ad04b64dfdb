//! Evaluates schemas and policies from callers on threads of its own, within limits.

mod pool;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jurat_core::{
    canonical,
    id::AccountId,
    policy::{BindError, Evaluation, Policy, PolicyBinding, PolicyRules},
    reason,
    round::candidate::Candidate,
    schema::{self, Schema, SchemaError},
};
use moka::sync::Cache;
use serde_json::Value;
use tokio::sync::oneshot;

use self::pool::ThreadPool;

const QUEUED: usize = 256;
const CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// The approximate size of a cache entry that holds only a refusal.
const REFUSAL_BYTES: u32 = 1024;

/// Why there is no compiled schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaRefusal {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("too many checks are waiting; try again later")]
    Busy,
    #[error("the schema could not be compiled; this is a bug in this program")]
    Crashed,
}

impl SchemaRefusal {
    /// A short stable name.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::Schema(error) => error.slug(),
            Self::Busy => "schema_busy",
            Self::Crashed => "schema_crashed",
        }
    }
}

/// Why there is no policy to evaluate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyRefusal {
    #[error(transparent)]
    Policy(#[from] BindError),
    #[error(transparent)]
    NotDone(#[from] SandboxError),
}

/// Threads with large stacks for work from callers, and a cache of compiled schemas.
#[derive(Debug, Clone)]
pub struct Sandbox {
    threads: Arc<SandboxThreads>,
    /// By the digest of the schema as it is written.
    schemas: Cache<String, Result<Schema, SchemaRefusal>>,
    refused: Arc<AtomicU64>,
    /// The account that work sent through this handle counts for.
    account: AccountId,
}

/// The threads, which end with the last handle.
struct SandboxThreads(Arc<ThreadPool>);

impl Drop for SandboxThreads {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for SandboxThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxThreads").finish_non_exhaustive()
    }
}

/// Why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    #[error("too many checks are waiting")]
    Busy,
    #[error("the work failed because of a bug in this program")]
    Crashed,
}

impl SandboxError {
    /// The evaluation for a check that was not made.
    pub fn evaluation(self) -> Evaluation {
        let note = match self {
            Self::Busy => "Too many checks are waiting, so this one was not run.",
            Self::Crashed => "The check failed because of a bug in this program.",
        };
        Evaluation::inconclusive(reason::EVALUATION_REFUSED, note)
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(2)
    }
}

impl Sandbox {
    /// Starts the threads: so many for one account, and one more for others. They end when the last
    /// clone is dropped.
    pub fn new(threads: usize) -> Self {
        Self::with_queue(threads, QUEUED)
    }

    fn with_queue(threads: usize, queued: usize) -> Self {
        let schemas = Cache::builder()
            .max_capacity(CACHE_BYTES)
            .weigher(|_: &String, held: &Result<Schema, SchemaRefusal>| match held {
                Ok(schema) => u32::try_from(schema.footprint()).unwrap_or(u32::MAX),
                Err(_) => REFUSAL_BYTES,
            })
            .build();
        Self {
            threads: Arc::new(SandboxThreads(ThreadPool::new(threads, queued))),
            schemas,
            refused: Arc::default(),
            account: AccountId::admin(),
        }
    }

    /// A handle to the same threads for an account, which gets its fair share of them.
    #[must_use]
    pub fn of(&self, account: &AccountId) -> Self {
        Self { account: account.clone(), ..self.clone() }
    }

    /// The schema as the rules read it. WattSwarm's rules need no compiled schema.
    pub async fn schema_under(
        &self,
        rules: PolicyRules,
        schema: &Value,
    ) -> Result<Schema, SchemaRefusal> {
        match rules {
            PolicyRules::Jurat => self.schema(schema).await,
            PolicyRules::WattSwarm => Ok(Schema::for_wattswarm(schema)?),
        }
    }

    /// The compiled schema, from the cache or from one of the threads.
    pub async fn schema(&self, schema: &Value) -> Result<Schema, SchemaRefusal> {
        // Writing a value is recursive, so its depth is checked first.
        schema::check_limits(schema)?;
        let key = canonical::sha256_hex(&serde_json::to_vec(schema).unwrap_or_default());
        if let Some(known) = self.schemas.get(&key) {
            return known;
        }
        let (schema, schemas, own) = (schema.clone(), self.schemas.clone(), key.clone());
        let compile = move || {
            // Another job may have compiled it meanwhile.
            if let Some(known) = schemas.get(&own) {
                return known;
            }
            let compiled = Schema::compile(&schema).map_err(SchemaRefusal::from);
            schemas.insert(own, compiled.clone());
            compiled
        };
        match self.run(compile).await {
            Ok(compiled) => compiled,
            // A busy sandbox may be free later, so this is not cached.
            Err(SandboxError::Busy) => Err(SchemaRefusal::Busy),
            Err(SandboxError::Crashed) => {
                self.schemas.insert(key, Err(SchemaRefusal::Crashed));
                Err(SchemaRefusal::Crashed)
            }
        }
    }

    /// Reads the policy of a binding: inline, or on one of the threads if schemas and expressions
    /// have to be compiled.
    pub async fn policy(&self, binding: &PolicyBinding) -> Result<Policy, PolicyRefusal> {
        if !Policy::is_compiled(&binding.policy_id) {
            return Ok(Policy::bind(binding)?);
        }
        let binding = binding.clone();
        Ok(self.run(move || Policy::bind(&binding)).await??)
    }

    /// Evaluates a candidate: inline if the work is small, otherwise on one of the threads.
    pub async fn evaluate(
        &self,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Evaluation {
        self.try_evaluate(policy, candidate, schema).await.unwrap_or_else(SandboxError::evaluation)
    }

    /// Like `evaluate`, for callers that must distinguish an inconclusive check from one that was
    /// not made.
    pub async fn try_evaluate(
        &self,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Result<Evaluation, SandboxError> {
        if policy.estimate(&candidate, &schema).is_small() {
            let inline = || policy.evaluate(&candidate, &schema);
            return catch_unwind(AssertUnwindSafe(inline)).map_err(|_| SandboxError::Crashed);
        }
        self.run(move || policy.evaluate(&candidate, &schema)).await
    }

    /// How many jobs wait for a thread.
    pub fn waiting(&self) -> usize {
        self.threads.0.waiting()
    }

    /// How many jobs were refused so far because the queue was full.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Runs any work on one of the threads. If the caller stops waiting, the job leaves the queue,
    /// or a spare thread replaces the one that it occupies.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SandboxError> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move || drop(done.send(work())));
        let Ok(_ticket) = self.threads.0.send(&self.account, work) else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(SandboxError::Busy);
        };
        // A panic drops the sender before anything is sent.
        result.await.map_err(|_| SandboxError::Crashed)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::{Pin, pin},
        sync::mpsc,
        task::{Context, Poll, Waker},
    };

    use futures::future::join_all;
    use parking_lot::Mutex;
    use tokio::task::JoinHandle;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a test, which waits for what it begins")]
    fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        tokio::spawn(work)
    }

    fn poll_once<F: Future>(work: Pin<&mut F>) -> Poll<F::Output> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_panic_is_not_a_verdict_and_the_threads_survive_it() {
        let bounded = Sandbox::new(1);
        for _ in 0..3 {
            let evaluation = bounded.run(|| -> Evaluation { panic!("a defect") }).await;
            assert_eq!(evaluation, Err(SandboxError::Crashed));
        }
        assert_eq!(bounded.run(|| 7).await, Ok(7));
    }

    fn account(name: &str) -> AccountId {
        AccountId::parse(&format!("acct_{name}")).unwrap()
    }

    /// Work that has started, and that continues until the sender is dropped.
    async fn block(bounded: &Sandbox) -> (mpsc::Sender<()>, JoinHandle<Result<(), SandboxError>>) {
        let (started, has_started) = oneshot::channel();
        let (release, is_released) = mpsc::channel::<()>();
        let bounded = bounded.clone();
        let blocked = spawn(async move {
            let work = move || {
                started.send(()).unwrap();
                // Returns when the other side is dropped.
                assert!(is_released.recv().is_err());
            };
            bounded.run(work).await
        });
        has_started.await.unwrap();
        (release, blocked)
    }

    #[tokio::test]
    async fn a_full_queue_is_not_a_verdict() {
        let bounded = Sandbox::with_queue(1, 1);
        let (release, _blocked) = block(&bounded).await;
        let mut queued = pin!(bounded.run(|| ()));
        assert!(poll_once(queued.as_mut()).is_pending());

        let evaluation = bounded.run(|| Evaluation::passed(Vec::new())).await;
        assert_eq!(evaluation, Err(SandboxError::Busy));
        assert_eq!((bounded.waiting(), bounded.refused()), (1, 1));
        let refused = bounded.schema(&serde_json::json!({"type": "object"})).await;
        assert_eq!(refused, Err(SchemaRefusal::Busy));
        drop(release);
        assert_eq!(queued.await, Ok(()));
    }

    #[tokio::test]
    async fn one_account_never_has_all_threads() {
        let bounded = Sandbox::new(2);
        let hostile = bounded.of(&account("hostile"));
        let (first, second) = (block(&hostile).await, block(&hostile).await);
        let mut third = pin!(hostile.run(|| 3));
        assert!(poll_once(third.as_mut()).is_pending());
        // Served immediately, although other work never ends.
        assert_eq!(bounded.of(&account("honest")).run(|| 7).await, Ok(7));
        assert!(poll_once(third.as_mut()).is_pending());
        drop((first, second));
        assert_eq!(third.await, Ok(3));
    }

    #[tokio::test]
    async fn accounts_alternate_and_keep_their_own_order() {
        let bounded = Sandbox::new(1);
        let (a, b) = (bounded.of(&account("a")), bounded.of(&account("b")));
        let (release, _first) = block(&bounded.of(&account("x"))).await;
        let (_never, _second) = block(&bounded.of(&account("y"))).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |who: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().push(who)
        };
        let mut waiting = Vec::new();
        for (bounded, who) in [(&a, "a1"), (&a, "a2"), (&a, "a3"), (&b, "b1")] {
            let mut work = Box::pin(bounded.run(note(who)));
            assert!(poll_once(work.as_mut()).is_pending());
            waiting.push(work);
        }
        // One thread does all of it, because `y` occupies the other.
        drop(release);
        join_all(waiting).await;
        assert_eq!(*order.lock(), ["a1", "b1", "a2", "a3"]);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_leaves_the_queue() {
        let bounded = Sandbox::with_queue(1, 1);
        let (release, _blocked) = block(&bounded).await;
        {
            let mut queued = pin!(bounded.run(|| ()));
            assert!(poll_once(queued.as_mut()).is_pending());
            assert_eq!(bounded.waiting(), 1);
        }
        assert_eq!(bounded.waiting(), 0);
        drop(release);
    }

    #[tokio::test]
    async fn abandoned_work_does_not_block_a_thread() {
        let bounded = Sandbox::new(1);
        let mut releases = Vec::new();
        // More jobs than threads, from two accounts.
        for who in ["a", "b", "a", "b"] {
            let (release, blocked) = block(&bounded.of(&account(who))).await;
            blocked.abort();
            assert!(blocked.await.is_err());
            releases.push(release);
        }
        assert_eq!(bounded.of(&account("a")).run(|| 7).await, Ok(7));
        assert_eq!(bounded.of(&account("c")).run(|| 8).await, Ok(8));
        drop(releases);
        assert_eq!(bounded.run(|| 9).await, Ok(9));
    }

    #[tokio::test]
    async fn a_thread_has_room_for_deep_recursion() {
        fn descend(left: u32) -> u64 {
            let room = std::hint::black_box([u64::from(left); 64]);
            if left == 0 { room[0] } else { room[1] + descend(left - 1) }
        }
        let bounded = Sandbox::new(1);
        assert!(bounded.run(|| descend(20_000)).await.is_ok());
    }
}

//! Bounded evaluation: schemas and policies from callers never take a node's threads or stack.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use jurat_core::{
    candidate::Candidate,
    canonical,
    policy::{BindError, Evaluation, Policy, PolicyBinding, Rules},
    reason,
    schema::{self, Schema, SchemaError},
};
use moka::sync::Cache;
use serde_json::Value;
use tokio::sync::oneshot;

/// What a check may need of stack at the bounds of schema and instance, with a wide margin.
const STACK_BYTES: usize = 64 * 1024 * 1024;
const QUEUED: usize = 256;
const CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// About what an entry takes that says no more than why a schema is refused.
const REFUSAL_BYTES: u32 = 1024;

/// Why there is no compiled schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedSchema {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("too many checks are waiting; try again later")]
    Busy,
    #[error("the schema could not be compiled; this is a defect of this program")]
    Crashed,
}

impl RefusedSchema {
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
pub enum RefusedPolicy {
    #[error(transparent)]
    Policy(#[from] BindError),
    #[error(transparent)]
    NotDone(#[from] NotDone),
}

/// Threads with large stacks for what callers want checked, and the schemas compiled so far.
#[derive(Debug, Clone)]
pub struct Bounded {
    queue: SyncSender<Errand>,
    /// By the digest of the schema as it is written.
    schemas: Cache<String, Result<Schema, RefusedSchema>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    refused: AtomicU64,
}

type Errand = Box<dyn FnOnce() + Send>;

/// Why an errand has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    #[error("too much is waiting to be checked")]
    Busy,
    #[error("the work ended by a defect of this program")]
    Crashed,
}

impl NotDone {
    /// What a check amounts to that was not made.
    pub fn evaluation(self) -> Evaluation {
        let note = match self {
            Self::Busy => "Too many checks are waiting, so this one was not made.",
            Self::Crashed => "The check ended by a defect of this program.",
        };
        Evaluation::inconclusive(reason::EVALUATION_REFUSED, note)
    }
}

impl Default for Bounded {
    fn default() -> Self {
        Self::new(2)
    }
}

impl Bounded {
    /// Starts the threads. They end when the last clone is gone.
    pub fn new(threads: usize) -> Self {
        Self::with_queue(threads, QUEUED)
    }

    fn with_queue(threads: usize, queued: usize) -> Self {
        let (queue, errands) = sync_channel(queued);
        let errands = Arc::new(Mutex::new(errands));
        for number in 0..threads.max(1) {
            let errands = Arc::clone(&errands);
            let thread = std::thread::Builder::new()
                .name(format!("bounded-{number}"))
                .stack_size(STACK_BYTES)
                .spawn(move || work(&errands));
            // Without any thread the queue is closed, and every errand is refused as not done.
            drop(thread);
        }
        let schemas = Cache::builder()
            .max_capacity(CACHE_BYTES)
            .weigher(|_: &String, held: &Result<Schema, RefusedSchema>| match held {
                Ok(schema) => u32::try_from(schema.footprint()).unwrap_or(u32::MAX),
                Err(_) => REFUSAL_BYTES,
            })
            .build();
        Self { queue, schemas, counts: Arc::default() }
    }

    /// The schema as the rules read it. WattSwarm's reading has nothing to compile.
    pub async fn schema_under(
        &self,
        rules: Rules,
        schema: &Value,
    ) -> Result<Schema, RefusedSchema> {
        match rules {
            Rules::Jurat => self.schema(schema).await,
            Rules::WattSwarm => Ok(Schema::for_wattswarm(schema)?),
        }
    }

    /// The compiled schema, from the cache or from one of the threads.
    pub async fn schema(&self, schema: &Value) -> Result<Schema, RefusedSchema> {
        // Writing a value is recursive, so its depth is looked at first.
        schema::check_limits(schema)?;
        let key = canonical::sha256_hex(&serde_json::to_vec(schema).unwrap_or_default());
        if let Some(known) = self.schemas.get(&key) {
            return known;
        }
        let (schema, schemas, own) = (schema.clone(), self.schemas.clone(), key.clone());
        let compile = move || {
            // Another errand may have compiled it in the meantime.
            if let Some(known) = schemas.get(&own) {
                return known;
            }
            let compiled = Schema::compile(&schema).map_err(RefusedSchema::from);
            schemas.insert(own, compiled.clone());
            compiled
        };
        match self.run(compile).await {
            Ok(compiled) => compiled,
            // What is busy now may not be later.
            Err(NotDone::Busy) => Err(RefusedSchema::Busy),
            Err(NotDone::Crashed) => {
                self.schemas.insert(key, Err(RefusedSchema::Crashed));
                Err(RefusedSchema::Crashed)
            }
        }
    }

    /// The policy of a binding, read at once or, where schemas and expressions are compiled, on one
    /// of the threads.
    pub async fn policy(&self, binding: &PolicyBinding) -> Result<Policy, RefusedPolicy> {
        if !Policy::is_compiled(&binding.policy_id) {
            return Ok(Policy::bind(binding)?);
        }
        let binding = binding.clone();
        Ok(self.run(move || Policy::bind(&binding)).await??)
    }

    /// Decides a candidate: at once when that is little work, on one of the threads otherwise.
    pub async fn evaluate(
        &self,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Evaluation {
        self.try_evaluate(policy, candidate, schema).await.unwrap_or_else(NotDone::evaluation)
    }

    /// Like `evaluate`, for those who must tell an inconclusive check from one that was not made.
    pub async fn try_evaluate(
        &self,
        policy: Arc<Policy>,
        candidate: Arc<Candidate>,
        schema: Schema,
    ) -> Result<Evaluation, NotDone> {
        if policy.estimate(&candidate, &schema).is_small() {
            let inline = || policy.evaluate(&candidate, &schema);
            return catch_unwind(AssertUnwindSafe(inline)).map_err(|_| NotDone::Crashed);
        }
        self.run(move || policy.evaluate(&candidate, &schema)).await
    }

    /// How many errands wait for a thread.
    pub fn waiting(&self) -> usize {
        self.counts.waiting.load(Ordering::Relaxed)
    }

    /// How many errands were refused so far because too many waited.
    pub fn refused(&self) -> u64 {
        self.counts.refused.load(Ordering::Relaxed)
    }

    /// Does work of any kind on one of the threads.
    pub async fn run<T: Send + 'static>(
        &self,
        errand: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (done, result) = oneshot::channel();
        let counts = Arc::clone(&self.counts);
        let errand = Box::new(move || {
            counts.waiting.fetch_sub(1, Ordering::Relaxed);
            // Whoever waited may have given up, and then nobody needs the result.
            if !done.is_closed() {
                drop(done.send(errand()));
            }
        });
        // Counted first, so that a thread that is quick does not count below zero.
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(errand).is_err() {
            self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NotDone::Busy);
        }
        // A panic drops the sender before anything is sent.
        result.await.map_err(|_| NotDone::Crashed)
    }
}

/// Does errands until nobody can send one any more. A panic ends an errand, never the thread.
fn work(errands: &Mutex<Receiver<Errand>>) {
    loop {
        let next = errands.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(errand) = next else { return };
        drop(catch_unwind(AssertUnwindSafe(errand)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_no_verdict_and_the_threads_survive_it() {
        let bounded = Bounded::new(1);
        for _ in 0..3 {
            let evaluation = bounded.run(|| -> Evaluation { panic!("a defect") }).await;
            assert_eq!(evaluation, Err(NotDone::Crashed));
        }
        assert_eq!(bounded.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_full_queue_is_no_verdict() {
        let bounded = Bounded::with_queue(1, 1);
        let (started, has_started) = oneshot::channel();
        let (release, is_released) = std::sync::mpsc::channel::<()>();
        let errand = Box::new(move || {
            started.send(()).unwrap();
            // It ends when the other side is dropped.
            assert!(is_released.recv().is_err());
        });
        bounded.queue.try_send(errand).unwrap();
        has_started.await.unwrap();
        bounded.queue.try_send(Box::new(|| ())).unwrap();

        let evaluation = bounded.run(|| Evaluation::passed(Vec::new())).await;
        assert_eq!(evaluation, Err(NotDone::Busy));
        assert_eq!((bounded.waiting(), bounded.refused()), (0, 1));
        let refused = bounded.schema(&serde_json::json!({"type": "object"})).await;
        assert_eq!(refused, Err(RefusedSchema::Busy));
        drop(release);
    }

    #[tokio::test]
    async fn a_thread_has_room_for_deep_recursion() {
        fn descend(left: u32) -> u64 {
            let room = std::hint::black_box([u64::from(left); 64]);
            if left == 0 { room[0] } else { room[1] + descend(left - 1) }
        }
        let bounded = Bounded::new(1);
        assert!(bounded.run(|| descend(20_000)).await.is_ok());
    }
}

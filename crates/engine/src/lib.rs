//! The operations of Jurat. Each exists once, here; every surface is a way to say it.

mod agent_events;
mod anonymous;
mod ask;
mod background;
mod begun;
mod checked;
mod clock;
mod close;
mod credit_turns;
mod credits;
mod devices;
mod doctor;
mod error;
pub mod evaluation;
mod evidence;
mod executors;
mod fair_shares;
mod fan_out;
mod idempotency;
mod invitations;
mod judge;
mod keys;
mod logins;
mod metrics;
mod packs;
mod people;
mod places;
mod points;
mod pool;
mod pressure;
mod probe;
mod progress;
mod recover;
mod remembered;
mod round;
mod rounds;
mod sealed;
mod semantic;
mod sessions;
mod shares;
mod signature;
mod step;
mod stop;
mod storage;
pub mod task;
mod task_reads;
mod task_run;
mod teams;
mod templates;
pub mod trace;
mod turns;
mod under_way;
mod verifiers;
mod wait;
mod workflows;

use std::{fmt, sync::Arc, time::Duration};

use jurat_core::id::NodeId;
use jurat_guard::{bounded::Bounded, client::Client};
use jurat_store::Store;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

pub use jurat_store::{AgentEvent as AgentEventRecord, AgentEventAdded};
pub use jurat_store::{
    Change, Changed, Deployment, FileRead, Forked, Granting, Left, Lineage, Measurement, Offered,
    Page as EnginePage, Published, ReachedVerifier, Revoking, Saved, SavedAnswer, TemplateFilter,
    Upstream, VersionSummary, WorkflowView,
};
pub use jurat_store::{
    EventsFrom, KnowledgeOf, KnowledgePosition, Learned, Position as TaskPosition, RunAdded,
    StoredRunEvent, TaskCandidate, TaskEvent, TaskRecord, TaskSubmitted, TaskSummary,
};

pub(crate) use self::idempotency::Leaves;
pub use self::{
    agent_events::{AgentEventQuery, AgentEventTerms},
    begun::Begun,
    clock::{Clock, SystemClock},
    credits::{Me, NewGrant, Usage},
    devices::{Approver, Device, DeviceWait},
    doctor::{Diagnosis, EntriesChecked, EntriesQuery, EntryFault},
    error::EngineError,
    executors::Addition,
    fair_shares::RequestMemory,
    idempotency::{Done, Keyed, OnceKey, Saving},
    invitations::InvitationQuery,
    judge::{BUILTIN, JudgeUnknown, Judges, ProviderKind, ProviderSettings, RULES},
    keys::{Admitted, Allowance, Issued, KeyRef, Limit},
    logins::Accounts,
    metrics::{FigureFormat, Metrics, OpenConnection, RequestFigures, RequestInFlight},
    packs::{Pack, PackKind, packed},
    points::{POINTS, Passing, Points},
    probe::{EventsProbe, ExecutorView},
    progress::{Progress, Watcher},
    recover::Alone,
    remembered::KnowledgeQuery,
    rounds::RoundQuery,
    shares::{ShareFilter, listed as names_listed},
    signature::NodeKey,
    step::{StepBy, StepDone, StepOrder, StepOutcome, StepVerdict, StepWork},
    storage::{PruneReport, StorageTerms},
    task::Panel as TaskPanel,
    task_reads::{TaskDecision, TaskQuery},
    task_run::{TaskRunQuery, TaskRunView, WorkUntil, WorkerSettings},
    templates::{
        FileView, ForkOrder, PublishOrder, SafetyCheck, ScreenRun, ScreenVerdict, TemplateView,
    },
    verifiers::{
        CaseDone, CaseWatcher, Compared, Data, Labelled, MeasureReport, MeasureRequest,
        MeasuredCase, RunQuery, RunRecord, RunRequest, RunView, VerifierPage, VerifierView,
        VersionList,
    },
    workflows::{NewPatch, NewWorkflowGrant, Sharee, WorkflowFilter, WorkflowHit, WorkflowSearch},
};
use self::{
    background::Background,
    credit_turns::CreditTurns,
    fair_shares::Shared,
    judge::{Bench, SharedJudgments},
    keys::{InUse, KeyCache},
    logins::Doors,
    pool::PoolCache,
    pressure::Pressure,
    storage::StoredCache,
    task::{Followers, UnderWay as DrivenTasks},
    task_run::RunNews,
    under_way::UnderWay,
};

/// Finds the value of a named secret, such as an environment variable.
pub type Secrets = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What an engine is made of.
pub struct Parts {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub client: Client,
    pub bounded: Bounded,
    pub node_key: NodeKey,
    pub secrets: Secrets,
    pub limits: Limits,
    pub judges: Judges,
    pub accounts: Accounts,
    pub points: Points,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// How much is done at once.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rounds in flight on this node; more are refused.
    pub rounds: usize,
    /// Calls in flight to one executor; more wait for their turn.
    pub calls_per_executor: usize,
    /// How long a probe is believed.
    pub probe_fresh_ms: u64,
    /// Requests a minute of a key that has no limit of its own; `None` is as many as it likes.
    pub requests_per_minute_per_key: Option<u32>,
    /// Rounds in flight of a key that has no limit of its own; more are refused.
    pub rounds_per_key: usize,
    /// Requests a minute of all keys of an account together; `None` is as many as they like.
    pub requests_per_minute_per_account: Option<u32>,
    /// Rounds in flight of all keys of an account together; more are refused.
    pub rounds_per_account: usize,
    /// Memory that requests and rounds under way may take on this node, in bytes.
    pub bytes: usize,
    /// The same for those of one account.
    pub bytes_per_account: usize,
    /// How late this process may be before new rounds are refused; `None` refuses none.
    pub lag: Option<Duration>,
    /// What a network address without a key is given each month, in micro-credits.
    pub anonymous_grant_micros: i64,
    /// What all callers without a key may spend in a day together, in micro-credits.
    pub anonymous_day_micros: i64,
    /// Tasks that this node drives at a time; more wait for their turn.
    pub tasks: usize,
    /// Tasks of an account that are not over; more are refused.
    pub open_tasks: u32,
    /// Runs of an account that are not over; more are refused.
    pub open_runs: u32,
    /// Steps of runs that are with one executor at a time, on all nodes together.
    pub steps_per_executor: u32,
    /// How executors are told of events.
    pub agent_events: AgentEventTerms,
    /// What accounts may store, and for how long.
    pub storage: StorageTerms,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 1_024,
            calls_per_executor: 256,
            probe_fresh_ms: 15_000,
            requests_per_minute_per_key: None,
            rounds_per_key: 256,
            requests_per_minute_per_account: None,
            rounds_per_account: 512,
            bytes: 512 * 1024 * 1024,
            bytes_per_account: 128 * 1024 * 1024,
            lag: Some(Duration::from_millis(2)),
            anonymous_grant_micros: 100_000,
            anonymous_day_micros: 1_000_000,
            tasks: 256,
            open_tasks: 10_000,
            open_runs: 10_000,
            steps_per_executor: 8,
            agent_events: AgentEventTerms::default(),
            storage: StorageTerms::default(),
        }
    }
}

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    client: Client,
    bounded: Bounded,
    node: NodeId,
    node_key: NodeKey,
    secrets: Secrets,
    limits: Limits,
    bench: Bench,
    shared_judgments: Arc<SharedJudgments>,
    credit_turns: CreditTurns,
    rounds: Arc<Shared>,
    memory: Arc<Shared>,
    stored: StoredCache,
    /// Places for fetching documents.
    fetches: Semaphore,
    under_way: Arc<UnderWay>,
    pool: PoolCache,
    keys: KeyCache,
    accounts: Accounts,
    points: Points,
    doors: Doors,
    in_use: InUse,
    background: Background,
    /// The tasks that are driven on this node.
    driven: DrivenTasks,
    followers: Followers,
    runs: RunNews,
    /// There is an event that an executor is to be told of.
    agent_news: Notify,
    /// No round begins once it is cancelled.
    stopping: CancellationToken,
    metrics: Metrics,
    pressure: Pressure,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("node", &self.inner.node).finish_non_exhaustive()
    }
}

impl Engine {
    pub fn new(parts: Parts) -> Self {
        let node = NodeId::new(parts.clock.now(), parts.clock.bits());
        let stopping = CancellationToken::new();
        let metrics = Metrics::new(&parts.store.load(), parts.clock.now());
        let pressure = Pressure::new(metrics.writes());
        let inner = Inner {
            metrics,
            pressure,
            store: parts.store,
            in_use: InUse::new(Arc::clone(&parts.clock)),
            clock: parts.clock,
            client: parts.client,
            bounded: parts.bounded,
            node,
            node_key: parts.node_key,
            secrets: parts.secrets,
            rounds: Shared::new(parts.limits.rounds),
            memory: Shared::new(parts.limits.bytes),
            stored: StoredCache::new(),
            fetches: Semaphore::new(evidence::FETCHES),
            under_way: Arc::default(),
            limits: parts.limits,
            bench: Bench::new(parts.judges),
            shared_judgments: Arc::default(),
            credit_turns: CreditTurns::default(),
            pool: PoolCache::default(),
            keys: KeyCache::new(),
            accounts: parts.accounts,
            points: parts.points,
            doors: Doors::new(),
            background: Background::default(),
            driven: DrivenTasks::until(stopping.clone()),
            followers: Followers::default(),
            runs: RunNews::default(),
            agent_news: Notify::new(),
            stopping,
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// Whether the store answers, and this node is not about to end.
    pub async fn ready(&self) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        Ok(self.inner.store.ping().await?)
    }

    /// Waits for what is under way, then closes the store.
    pub async fn shutdown(&self) {
        // Tasks are given up, so that others take them over at once.
        self.stop_rounds();
        self.inner.background.shutdown().await;
        if let Err(error) = self.key_uses_write().await {
            tracing::warn!(error = %error, "could not record when keys were last used");
        }
        self.inner.store.close().await;
    }
}

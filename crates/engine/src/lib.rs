//! The operations of Jurat. Each exists once, here, and every surface calls it.

mod access;
mod accounts;
mod agent_events;
mod agent_runs;
mod background;
mod clock;
mod due_loop;
mod error;
mod executors;
mod idempotency;
mod judges;
pub mod node;
mod outbox;
mod pauses;
mod payments;
mod peers;
mod rounds;
pub mod tasks;
pub mod trace;
mod verifiers;
mod webhooks;
mod workflows;

use std::{fmt, sync::Arc, time::Duration};

use jurat_core::id::NodeId;
pub use jurat_core::round::profile::ConsensusProfiles;
use jurat_guard::{client::OutboundClient, sandbox::Sandbox};
use jurat_store::Store;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

pub(crate) use crate::idempotency::Leaves;
pub use crate::{
    accounts::{
        credits::{AccountUsage, CallerIdentity, NewCreditGrant},
        devices::{DeviceApprover, DeviceLogin, DeviceLoginStatus},
        keys::{Allowance, IssuedKey, KeyAdmission, KeyRef, LimitExceeded},
        logins::AccountSettings,
        storage::{PruneReport, StorageTerms},
    },
    agent_events::AgentEventTerms,
    agent_runs::{AgentRunView, RunWorkerEnd, RunWorkerSettings},
    background::pause,
    clock::{Clock, SystemClock},
    error::{EngineError, EngineRefusal, RefusalContext},
    executors::{
        NewExecutor,
        probe::{EventsProbe, ExecutorView},
        signature::NodeSigningKey,
    },
    idempotency::{AnswerEncoder, IdempotencyKey, IdempotentOutcome, IdempotentWrite},
    judges::{
        BUILTIN_PROVIDER, JudgeUnavailable, JudgesConfig, ProviderKind, ProviderSettings,
        RULES_MODEL,
    },
    node::{
        capacity::RequestMemory,
        doctor::{Diagnosis, EntryCheckQuery, EntryCheckReport, EntryFault},
        failpoints::{FAILPOINTS, FailpointHook, Failpoints},
        keyed_permits::{KeyedPermit, KeyedPermits},
        metrics::{MetricFormat, Metrics, OpenConnection, RequestInFlight, RequestMetrics},
    },
    payments::{
        Delivery, PayerLimits, PaymentRefused, PaymentSettings, PaymentTimeouts, PurchaseOrder,
        PurchaseOutcome, RoundEncoder,
    },
    peers::{
        IssuedInvitation, NodeView, PeerInvitationOrder, PeerOrder, PeerParts, PeerSettings,
        PeerStatement, PeerView, StatedBooks,
    },
    rounds::{
        handle::RoundHandle,
        progress::{RoundProgress, RoundWatcher},
        recover::SoleNode,
    },
    tasks::{
        TaskRoster,
        call::{
            TaskCallFailure, TaskCallOrder, TaskCallOutcome, TaskCallResult, TaskCallTarget,
            TaskCallVerdict, TaskCallWork,
        },
        read::TaskDecision,
    },
    verifiers::{
        CaseProgress, CaseWatcher, ExpectedCase, MeasureData, MeasureReport, MeasureRequest,
        MeasuredCase, VerifierListQuery, VerifierRunHandle, VerifierRunOrder, VerifierRunRecord,
        VerifierRunView, VerifierVersionList, VerifierView, VersionComparison,
    },
    webhooks::{IssuedWebhook, WebhookSettings, WebhookTerms},
    workflows::{
        NewFilePatch, NewWorkflowGrant, Sharee, WorkflowHit, WorkflowSearch,
        instructions::{InstructionKind, InstructionPack, instructions_for},
        shares::names_listed,
        templates::{
            ForkOrder, PublishOrder, SafetyReport, ScreenResult, ScreenVerdict, TemplateFileView,
            TemplateView,
        },
    },
};
use crate::{
    accounts::{
        keys::{KeyCache, KeysInUse},
        logins::KeylessLimits,
        storage::StoredBytesCache,
    },
    agent_runs::AgentRunNews,
    background::Background,
    executors::pool::PoolCache,
    judges::{JudgeProviders, SharedJudgments},
    node::{capacity::SharedCapacity, pressure::Pressure},
    payments::{ChainMemory, PurchasesInFlight, ReservationsInFlight, UnchargedWork},
    peers::PeerLink,
    rounds::{credit_queue::CreditQueues, in_flight::RoundsInFlight},
    tasks::{Followers, TasksInFlight},
    webhooks::WebhookSender,
};

/// Finds the value of a named secret, such as an environment variable.
pub type SecretLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Everything that an engine is built from.
pub struct EngineParts {
    pub store: Arc<Store>,
    pub clock: Arc<dyn Clock>,
    pub client: OutboundClient,
    pub bounded: Sandbox,
    pub node_key: NodeSigningKey,
    pub secrets: SecretLookup,
    pub limits: EngineLimits,
    pub judges: JudgesConfig,
    pub accounts: AccountSettings,
    /// The consensus profiles that chat clients select as models.
    pub profiles: ConsensusProfiles,
    pub webhooks: WebhookSettings,
    /// Without it, no request can be paid for one by one.
    pub payments: Option<PaymentSettings>,
    /// Without it, this node neither hires other nodes nor works for them.
    pub peers: Option<PeerParts>,
    pub failpoints: Failpoints,
}

impl fmt::Debug for EngineParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineParts").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The limits of a node and its accounts.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// Concurrent rounds on this node; more are refused.
    pub rounds: usize,
    /// Concurrent calls to one executor; more wait for a permit.
    pub calls_per_executor: usize,
    /// How long the result of a probe is trusted.
    pub probe_fresh_ms: u64,
    /// Requests per minute of a key without a limit of its own; `None` for no limit.
    pub requests_per_minute_per_key: Option<u32>,
    /// Concurrent rounds of a key without a limit of its own; more are refused.
    pub rounds_per_key: usize,
    /// Requests per minute of all keys of an account together; `None` for no limit.
    pub requests_per_minute_per_account: Option<u32>,
    /// Concurrent rounds of all keys of an account together; more are refused.
    pub rounds_per_account: usize,
    /// Memory for requests and rounds in progress on this node, in bytes.
    pub bytes: usize,
    /// The same for one account.
    pub bytes_per_account: usize,
    /// How late this process may be before new rounds are refused; `None` refuses none.
    pub lag: Option<Duration>,
    /// The monthly credit of a visitor, in micro-credits.
    pub anonymous_grant_micros: i64,
    /// The daily spending limit of all visitors together, in micro-credits.
    pub anonymous_day_micros: i64,
    /// Tasks that this node drives concurrently; more wait.
    pub tasks: usize,
    /// Open tasks of an account; more are refused.
    pub open_tasks: u32,
    /// Open runs of an account; more are refused.
    pub open_agent_runs: u32,
    /// Concurrent steps with one executor, on all nodes together.
    pub steps_per_executor: u32,
    /// How agent events are delivered.
    pub agent_events: AgentEventTerms,
    /// How much accounts may store, and for how long.
    pub storage: StorageTerms,
}

impl Default for EngineLimits {
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
            open_agent_runs: 10_000,
            steps_per_executor: 8,
            agent_events: AgentEventTerms::default(),
            storage: StorageTerms::default(),
        }
    }
}

/// The engine. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    client: OutboundClient,
    bounded: Sandbox,
    node: NodeId,
    node_key: NodeSigningKey,
    secrets: SecretLookup,
    limits: EngineLimits,
    judge_providers: JudgeProviders,
    shared_judgments: Arc<SharedJudgments>,
    credit_queues: CreditQueues,
    round_capacity: Arc<SharedCapacity>,
    memory_capacity: Arc<SharedCapacity>,
    stored_bytes: StoredBytesCache,
    /// Permits to fetch documents.
    fetches: Semaphore,
    rounds_in_flight: Arc<RoundsInFlight>,
    pool: PoolCache,
    keys: KeyCache,
    accounts: AccountSettings,
    profiles: ConsensusProfiles,
    payments: Option<PaymentSettings>,
    peers: Option<PeerLink>,
    reservations: ReservationsInFlight,
    purchases: PurchasesInFlight,
    uncharged: UnchargedWork,
    chain: ChainMemory,
    failpoints: Failpoints,
    keyless_limits: KeylessLimits,
    keys_in_use: KeysInUse,
    background: Background,
    /// The tasks that this node drives.
    tasks_in_flight: TasksInFlight,
    task_followers: Followers,
    agent_run_news: AgentRunNews,
    /// Signals that an agent event is due.
    agent_event_wake: Notify,
    webhooks: WebhookSender,
    /// No round starts once it is cancelled.
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
    pub fn new(parts: EngineParts) -> Self {
        let node = NodeId::new(parts.clock.now(), parts.clock.bits());
        let stopping = CancellationToken::new();
        let metrics = Metrics::new(&parts.store.load(), parts.clock.now());
        let pressure = Pressure::new(metrics.writes());
        let inner = EngineInner {
            metrics,
            pressure,
            store: parts.store,
            keys_in_use: KeysInUse::new(Arc::clone(&parts.clock)),
            clock: parts.clock,
            client: parts.client,
            bounded: parts.bounded,
            node,
            node_key: parts.node_key,
            secrets: parts.secrets,
            round_capacity: SharedCapacity::new(parts.limits.rounds),
            memory_capacity: SharedCapacity::new(parts.limits.bytes),
            stored_bytes: StoredBytesCache::new(),
            fetches: Semaphore::new(crate::rounds::evidence::FETCH_PERMITS),
            rounds_in_flight: Arc::default(),
            limits: parts.limits,
            judge_providers: JudgeProviders::new(parts.judges),
            shared_judgments: Arc::default(),
            credit_queues: CreditQueues::default(),
            pool: PoolCache::default(),
            keys: KeyCache::new(),
            accounts: parts.accounts,
            profiles: parts.profiles,
            payments: parts.payments,
            peers: parts.peers.map(PeerLink::from),
            reservations: ReservationsInFlight::default(),
            purchases: PurchasesInFlight::default(),
            uncharged: UnchargedWork::default(),
            chain: ChainMemory::default(),
            failpoints: parts.failpoints,
            keyless_limits: KeylessLimits::new(),
            background: Background::default(),
            tasks_in_flight: TasksInFlight::until(stopping.clone()),
            task_followers: Followers::default(),
            agent_run_news: AgentRunNews::default(),
            agent_event_wake: Notify::new(),
            webhooks: WebhookSender::new(parts.webhooks),
            stopping,
        };
        Self { inner: Arc::new(inner) }
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    /// The consensus profiles that chat clients select as models.
    pub fn profiles(&self) -> &ConsensusProfiles {
        &self.inner.profiles
    }

    /// Whether the store answers, and this node is not shutting down.
    pub async fn ready(&self) -> Result<(), EngineError> {
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        Ok(self.inner.store.ping().await?)
    }

    /// Waits for the work in progress, then closes the store.
    pub async fn shutdown(&self) {
        // Tasks are released, so that other nodes take them over immediately.
        self.stop_rounds();
        self.inner.background.shutdown().await;
        if let Err(error) = self.key_uses_write().await {
            tracing::warn!(error = %error, "could not record when keys were last used");
        }
        if let Some(link) = &self.inner.peers {
            link.mesh.close().await;
        }
        self.inner.store.close().await;
    }
}

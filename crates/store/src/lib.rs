//! The one storage seam of Jurat: a trait of operations, kept by SQLite or by PostgreSQL.

pub mod backup;
mod db;
mod error;
mod ops;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use jurat_core::{
    account::ledger::{AccountState, Transfer},
    executor::{
        Executor, Probe,
        session::{Session, SessionPool},
    },
    id::{AccountId, NodeId, RoundId},
    idempotency::SavedAnswer,
    list::ListPage,
    round::{
        OpenRound, Round, RoundClosing, RoundStatus, RoundSummary, consensus::Outcome, job::JobKind,
    },
    time::Timestamp,
    verifier::{
        registry::Measurement,
        run::{VerifierRun, VerifierRunPurpose},
    },
};

pub use crate::{
    db::{
        idempotency::{IdempotencyAnswer, IdempotencyRecord, PriorWrite},
        load::{ConnectionCounts, StoreLoad},
        postgres::Postgres,
        sqlite::Sqlite,
        tx::{Behalf, WriteOutcome},
    },
    error::{StoreError, StoreErrorKind},
    ops::{
        agent_events::{
            AgentEventAdd, AgentEventFilter, AgentEventOps, AgentEventOutcome, AgentEventPruning,
            AgentEventTake, NotLeaseHolder, TooManyPending, UndeliverableEvent,
        },
        agent_runs::{
            AgentRunConflict, AgentRunEventsQuery, AgentRunFilter, AgentRunOps, AgentRunRecord,
            AgentRunRefusal, AgentRunState, AgentRunSubmit, AgentRunWrite, AgentStepRenewal,
            AgentStepTake, NewAgentStep, TakenAgentStep,
        },
        checkup::{EndedRoundsQuery, RoundRecord, StoreCheckup},
        credit::{CreditGrant, CreditGrantOutcome, Spending, Suspension, SuspensionOutcome},
        evidence::{EvidenceBlob, EvidenceOps, EvidencePruning, NewEvidence},
        invitations::{
            InvitationAnswer, InvitationAnswerRefusal, InvitationFilter, InvitationOps,
            InvitationRefusal,
        },
        judge_calls::{
            CostCorrection, JudgeCallCosts, JudgeCallOps, JudgeHistoryKey, JudgmentSample,
            LeaseLost,
        },
        key::{
            KeyAddOutcome, KeyRecord, KeyRevocation, KeyRevokeOutcome, KeyRotateOutcome,
            KeyRotation, KeySuccession, LiveKeys,
        },
        knowledge::{
            KnowledgeDeprecation, KnowledgeFetch, KnowledgeHits, KnowledgeLookup, KnowledgeOps,
            KnowledgePageQuery, KnowledgeSummary, SimilarKnowledge,
        },
        logins::{
            DeviceAnswer, DeviceLookup, DevicePoll, DevicePollOutcome, DeviceRefusal, DeviceUse,
            LoginCodeOutcome, LoginCodeRefusal, LoginCodeTry, LoginCodeUse, LoginEntrant, LoginOps,
            NewDevice, NewLoginCode,
        },
        open_work::{OpenWorkCounts, OpenWorkOps, QueueDepth},
        people::{HandleChange, HandleRefusal, PeopleOps},
        registry::{
            CachedVerdict, DeployOutcome, NewVerifierVersion, VerdictPruning, VerifierRemoval,
            VerifierRemoveOutcome, VerifierRunFilter,
        },
        shares::{ShareAnswer, ShareOps, ShareQuery, ShareRefusal, ShareUse},
        storage::{
            ErasureRefusal, PruneCounts, PruneOrder, RoundErasure, RoundKey, RoundKeys,
            StorageFull, StorageOps, StorageUsage,
        },
        tasks::{
            TaskAppend, TaskAppendExtras, TaskAppendRefusal, TaskBallotRow, TaskEventsQuery,
            TaskFilter, TaskOps, TaskSubmit, TaskSubmitRefusal,
        },
        teams::{
            MemberRemoval, NewTeam, TeamInvite, TeamListQuery, TeamLookup, TeamOps, TeamRefusal,
        },
        templates::{
            ForkRefusal, ForkedVerifier, PublishRefusal, PublishableWorkflow,
            PublishedVerifierLookup, TemplateChange, TemplateChangeRefusal, TemplateFileBytes,
            TemplateFileLookup, TemplateFork, TemplateLookup, TemplateOffer, TemplateOfferRefusal,
            TemplateOps, TemplatePublish, TemplateWordSearch,
        },
        verifiers::{ReachedVersion, VerifierLookup, VerifierOps, VerifierQuery, VersionQuery},
        workflows::{
            FilesPatch, GrantRevocation, NameMatch, OwnershipChange, SaveTarget, WorkflowChange,
            WorkflowFileSet, WorkflowFilesLookup, WorkflowGrantOrder, WorkflowLookup,
            WorkflowOffer, WorkflowOfferRefusal, WorkflowOps, WorkflowQuery, WorkflowRefusal,
            WorkflowSave, WorkflowWordSearch, WrongField,
        },
    },
};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What Jurat remembers. Each method is one transaction, and a write that returns `Ok` is on disk.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// What people do with each other: accounts, workflows, templates.
    fn sharing(&self) -> &dyn SharingStore;

    /// Tasks and what belongs to them.
    fn tasks(&self) -> &dyn TaskStore;

    /// How much accounts have stored, and for how long.
    fn storage(&self) -> &dyn StorageOps;

    /// Adds an executor and, where given, a session to it: both or nothing.
    async fn executor_add(
        &self,
        executor: &Executor,
        session: Option<&Session>,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<ExecutorAddOutcome>;
    async fn executor_get(&self, name: &str) -> Result<Option<Executor>>;
    /// Executors by name.
    async fn executor_list(&self, page: &ListPage) -> Result<Vec<Executor>>;
    /// Keeps what the last probe found; `false` when there is no such executor.
    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool>;
    /// Removes an executor and its sessions.
    async fn executor_remove(
        &self,
        name: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome>;

    async fn session_add(
        &self,
        session: &Session,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SessionAddOutcome>;
    async fn session_get(&self, id: &str) -> Result<Option<Session>>;
    /// Sessions by identifier.
    async fn session_list(&self, page: &ListPage) -> Result<Vec<Session>>;
    async fn session_remove(
        &self,
        id: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome>;

    /// All executors and sessions, at one moment.
    async fn pool(&self) -> Result<SessionPool>;
    /// A number that every change of executors or sessions increases; probes do not.
    async fn pool_version(&self) -> Result<i64>;

    /// Makes the account if it is not there.
    async fn account_ensure(&self, account: &AccountId, now: Timestamp) -> Result<()>;
    /// Adds a key, or replaces the one of the same account with the same identifier.
    async fn key_put(&self, key: &KeyRecord) -> Result<()>;
    /// Finds a key before anyone knows whose it is, which is why it names no account.
    async fn key_get(&self, id: &str) -> Result<Option<KeyRecord>>;
    /// Adds a key, and its account if that is not there. Of the live keys of an account only one
    /// has a name, but for those that a rotation leaves for a while.
    async fn key_add(
        &self,
        key: &KeyRecord,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyAddOutcome>;
    /// The keys of an account, or of all, in the order in which they were made.
    async fn key_list(
        &self,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<KeyRecord>>;
    /// The newest keys of an account that open something, whatever has ended before or since.
    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>>;
    /// Revokes one key, or all with a name, for ever.
    async fn key_revoke(
        &self,
        revocation: &KeyRevocation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRevokeOutcome>;
    /// Adds a key like a live one, and lets that one end.
    async fn key_rotate(
        &self,
        rotation: &KeyRotation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRotateOutcome>;
    /// Notes when keys were last used. An identifier that is not there is passed over.
    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()>;

    /// Records a round before anyone is asked. PostgreSQL keeps the length of the lease
    /// (`lease_until` − `opened_at`) and lets it begin now by its own clock.
    /// The run that it is and the credit that it holds are recorded with it.
    async fn round_open(
        &self,
        round: &OpenRound,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RoundOpenOutcome>;
    /// Ends a round with its replicas, its decision and its entry, if it is open and the lease
    /// token of `round` still holds; otherwise nothing changes. Its run ends with it, and of the
    /// credit that it holds the cost is captured and the rest released. What the execution of a
    /// step costs is captured once: where another of its rounds captured it, this one costs nothing.
    async fn round_close(
        &self,
        round: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<RoundCloseOutcome>;
    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>>;
    /// The first round of a step's execution in which somebody answered.
    async fn round_of_task_call(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>>;
    /// The account's rounds, newest first. Shares are kept to four places here.
    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>>;
    /// Takes over open rounds that their nodes left behind; a late close by such a node is lost.
    /// A round that does not read back is logged and stays open, and hinders no other.
    async fn round_take_over(&self, claim: &RoundTakeover) -> Result<Vec<OpenRound>>;

    /// Asks the node of a round to call it off; `false` when the round is not open.
    async fn round_cancel(&self, account: &AccountId, id: &RoundId, at: Timestamp) -> Result<bool>;
    /// The open rounds of a node that somebody called off.
    async fn rounds_cancelled(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>>;

    /// What was done under an idempotency key. Each write that takes an `IdempotencyRecord` notes it in its own
    /// transaction, and does nothing when the key is noted already.
    async fn idempotency_get(&self, account: &AccountId, key: &str) -> Result<Option<PriorWrite>>;
    /// Replaces the answer that is kept under a key.
    async fn idempotency_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()>;

    /// Adds a version: to the verifier with the name, or as the first of a new one.
    async fn verifier_deploy(
        &self,
        deploy: &NewVerifierVersion,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<DeployOutcome>;
    /// Deactivates a verifier for ever. One that is revoked already stays so.
    async fn verifier_revoke(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome>;
    /// Erases a verifier, also a revoked one: its versions, measurements, runs and known verdicts,
    /// and what judges said in the rounds of its runs. The decision entries of those rounds stay:
    /// they hold digests only.
    async fn verifier_delete(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome>;

    /// Keeps a measurement of a version.
    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()>;
    /// The newest own measurement of a version for one purpose, with its cases.
    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: VerifierRunPurpose,
    ) -> Result<Option<Measurement>>;
    /// The newest own measurement of a version for each purpose, and its newest tests with other
    /// judges, without their cases.
    async fn measurements(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
    ) -> Result<Vec<Measurement>>;

    async fn verifier_run_get(&self, account: &AccountId, id: &str) -> Result<Option<VerifierRun>>;
    /// The account's runs, newest first.
    async fn verifier_run_list(
        &self,
        account: &AccountId,
        filter: &VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>>;

    /// What a judge said before to the same question, if that was not before `since`.
    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<CachedVerdict>>;
    /// Keeps what a judge said, for the verifier that it belongs to.
    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &CachedVerdict,
    ) -> Result<()>;
    /// Removes known verdicts that are too old or too many, the oldest first, and returns how many
    /// went. Two nodes that do it at the same time may remove some more.
    async fn verdicts_prune(&self, pruning: &VerdictPruning) -> Result<u64>;

    /// Gives credit to an account, or takes some back: no more than is available and not needed for
    /// what rounds under way may cost beyond their holds.
    async fn credit_grant(
        &self,
        grant: &CreditGrant,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<CreditGrantOutcome>;
    /// Suspends an account, or lifts it.
    async fn account_suspend(
        &self,
        suspension: &Suspension,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SuspensionOutcome>;
    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>>;
    /// Accounts by identifier.
    async fn account_list(&self, page: &ListPage) -> Result<Vec<AccountState>>;
    async fn credit_spent(&self, account: &AccountId, since: Timestamp) -> Result<Spending>;
    /// The lines of an account's ledger, newest first; `before` starts behind a line.
    async fn credit_transfers(
        &self,
        account: &AccountId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>>;
    /// What is wrong with the ledger: balances that are not the sum of their lines, holds without
    /// an open round, open rounds without their hold, several calls that the credit does not cover.
    /// Empty when nothing is.
    async fn credit_check(&self) -> Result<Vec<String>>;

    /// The canonical decision entry with this digest.
    async fn entry_get(&self, account: &AccountId, receipt_id: &str) -> Result<Option<String>>;

    /// Looks at the database as a whole, which may take minutes.
    async fn check(&self) -> Result<StoreCheckup>;
    /// The oldest of the newest `count` rounds that have ended; `None` when there are fewer.
    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>>;
    /// Rounds of all accounts that have ended.
    async fn ended_page(&self, page: &EndedRoundsQuery) -> Result<Vec<(AccountId, RoundId)>>;
    /// All that is stored of a round that has ended. What does not read back is `Corrupt`.
    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<RoundRecord>>;

    /// Whether the store can be written to.
    async fn ping(&self) -> Result<()>;
    /// How much there is to do at this moment.
    fn load(&self) -> StoreLoad {
        StoreLoad::default()
    }
    /// Finishes what is queued and lets go of the database. Later calls are `Unavailable`.
    async fn close(&self);
}

/// The parts of the store that are written once for both databases.
pub trait SharingStore:
    PeopleOps
    + TeamOps
    + InvitationOps
    + LoginOps
    + ShareOps
    + TemplateOps
    + VerifierOps
    + WorkflowOps
    + JudgeCallOps
{
}

impl<
    S: PeopleOps
        + TeamOps
        + InvitationOps
        + LoginOps
        + ShareOps
        + TemplateOps
        + VerifierOps
        + WorkflowOps
        + JudgeCallOps,
> SharingStore for S
{
}

/// The parts of the store that keep tasks, runs, and what is remembered of them.
pub trait TaskStore:
    TaskOps + AgentRunOps + KnowledgeOps + EvidenceOps + AgentEventOps + OpenWorkOps
{
}

impl<S: TaskOps + AgentRunOps + KnowledgeOps + EvidenceOps + AgentEventOps + OpenWorkOps> TaskStore
    for S
{
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorAddOutcome {
    Added,
    ExecutorExists,
    SessionExists,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAddOutcome {
    Added,
    Exists,
    ExecutorUnknown,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// With the sessions that went along.
    Removed(Vec<String>),
    Unknown,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundOpenOutcome {
    Opened,
    /// It was opened, and holds what the account has, which is less than was asked for.
    WithLess {
        held_micros: i64,
    },
    /// The credit of the account is enough for one call at a time, and another is under way;
    /// nothing changed.
    InTurn,
    /// Its key was used before; nothing changed.
    Repeated,
    /// The account does not have what the round would hold; nothing changed.
    Overdrawn {
        available_micros: i64,
    },
    /// The verifier whose run it is was deleted meanwhile; nothing changed.
    VerifierGone,
    /// What may be spent in a day without a key is spent or reserved; nothing changed.
    DaySpent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundCloseOutcome {
    Closed,
    /// It has ended, and costs nothing: another round of the same execution was paid for.
    PaidBefore,
    /// Someone else ended the round or took it over.
    Lost,
}

/// Which rounds to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundFilter {
    pub kind: Option<JobKind>,
    pub outcome: Option<Outcome>,
    pub state: Option<RoundStatus>,
    pub limit: u32,
    /// Starts behind this round, towards older ones.
    pub before: Option<RoundId>,
    /// Ends before this round.
    pub after: Option<RoundId>,
}

/// Who takes over which rounds, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundTakeover {
    pub node: NodeId,
    /// Fences out the former holders.
    pub lease_token: u64,
    pub lease_until: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
    pub orphans: TakeoverScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeoverScope {
    /// Rounds whose lease is over.
    LeaseOver,
    /// Every open round of another node. Only for SQLite under the exclusive lock, where no other
    /// node can be alive; PostgreSQL takes it as `LeaseOver`.
    All,
}

/// Whether a SQLite file has nothing in it, found without writing to it. One that cannot be read
/// is not known to be blank.
pub fn is_blank(path: &Path) -> bool {
    // SQLite would remove the log that belongs to an empty file, and that may be all there is left.
    let is_empty = path.metadata().is_ok_and(|found| found.len() == 0);
    is_empty || crate::db::sqlite::setup::is_blank(path).unwrap_or(false)
}

/// Where the store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// Gone with the process; for tests and demonstrations.
    Memory,
    File(PathBuf),
    /// `migrate_url` logs in with the role that owns the tables; without one, they must be there.
    Postgres {
        url: String,
        migrate_url: Option<String>,
    },
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            // The addresses may hold passwords.
            Self::Postgres { .. } => f.debug_struct("Postgres").finish_non_exhaustive(),
        }
    }
}

/// Opens the store, makes or migrates its tables, and checks that this program can serve them.
pub async fn open(location: &StoreLocation) -> Result<Arc<dyn Store>> {
    Ok(match location {
        StoreLocation::Memory => Arc::new(Sqlite::in_memory()?),
        StoreLocation::File(path) => Arc::new(Sqlite::open(path).await?),
        StoreLocation::Postgres { url, migrate_url: None } => {
            Arc::new(Postgres::connect(url).await?)
        }
        StoreLocation::Postgres { url, migrate_url: Some(migrate_url) } => {
            let role = crate::db::postgres::role_of(url)?;
            Postgres::migrate(migrate_url, Some(&role)).await?;
            Arc::new(Postgres::connect(url).await?)
        }
    })
}

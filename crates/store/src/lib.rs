//! The one storage seam of Jurat: a trait of operations, kept by SQLite or by PostgreSQL.

mod agent_events;
pub mod backup;
mod both;
mod checkup;
mod credit;
mod error;
mod evidence;
mod invitations;
mod judge_calls;
mod key;
mod knowledge;
mod load;
mod logins;
mod migrations;
mod once;
mod open_work;
mod people;
#[cfg(test)]
mod plans;
mod postgres;
mod registry;
mod rows;
mod search;
mod shares;
mod sql;
mod sqlite;
mod storage;
mod task_runs;
mod tasks;
mod teams;
mod templates;
mod verifiers;
mod workflows;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use jurat_core::{
    consensus::Outcome,
    executor::{Executor, Probe},
    id::{AccountId, NodeId, RoundId},
    job::Kind,
    ledger::{AccountState, Transfer},
    round::{Closing, OpenRound, Round, RoundSummary, State},
    run::{Purpose, Run},
    session::{Pool, Session},
    time::Timestamp,
};

pub use self::{
    agent_events::{
        AgentEvent, AgentEventAdd, AgentEventAdded, AgentEventFilter, AgentEventGivenUp,
        AgentEventOutcome, AgentEventPruning, AgentEventTake, AgentEvents, NewAgentEvent, NotHeld,
        TooManyPending,
    },
    both::{Behalf, Written},
    checkup::{Checkup, EndedPage, Record},
    credit::{Grant, Granted, Spending, Suspended, Suspension},
    error::{StoreError, StoreErrorKind},
    evidence::{EvidenceBlob, EvidenceCache, EvidenceFound, EvidencePruning},
    invitations::{
        AnswerRefused, InvitationAnswer, InvitationFilter, InvitationRefused, Invitations,
    },
    judge_calls::{Correction, HistoryOf, JudgeCalls, JudgeCallsSent, JudgmentUsed, LeaseLost},
    key::{KeyAdded, KeyRecord, LiveKeys, Revocation, Revoked, Rotated, Rotation, Succession},
    knowledge::{
        Alike, Deprecation, Knowledge, KnowledgeAsked, KnowledgeDigests, KnowledgeHits,
        KnowledgeKey, KnowledgeOf, KnowledgePage, KnowledgePosition, KnowledgeWanted, Known,
        Learned, Remembered,
    },
    load::{Connections, Load},
    logins::{
        CodePut, CodeRefused, CodeTry, CodeUse, DeviceAnswer, DeviceAsked, DevicePoll,
        DeviceRefused, DeviceUse, Entered, Logins, NewCode, NewDevice, Waited,
    },
    once::{DoneBefore, Once, OnceAnswer, SavedAnswer},
    open_work::{OpenCounts, OpenWork, Waiting},
    people::{HandleClaim, HandleRefused, People},
    postgres::Postgres,
    registry::{
        Deploy, Deployed, Deployment, KnownVerdict, Measurement, Pruning, Removal, RunFilter,
        VerifierGone, VersionSummary,
    },
    shares::{ShareAnswer, ShareQuery, ShareRefused, ShareUse, Shares},
    sqlite::Sqlite,
    storage::{
        NotErased, PruneOrder, Pruned, RoundErasing, RoundKey, RoundKeys, Storage, StorageFull,
        Stored,
    },
    task_runs::{
        EventsFrom, NewStep, RunAdded, RunEventsAsked, RunKey, RunRefused, RunState, RunSubmit,
        RunSubmitRefused, RunWrite, StepRenewal, StepTake, StoredRun, StoredRunEvent, TakenStep,
        TaskRunFilter, TaskRuns,
    },
    tasks::{
        AppendRefused, AppendedWith, Position, SubmitRefused, TaskAppend, TaskBallot,
        TaskCandidate, TaskEvent, TaskEventsAsked, TaskFilter, TaskKey, TaskRecord, TaskSubmit,
        TaskSubmitted, TaskSummary, TaskTake, TaskTaken, Tasks,
    },
    teams::{MemberRemoval, NewTeam, TeamAsked, TeamInvite, TeamRefused, Teams, TeamsWanted},
    templates::{
        Change, ChangeRefused, Changed, Fork, ForkNotes, ForkRefused, Forked, ForkedVerifier,
        PairAsked, Publish, PublishFile, PublishRefused, Publishable, Published, TemplateAsked,
        TemplateChange, TemplateFileAsked, TemplateFilter, TemplateOffer, TemplateOfferRefused,
        TemplateWords, Templates,
    },
    verifiers::{
        ReachedVerifier, ReachedVersion, SharedThrough, VerifierAsked, VerifierQuery, Verifiers,
        VersionQuery,
    },
    workflows::{
        FileRead, FilesAsked, FilesFound, FilesPatch, Found, Giving, GrantOrder, Granting, Left,
        Lineage, OfferRefused, Offered, RevokeOrder, Revoking, SaveTarget, Saved, Upstream,
        WorkflowAsked, WorkflowChange, WorkflowOffer, WorkflowQuery, WorkflowRefused, WorkflowSave,
        WorkflowView, WorkflowWords, Workflows, WrongField,
    },
};

type Result<T, E = StoreError> = std::result::Result<T, E>;

/// What Jurat remembers. Each method is one transaction, and a write that returns `Ok` is on disk.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// What people do with each other: accounts, workflows, templates.
    fn sharing(&self) -> &dyn Sharing;

    /// Tasks and what belongs to them.
    fn tasks(&self) -> &dyn TaskStore;

    /// How much accounts have stored, and for how long.
    fn storage(&self) -> &dyn Storage;

    /// Adds an executor and, where given, a session to it: both or nothing.
    async fn executor_add(
        &self,
        executor: &Executor,
        session: Option<&Session>,
        once: Option<&Once>,
    ) -> Result<Added>;
    async fn executor_get(&self, name: &str) -> Result<Option<Executor>>;
    /// Executors by name.
    async fn executor_list(&self, page: &Page) -> Result<Vec<Executor>>;
    /// Keeps what the last probe found; `false` when there is no such executor.
    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool>;
    /// Removes an executor and its sessions.
    async fn executor_remove(&self, name: &str, once: Option<&Once>) -> Result<Removed>;

    async fn session_add(&self, session: &Session, once: Option<&Once>) -> Result<SessionAdded>;
    async fn session_get(&self, id: &str) -> Result<Option<Session>>;
    /// Sessions by identifier.
    async fn session_list(&self, page: &Page) -> Result<Vec<Session>>;
    async fn session_remove(&self, id: &str, once: Option<&Once>) -> Result<Removed>;

    /// All executors and sessions, at one moment.
    async fn pool(&self) -> Result<Pool>;
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
    async fn key_add(&self, key: &KeyRecord, once: Option<&Once>) -> Result<KeyAdded>;
    /// The keys of an account, or of all, in the order in which they were made.
    async fn key_list(&self, account: Option<&AccountId>, page: &Page) -> Result<Vec<KeyRecord>>;
    /// The newest keys of an account that open something, whatever has ended before or since.
    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>>;
    /// Revokes one key, or all with a name, for ever.
    async fn key_revoke(&self, revocation: &Revocation, once: Option<&Once>) -> Result<Revoked>;
    /// Adds a key like a live one, and lets that one end.
    async fn key_rotate(&self, rotation: &Rotation, once: Option<&Once>) -> Result<Rotated>;
    /// Notes when keys were last used. An identifier that is not there is passed over.
    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()>;

    /// Records a round before anyone is asked. PostgreSQL keeps the length of the lease
    /// (`lease_until` − `opened_at`) and lets it begin now by its own clock.
    /// The run that it is and the credit that it holds are recorded with it.
    async fn round_open(&self, round: &OpenRound, once: Option<&Once>) -> Result<Opened>;
    /// Ends a round with its replicas, its decision and its entry, if it is open and the lease
    /// token of `round` still holds; otherwise nothing changes. Its run ends with it, and of the
    /// credit that it holds the cost is captured and the rest released. What the execution of a
    /// step costs is captured once: where another of its rounds captured it, this one costs nothing.
    async fn round_close(&self, round: &OpenRound, closing: &Closing) -> Result<Closed>;
    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>>;
    /// The first round of a step's execution in which somebody answered.
    async fn round_of_step(&self, account: &AccountId, execution_id: &str)
    -> Result<Option<Round>>;
    /// The account's rounds, newest first. Shares are kept to four places here.
    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>>;
    /// Takes over open rounds that their nodes left behind; a late close by such a node is lost.
    /// A round that does not read back is logged and stays open, and hinders no other.
    async fn round_claim(&self, claim: &Claim) -> Result<Vec<OpenRound>>;

    /// Asks the node of a round to call it off; `false` when the round is not open.
    async fn round_call_off(
        &self,
        account: &AccountId,
        id: &RoundId,
        at: Timestamp,
    ) -> Result<bool>;
    /// The open rounds of a node that somebody called off.
    async fn rounds_called_off(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>>;

    /// What was done under an idempotency key. Each write that takes a `Once` notes it in its own
    /// transaction, and does nothing when the key is noted already.
    async fn once_get(&self, account: &AccountId, key: &str) -> Result<Option<DoneBefore>>;
    /// Replaces the answer that is kept under a key.
    async fn once_answer(&self, account: &AccountId, key: &str, answer: &SavedAnswer)
    -> Result<()>;

    /// Adds a version: to the verifier with the name, or as the first of a new one.
    async fn verifier_deploy(&self, deploy: &Deploy, once: Option<&Once>) -> Result<Deployed>;
    /// Deactivates a verifier for ever. One that is revoked already stays so.
    async fn verifier_revoke(&self, removal: &Removal, once: Option<&Once>)
    -> Result<VerifierGone>;
    /// Erases a verifier, also a revoked one: its versions, measurements, runs and known verdicts,
    /// and what judges said in the rounds of its runs. The decision entries of those rounds stay:
    /// they hold digests only.
    async fn verifier_delete(&self, removal: &Removal, once: Option<&Once>)
    -> Result<VerifierGone>;

    /// Keeps a measurement of a version.
    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()>;
    /// The newest own measurement of a version for one purpose, with its cases.
    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: Purpose,
    ) -> Result<Option<Measurement>>;
    /// The newest own measurement of a version for each purpose, and its newest tests with other
    /// judges, without their cases.
    async fn measurements(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
    ) -> Result<Vec<Measurement>>;

    async fn run_get(&self, account: &AccountId, id: &str) -> Result<Option<Run>>;
    /// The account's runs, newest first.
    async fn run_list(&self, account: &AccountId, filter: &RunFilter) -> Result<Vec<Run>>;

    /// What a judge said before to the same question, if that was not before `since`.
    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<KnownVerdict>>;
    /// Keeps what a judge said, for the verifier that it belongs to.
    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &KnownVerdict,
    ) -> Result<()>;
    /// Removes known verdicts that are too old or too many, the oldest first, and returns how many
    /// went. Two nodes that do it at the same time may remove some more.
    async fn verdicts_prune(&self, pruning: &Pruning) -> Result<u64>;

    /// Gives credit to an account, or takes some back: no more than is available and not needed for
    /// what rounds under way may cost beyond their holds.
    async fn credit_grant(&self, grant: &Grant, once: Option<&Once>) -> Result<Granted>;
    /// Suspends an account, or lifts it.
    async fn account_suspend(
        &self,
        suspension: &Suspension,
        once: Option<&Once>,
    ) -> Result<Suspended>;
    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>>;
    /// Accounts by identifier.
    async fn account_list(&self, page: &Page) -> Result<Vec<AccountState>>;
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
    async fn check(&self) -> Result<Checkup>;
    /// The oldest of the newest `count` rounds that have ended; `None` when there are fewer.
    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>>;
    /// Rounds of all accounts that have ended.
    async fn ended_page(&self, page: &EndedPage) -> Result<Vec<(AccountId, RoundId)>>;
    /// All that is stored of a round that has ended. What does not read back is `Corrupt`.
    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Record>>;

    /// Whether the store can be written to.
    async fn ping(&self) -> Result<()>;
    /// How much there is to do at this moment.
    fn load(&self) -> Load {
        Load::default()
    }
    /// Finishes what is queued and lets go of the database. Later calls are `Unavailable`.
    async fn close(&self);
}

/// The parts of the store that are written once for both databases.
pub trait Sharing:
    People + Teams + Invitations + Logins + Shares + Templates + Verifiers + Workflows + JudgeCalls
{
}

impl<
    S: People + Teams + Invitations + Logins + Shares + Templates + Verifiers + Workflows + JudgeCalls,
> Sharing for S
{
}

/// The parts of the store that keep tasks, runs, and what is remembered of them.
pub trait TaskStore:
    Tasks + TaskRuns + Remembered + EvidenceCache + AgentEvents + OpenWork
{
}

impl<S: Tasks + TaskRuns + Remembered + EvidenceCache + AgentEvents + OpenWork> TaskStore for S {}

/// A part of a list in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Starts behind this name or identifier.
    pub after: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::enum_variant_names,
    reason = "`Added::Added` says what happened, as `Closed::Closed` does"
)]
pub enum Added {
    Added,
    ExecutorExists,
    SessionExists,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAdded {
    Added,
    Exists,
    ExecutorUnknown,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::enum_variant_names,
    reason = "`Removed::Removed` says what happened, as `Closed::Closed` does"
)]
pub enum Removed {
    /// With the sessions that went along.
    Removed(Vec<String>),
    Unknown,
    /// Its key was used before; nothing changed.
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::enum_variant_names,
    reason = "`Opened::Opened` says what happened, as `Closed::Closed` does"
)]
pub enum Opened {
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
#[expect(clippy::enum_variant_names, reason = "`Closed::Closed` says what happened")]
pub enum Closed {
    Closed,
    /// It has ended, and costs nothing: another round of the same execution was paid for.
    PaidBefore,
    /// Someone else ended the round or took it over.
    Lost,
}

/// Which rounds to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoundFilter {
    pub kind: Option<Kind>,
    pub outcome: Option<Outcome>,
    pub state: Option<State>,
    pub limit: u32,
    /// Starts behind this round, towards older ones.
    pub before: Option<RoundId>,
    /// Ends before this round.
    pub after: Option<RoundId>,
}

/// Who takes over which rounds, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub node: NodeId,
    /// Fences out the former holders.
    pub lease_token: u64,
    pub lease_until: Timestamp,
    pub now: Timestamp,
    pub limit: u32,
    pub orphans: Orphans,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphans {
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
    is_empty || sqlite::setup::is_blank(path).unwrap_or(false)
}

/// Where the store is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// Gone with the process; for tests and demonstrations.
    Memory,
    File(PathBuf),
    /// `migrate_url` logs in with the role that owns the tables; without one, they must be there.
    Postgres {
        url: String,
        migrate_url: Option<String>,
    },
}

impl fmt::Debug for Location {
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
pub async fn open(location: &Location) -> Result<Arc<dyn Store>> {
    Ok(match location {
        Location::Memory => Arc::new(Sqlite::in_memory()?),
        Location::File(path) => Arc::new(Sqlite::open(path).await?),
        Location::Postgres { url, migrate_url: None } => Arc::new(Postgres::connect(url).await?),
        Location::Postgres { url, migrate_url: Some(migrate_url) } => {
            let role = postgres::role_of(url)?;
            Postgres::migrate(migrate_url, Some(&role)).await?;
            Arc::new(Postgres::connect(url).await?)
        }
    })
}

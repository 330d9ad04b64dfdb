//! A store in front of a real one that fails at the worst moment.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
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
    round::{OpenRound, Round, RoundClosing, RoundSummary},
    time::Timestamp,
    verifier::{
        registry::Measurement,
        run::{VerifierRun, VerifierRunPurpose},
    },
};
use jurat_store::{
    CachedVerdict, CreditGrant, CreditGrantOutcome, DeployOutcome, EndedRoundsQuery,
    ExecutorAddOutcome, IdempotencyRecord, KeyAddOutcome, KeyRecord, KeyRevocation,
    KeyRevokeOutcome, KeyRotateOutcome, KeyRotation, LiveKeys, NewVerifierVersion, PriorWrite,
    RemoveOutcome, RoundCloseOutcome, RoundFilter, RoundOpenOutcome, RoundRecord, RoundTakeover,
    SessionAddOutcome, SharingStore, Spending, StorageOps, Store, StoreCheckup, StoreError,
    StoreErrorKind, StoreLocation, Suspension, SuspensionOutcome, TaskStore, VerdictPruning,
    VerifierRemoval, VerifierRemoveOutcome, VerifierRunFilter,
};
use tokio::sync::watch;

type Result<T> = std::result::Result<T, StoreError>;

/// What happens to a write that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// It does not happen.
    Refused,
    /// It happens, but its answer is lost.
    AnswerLost,
}

/// Fails a number of openings or closings of rounds, then works.
#[derive(Debug)]
pub struct UnreliableStore {
    inner: Arc<dyn Store>,
    fault: WriteFault,
    opens_left: AtomicU32,
    left: AtomicU32,
    /// A closed store, which answers for a part that is unavailable.
    closed: Arc<dyn Store>,
    tasks: Away,
    sharing: Away,
}

/// A part of the store that may be unavailable.
#[derive(Debug, Default)]
struct Away {
    is_now: AtomicBool,
    /// How many calls it missed meanwhile.
    missed: watch::Sender<u32>,
}

impl Away {
    async fn until(&self, questions: u32) {
        let before = *self.missed.borrow();
        self.is_now.store(true, Ordering::SeqCst);
        let mut missed = self.missed.subscribe();
        missed.wait_for(|count| before + questions <= *count).await.unwrap();
        self.is_now.store(false, Ordering::SeqCst);
    }

    /// Whether a call is missed.
    fn misses(&self) -> bool {
        let is_away = self.is_now.load(Ordering::SeqCst);
        if is_away {
            self.missed.send_modify(|count| *count += 1);
        }
        is_away
    }
}

impl UnreliableStore {
    pub async fn new(fault: WriteFault, times: u32) -> Arc<Self> {
        Self::with(fault, (0, times)).await
    }

    /// A store that fails openings.
    pub async fn at_open(fault: WriteFault, times: u32) -> Arc<Self> {
        Self::with(fault, (times, 0)).await
    }

    async fn with(fault: WriteFault, (opens, closes): (u32, u32)) -> Arc<Self> {
        let inner = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let closed = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        closed.close().await;
        Arc::new(Self {
            inner,
            fault,
            opens_left: AtomicU32::new(opens),
            left: AtomicU32::new(closes),
            closed,
            tasks: Away::default(),
            sharing: Away::default(),
        })
    }

    /// Makes tasks and runs unavailable until this many calls were missed.
    pub async fn without_tasks(&self, questions: u32) {
        self.tasks.until(questions).await;
    }

    /// Does the same for sharing and for the costs of judge calls.
    pub async fn without_sharing(&self, questions: u32) {
        self.sharing.until(questions).await;
    }
}

#[async_trait]
impl Store for UnreliableStore {
    fn sharing(&self) -> &dyn SharingStore {
        if self.sharing.misses() { self.closed.sharing() } else { self.inner.sharing() }
    }

    fn tasks(&self) -> &dyn TaskStore {
        if self.tasks.misses() { self.closed.tasks() } else { self.inner.tasks() }
    }

    fn storage(&self) -> &dyn StorageOps {
        self.inner.storage()
    }

    async fn round_close(
        &self,
        round: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<RoundCloseOutcome> {
        let is_due =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match (is_due, self.fault) {
            (Err(_), _) => self.inner.round_close(round, closing).await,
            (Ok(_), WriteFault::Refused) => Err(gone().await),
            (Ok(_), WriteFault::AnswerLost) => {
                self.inner.round_close(round, closing).await?;
                Err(gone().await)
            }
        }
    }

    async fn executor_add(
        &self,
        executor: &Executor,
        session: Option<&Session>,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<ExecutorAddOutcome> {
        self.inner.executor_add(executor, session, idempotency).await
    }

    async fn executor_get(&self, name: &str) -> Result<Option<Executor>> {
        self.inner.executor_get(name).await
    }

    async fn executor_list(&self, page: &ListPage) -> Result<Vec<Executor>> {
        self.inner.executor_list(page).await
    }

    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool> {
        self.inner.executor_probed(name, probe).await
    }

    async fn executor_remove(
        &self,
        name: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        self.inner.executor_remove(name, idempotency).await
    }

    async fn session_add(
        &self,
        session: &Session,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SessionAddOutcome> {
        self.inner.session_add(session, idempotency).await
    }

    async fn session_get(&self, id: &str) -> Result<Option<Session>> {
        self.inner.session_get(id).await
    }

    async fn session_list(&self, page: &ListPage) -> Result<Vec<Session>> {
        self.inner.session_list(page).await
    }

    async fn session_remove(
        &self,
        id: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        self.inner.session_remove(id, idempotency).await
    }

    async fn pool(&self) -> Result<SessionPool> {
        self.inner.pool().await
    }

    async fn pool_version(&self) -> Result<i64> {
        self.inner.pool_version().await
    }

    async fn account_ensure(&self, account: &AccountId, now: Timestamp) -> Result<()> {
        self.inner.account_ensure(account, now).await
    }

    async fn key_put(&self, key: &KeyRecord) -> Result<()> {
        self.inner.key_put(key).await
    }

    async fn key_get(&self, id: &str) -> Result<Option<KeyRecord>> {
        self.inner.key_get(id).await
    }

    async fn key_add(
        &self,
        key: &KeyRecord,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyAddOutcome> {
        self.inner.key_add(key, idempotency).await
    }

    async fn key_list(
        &self,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<KeyRecord>> {
        self.inner.key_list(account, page).await
    }

    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
        self.inner.key_live(wanted).await
    }

    async fn key_revoke(
        &self,
        revocation: &KeyRevocation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRevokeOutcome> {
        self.inner.key_revoke(revocation, idempotency).await
    }

    async fn key_rotate(
        &self,
        rotation: &KeyRotation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRotateOutcome> {
        self.inner.key_rotate(rotation, idempotency).await
    }

    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
        self.inner.key_used(uses).await
    }

    async fn round_open(
        &self,
        round: &OpenRound,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RoundOpenOutcome> {
        let is_due =
            self.opens_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        match (is_due, self.fault) {
            (Err(_), _) => self.inner.round_open(round, idempotency).await,
            (Ok(_), WriteFault::Refused) => Err(gone().await),
            (Ok(_), WriteFault::AnswerLost) => {
                self.inner.round_open(round, idempotency).await?;
                Err(gone().await)
            }
        }
    }

    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
        self.inner.round_get(account, id).await
    }

    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>> {
        self.inner.round_list(account, filter).await
    }

    async fn round_take_over(&self, claim: &RoundTakeover) -> Result<Vec<OpenRound>> {
        self.inner.round_take_over(claim).await
    }

    async fn round_of_task_call(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>> {
        self.inner.round_of_task_call(account, execution_id).await
    }

    async fn round_cancel(&self, account: &AccountId, id: &RoundId, at: Timestamp) -> Result<bool> {
        self.inner.round_cancel(account, id, at).await
    }

    async fn rounds_cancelled(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
        self.inner.rounds_cancelled(node).await
    }

    async fn idempotency_get(&self, account: &AccountId, key: &str) -> Result<Option<PriorWrite>> {
        self.inner.idempotency_get(account, key).await
    }

    async fn idempotency_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()> {
        self.inner.idempotency_answer(account, key, answer).await
    }

    async fn verifier_deploy(
        &self,
        deploy: &NewVerifierVersion,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<DeployOutcome> {
        self.inner.verifier_deploy(deploy, idempotency).await
    }

    async fn verifier_revoke(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        self.inner.verifier_revoke(removal, idempotency).await
    }

    async fn verifier_delete(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        self.inner.verifier_delete(removal, idempotency).await
    }

    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()> {
        self.inner.measurement_add(account, measurement).await
    }

    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: VerifierRunPurpose,
    ) -> Result<Option<Measurement>> {
        self.inner.measurement_get(account, verifier_id, version, purpose).await
    }

    async fn measurements(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
    ) -> Result<Vec<Measurement>> {
        self.inner.measurements(account, verifier_id, version).await
    }

    async fn verifier_run_get(&self, account: &AccountId, id: &str) -> Result<Option<VerifierRun>> {
        self.inner.verifier_run_get(account, id).await
    }

    async fn verifier_run_list(
        &self,
        account: &AccountId,
        filter: &VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>> {
        self.inner.verifier_run_list(account, filter).await
    }

    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<CachedVerdict>> {
        self.inner.verdict_get(account, digest, since).await
    }

    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &CachedVerdict,
    ) -> Result<()> {
        self.inner.verdict_put(account, verifier_id, verdict).await
    }

    async fn verdicts_prune(&self, pruning: &VerdictPruning) -> Result<u64> {
        self.inner.verdicts_prune(pruning).await
    }

    async fn credit_grant(
        &self,
        grant: &CreditGrant,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<CreditGrantOutcome> {
        self.inner.credit_grant(grant, idempotency).await
    }

    async fn account_suspend(
        &self,
        suspension: &Suspension,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SuspensionOutcome> {
        self.inner.account_suspend(suspension, idempotency).await
    }

    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>> {
        self.inner.account_get(account).await
    }

    async fn account_list(&self, page: &ListPage) -> Result<Vec<AccountState>> {
        self.inner.account_list(page).await
    }

    async fn credit_spent(&self, account: &AccountId, since: Timestamp) -> Result<Spending> {
        self.inner.credit_spent(account, since).await
    }

    async fn credit_transfers(
        &self,
        account: &AccountId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>> {
        self.inner.credit_transfers(account, before, limit).await
    }

    async fn credit_check(&self) -> Result<Vec<String>> {
        self.inner.credit_check().await
    }

    async fn entry_get(&self, account: &AccountId, receipt_id: &str) -> Result<Option<String>> {
        self.inner.entry_get(account, receipt_id).await
    }

    async fn check(&self) -> Result<StoreCheckup> {
        self.inner.check().await
    }

    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>> {
        self.inner.ended_since(count).await
    }

    async fn ended_page(&self, page: &EndedRoundsQuery) -> Result<Vec<(AccountId, RoundId)>> {
        self.inner.ended_page(page).await
    }

    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<RoundRecord>> {
        self.inner.record_get(account, id).await
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// The error of a real store that is closed.
async fn gone() -> StoreError {
    let closed = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    closed.close().await;
    let error = closed.ping().await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    error
}

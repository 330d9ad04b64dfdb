//! The store in one SQLite file, or in memory. One thread writes, a few connections read.

mod checkup;
mod idempotency;
mod installation;
mod keys;
mod ledger;
mod readers;
mod registry;
mod rounds;
pub(crate) mod setup;
mod verifier_runs;
mod writer;

use std::{collections::BTreeMap, path::Path};

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
use rusqlite::{Connection, ErrorCode, Params, Row};

use self::{readers::SqliteReaders, writer::SqliteWriter};
use super::rows::{
    DbRow,
    idempotency::IdempotencyRow,
    installation::{ExecutorRow, SessionRow, probe_text},
    keys::KeyRow,
    registry::DeployRow,
    rounds::{ClosingRow, RoundRow},
};
use crate::{
    CachedVerdict, CreditGrant, CreditGrantOutcome, DeployOutcome, EndedRoundsQuery,
    ExecutorAddOutcome, IdempotencyRecord, KeyAddOutcome, KeyRecord, KeyRevocation,
    KeyRevokeOutcome, KeyRotateOutcome, KeyRotation, LiveKeys, NewVerifierVersion, PriorWrite,
    RemoveOutcome, Result, RoundCloseOutcome, RoundFilter, RoundOpenOutcome, RoundRecord,
    RoundTakeover, SessionAddOutcome, SharingStore, Spending, StorageOps, Store, StoreCheckup,
    StoreError, StoreLoad, Suspension, SuspensionOutcome, TaskStore, VerdictPruning,
    VerifierRemoval, VerifierRemoveOutcome, VerifierRunFilter,
};

#[derive(Debug)]
pub struct Sqlite {
    writer: SqliteWriter,
    /// `None` in memory: there the writer's connection is the only one that has the tables.
    readers: Option<SqliteReaders>,
}

impl Sqlite {
    /// Opens the file, makes it with mode 0600 if it is not there, and migrates it.
    pub async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let writing = setup::open_file(&path)?;
            let readers = SqliteReaders::open(&path)?;
            Ok(Self { writer: SqliteWriter::start(writing)?, readers: Some(readers) })
        });
        opening.await.map_err(StoreError::unavailable)?
    }

    /// A store that is gone when it is dropped.
    pub fn in_memory() -> Result<Self> {
        Ok(Self { writer: SqliteWriter::start(setup::open_memory()?)?, readers: None })
    }

    async fn write<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.writer.write(work).await
    }

    /// Does the work, and undoes it unless its result is to be kept.
    pub(crate) async fn write_kept<T, W>(&self, work: W, is_kept: fn(&T) -> bool) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.writer.write_kept(work, is_kept).await
    }

    pub(crate) async fn read<T, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        match &self.readers {
            Some(readers) => readers.read(work).await,
            None => self.writer.write(work).await,
        }
    }
}

#[async_trait]
impl Store for Sqlite {
    fn sharing(&self) -> &dyn SharingStore {
        self
    }

    fn tasks(&self) -> &dyn TaskStore {
        self
    }

    fn storage(&self) -> &dyn StorageOps {
        self
    }

    async fn executor_add(
        &self,
        executor: &Executor,
        session: Option<&Session>,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<ExecutorAddOutcome> {
        let executor = ExecutorRow::new(executor)?;
        let session = session.map(SessionRow::new).transpose()?;
        let idempotency = idempotency.map(IdempotencyRow::new);
        self.write(move |tx| {
            installation::executor_add(tx, &executor, session.as_ref(), idempotency.as_ref())
        })
        .await
    }

    async fn executor_get(&self, name: &str) -> Result<Option<Executor>> {
        let name = name.to_owned();
        self.read(move |tx| installation::executor_get(tx, &name)).await
    }

    async fn executor_list(&self, page: &ListPage) -> Result<Vec<Executor>> {
        let page = page.clone();
        self.read(move |tx| installation::executor_list(tx, &page)).await
    }

    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool> {
        let (name, probe) = (name.to_owned(), probe_text(probe)?);
        self.write(move |tx| installation::executor_probed(tx, &name, &probe)).await
    }

    async fn executor_remove(
        &self,
        name: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        let (name, idempotency) = (name.to_owned(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| installation::executor_remove(tx, &name, idempotency.as_ref())).await
    }

    async fn session_add(
        &self,
        session: &Session,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SessionAddOutcome> {
        let (session, idempotency) =
            (SessionRow::new(session)?, idempotency.map(IdempotencyRow::new));
        self.write(move |tx| installation::session_add(tx, &session, idempotency.as_ref())).await
    }

    async fn session_get(&self, id: &str) -> Result<Option<Session>> {
        let id = id.to_owned();
        self.read(move |tx| installation::session_get(tx, &id)).await
    }

    async fn session_list(&self, page: &ListPage) -> Result<Vec<Session>> {
        let page = page.clone();
        self.read(move |tx| installation::session_list(tx, &page)).await
    }

    async fn session_remove(
        &self,
        id: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        let (id, idempotency) = (id.to_owned(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| installation::session_remove(tx, &id, idempotency.as_ref())).await
    }

    async fn pool(&self) -> Result<SessionPool> {
        self.read(installation::pool).await
    }

    async fn pool_version(&self) -> Result<i64> {
        self.read(installation::pool_version).await
    }

    async fn account_ensure(&self, account: &AccountId, now: Timestamp) -> Result<()> {
        let account = account.clone();
        self.write(move |tx| keys::account_ensure(tx, &account, now)).await
    }

    async fn key_put(&self, key: &KeyRecord) -> Result<()> {
        let key = KeyRow::new(key)?;
        self.write(move |tx| keys::put(tx, &key)).await
    }

    async fn key_get(&self, id: &str) -> Result<Option<KeyRecord>> {
        let id = id.to_owned();
        self.read(move |tx| keys::get(tx, &id)).await
    }

    async fn key_add(
        &self,
        key: &KeyRecord,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyAddOutcome> {
        let (key, idempotency) = (KeyRow::new(key)?, idempotency.map(IdempotencyRow::new));
        self.write(move |tx| keys::add(tx, &key, idempotency.as_ref())).await
    }

    async fn key_list(
        &self,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<KeyRecord>> {
        let (account, page) = (account.cloned(), page.clone());
        self.read(move |tx| keys::list(tx, account.as_ref(), &page)).await
    }

    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
        let wanted = wanted.clone();
        self.read(move |tx| keys::live(tx, &wanted)).await
    }

    async fn key_revoke(
        &self,
        revocation: &KeyRevocation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRevokeOutcome> {
        let (revocation, idempotency) = (revocation.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| keys::revoke(tx, &revocation, idempotency.as_ref())).await
    }

    async fn key_rotate(
        &self,
        rotation: &KeyRotation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRotateOutcome> {
        let (rotation, idempotency) = (rotation.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| keys::rotate(tx, &rotation, idempotency.as_ref())).await
    }

    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
        let uses = uses.clone();
        self.write(move |tx| keys::used(tx, &uses)).await
    }

    async fn round_open(
        &self,
        round: &OpenRound,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RoundOpenOutcome> {
        let (row, idempotency) = (RoundRow::new(round)?, idempotency.map(IdempotencyRow::new));
        self.write(move |tx| rounds::open(tx, row, idempotency.as_ref())).await
    }

    async fn round_close(
        &self,
        round: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<RoundCloseOutcome> {
        let row = ClosingRow::new(round, closing)?;
        self.write(move |tx| rounds::close(tx, row)).await
    }

    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
        let (account, id) = (account.clone(), id.clone());
        self.read(move |tx| rounds::get(tx, &account, &id)).await
    }

    async fn round_of_task_call(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>> {
        let (account, execution_id) = (account.clone(), execution_id.to_owned());
        self.read(move |tx| rounds::of_task_call(tx, &account, &execution_id)).await
    }

    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>> {
        let (account, filter) = (account.clone(), filter.clone());
        self.read(move |tx| rounds::list(tx, &account, &filter)).await
    }

    async fn round_take_over(&self, claim: &RoundTakeover) -> Result<Vec<OpenRound>> {
        let claim = claim.clone();
        self.write(move |tx| rounds::take_over(tx, &claim)).await
    }

    async fn round_cancel(&self, account: &AccountId, id: &RoundId, at: Timestamp) -> Result<bool> {
        let (account, id) = (account.clone(), id.clone());
        self.write(move |tx| rounds::cancel(tx, &account, &id, at)).await
    }

    async fn rounds_cancelled(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
        let node = node.clone();
        self.read(move |tx| rounds::cancelled(tx, &node)).await
    }

    async fn idempotency_get(&self, account: &AccountId, key: &str) -> Result<Option<PriorWrite>> {
        let (account, key) = (account.clone(), key.to_owned());
        self.read(move |tx| idempotency::get(tx, &account, &key)).await
    }

    async fn idempotency_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()> {
        let (account, key, answer) = (account.clone(), key.to_owned(), answer.clone());
        self.write(move |tx| idempotency::answer(tx, &account, &key, &answer)).await
    }

    async fn verifier_deploy(
        &self,
        deploy: &NewVerifierVersion,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<DeployOutcome> {
        let (row, idempotency) = (DeployRow::new(deploy)?, idempotency.map(IdempotencyRow::new));
        self.write(move |tx| registry::deploy(tx, &row, idempotency.as_ref())).await
    }

    async fn verifier_revoke(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        let (removal, idempotency) = (removal.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| registry::revoke(tx, &removal, idempotency.as_ref())).await
    }

    async fn verifier_delete(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        let (removal, idempotency) = (removal.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| registry::delete(tx, &removal, idempotency.as_ref())).await
    }

    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()> {
        let (account, measurement) = (account.clone(), measurement.clone());
        self.write(move |tx| registry::measurement_add(tx, &account, &measurement)).await
    }

    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: VerifierRunPurpose,
    ) -> Result<Option<Measurement>> {
        let (account, id) = (account.clone(), verifier_id.to_owned());
        self.read(move |tx| registry::measurement_get(tx, &account, (&id, version), purpose)).await
    }

    async fn measurements(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
    ) -> Result<Vec<Measurement>> {
        let (account, id) = (account.clone(), verifier_id.to_owned());
        self.read(move |tx| registry::measurements(tx, &account, &id, version)).await
    }

    async fn verifier_run_get(&self, account: &AccountId, id: &str) -> Result<Option<VerifierRun>> {
        let (account, id) = (account.clone(), id.to_owned());
        self.read(move |tx| verifier_runs::get(tx, &account, &id)).await
    }

    async fn verifier_run_list(
        &self,
        account: &AccountId,
        filter: &VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>> {
        let (account, filter) = (account.clone(), filter.clone());
        self.read(move |tx| verifier_runs::list(tx, &account, &filter)).await
    }

    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<CachedVerdict>> {
        let (account, digest) = (account.clone(), digest.to_owned());
        self.read(move |tx| registry::verdict_get(tx, &account, &digest, since)).await
    }

    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &CachedVerdict,
    ) -> Result<()> {
        let (account, id, verdict) = (account.clone(), verifier_id.to_owned(), verdict.clone());
        self.write(move |tx| registry::verdict_put(tx, &account, &id, &verdict)).await
    }

    async fn verdicts_prune(&self, pruning: &VerdictPruning) -> Result<u64> {
        let pruning = *pruning;
        self.write(move |tx| registry::verdicts_prune(tx, pruning)).await
    }

    async fn credit_grant(
        &self,
        grant: &CreditGrant,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<CreditGrantOutcome> {
        let (grant, idempotency) = (grant.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| ledger::grant(tx, &grant, idempotency.as_ref())).await
    }

    async fn account_suspend(
        &self,
        suspension: &Suspension,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SuspensionOutcome> {
        let (suspension, idempotency) = (suspension.clone(), idempotency.map(IdempotencyRow::new));
        self.write(move |tx| ledger::suspend(tx, &suspension, idempotency.as_ref())).await
    }

    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>> {
        let account = account.clone();
        self.read(move |tx| ledger::account(tx, &account)).await
    }

    async fn account_list(&self, page: &ListPage) -> Result<Vec<AccountState>> {
        let page = page.clone();
        self.read(move |tx| ledger::accounts(tx, &page)).await
    }

    async fn credit_spent(&self, account: &AccountId, since: Timestamp) -> Result<Spending> {
        let account = account.clone();
        self.read(move |tx| ledger::spent(tx, &account, since)).await
    }

    async fn credit_transfers(
        &self,
        account: &AccountId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>> {
        let (account, before) = (account.clone(), before.map(str::to_owned));
        self.read(move |tx| ledger::transfers(tx, &account, before.as_deref(), limit)).await
    }

    async fn credit_check(&self) -> Result<Vec<String>> {
        self.read(ledger::check).await
    }

    async fn entry_get(&self, account: &AccountId, receipt_id: &str) -> Result<Option<String>> {
        let (account, receipt_id) = (account.clone(), receipt_id.to_owned());
        self.read(move |tx| rounds::entry(tx, &account, &receipt_id)).await
    }

    async fn check(&self) -> Result<StoreCheckup> {
        self.read(checkup::check).await
    }

    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>> {
        self.read(move |tx| checkup::ended_since(tx, count)).await
    }

    async fn ended_page(&self, page: &EndedRoundsQuery) -> Result<Vec<(AccountId, RoundId)>> {
        let page = page.clone();
        self.read(move |tx| checkup::ended_page(tx, &page)).await
    }

    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<RoundRecord>> {
        let (account, id) = (account.clone(), id.clone());
        self.read(move |tx| checkup::record(tx, &account, &id)).await
    }

    async fn ping(&self) -> Result<()> {
        // Through the writer, because a store that only reads is of no use.
        self.write(|tx| installation::pool_version(tx).map(drop)).await
    }

    fn load(&self) -> StoreLoad {
        self.writer.load()
    }

    async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        self.writer.close().await;
    }
}

impl DbRow for Row<'_> {
    fn text(
        &self,
        column: &str,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }

    fn number(
        &self,
        column: &str,
    ) -> Result<Option<i64>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }

    fn bytes(
        &self,
        column: &str,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.get(column)?)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) {
            Self::conflict(error)
        } else {
            Self::unavailable(error)
        }
    }
}

/// Runs a statement and returns how many rows it changed.
fn execute(tx: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    Ok(tx.prepare_cached(sql)?.execute(params)?)
}

fn first<T>(
    tx: &Connection,
    sql: &str,
    params: impl Params,
    read: fn(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    tx.prepare_cached(sql)?.query_and_then(params, read)?.next().transpose()
}

fn all<T>(
    tx: &Connection,
    sql: &str,
    params: impl Params,
    read: fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    tx.prepare_cached(sql)?.query_and_then(params, read)?.collect()
}

//! The store in one SQLite file, or in memory. One thread writes, a few connections read.

mod checkup;
mod installation;
mod keys;
mod ledger;
mod once;
mod readers;
mod registry;
mod rounds;
mod runs;
pub(crate) mod setup;
mod writer;

use std::{collections::BTreeMap, path::Path};

use async_trait::async_trait;
use jurat_core::{
    executor::{Executor, Probe},
    id::{AccountId, NodeId, RoundId},
    ledger::{AccountState, Transfer},
    round::{Closing, OpenRound, Round, RoundSummary},
    run::{Purpose, Run},
    session::{Pool, Session},
    time::Timestamp,
};
use rusqlite::{Connection, ErrorCode, Params, Row};

use self::{readers::Readers, writer::Writer};
use crate::{
    Added, Checkup, Claim, Closed, Deploy, Deployed, DoneBefore, EndedPage, Grant, Granted,
    KeyAdded, KeyRecord, KnownVerdict, LiveKeys, Load, Measurement, Once, Opened, Page, Pruning,
    Record, Removal, Removed, Result, Revocation, Revoked, Rotated, Rotation, RoundFilter,
    RunFilter, SavedAnswer, SessionAdded, Sharing, Spending, Storage, Store, StoreError, Suspended,
    Suspension, TaskStore, VerifierGone,
    rows::{
        Cells,
        installation::{ExecutorRow, SessionRow, probe_text},
        keys::KeyRow,
        once::OnceRow,
        registry::DeployRow,
        rounds::{ClosingRow, RoundRow},
    },
};

#[derive(Debug)]
pub struct Sqlite {
    writer: Writer,
    /// `None` in memory: there the writer's connection is the only one that has the tables.
    readers: Option<Readers>,
}

impl Sqlite {
    /// Opens the file, makes it with mode 0600 if it is not there, and migrates it.
    pub async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let opening = tokio::task::spawn_blocking(move || {
            let writing = setup::open_file(&path)?;
            let readers = Readers::open(&path)?;
            Ok(Self { writer: Writer::start(writing)?, readers: Some(readers) })
        });
        opening.await.map_err(StoreError::unavailable)?
    }

    /// A store that is gone when it is dropped.
    pub fn in_memory() -> Result<Self> {
        Ok(Self { writer: Writer::start(setup::open_memory()?)?, readers: None })
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
    fn sharing(&self) -> &dyn Sharing {
        self
    }

    fn tasks(&self) -> &dyn TaskStore {
        self
    }

    fn storage(&self) -> &dyn Storage {
        self
    }

    async fn executor_add(
        &self,
        executor: &Executor,
        session: Option<&Session>,
        once: Option<&Once>,
    ) -> Result<Added> {
        let executor = ExecutorRow::new(executor)?;
        let session = session.map(SessionRow::new).transpose()?;
        let once = once.map(OnceRow::new);
        self.write(move |tx| {
            installation::executor_add(tx, &executor, session.as_ref(), once.as_ref())
        })
        .await
    }

    async fn executor_get(&self, name: &str) -> Result<Option<Executor>> {
        let name = name.to_owned();
        self.read(move |tx| installation::executor_get(tx, &name)).await
    }

    async fn executor_list(&self, page: &Page) -> Result<Vec<Executor>> {
        let page = page.clone();
        self.read(move |tx| installation::executor_list(tx, &page)).await
    }

    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool> {
        let (name, probe) = (name.to_owned(), probe_text(probe)?);
        self.write(move |tx| installation::executor_probed(tx, &name, &probe)).await
    }

    async fn executor_remove(&self, name: &str, once: Option<&Once>) -> Result<Removed> {
        let (name, once) = (name.to_owned(), once.map(OnceRow::new));
        self.write(move |tx| installation::executor_remove(tx, &name, once.as_ref())).await
    }

    async fn session_add(&self, session: &Session, once: Option<&Once>) -> Result<SessionAdded> {
        let (session, once) = (SessionRow::new(session)?, once.map(OnceRow::new));
        self.write(move |tx| installation::session_add(tx, &session, once.as_ref())).await
    }

    async fn session_get(&self, id: &str) -> Result<Option<Session>> {
        let id = id.to_owned();
        self.read(move |tx| installation::session_get(tx, &id)).await
    }

    async fn session_list(&self, page: &Page) -> Result<Vec<Session>> {
        let page = page.clone();
        self.read(move |tx| installation::session_list(tx, &page)).await
    }

    async fn session_remove(&self, id: &str, once: Option<&Once>) -> Result<Removed> {
        let (id, once) = (id.to_owned(), once.map(OnceRow::new));
        self.write(move |tx| installation::session_remove(tx, &id, once.as_ref())).await
    }

    async fn pool(&self) -> Result<Pool> {
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

    async fn key_add(&self, key: &KeyRecord, once: Option<&Once>) -> Result<KeyAdded> {
        let (key, once) = (KeyRow::new(key)?, once.map(OnceRow::new));
        self.write(move |tx| keys::add(tx, &key, once.as_ref())).await
    }

    async fn key_list(&self, account: Option<&AccountId>, page: &Page) -> Result<Vec<KeyRecord>> {
        let (account, page) = (account.cloned(), page.clone());
        self.read(move |tx| keys::list(tx, account.as_ref(), &page)).await
    }

    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
        let wanted = wanted.clone();
        self.read(move |tx| keys::live(tx, &wanted)).await
    }

    async fn key_revoke(&self, revocation: &Revocation, once: Option<&Once>) -> Result<Revoked> {
        let (revocation, once) = (revocation.clone(), once.map(OnceRow::new));
        self.write(move |tx| keys::revoke(tx, &revocation, once.as_ref())).await
    }

    async fn key_rotate(&self, rotation: &Rotation, once: Option<&Once>) -> Result<Rotated> {
        let (rotation, once) = (rotation.clone(), once.map(OnceRow::new));
        self.write(move |tx| keys::rotate(tx, &rotation, once.as_ref())).await
    }

    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
        let uses = uses.clone();
        self.write(move |tx| keys::used(tx, &uses)).await
    }

    async fn round_open(&self, round: &OpenRound, once: Option<&Once>) -> Result<Opened> {
        let (row, once) = (RoundRow::new(round)?, once.map(OnceRow::new));
        self.write(move |tx| rounds::open(tx, row, once.as_ref())).await
    }

    async fn round_close(&self, round: &OpenRound, closing: &Closing) -> Result<Closed> {
        let row = ClosingRow::new(round, closing)?;
        self.write(move |tx| rounds::close(tx, row)).await
    }

    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
        let (account, id) = (account.clone(), id.clone());
        self.read(move |tx| rounds::get(tx, &account, &id)).await
    }

    async fn round_of_step(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>> {
        let (account, execution_id) = (account.clone(), execution_id.to_owned());
        self.read(move |tx| rounds::of_step(tx, &account, &execution_id)).await
    }

    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>> {
        let (account, filter) = (account.clone(), filter.clone());
        self.read(move |tx| rounds::list(tx, &account, &filter)).await
    }

    async fn round_claim(&self, claim: &Claim) -> Result<Vec<OpenRound>> {
        let claim = claim.clone();
        self.write(move |tx| rounds::claim(tx, &claim)).await
    }

    async fn round_call_off(
        &self,
        account: &AccountId,
        id: &RoundId,
        at: Timestamp,
    ) -> Result<bool> {
        let (account, id) = (account.clone(), id.clone());
        self.write(move |tx| rounds::call_off(tx, &account, &id, at)).await
    }

    async fn rounds_called_off(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
        let node = node.clone();
        self.read(move |tx| rounds::called_off(tx, &node)).await
    }

    async fn once_get(&self, account: &AccountId, key: &str) -> Result<Option<DoneBefore>> {
        let (account, key) = (account.clone(), key.to_owned());
        self.read(move |tx| once::get(tx, &account, &key)).await
    }

    async fn once_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()> {
        let (account, key, answer) = (account.clone(), key.to_owned(), answer.clone());
        self.write(move |tx| once::answer(tx, &account, &key, &answer)).await
    }

    async fn verifier_deploy(&self, deploy: &Deploy, once: Option<&Once>) -> Result<Deployed> {
        let (row, once) = (DeployRow::new(deploy)?, once.map(OnceRow::new));
        self.write(move |tx| registry::deploy(tx, &row, once.as_ref())).await
    }

    async fn verifier_revoke(
        &self,
        removal: &Removal,
        once: Option<&Once>,
    ) -> Result<VerifierGone> {
        let (removal, once) = (removal.clone(), once.map(OnceRow::new));
        self.write(move |tx| registry::revoke(tx, &removal, once.as_ref())).await
    }

    async fn verifier_delete(
        &self,
        removal: &Removal,
        once: Option<&Once>,
    ) -> Result<VerifierGone> {
        let (removal, once) = (removal.clone(), once.map(OnceRow::new));
        self.write(move |tx| registry::delete(tx, &removal, once.as_ref())).await
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
        purpose: Purpose,
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

    async fn run_get(&self, account: &AccountId, id: &str) -> Result<Option<Run>> {
        let (account, id) = (account.clone(), id.to_owned());
        self.read(move |tx| runs::get(tx, &account, &id)).await
    }

    async fn run_list(&self, account: &AccountId, filter: &RunFilter) -> Result<Vec<Run>> {
        let (account, filter) = (account.clone(), filter.clone());
        self.read(move |tx| runs::list(tx, &account, &filter)).await
    }

    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<KnownVerdict>> {
        let (account, digest) = (account.clone(), digest.to_owned());
        self.read(move |tx| registry::verdict_get(tx, &account, &digest, since)).await
    }

    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &KnownVerdict,
    ) -> Result<()> {
        let (account, id, verdict) = (account.clone(), verifier_id.to_owned(), verdict.clone());
        self.write(move |tx| registry::verdict_put(tx, &account, &id, &verdict)).await
    }

    async fn verdicts_prune(&self, pruning: &Pruning) -> Result<u64> {
        let pruning = *pruning;
        self.write(move |tx| registry::verdicts_prune(tx, pruning)).await
    }

    async fn credit_grant(&self, grant: &Grant, once: Option<&Once>) -> Result<Granted> {
        let (grant, once) = (grant.clone(), once.map(OnceRow::new));
        self.write(move |tx| ledger::grant(tx, &grant, once.as_ref())).await
    }

    async fn account_suspend(
        &self,
        suspension: &Suspension,
        once: Option<&Once>,
    ) -> Result<Suspended> {
        let (suspension, once) = (suspension.clone(), once.map(OnceRow::new));
        self.write(move |tx| ledger::suspend(tx, &suspension, once.as_ref())).await
    }

    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>> {
        let account = account.clone();
        self.read(move |tx| ledger::account(tx, &account)).await
    }

    async fn account_list(&self, page: &Page) -> Result<Vec<AccountState>> {
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

    async fn check(&self) -> Result<Checkup> {
        self.read(checkup::check).await
    }

    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>> {
        self.read(move |tx| checkup::ended_since(tx, count)).await
    }

    async fn ended_page(&self, page: &EndedPage) -> Result<Vec<(AccountId, RoundId)>> {
        let page = page.clone();
        self.read(move |tx| checkup::ended_page(tx, &page)).await
    }

    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Record>> {
        let (account, id) = (account.clone(), id.clone());
        self.read(move |tx| checkup::record(tx, &account, &id)).await
    }

    async fn ping(&self) -> Result<()> {
        // Through the writer, because a store that only reads is of no use.
        self.write(|tx| installation::pool_version(tx).map(drop)).await
    }

    fn load(&self) -> Load {
        self.writer.load()
    }

    async fn close(&self) {
        if let Some(readers) = &self.readers {
            readers.close().await;
        }
        self.writer.close().await;
    }
}

impl Cells for Row<'_> {
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

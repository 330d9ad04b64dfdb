//! The store in PostgreSQL, shared by any number of nodes.

mod checkup;
mod idempotency;
mod installation;
mod keys;
mod ledger;
mod migrate;
mod registry;
mod role;
mod rounds;
mod tenant_pool;
mod verifier_runs;

use std::{collections::BTreeMap, str::FromStr as _};

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
use sqlx::{
    Connection as _, PgConnection, Row as _, Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgRow},
};

use self::tenant_pool::TenantPool;
use super::{
    migrations,
    rows::{
        DbRow,
        idempotency::IdempotencyRow,
        installation::{ExecutorRow, SessionRow, probe_text},
        keys::KeyRow,
        registry::DeployRow,
        rounds::{ClosingRow, RoundRow},
    },
};
use crate::{
    Behalf, CachedVerdict, CreditGrant, CreditGrantOutcome, DeployOutcome, EndedRoundsQuery,
    ExecutorAddOutcome, IdempotencyRecord, KeyAddOutcome, KeyRecord, KeyRevocation,
    KeyRevokeOutcome, KeyRotateOutcome, KeyRotation, LiveKeys, NewVerifierVersion, PriorWrite,
    RemoveOutcome, Result, RoundCloseOutcome, RoundFilter, RoundOpenOutcome, RoundRecord,
    RoundTakeover, SessionAddOutcome, SharingStore, Spending, StorageOps, Store, StoreCheckup,
    StoreError, StoreLoad, Suspension, SuspensionOutcome, TaskStore, VerdictPruning,
    VerifierRemoval, VerifierRemoveOutcome, VerifierRunFilter, error::DatabaseRefusal,
};

/// For what reads whole tables, which takes longer than any other statement of ours may.
const LONG_STATEMENT_TIMEOUT: &str = "set local statement_timeout = '120s'";

#[derive(Debug)]
pub struct Postgres {
    sight: TenantPool,
}

impl Postgres {
    /// Serves a database whose schema is the one this program needs. The role needs no right to
    /// change the schema. `options[search_path]` in the address chooses the schema.
    pub async fn connect(url: &str) -> Result<Self> {
        // A pool tries until it is late, and then says no more than that.
        PgConnection::connect_with(&options(url)?).await?.close().await?;
        let sight = TenantPool::connect(options(url)?).await?;
        let mut first = sight.of(&Behalf::Platform).await?;
        let found = migrate::version(&mut first).await?;
        migrations::check_served(found).map_err(StoreError::unavailable)?;
        role::check(&mut first).await?;
        drop(first);
        Ok(Self { sight })
    }

    /// Makes or migrates the tables with a role that may, and lets the serving role use them.
    /// Any number of nodes may do this at once.
    pub async fn migrate(url: &str, serving_role: Option<&str>) -> Result<()> {
        migrate::run(&options(url)?, serving_role).await
    }
}

impl Postgres {
    /// A transaction on behalf of somebody.
    pub(crate) async fn begin(
        &self,
        behalf: &Behalf,
    ) -> Result<Transaction<'static, sqlx::Postgres>> {
        self.sight.begin(behalf).await
    }

    async fn sight_of(&self, account: &AccountId) -> Result<PoolConnection<sqlx::Postgres>> {
        self.sight.of(&Behalf::Account(account.clone())).await
    }

    async fn sight(&self) -> Result<PoolConnection<sqlx::Postgres>> {
        self.sight.of(&Behalf::Platform).await
    }
}

/// The role that an address logs in with.
pub(crate) fn role_of(url: &str) -> Result<String> {
    Ok(options(url)?.get_username().to_owned())
}

fn options(url: &str) -> Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name("jurat"))
}

#[async_trait]
impl Store for Postgres {
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
        installation::executor_add(
            &mut *self.sight().await?,
            &executor,
            session.as_ref(),
            idempotency.as_ref(),
        )
        .await
    }

    async fn executor_get(&self, name: &str) -> Result<Option<Executor>> {
        installation::executor_get(&mut *self.sight().await?, name).await
    }

    async fn executor_list(&self, page: &ListPage) -> Result<Vec<Executor>> {
        installation::executor_list(&mut *self.sight().await?, page).await
    }

    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool> {
        installation::executor_probed(&mut *self.sight().await?, name, &probe_text(probe)?).await
    }

    async fn executor_remove(
        &self,
        name: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        installation::executor_remove(
            &mut *self.sight().await?,
            name,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn session_add(
        &self,
        session: &Session,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SessionAddOutcome> {
        let session = SessionRow::new(session)?;
        installation::session_add(
            &mut *self.sight().await?,
            &session,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn session_get(&self, id: &str) -> Result<Option<Session>> {
        installation::session_get(&mut *self.sight().await?, id).await
    }

    async fn session_list(&self, page: &ListPage) -> Result<Vec<Session>> {
        installation::session_list(&mut *self.sight().await?, page).await
    }

    async fn session_remove(
        &self,
        id: &str,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RemoveOutcome> {
        installation::session_remove(
            &mut *self.sight().await?,
            id,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn pool(&self) -> Result<SessionPool> {
        installation::pool(&mut *self.sight().await?).await
    }

    async fn pool_version(&self) -> Result<i64> {
        installation::pool_version(&mut *self.sight().await?).await
    }

    async fn account_ensure(&self, account: &AccountId, now: Timestamp) -> Result<()> {
        keys::account_ensure(&mut *self.sight().await?, account, now).await
    }

    async fn key_put(&self, key: &KeyRecord) -> Result<()> {
        keys::put(&mut *self.sight().await?, &KeyRow::new(key)?).await
    }

    async fn key_get(&self, id: &str) -> Result<Option<KeyRecord>> {
        keys::get(&mut *self.sight().await?, id).await
    }

    async fn key_add(
        &self,
        key: &KeyRecord,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyAddOutcome> {
        keys::add(
            &mut *self.sight().await?,
            &KeyRow::new(key)?,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn key_list(
        &self,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<KeyRecord>> {
        keys::list(&mut *self.sight().await?, account, page).await
    }

    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
        keys::live(&mut *self.sight().await?, wanted).await
    }

    async fn key_revoke(
        &self,
        revocation: &KeyRevocation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRevokeOutcome> {
        keys::revoke(
            &mut *self.sight().await?,
            revocation,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn key_rotate(
        &self,
        rotation: &KeyRotation,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<KeyRotateOutcome> {
        keys::rotate(
            &mut *self.sight().await?,
            rotation,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
        keys::used(&mut *self.sight().await?, uses).await
    }

    async fn round_open(
        &self,
        round: &OpenRound,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<RoundOpenOutcome> {
        let row = RoundRow::new(round)?;
        rounds::open(
            &mut *self.sight_of(&round.account).await?,
            row,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn round_close(
        &self,
        round: &OpenRound,
        closing: &RoundClosing,
    ) -> Result<RoundCloseOutcome> {
        rounds::close(&mut *self.sight_of(&round.account).await?, ClosingRow::new(round, closing)?)
            .await
    }

    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
        rounds::get(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn round_of_task_call(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>> {
        rounds::of_task_call(&mut *self.sight_of(account).await?, account, execution_id).await
    }

    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>> {
        rounds::list(&mut *self.sight_of(account).await?, account, filter).await
    }

    async fn round_take_over(&self, claim: &RoundTakeover) -> Result<Vec<OpenRound>> {
        rounds::take_over(&mut *self.sight().await?, claim).await
    }

    async fn round_cancel(&self, account: &AccountId, id: &RoundId, at: Timestamp) -> Result<bool> {
        rounds::cancel(&mut *self.sight_of(account).await?, account, id, at).await
    }

    async fn rounds_cancelled(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
        rounds::cancelled(&mut *self.sight().await?, node).await
    }

    async fn idempotency_get(&self, account: &AccountId, key: &str) -> Result<Option<PriorWrite>> {
        idempotency::get(&mut *self.sight_of(account).await?, account, key).await
    }

    async fn idempotency_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()> {
        idempotency::answer(&mut *self.sight_of(account).await?, account.as_str(), key, answer)
            .await
    }

    async fn verifier_deploy(
        &self,
        deploy: &NewVerifierVersion,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<DeployOutcome> {
        let row = DeployRow::new(deploy)?;
        registry::deploy(
            &mut *self.sight_of(&deploy.account).await?,
            &row,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn verifier_revoke(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        registry::revoke(
            &mut *self.sight_of(&removal.account).await?,
            removal,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn verifier_delete(
        &self,
        removal: &VerifierRemoval,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<VerifierRemoveOutcome> {
        registry::delete(
            &mut *self.sight().await?,
            removal,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()> {
        registry::measurement_add(&mut *self.sight_of(account).await?, account, measurement).await
    }

    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: VerifierRunPurpose,
    ) -> Result<Option<Measurement>> {
        registry::measurement_get(
            &mut *self.sight_of(account).await?,
            account,
            (verifier_id, version),
            purpose,
        )
        .await
    }

    async fn measurements(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
    ) -> Result<Vec<Measurement>> {
        registry::measurements(&mut *self.sight_of(account).await?, account, verifier_id, version)
            .await
    }

    async fn verifier_run_get(&self, account: &AccountId, id: &str) -> Result<Option<VerifierRun>> {
        verifier_runs::get(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn verifier_run_list(
        &self,
        account: &AccountId,
        filter: &VerifierRunFilter,
    ) -> Result<Vec<VerifierRun>> {
        verifier_runs::list(&mut *self.sight_of(account).await?, account, filter).await
    }

    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<CachedVerdict>> {
        registry::verdict_get(&mut *self.sight_of(account).await?, account, digest, since).await
    }

    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &CachedVerdict,
    ) -> Result<()> {
        registry::verdict_put(&mut *self.sight_of(account).await?, account, verifier_id, verdict)
            .await
    }

    async fn verdicts_prune(&self, pruning: &VerdictPruning) -> Result<u64> {
        registry::verdicts_prune(&mut *self.sight().await?, *pruning).await
    }

    async fn credit_grant(
        &self,
        grant: &CreditGrant,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<CreditGrantOutcome> {
        ledger::grant(
            &mut *self.sight().await?,
            grant,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn account_suspend(
        &self,
        suspension: &Suspension,
        idempotency: Option<&IdempotencyRecord>,
    ) -> Result<SuspensionOutcome> {
        ledger::suspend(
            &mut *self.sight().await?,
            suspension,
            idempotency.map(IdempotencyRow::new).as_ref(),
        )
        .await
    }

    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>> {
        ledger::account(&mut *self.sight().await?, account).await
    }

    async fn account_list(&self, page: &ListPage) -> Result<Vec<AccountState>> {
        ledger::accounts(&mut *self.sight().await?, page).await
    }

    async fn credit_spent(&self, account: &AccountId, since: Timestamp) -> Result<Spending> {
        ledger::spent(&mut *self.sight_of(account).await?, account, since).await
    }

    async fn credit_transfers(
        &self,
        account: &AccountId,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>> {
        ledger::transfers(&mut *self.sight_of(account).await?, account, before, limit).await
    }

    async fn credit_check(&self) -> Result<Vec<String>> {
        ledger::check(&mut *self.sight().await?).await
    }

    async fn entry_get(&self, account: &AccountId, receipt_id: &str) -> Result<Option<String>> {
        rounds::entry(&mut *self.sight_of(account).await?, account, receipt_id).await
    }

    async fn check(&self) -> Result<StoreCheckup> {
        checkup::check(&mut *self.sight().await?).await
    }

    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>> {
        checkup::ended_since(&mut *self.sight().await?, count).await
    }

    async fn ended_page(&self, page: &EndedRoundsQuery) -> Result<Vec<(AccountId, RoundId)>> {
        checkup::ended_page(&mut *self.sight().await?, page).await
    }

    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<RoundRecord>> {
        checkup::record(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn ping(&self) -> Result<()> {
        let read_only: String =
            sqlx::query_scalar("select current_setting('transaction_read_only')")
                .fetch_one(&mut *self.sight().await?)
                .await?;
        // A standby answers too, and takes no writes.
        if read_only == "on" {
            return Err(StoreError::unavailable(DatabaseRefusal::ReadOnly));
        }
        Ok(())
    }

    fn load(&self) -> StoreLoad {
        StoreLoad { connections: Some(self.sight.connections()), ..StoreLoad::default() }
    }

    async fn close(&self) {
        self.sight.close().await;
    }
}

impl DbRow for PgRow {
    fn text(
        &self,
        column: &str,
    ) -> Result<Option<String>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.try_get(column)?)
    }

    fn number(
        &self,
        column: &str,
    ) -> Result<Option<i64>, Box<dyn std::error::Error + Send + Sync>> {
        // Unchecked, because it reads small and big integers alike.
        Ok(self.try_get_unchecked(column)?)
    }

    fn bytes(
        &self,
        column: &str,
    ) -> Result<Option<Vec<u8>>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.try_get(column)?)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let contradicts = error.as_database_error().is_some_and(|error| {
            error.is_unique_violation()
                || error.is_foreign_key_violation()
                || error.is_check_violation()
        });
        if contradicts { Self::conflict(error) } else { Self::unavailable(error) }
    }
}

#[cfg(test)]
mod tests {
    use jurat_testkit::postgres::TestSchema;

    use super::*;

    #[tokio::test]
    async fn a_connection_overrides_unsafe_server_defaults() {
        let schema = TestSchema::served().await;
        let url = format!(
            "{}&options[synchronous_commit]=off&options[lock_timeout]=0\
             &options[idle_in_transaction_session_timeout]=0&options[statement_timeout]=0",
            schema.serving_url()
        );
        let store = Postgres::connect(&url).await.unwrap();
        let mut connection = store.sight().await.unwrap();
        for (name, expected) in [
            // What is acknowledged is on disk.
            ("synchronous_commit", "on"),
            // A node that stalls holds neither a connection nor a lock for long.
            ("statement_timeout", "10s"),
            ("lock_timeout", "5s"),
            ("idle_in_transaction_session_timeout", "10s"),
        ] {
            let setting: String = sqlx::query_scalar("select current_setting($1)")
                .bind(name)
                .fetch_one(&mut *connection)
                .await
                .unwrap();
            assert_eq!(setting, expected, "{name}");
        }
        drop(connection);
        store.close().await;
        schema.drop().await;
    }

    /// Nothing is left of who had a connection before, whichever way it is taken.
    #[tokio::test]
    async fn a_reused_connection_shows_only_its_current_account() {
        let schema = TestSchema::served().await;
        let store = Postgres::connect(&schema.serving_url()).await.unwrap();
        let whose = async |connection: &mut PgConnection| -> String {
            let setting = sqlx::query_scalar("select current_setting('jurat.account')");
            setting.fetch_one(connection).await.unwrap()
        };
        let (alice, bob) = (AccountId::anonymous(1), AccountId::anonymous(2));
        for _ in 0..3 {
            let mut connection = store.sight_of(&alice).await.unwrap();
            assert_eq!(whose(&mut connection).await, alice.as_str());
            drop(connection);
            let mut transaction = store.begin(&Behalf::Account(bob.clone())).await.unwrap();
            assert_eq!(whose(&mut transaction).await, bob.as_str());
            transaction.rollback().await.unwrap();
            let mut transaction = store.begin(&Behalf::Platform).await.unwrap();
            assert_eq!(whose(&mut transaction).await, "*");
            transaction.commit().await.unwrap();
            let mut connection = store.sight_of(&bob).await.unwrap();
            assert_eq!(whose(&mut connection).await, bob.as_str());
        }
        store.close().await;
        schema.drop().await;
    }
}

//! The store in PostgreSQL, shared by any number of nodes.

mod checkup;
mod installation;
mod keys;
mod ledger;
mod migrate;
mod once;
mod registry;
mod role;
mod rounds;
mod runs;
mod sight;

use std::{collections::BTreeMap, str::FromStr as _};

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
use sqlx::{
    Connection as _, PgConnection, Row as _, Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgRow},
};

use self::sight::Sight;
use crate::{
    Added, Behalf, Checkup, Claim, Closed, Deploy, Deployed, DoneBefore, EndedPage, Grant, Granted,
    KeyAdded, KeyRecord, KnownVerdict, LiveKeys, Load, Measurement, Once, Opened, Page, Pruning,
    Record, Removal, Removed, Result, Revocation, Revoked, Rotated, Rotation, RoundFilter,
    RunFilter, SavedAnswer, SessionAdded, Sharing, Spending, Storage, Store, StoreError, Suspended,
    Suspension, TaskStore, VerifierGone,
    error::Refusal,
    migrations,
    rows::{
        Cells,
        installation::{ExecutorRow, SessionRow, probe_text},
        keys::KeyRow,
        once::OnceRow,
        registry::DeployRow,
        rounds::{ClosingRow, RoundRow},
    },
};

/// For what reads whole tables, which takes longer than any other statement of ours may.
const PATIENCE: &str = "set local statement_timeout = '120s'";

#[derive(Debug)]
pub struct Postgres {
    sight: Sight,
}

impl Postgres {
    /// Serves a database whose schema is the one this program needs. The role needs no right to
    /// change the schema. `options[search_path]` in the address chooses the schema.
    pub async fn connect(url: &str) -> Result<Self> {
        // A pool tries until it is late, and then says no more than that.
        PgConnection::connect_with(&options(url)?).await?.close().await?;
        let sight = Sight::connect(options(url)?).await?;
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
        installation::executor_add(
            &mut *self.sight().await?,
            &executor,
            session.as_ref(),
            once.as_ref(),
        )
        .await
    }

    async fn executor_get(&self, name: &str) -> Result<Option<Executor>> {
        installation::executor_get(&mut *self.sight().await?, name).await
    }

    async fn executor_list(&self, page: &Page) -> Result<Vec<Executor>> {
        installation::executor_list(&mut *self.sight().await?, page).await
    }

    async fn executor_probed(&self, name: &str, probe: &Probe) -> Result<bool> {
        installation::executor_probed(&mut *self.sight().await?, name, &probe_text(probe)?).await
    }

    async fn executor_remove(&self, name: &str, once: Option<&Once>) -> Result<Removed> {
        installation::executor_remove(
            &mut *self.sight().await?,
            name,
            once.map(OnceRow::new).as_ref(),
        )
        .await
    }

    async fn session_add(&self, session: &Session, once: Option<&Once>) -> Result<SessionAdded> {
        let session = SessionRow::new(session)?;
        installation::session_add(
            &mut *self.sight().await?,
            &session,
            once.map(OnceRow::new).as_ref(),
        )
        .await
    }

    async fn session_get(&self, id: &str) -> Result<Option<Session>> {
        installation::session_get(&mut *self.sight().await?, id).await
    }

    async fn session_list(&self, page: &Page) -> Result<Vec<Session>> {
        installation::session_list(&mut *self.sight().await?, page).await
    }

    async fn session_remove(&self, id: &str, once: Option<&Once>) -> Result<Removed> {
        installation::session_remove(&mut *self.sight().await?, id, once.map(OnceRow::new).as_ref())
            .await
    }

    async fn pool(&self) -> Result<Pool> {
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

    async fn key_add(&self, key: &KeyRecord, once: Option<&Once>) -> Result<KeyAdded> {
        keys::add(&mut *self.sight().await?, &KeyRow::new(key)?, once.map(OnceRow::new).as_ref())
            .await
    }

    async fn key_list(&self, account: Option<&AccountId>, page: &Page) -> Result<Vec<KeyRecord>> {
        keys::list(&mut *self.sight().await?, account, page).await
    }

    async fn key_live(&self, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
        keys::live(&mut *self.sight().await?, wanted).await
    }

    async fn key_revoke(&self, revocation: &Revocation, once: Option<&Once>) -> Result<Revoked> {
        keys::revoke(&mut *self.sight().await?, revocation, once.map(OnceRow::new).as_ref()).await
    }

    async fn key_rotate(&self, rotation: &Rotation, once: Option<&Once>) -> Result<Rotated> {
        keys::rotate(&mut *self.sight().await?, rotation, once.map(OnceRow::new).as_ref()).await
    }

    async fn key_used(&self, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
        keys::used(&mut *self.sight().await?, uses).await
    }

    async fn round_open(&self, round: &OpenRound, once: Option<&Once>) -> Result<Opened> {
        let row = RoundRow::new(round)?;
        rounds::open(
            &mut *self.sight_of(&round.account).await?,
            row,
            once.map(OnceRow::new).as_ref(),
        )
        .await
    }

    async fn round_close(&self, round: &OpenRound, closing: &Closing) -> Result<Closed> {
        rounds::close(&mut *self.sight_of(&round.account).await?, ClosingRow::new(round, closing)?)
            .await
    }

    async fn round_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Round>> {
        rounds::get(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn round_of_step(
        &self,
        account: &AccountId,
        execution_id: &str,
    ) -> Result<Option<Round>> {
        rounds::of_step(&mut *self.sight_of(account).await?, account, execution_id).await
    }

    async fn round_list(
        &self,
        account: &AccountId,
        filter: &RoundFilter,
    ) -> Result<Vec<RoundSummary>> {
        rounds::list(&mut *self.sight_of(account).await?, account, filter).await
    }

    async fn round_claim(&self, claim: &Claim) -> Result<Vec<OpenRound>> {
        rounds::claim(&mut *self.sight().await?, claim).await
    }

    async fn round_call_off(
        &self,
        account: &AccountId,
        id: &RoundId,
        at: Timestamp,
    ) -> Result<bool> {
        rounds::call_off(&mut *self.sight_of(account).await?, account, id, at).await
    }

    async fn rounds_called_off(&self, node: &NodeId) -> Result<Vec<(AccountId, RoundId)>> {
        rounds::called_off(&mut *self.sight().await?, node).await
    }

    async fn once_get(&self, account: &AccountId, key: &str) -> Result<Option<DoneBefore>> {
        once::get(&mut *self.sight_of(account).await?, account, key).await
    }

    async fn once_answer(
        &self,
        account: &AccountId,
        key: &str,
        answer: &SavedAnswer,
    ) -> Result<()> {
        once::answer(&mut *self.sight_of(account).await?, account.as_str(), key, answer).await
    }

    async fn verifier_deploy(&self, deploy: &Deploy, once: Option<&Once>) -> Result<Deployed> {
        let row = DeployRow::new(deploy)?;
        registry::deploy(
            &mut *self.sight_of(&deploy.account).await?,
            &row,
            once.map(OnceRow::new).as_ref(),
        )
        .await
    }

    async fn verifier_revoke(
        &self,
        removal: &Removal,
        once: Option<&Once>,
    ) -> Result<VerifierGone> {
        registry::revoke(
            &mut *self.sight_of(&removal.account).await?,
            removal,
            once.map(OnceRow::new).as_ref(),
        )
        .await
    }

    async fn verifier_delete(
        &self,
        removal: &Removal,
        once: Option<&Once>,
    ) -> Result<VerifierGone> {
        registry::delete(&mut *self.sight().await?, removal, once.map(OnceRow::new).as_ref()).await
    }

    async fn measurement_add(&self, account: &AccountId, measurement: &Measurement) -> Result<()> {
        registry::measurement_add(&mut *self.sight_of(account).await?, account, measurement).await
    }

    async fn measurement_get(
        &self,
        account: &AccountId,
        verifier_id: &str,
        version: u32,
        purpose: Purpose,
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

    async fn run_get(&self, account: &AccountId, id: &str) -> Result<Option<Run>> {
        runs::get(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn run_list(&self, account: &AccountId, filter: &RunFilter) -> Result<Vec<Run>> {
        runs::list(&mut *self.sight_of(account).await?, account, filter).await
    }

    async fn verdict_get(
        &self,
        account: &AccountId,
        digest: &str,
        since: Timestamp,
    ) -> Result<Option<KnownVerdict>> {
        registry::verdict_get(&mut *self.sight_of(account).await?, account, digest, since).await
    }

    async fn verdict_put(
        &self,
        account: &AccountId,
        verifier_id: &str,
        verdict: &KnownVerdict,
    ) -> Result<()> {
        registry::verdict_put(&mut *self.sight_of(account).await?, account, verifier_id, verdict)
            .await
    }

    async fn verdicts_prune(&self, pruning: &Pruning) -> Result<u64> {
        registry::verdicts_prune(&mut *self.sight().await?, *pruning).await
    }

    async fn credit_grant(&self, grant: &Grant, once: Option<&Once>) -> Result<Granted> {
        ledger::grant(&mut *self.sight().await?, grant, once.map(OnceRow::new).as_ref()).await
    }

    async fn account_suspend(
        &self,
        suspension: &Suspension,
        once: Option<&Once>,
    ) -> Result<Suspended> {
        ledger::suspend(&mut *self.sight().await?, suspension, once.map(OnceRow::new).as_ref())
            .await
    }

    async fn account_get(&self, account: &AccountId) -> Result<Option<AccountState>> {
        ledger::account(&mut *self.sight().await?, account).await
    }

    async fn account_list(&self, page: &Page) -> Result<Vec<AccountState>> {
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

    async fn check(&self) -> Result<Checkup> {
        checkup::check(&mut *self.sight().await?).await
    }

    async fn ended_since(&self, count: u32) -> Result<Option<RoundId>> {
        checkup::ended_since(&mut *self.sight().await?, count).await
    }

    async fn ended_page(&self, page: &EndedPage) -> Result<Vec<(AccountId, RoundId)>> {
        checkup::ended_page(&mut *self.sight().await?, page).await
    }

    async fn record_get(&self, account: &AccountId, id: &RoundId) -> Result<Option<Record>> {
        checkup::record(&mut *self.sight_of(account).await?, account, id).await
    }

    async fn ping(&self) -> Result<()> {
        let read_only: String =
            sqlx::query_scalar("select current_setting('transaction_read_only')")
                .fetch_one(&mut *self.sight().await?)
                .await?;
        // A standby answers too, and takes no writes.
        if read_only == "on" {
            return Err(StoreError::unavailable(Refusal::ReadOnly));
        }
        Ok(())
    }

    fn load(&self) -> Load {
        Load { connections: Some(self.sight.connections()), ..Load::default() }
    }

    async fn close(&self) {
        self.sight.close().await;
    }
}

impl Cells for PgRow {
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
    use jurat_testkit::postgres::Schema;

    use super::*;

    #[tokio::test]
    async fn a_connection_keeps_its_promises_whatever_the_defaults_of_the_server() {
        let schema = Schema::served().await;
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
    async fn a_connection_shows_what_belongs_to_who_uses_it_now() {
        let schema = Schema::served().await;
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

//! A PostgreSQL schema for each test, on the server that the environment names.

use std::{
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use jurat_store::StoreLocation;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The serving role of all tests: it owns nothing and bypasses nothing.
const SERVING: &str = "jurat_serving";

/// A schema that no other test uses.
#[derive(Debug)]
pub struct TestSchema {
    pub name: String,
    server: String,
}

impl TestSchema {
    pub async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let schema = Self { name: format!("jurat_{}_{next}", process::id()), server: server() };
        let create = format!(
            "drop schema if exists {0} cascade; create schema {0}; \
             do $$ begin create role {SERVING} login; \
             exception when duplicate_object or unique_violation then null; end $$",
            schema.name
        );
        schema.execute(&create).await.unwrap();
        schema
    }

    /// A schema with all tables, for the serving role.
    pub async fn served() -> Self {
        let schema = Self::new().await;
        jurat_store::migrate_postgres(&schema.url(), Some(SERVING)).await.unwrap();
        schema
    }

    /// The address of the schema for the role with all rights.
    pub fn url(&self) -> String {
        self.url_with(&self.server)
    }

    /// The address of the schema for another role.
    pub fn url_of(&self, role: &str) -> String {
        let mut server = url::Url::parse(&self.server).unwrap();
        server.set_username(role).unwrap();
        self.url_with(server.as_str())
    }

    /// The address of another database on the same server.
    pub fn url_of_database(&self, database: &str) -> String {
        let mut url = url::Url::parse(&self.server).unwrap();
        url.set_path(database);
        url.into()
    }

    /// Creates the tables of another database, and returns its address for the serving role.
    pub async fn serve_database(&self, database: &str) -> String {
        let owner = self.url_of_database(database);
        jurat_store::migrate_postgres(&owner, Some(SERVING)).await.unwrap();
        let mut url = url::Url::parse(&owner).unwrap();
        url.set_username(SERVING).unwrap();
        url.into()
    }

    fn url_with(&self, server: &str) -> String {
        let mut url = url::Url::parse(server).unwrap();
        url.query_pairs_mut().append_pair("options[search_path]", &self.name);
        url.into()
    }

    /// The address of the schema for the serving role.
    pub fn serving_url(&self) -> String {
        self.url_of(SERVING)
    }

    pub fn location(&self) -> StoreLocation {
        StoreLocation::Postgres { url: self.serving_url(), migrate_url: Some(self.url()) }
    }

    pub async fn execute(&self, sql: &str) -> Result<(), String> {
        execute(&self.url(), sql).await
    }

    /// The first column of a query, as texts in order.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        let found = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection);
        let found = found.await.unwrap();
        connection.close().await.unwrap();
        found
    }

    pub async fn drop(self) {
        let drop = format!("drop schema {} cascade", self.name);
        self.execute(&drop).await.unwrap();
    }
}

pub async fn execute(url: &str, sql: &str) -> Result<(), String> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let ran = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await;
    connection.close().await.unwrap();
    ran.map(drop).map_err(|error| error.to_string())
}

#[expect(clippy::disallowed_methods, reason = "where the test server is, only the caller knows")]
#[expect(clippy::expect_used, reason = "without a server these tests must not pass")]
fn server() -> String {
    std::env::var("JURAT_TEST_POSTGRES").expect(
        "set JURAT_TEST_POSTGRES to the address of a PostgreSQL server on which the role may \
         create schemas and roles, such as postgres://jurat@127.0.0.1:5432/postgres",
    )
}

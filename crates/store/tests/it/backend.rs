//! A fresh database for each test, in a temporary file or in a schema of its own.

use std::{
    process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use jurat_store::{Location, Store};
use rusqlite::Connection;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;

pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    database: Database,
}

enum Database {
    Sqlite { folder: TempDir },
    Postgres { schema: Schema },
}

impl Backend {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = jurat_store::open(&file_in(&folder)).await.unwrap();
        Self { store, database: Database::Sqlite { folder } }
    }

    pub(crate) async fn postgres() -> Self {
        let schema = Schema::new().await;
        let store = jurat_store::open(&schema.location()).await.unwrap();
        Self { store, database: Database::Postgres { schema } }
    }

    /// The store as another node opens it.
    pub(crate) async fn second(&self) -> Arc<dyn Store> {
        let location = match &self.database {
            Database::Sqlite { folder } => file_in(folder),
            Database::Postgres { schema } => schema.location(),
        };
        jurat_store::open(&location).await.unwrap()
    }

    /// Runs SQL past the store; the error is the database's text.
    pub(crate) async fn tamper(&self, sql: &str) -> Result<(), String> {
        match &self.database {
            Database::Sqlite { folder } => {
                let connection = Connection::open(folder.path().join("store.db")).unwrap();
                connection.execute_batch(sql).map_err(|error| error.to_string())
            }
            Database::Postgres { schema } => schema.execute(sql).await,
        }
    }

    pub(crate) async fn end(self) {
        self.store.close().await;
        if let Database::Postgres { schema } = self.database {
            schema.drop().await;
        }
    }
}

fn file_in(folder: &TempDir) -> Location {
    Location::File(folder.path().join("store.db"))
}

/// A schema that no other test uses.
pub(crate) struct Schema {
    pub(crate) name: String,
    server: String,
}

impl Schema {
    pub(crate) async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let schema = Self { name: format!("jurat_{}_{next}", process::id()), server: server() };
        let create = format!("drop schema if exists {0} cascade; create schema {0}", schema.name);
        schema.execute(&create).await.unwrap();
        schema
    }

    /// The address of the schema for the role that may do everything.
    pub(crate) fn url(&self) -> String {
        self.url_with(&self.server)
    }

    /// The address of the schema for another role.
    pub(crate) fn url_of(&self, role: &str) -> String {
        let mut server = url::Url::parse(&self.server).unwrap();
        server.set_username(role).unwrap();
        self.url_with(server.as_str())
    }

    fn url_with(&self, server: &str) -> String {
        let mut url = url::Url::parse(server).unwrap();
        url.query_pairs_mut().append_pair("options[search_path]", &self.name);
        url.into()
    }

    pub(crate) fn location(&self) -> Location {
        Location::Postgres { url: self.url(), migrate_url: None }
    }

    pub(crate) async fn execute(&self, sql: &str) -> Result<(), String> {
        execute(&self.url(), sql).await
    }

    pub(crate) async fn drop(self) {
        let drop = format!("drop schema {} cascade", self.name);
        self.execute(&drop).await.unwrap();
    }
}

pub(crate) async fn execute(url: &str, sql: &str) -> Result<(), String> {
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

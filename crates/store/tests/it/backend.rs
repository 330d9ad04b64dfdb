//! A new database for each test, in a temporary file or in a schema of its own.

use std::sync::Arc;

use jurat_store::{Store, StoreLocation};
pub(crate) use jurat_testkit::postgres::{TestSchema, execute};
use rusqlite::Connection;
use tempfile::TempDir;

pub(crate) struct Backend {
    pub(crate) store: Arc<Store>,
    database: Database,
}

enum Database {
    Sqlite { folder: TempDir },
    Postgres { schema: TestSchema },
}

impl Backend {
    pub(crate) async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = jurat_store::open(&file_in(&folder)).await.unwrap();
        Self { store, database: Database::Sqlite { folder } }
    }

    pub(crate) async fn postgres() -> Self {
        let schema = TestSchema::new().await;
        let store = jurat_store::open(&schema.location()).await.unwrap();
        Self { store, database: Database::Postgres { schema } }
    }

    /// The store as another node opens it.
    pub(crate) async fn second(&self) -> Arc<Store> {
        let location = match &self.database {
            Database::Sqlite { folder } => file_in(folder),
            Database::Postgres { schema } => schema.location(),
        };
        jurat_store::open(&location).await.unwrap()
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.database, Database::Postgres { .. })
    }

    /// Runs SQL behind the store's back; the error is the database's text.
    pub(crate) async fn tamper(&self, sql: &str) -> Result<(), String> {
        match &self.database {
            Database::Sqlite { folder } => {
                let connection = Connection::open(folder.path().join("store.db")).unwrap();
                connection.execute_batch(sql).map_err(|error| error.to_string())
            }
            Database::Postgres { schema } => schema.execute(sql).await,
        }
    }

    /// The first column of a query behind the store's back, as texts in order.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        match &self.database {
            Database::Sqlite { folder } => {
                texts(&Connection::open(folder.path().join("store.db")).unwrap(), sql)
            }
            Database::Postgres { schema } => schema.texts(sql).await,
        }
    }

    pub(crate) async fn end(self) {
        self.store.close().await;
        if let Database::Postgres { schema } = self.database {
            schema.drop().await;
        }
    }
}

/// The first column of a query, as texts in order.
pub(crate) fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn file_in(folder: &TempDir) -> StoreLocation {
    StoreLocation::File(folder.path().join("store.db"))
}

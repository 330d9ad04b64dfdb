//! The stores of the servers: each server has its own, on disk.

use std::{
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context as _, Result};
use jurat_store::StoreLocation;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use url::Url;

/// The serving role: it owns no table, so row security applies to it.
const SERVING: &str = "jurat_serving";
const ROLE: &str = "do $$ begin create role jurat_serving login; \
    exception when duplicate_object or unique_violation then null; end $$";

/// A store that ends with its process.
pub const MEMORY: &str = "memory";

/// The location of a store.
pub fn location(store: &str) -> StoreLocation {
    if store == MEMORY {
        StoreLocation::Memory
    } else if store.starts_with("postgres") {
        StoreLocation::Postgres { url: store.to_owned(), migrate_url: None }
    } else {
        StoreLocation::File(PathBuf::from(store))
    }
}

/// A folder of SQLite files, or a PostgreSQL server.
#[derive(Debug)]
pub struct BenchStores {
    folder: TempDir,
    postgres: Option<Url>,
    made: AtomicU32,
}

impl BenchStores {
    pub async fn new(postgres: Option<String>) -> Result<Self> {
        let postgres = postgres.as_deref().map(Url::parse).transpose();
        let postgres = postgres.context("`--postgres` is no address")?;
        let stores = Self { folder: tempfile::tempdir()?, postgres, made: AtomicU32::new(0) };
        stores.execute("select 1").await?;
        Ok(stores)
    }

    pub fn name(&self) -> &'static str {
        if self.postgres.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// The names of the measured servers, each with a store of its own.
    pub async fn of_servers(&self) -> Result<Vec<(&'static str, String)>> {
        let mut stores = vec![("jurat", self.new_store().await?)];
        if self.postgres.is_none() {
            stores.push(("jurat-memory", MEMORY.to_owned()));
        }
        Ok(stores)
    }

    /// The address of an empty store.
    pub async fn new_store(&self) -> Result<String> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let Some(server) = &self.postgres else {
            let path = self.folder.path().join(format!("{number}.db"));
            return path.into_os_string().into_string().ok().context("an odd folder");
        };
        let schema = schema(number);
        self.execute(&format!("create schema {schema}; {ROLE}")).await?;
        let mut url = server.clone();
        url.query_pairs_mut().append_pair("options[search_path]", &schema);
        jurat_store::migrate_postgres(url.as_str(), Some(SERVING)).await?;
        url.set_username(SERVING).ok().context("an address without a host")?;
        Ok(url.into())
    }

    /// Drops the schemas on the server; the folder removes itself.
    pub async fn drop(&self) -> Result<()> {
        for number in 0..self.made.load(Ordering::Relaxed) {
            self.execute(&format!("drop schema if exists {} cascade", schema(number))).await?;
        }
        Ok(())
    }

    async fn execute(&self, sql: &str) -> Result<()> {
        let Some(server) = &self.postgres else { return Ok(()) };
        let mut connection = PgConnection::connect(server.as_str()).await?;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }
}

fn schema(number: u32) -> String {
    format!("jurat_bench_{}_{number}", process::id())
}

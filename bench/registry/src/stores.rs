//! Where the servers keep what they have: each in a store of its own, on disk.

use std::{
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use url::Url;

/// A store that is gone with its process.
pub(crate) const MEMORY: &str = "memory";

/// A folder of SQLite files, or a PostgreSQL server.
#[derive(Debug)]
pub(crate) struct Stores {
    folder: TempDir,
    postgres: Option<Url>,
    made: AtomicU32,
}

impl Stores {
    pub(crate) async fn new(postgres: Option<String>) -> Result<Self> {
        let postgres = postgres.as_deref().map(Url::parse).transpose();
        let postgres = postgres.context("`--postgres` is no address")?;
        let stores = Self { folder: tempfile::tempdir()?, postgres, made: AtomicU32::new(0) };
        stores.execute("select 1").await?;
        Ok(stores)
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.postgres.is_some() { "PostgreSQL" } else { "SQLite" }
    }

    /// The names of the servers whose runs are measured, with their stores.
    pub(crate) async fn of_runs(&self) -> Result<Vec<(&'static str, String)>> {
        let mut stores = vec![("jurat", self.new_store().await?)];
        if self.postgres.is_none() {
            stores.push(("jurat-memory", MEMORY.to_owned()));
        }
        Ok(stores)
    }

    /// The address of an empty store.
    pub(crate) async fn new_store(&self) -> Result<String> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let Some(server) = &self.postgres else {
            let path = self.folder.path().join(format!("{number}.db"));
            return path.into_os_string().into_string().ok().context("an odd folder");
        };
        let schema = schema(number);
        self.execute(&format!("create schema {schema}")).await?;
        let mut url = server.clone();
        url.query_pairs_mut().append_pair("options[search_path]", &schema);
        Ok(url.into())
    }

    /// Removes what was made on the server; the folder goes by itself.
    pub(crate) async fn drop(&self) -> Result<()> {
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

//! Builds the engine of this process from the state folder.

use std::sync::Arc;

use jurat_engine::{Accounts, Engine, Judges, Limits, Parts, SystemClock};
use jurat_guard::{bounded::Bounded, client::Client};
use jurat_store::{Location, StoreError};

use crate::{
    config,
    state::{State, store_name},
};

pub(crate) async fn engine(
    state: &State,
    store: &Location,
    limits: Limits,
    (judges, accounts): (Judges, Accounts),
) -> anyhow::Result<Engine> {
    let admin = state.admin_key()?;
    let node_key = state.node_key()?;
    let opened = jurat_store::open(store).await;
    let parts = Parts {
        store: opened.map_err(|error| unopened(store, error))?,
        clock: Arc::new(SystemClock),
        client: Client::new(jurat_guard::client::Limits::default())?,
        bounded: Bounded::default(),
        node_key,
        secrets: Arc::new(config::variable),
        limits,
        judges,
        accounts,
    };
    let engine = Engine::new(parts);
    engine.key_ensure_admin(&admin).await?;
    Ok(engine)
}

/// Says which store it is, and what to do about a role that may not make the tables.
fn unopened(store: &Location, error: StoreError) -> anyhow::Error {
    let name = store_name(store);
    let text = match store {
        Location::Postgres { migrate_url: None, .. } if error.is_denied() => format!(
            "cannot open the store `{name}`, because its role may not make the tables; start `jurat serve` with `--migrate-url`, the address for the role that owns them"
        ),
        Location::Memory | Location::File(_) | Location::Postgres { .. } => {
            format!("cannot open the store `{name}`")
        }
    };
    anyhow::Error::new(error).context(text)
}

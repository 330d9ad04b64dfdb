//! Builds the engine of this process from the state folder.

use std::sync::Arc;

use anyhow::Context as _;
use jurat_engine::{Engine, Limits, Parts, SystemClock};
use jurat_guard::{bounded::Bounded, client::Client};
use jurat_store::Location;

use crate::{
    config,
    state::{State, store_name},
};

pub(crate) async fn engine(state: &State, store: &Location) -> anyhow::Result<Engine> {
    let admin = state.admin_key()?;
    let node_key = state.node_key()?;
    let opened = jurat_store::open(store).await;
    let parts = Parts {
        store: opened.with_context(|| format!("cannot open the store `{}`", store_name(store)))?,
        clock: Arc::new(SystemClock),
        client: Client::new(jurat_guard::client::Limits::default())?,
        bounded: Bounded::default(),
        node_key,
        secrets: Arc::new(config::variable),
        limits: Limits::default(),
    };
    let engine = Engine::new(parts);
    engine.key_ensure_admin(&admin).await?;
    Ok(engine)
}

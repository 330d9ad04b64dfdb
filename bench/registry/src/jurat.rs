//! The real server among the subjects, with its verifiers in the store.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use jurat_bench_load::{announce, stores::location, until_parent_goes};
use jurat_core::{account::key::ApiKey, judge::Price};
use jurat_engine::{
    Clock as _, Engine, EngineLimits, EngineParts, JudgesConfig, NodeSigningKey, ProviderKind,
    ProviderSettings, SoleNode, SystemClock,
};
use jurat_guard::{client::OutboundClient, sandbox::Sandbox};
use tokio::net::TcpListener;

use crate::verifiers;

/// The limit of concurrent requests to the judge: the maximum number of clients.
const CONCURRENCY: usize = 256;

/// Starts the server on a free port; returns when the parent exits.
pub(crate) async fn serve(judge: &str, count: u32, store: &str) -> Result<()> {
    let store = jurat_store::open(&location(store)).await?;
    let engine = Engine::new(EngineParts {
        store: Arc::clone(&store),
        clock: Arc::new(SystemClock),
        client: OutboundClient::new(jurat_guard::client::ClientLimits::default())?,
        bounded: Sandbox::default(),
        node_key: NodeSigningKey::from_seed(&[7; 32]).context("no signing key")?,
        secrets: Arc::new(|_| None),
        // One key serves all callers, and each of them waits for its answer. No caller is refused
        // because the node is late, which bench/overload measures.
        limits: EngineLimits {
            rounds_per_key: usize::MAX,
            rounds_per_account: usize::MAX,
            bytes_per_account: usize::MAX,
            lag: None,
            ..EngineLimits::default()
        },
        judges: judges(judge),
        accounts: jurat_engine::AccountSettings::default(),
        profiles: jurat_engine::ConsensusProfiles::default(),
        webhooks: jurat_engine::WebhookSettings::default(),
        payments: None,
        peers: None,
        failpoints: jurat_engine::Failpoints::default(),
    });
    let key = ApiKey::new(SystemClock.bits(), [SystemClock.bits(), SystemClock.bits()]);
    engine.key_ensure_admin(&key).await?;
    verifiers::fill(&store, count).await?;
    engine.start(SoleNode::No).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let front = jurat_server::ServerOptions::default();
    let server = jurat_server::serve(listener, engine, front, std::future::pending());
    let told = async {
        announce(port, &key.reveal());
        until_parent_goes().await;
        Ok(())
    };
    tokio::select! {
        ended = server => ended.context("cannot serve"),
        ended = told => ended,
    }
}

/// With a price, so that a run moves credit, and with a verdict cache, which no run hits because no
/// two have the same inputs.
fn judges(url: &str) -> JudgesConfig {
    let mut settings = ProviderSettings::new(ProviderKind::OpenAi, url);
    settings.concurrency = CONCURRENCY;
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
    settings.prices.insert("*".to_owned(), price);
    JudgesConfig {
        providers: BTreeMap::from([(verifiers::PROVIDER.to_owned(), settings)]),
        cache_for: Some(Duration::from_hours(24)),
        ..JudgesConfig::default()
    }
}

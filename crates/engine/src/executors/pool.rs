//! The sessions and executors as this node knows them, and the health of each executor.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use http::Uri;
use jurat_core::{
    account::caller::CreditMode,
    executor::{
        BreakerState, Capabilities, Executor, Probe,
        breakers::ExecutorBreakers,
        session::{Session, SessionPool},
    },
    id::AccountId,
    peer::{Peer, PeerId},
    round::select::{EligibleSession, SelectError},
    time::Timestamp,
};
use jurat_store::Behalf;
use parking_lot::Mutex;
use url::Url;

use crate::{Engine, EngineError, node::permit_queue::PermitQueue};

/// Where an executor is, and how many calls it takes at a time.
#[derive(Debug)]
pub(crate) struct ExecutorAddress {
    pub(crate) route: ExecutorRoute,
    /// Executors with the same host are not independent: a host name, or the id of a node.
    pub(crate) host: String,
    pub(crate) token: Option<String>,
    /// The permits for calls, shared fairly between accounts.
    pub(crate) calls: Arc<PermitQueue>,
}

/// The way to an executor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ExecutorRoute {
    /// It is called directly.
    Http(Box<HttpRoute>),
    /// Its own node is asked to call it.
    Peer(PeerRoute),
}

/// The parsed address of an executor that is called directly.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpRoute {
    pub(crate) health: Uri,
    pub(crate) capabilities: Uri,
    pub(crate) execute: Uri,
    pub(crate) verify: Uri,
    /// Host and port, as signatures cover them.
    pub(crate) authority: String,
    /// The path before `/execute`, usually empty.
    pub(crate) prefix: String,
}

/// An executor of another node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PeerRoute {
    pub(crate) node: PeerId,
    /// The address of the executor, as its own node knows it. It is never called from here.
    pub(crate) executor: String,
}

/// The pool at one version.
#[derive(Debug)]
pub(crate) struct PoolView {
    pub(crate) pool: SessionPool,
    pub(crate) addresses: BTreeMap<String, Arc<ExecutorAddress>>,
    /// The nodes that this installation knows; empty without an endpoint for nodes.
    pub(crate) peers: BTreeMap<PeerId, Arc<Peer>>,
    version: i64,
    generation: u64,
}

/// The state of an executor, as this node sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecutorHealth {
    pub(crate) probe: Option<Probe>,
    pub(crate) conduct: ExecutorBreakers,
}

#[derive(Debug, Default)]
pub(crate) struct PoolCache {
    view: ArcSwapOption<PoolView>,
    /// Counts invalidations. A view that was read before the latest one is not used.
    generation: AtomicU64,
    health: Mutex<Arc<BTreeMap<String, Arc<ExecutorHealth>>>>,
}

impl PoolCache {
    /// Makes the next read go to the store.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn health_of(&self, executor: &str) -> Arc<ExecutorHealth> {
        let standings = self.health.lock();
        standings.get(executor).cloned().unwrap_or_default()
    }

    /// Changes the state of an executor; the lock is never held across an await.
    pub(crate) fn update(&self, executor: &str, change: impl FnOnce(&mut ExecutorHealth)) {
        let mut standings = self.health.lock();
        let standings = Arc::make_mut(&mut standings);
        change(Arc::make_mut(standings.entry(executor.to_owned()).or_default()));
    }

    pub(crate) fn forget_health(&self, executor: &str) {
        let mut standings = self.health.lock();
        Arc::make_mut(&mut standings).remove(executor);
    }

    /// The pool as it was last read.
    pub(crate) fn last_view(&self) -> Option<Arc<PoolView>> {
        self.view.load_full()
    }

    /// A snapshot, which later changes do not affect.
    fn health_map(&self) -> Arc<BTreeMap<String, Arc<ExecutorHealth>>> {
        Arc::clone(&self.health.lock())
    }
}

impl Engine {
    pub(crate) async fn pool_view(&self) -> Result<Arc<PoolView>, EngineError> {
        let generation = self.inner.pool.generation.load(Ordering::SeqCst);
        let known = self.inner.pool.view.load_full();
        if let Some(view) = known.as_ref().filter(|view| view.generation == generation) {
            return Ok(Arc::clone(view));
        }
        // The version is read first: a change in between only costs another read.
        let version = self.inner.store.sessions().pool_version(&Behalf::Platform).await?;
        let pool = self.inner.store.sessions().pool(&Behalf::Platform).await?;
        let addresses = pool
            .executors
            .values()
            .filter_map(|executor| {
                let address = self.address_for(executor)?;
                // The same address keeps its permits.
                let same = known
                    .as_ref()
                    .and_then(|view| view.addresses.get(&executor.name))
                    .filter(|known| known.route == address.route && known.token == address.token);
                Some((executor.name.clone(), same.map_or_else(|| Arc::new(address), Arc::clone)))
            })
            .collect();
        for executor in pool.executors.values() {
            self.inner.pool.update(&executor.name, |standing| {
                if standing.probe.is_none() {
                    standing.probe.clone_from(&executor.probe);
                }
            });
        }
        let peers = self.known_peers().await?;
        let view = Arc::new(PoolView { pool, addresses, peers, version, generation });
        self.inner.pool.view.store(Some(Arc::clone(&view)));
        Ok(view)
    }

    /// The address of an executor with its token, if it is valid.
    pub(crate) fn address_for(&self, executor: &Executor) -> Option<ExecutorAddress> {
        let calls = self.inner.limits.calls_per_executor;
        if let Some(remote) = &executor.remote {
            return Some(remote_address(remote.node.as_ref()?, &executor.url, calls));
        }
        let token = executor.token_env.as_deref().and_then(|name| (self.inner.secrets)(name));
        address(&executor.url, token, calls)
    }

    /// Drops the view if another node changed executors or sessions.
    pub(crate) async fn pool_refresh(&self) -> Result<(), EngineError> {
        let Some(view) = self.inner.pool.view.load_full() else { return Ok(()) };
        if self.inner.store.sessions().pool_version(&Behalf::Platform).await? != view.version {
            self.inner.pool.forget();
        }
        Ok(())
    }

    /// The health of all executors for everybody.
    pub(crate) fn pool_health(&self) -> PoolHealth {
        PoolHealth { of: self.inner.pool.health_map(), at: self.inner.clock.now(), account: None }
    }

    /// The health of all executors for an account.
    pub(crate) fn pool_health_for(&self, account: &AccountId) -> PoolHealth {
        PoolHealth { account: Some(account.clone()), ..self.pool_health() }
    }
}

impl PoolView {
    /// The session to an executor that a caller names with a profile.
    ///
    /// The sessions of an executor carry the operator's decisions, above all the price, so nothing
    /// may bypass them. A metered caller cannot reach an executor without a price.
    pub(crate) fn session_to(
        &self,
        executor: &str,
        profile: &str,
        credit: CreditMode,
    ) -> Result<Cow<'_, Session>, SelectError> {
        if !self.pool.executors.contains_key(executor) {
            return Err(SelectError::NoExecutor(executor.to_owned()));
        }
        let sessions = || self.pool.sessions.values().filter(|it| it.executor == executor);
        if let Some(session) = sessions().find(|it| it.profile == profile) {
            return Ok(Cow::Borrowed(session));
        }
        let profiles: BTreeSet<&String> = sessions().map(|it| &it.profile).collect();
        let (executor, profile) = (executor.to_owned(), profile.to_owned());
        match credit {
            _ if !profiles.is_empty() => {
                let profiles = profiles.into_iter().cloned().collect();
                Err(SelectError::NoSession { executor, profile, profiles })
            }
            CreditMode::Unmetered => Ok(Cow::Owned(Session::plain(&executor, &profile))),
            CreditMode::Metered
            | CreditMode::Anonymous
            | CreditMode::Prepaid
            | CreditMode::Booked
            | CreditMode::Suspended => Err(SelectError::Unpriced { executor, profile }),
        }
    }
}

/// The health of all executors at one moment.
#[derive(Debug)]
pub(crate) struct PoolHealth {
    of: Arc<BTreeMap<String, Arc<ExecutorHealth>>>,
    at: Timestamp,
    account: Option<AccountId>,
}

impl PoolHealth {
    /// The capabilities of an executor, or why it cannot be asked now.
    pub(crate) fn of(&self, executor: &str) -> Result<&Capabilities, String> {
        let unchecked = || format!("executor `{executor}` has not been checked yet");
        let standing = self.of.get(executor).ok_or_else(unchecked)?;
        let conduct = &standing.conduct;
        let state = match &self.account {
            Some(account) => conduct.state(account, self.at),
            None => conduct.state_for_all(self.at),
        };
        match state {
            BreakerState::Open(until) => {
                let seconds = until.millis_since(self.at).div_ceil(1_000);
                return Err(format!(
                    "executor `{executor}` failed repeatedly and is not called for another {seconds} s"
                ));
            }
            BreakerState::HalfOpen => {
                return Err(format!(
                    "executor `{executor}` failed repeatedly and has not been checked since"
                ));
            }
            BreakerState::Closed => {}
        }
        let probe = standing.probe.as_ref().ok_or_else(unchecked)?;
        if let Some(error) = &probe.health_error {
            return Err(format!("executor `{executor}` is unhealthy: {error}"));
        }
        probe.capabilities.as_ref().map_err(|error| format!("executor `{executor}`: {error}"))
    }
}

/// All sessions with the health of their executors, plus these.
pub(crate) fn eligible_sessions<'a>(
    view: &'a PoolView,
    others: &'a [Session],
    standings: &'a PoolHealth,
) -> Vec<EligibleSession<'a>> {
    let eligible = |session: &'a Session| {
        let address = view.addresses.get(&session.executor)?;
        Some(EligibleSession {
            session,
            host: &address.host,
            standing: standings.of(&session.executor),
            reliability: session.reliability(),
        })
    };
    view.pool.sessions.values().chain(others).filter_map(eligible).collect()
}

fn address(base: &str, token: Option<String>, calls: usize) -> Option<ExecutorAddress> {
    let url = Url::parse(base).ok()?;
    let at = |path: &str| Uri::try_from(format!("{base}{path}")).ok();
    let host = url.host_str()?.to_owned();
    let route = HttpRoute {
        health: at("/health")?,
        capabilities: at("/capabilities")?,
        execute: at("/execute")?,
        verify: at("/verify")?,
        authority: url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
        prefix: url.path().trim_end_matches('/').to_owned(),
    };
    let route = ExecutorRoute::Http(Box::new(route));
    Some(ExecutorAddress { route, host, token, calls: PermitQueue::new(calls) })
}

fn remote_address(node: &PeerId, executor: &str, calls: usize) -> ExecutorAddress {
    let route = PeerRoute { node: node.clone(), executor: executor.to_owned() };
    ExecutorAddress {
        route: ExecutorRoute::Peer(route),
        host: node.to_string(),
        token: None,
        calls: PermitQueue::new(calls),
    }
}

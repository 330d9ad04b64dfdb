//! Probes the health and the capabilities of executors, and keeps the results current.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jurat_core::{
    executor::{BreakerState, Capabilities, Executor, Probe, breakers::PauseScope},
    round::job::{Job, PoolEntry},
};
use jurat_guard::client::CallError;
use jurat_store::Behalf;
use jurat_wire::{executor::decode_capabilities, strict_json};

use super::pool::{ExecutorAddress, ExecutorRoute, HttpRoute, PoolView};
use crate::{Engine, EngineError};

const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
const PROBES_AT_ONCE: usize = 16;

/// An executor with its state on this node.
#[derive(Debug, Clone)]
pub struct ExecutorView {
    pub executor: Executor,
    pub circuit: BreakerState,
    /// The accounts for which it is paused while the circuit is not closed.
    pub rests_for: PauseScope,
    /// Other executors registered at the same address; known only when it is added.
    pub same_url: Vec<String>,
}

impl ExecutorView {
    /// The state of its circuit, and the accounts that it applies to.
    pub const fn circuit_for(&self) -> (BreakerState, PauseScope) {
        (self.circuit, self.rests_for)
    }
}

/// Whether anything listens at the events address of an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsProbe {
    pub url: String,
    pub error: Option<String>,
}

impl Engine {
    /// Checks whether anything accepts events at an address, without sending one.
    pub(crate) async fn probe_events(
        &self,
        name: &str,
    ) -> Result<Option<EventsProbe>, EngineError> {
        let view = self.pool_view().await?;
        let url = view.pool.executors.get(name).and_then(|it| it.agent_events_url.clone());
        let Some(url) = url else { return Ok(None) };
        let error = self.ask_events_url(&url).await.err();
        Ok(Some(EventsProbe { url, error }))
    }

    /// An endpoint for events answers a `GET` with anything but "not found".
    async fn ask_events_url(&self, url: &str) -> Result<(), String> {
        let address = format!("{url}/agent-events").parse().map_err(|_| "it is not a valid URL")?;
        let reply = self.inner.client.get(&address, HeaderMap::new(), PROBE_TIMEOUT).await;
        let status = reply.map_err(|error| call_error_text(&error))?.status;
        if status == StatusCode::NOT_FOUND || status.is_server_error() {
            return Err(format!("/agent-events answered {status}"));
        }
        Ok(())
    }

    /// Probes one executor and stores the result.
    pub(crate) async fn probe(&self, name: &str, address: &ExecutorAddress) -> Probe {
        let probe = self.ask_status(address).await;
        self.inner.pool.update(name, |standing| {
            standing.conduct.after_probe(probe.is_healthy(), probe.at);
            standing.probe = Some(probe.clone());
        });
        if let Err(error) =
            self.inner.store.executors().set_probe(&Behalf::Platform, name, &probe).await
        {
            tracing::warn!(executor.name = name, error = %error, "could not store the result of a probe");
        }
        probe
    }

    /// Probes an unregistered executor, and stores nothing.
    pub(crate) async fn probe_unregistered(&self, executor: &Executor) -> Option<Probe> {
        let address = self.address_for(executor)?;
        Some(self.ask_status(&address).await)
    }

    /// Probes the executors that the job may need, unless they were probed recently.
    pub(crate) async fn probe_stale(&self, job: &Job, view: &PoolView) {
        let mut names: Vec<&str> = view
            .pool
            .sessions
            .values()
            .filter(|session| {
                job.terms.pool.is_empty()
                    || job.terms.pool.iter().any(|entry| match entry {
                        PoolEntry::Session(id) => *id == session.id,
                        PoolEntry::Label(label) => session.labels.contains(label),
                        PoolEntry::Profile(profile) => *profile == session.profile,
                        PoolEntry::Executor { .. } => false,
                    })
            })
            .map(|session| session.executor.as_str())
            .chain(job.terms.pool.iter().filter_map(|entry| match entry {
                PoolEntry::Executor { name, .. } => Some(name.as_str()),
                PoolEntry::Session(_) | PoolEntry::Label(_) | PoolEntry::Profile(_) => None,
            }))
            .filter(|name| self.is_stale(name))
            .collect();
        names.sort_unstable();
        names.dedup();
        self.probe_all(view, names).await;
    }

    /// Probes the named executors that were not probed recently.
    pub(crate) async fn probe_named(&self, view: &PoolView, names: &BTreeSet<&str>) {
        let stale: Vec<&str> = names.iter().filter(|name| self.is_stale(name)).copied().collect();
        if !stale.is_empty() {
            self.probe_all(view, stale).await;
        }
    }

    /// Whether the health of an executor is unknown: it was not probed recently, or not since its
    /// pause ended.
    fn is_stale(&self, name: &str) -> bool {
        let now = self.inner.clock.now();
        let standing = self.inner.pool.health_of(name);
        let fresh_ms = self.inner.limits.probe_fresh_ms;
        let is_old = |probe: &Probe| fresh_ms < now.millis_since(probe.at);
        standing.probe.as_ref().is_none_or(is_old) || standing.conduct.awaits_probe(now)
    }

    /// Probes every executor; called repeatedly in the background.
    pub(crate) async fn probe_registered(&self) {
        match self.pool_view().await {
            Ok(view) => {
                let names = view.pool.executors.keys().map(String::as_str).collect();
                self.probe_all(&view, names).await;
            }
            Err(error) => {
                tracing::warn!(error = %error, "could not read the executors to probe them");
            }
        }
    }

    async fn probe_all(&self, view: &PoolView, names: Vec<&str>) {
        let addresses: Vec<(String, Arc<ExecutorAddress>)> = names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), Arc::clone(view.addresses.get(name)?))))
            .collect();
        stream::iter(addresses)
            .for_each_concurrent(PROBES_AT_ONCE, |(name, address)| async move {
                self.probe(&name, &address).await;
            })
            .await;
    }

    async fn ask_status(&self, address: &ExecutorAddress) -> Probe {
        let at = self.inner.clock.now();
        let (health, capabilities) = match &address.route {
            ExecutorRoute::Http(route) => {
                let heads = || bearer_headers(address);
                futures::join!(
                    self.ask_health(route, heads()),
                    self.ask_capabilities(route, heads())
                )
            }
            // The node of the executor probes it, and says the result.
            ExecutorRoute::Peer(route) => (Ok(()), self.ask_presence(route, PROBE_TIMEOUT).await),
        };
        Probe { at, health_error: health.err(), capabilities }
    }

    async fn ask_health(&self, route: &HttpRoute, heads: HeaderMap) -> Result<(), String> {
        let reply = self
            .inner
            .client
            .get(&route.health, heads, PROBE_TIMEOUT)
            .await
            .map_err(|error| call_error_text(&error))?;
        if reply.status.is_success() {
            Ok(())
        } else {
            Err(format!("GET /health answered {}", reply.status))
        }
    }

    async fn ask_capabilities(
        &self,
        route: &HttpRoute,
        heads: HeaderMap,
    ) -> Result<Capabilities, String> {
        let reply = self
            .inner
            .client
            .get(&route.capabilities, heads, PROBE_TIMEOUT)
            .await
            .map_err(|error| call_error_text(&error))?;
        if !reply.status.is_success() {
            return Err(format!("GET /capabilities answered {}", reply.status));
        }
        let value = strict_json::parse(&reply.body)
            .map_err(|error| format!("GET /capabilities did not answer JSON: {error}"))?;
        let capabilities =
            decode_capabilities(value).map_err(|error| format!("GET /capabilities: {error}"))?;
        Ok(capabilities.into())
    }

    pub(crate) fn executor_view(&self, mut executor: Executor) -> ExecutorView {
        let standing = self.inner.pool.health_of(&executor.name);
        if standing.probe.is_some() {
            executor.probe.clone_from(&standing.probe);
        }
        let (circuit, rests_for) = standing.conduct.strictest(self.inner.clock.now());
        ExecutorView { executor, circuit, rests_for, same_url: Vec::new() }
    }

    pub(crate) async fn address_of(
        &self,
        name: &str,
    ) -> Result<Option<Arc<ExecutorAddress>>, EngineError> {
        Ok(self.pool_view().await?.addresses.get(name).cloned())
    }
}

/// The bearer token of an executor, if it has one.
pub(crate) fn bearer_headers(address: &ExecutorAddress) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let value = address.token.as_ref().and_then(|token| {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    });
    if let Some(value) = value {
        headers.insert(header::AUTHORIZATION, value);
    }
    headers
}

fn call_error_text(error: &CallError) -> String {
    error.to_string()
}

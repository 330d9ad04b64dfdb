//! Checks the executors and sessions, and whether enough of them are independent.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use jurat_core::{
    checkup::CheckupFinding,
    executor::{BreakerState, Executor, session::SessionPool},
    round::select::EligibleSession,
};

use crate::{
    Engine, EngineError,
    executors::{
        pool::{PoolView, eligible_sessions},
        probe::EventsProbe,
    },
};

/// How many executors are asked about events concurrently.
const ASKED_AT_ONCE: usize = 16;
/// The needs of a round with three replicas.
const THREE: usize = 3;

impl Engine {
    /// Probes every executor now, because an earlier result may be outdated.
    pub(super) async fn executor_findings(&self) -> Result<Vec<CheckupFinding>, EngineError> {
        self.probe_registered().await;
        let view = self.pool_view().await?;
        if view.pool.executors.is_empty() {
            return Ok(vec![CheckupFinding::warning(
                "executors",
                "there are none, so no round can run",
                "Add one with `jurat executors add NAME URL`.",
            )]);
        }
        let mut findings: Vec<CheckupFinding> =
            view.pool.executors.values().map(|it| self.executor_finding(&view, it)).collect();
        let names: Vec<String> = view.pool.executors.keys().cloned().collect();
        let probes = names.into_iter().map(|name| async move {
            let probe = self.probe_events(&name).await;
            (name, probe)
        });
        let mut probes = stream::iter(probes).buffered(ASKED_AT_ONCE);
        while let Some((name, probe)) = probes.next().await {
            findings.extend(probe?.and_then(|it| unheard_events(&name, it)));
        }
        findings.extend(shared_addresses(&view.pool));
        findings.extend(session_findings(&view.pool));
        let standings = self.pool_health();
        findings.extend(independence_findings(&eligible_sessions(&view, &[], &standings)));
        Ok(findings)
    }

    fn executor_finding(&self, view: &PoolView, executor: &Executor) -> CheckupFinding {
        let name = &executor.name;
        if !view.addresses.contains_key(name) {
            let detail = format!("`{name}` has the invalid address `{}`", executor.url);
            return CheckupFinding::problem(
                "executors",
                detail,
                "Remove it and add it again with its correct address.",
            );
        }
        if let Some(variable) = executor.token_env.as_deref()
            && (self.inner.secrets)(variable).is_none()
        {
            let detail = format!(
                "`{name}` needs the environment variable `{variable}`, which is not set on this node"
            );
            return CheckupFinding::problem("executors", detail, "Set it and restart the server.");
        }
        let seen = self.executor_view(executor.clone());
        let check = format!("Fix it, then run `jurat executors check {name}`.");
        if let BreakerState::Open(until) = seen.circuit {
            let seconds = until.millis_since(self.inner.clock.now()).div_ceil(1_000);
            let detail =
                format!("`{name}` failed repeatedly and is not called for another {seconds} s");
            return CheckupFinding::warning("executors", detail, check);
        }
        match seen.executor.probe {
            Some(probe) if probe.is_healthy() => {
                CheckupFinding::ok("executors", format!("`{name}` is up"))
            }
            Some(probe) => {
                let why = probe.problem().unwrap_or_default();
                CheckupFinding::warning("executors", format!("`{name}` is down: {why}"), check)
            }
            None => {
                CheckupFinding::warning("executors", format!("`{name}` was never checked"), check)
            }
        }
    }
}

/// An executor that wants events but does not receive them.
fn unheard_events(name: &str, probe: EventsProbe) -> Option<CheckupFinding> {
    let why = probe.error?;
    let detail = format!("`{name}` does not receive events at `{}`: {why}", probe.url);
    let advice = "Make it listen there, or register it with another `--agent-events-url`.";
    Some(CheckupFinding::warning("agent-events", detail, advice))
}

/// Executors that are one service under several names, which rounds would count as independent.
fn shared_addresses(pool: &SessionPool) -> Vec<CheckupFinding> {
    // The same address is another service on another node.
    let mut names: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for executor in pool.executors.values() {
        let node = executor.remote.as_ref().and_then(|remote| remote.node.as_ref());
        names.entry((&executor.url, node)).or_default().push(format!("`{}`", executor.name));
    }
    let shared = names.into_iter().filter(|(_, names)| 1 < names.len());
    let shared = shared.map(|((url, _), names)| {
        let detail = format!("{} share the address `{url}`", names.join(", "));
        let advice = "Remove all but one with `jurat executors remove NAME`, and add several sessions to it if you need them; asking one service twice is not a second opinion.";
        CheckupFinding::warning("executors", detail, advice)
    });
    shared.collect()
}

/// Sessions without an executor, and executors without a session.
fn session_findings(pool: &SessionPool) -> Vec<CheckupFinding> {
    let lost = pool.sessions.values().filter(|it| !pool.executors.contains_key(&it.executor));
    let lost = lost.map(|session| {
        let detail = format!(
            "`{}` uses the executor `{}`, which is not registered",
            session.id, session.executor
        );
        let advice = format!("Run `jurat sessions remove {}`.", session.id);
        CheckupFinding::problem("sessions", detail, advice)
    });
    let led_to: BTreeSet<&str> = pool.sessions.values().map(|it| it.executor.as_str()).collect();
    let idle = pool.executors.keys().filter(|name| !led_to.contains(name.as_str()));
    let idle = idle.map(|name| {
        let detail = format!("no session uses `{name}`, so it is never called");
        let advice = format!("Run `jurat sessions add ID --executor {name}`, or remove it.");
        CheckupFinding::warning("sessions", detail, advice)
    });
    lost.chain(idle).collect()
}

/// Whether three independent executors are available.
fn independence_findings(eligible: &[EligibleSession<'_>]) -> Vec<CheckupFinding> {
    let able: Vec<&EligibleSession<'_>> =
        eligible.iter().filter(|entry| entry.standing.is_ok()).collect();
    if able.len() < THREE {
        return vec![CheckupFinding::warning(
            "sessions",
            format!(
                "{} can answer now, but a round with three replicas needs {THREE}",
                session_count(able.len())
            ),
            "Add executors, or fix those that are down.",
        )];
    }
    let families: BTreeSet<String> =
        able.iter().map(|entry| entry.independence().provider_family).collect();
    if families.len() < THREE {
        let names: Vec<String> = families.iter().map(|name| format!("`{name}`")).collect();
        return vec![CheckupFinding::warning(
            "sessions",
            format!(
                "{} can answer now, but they come from only {}: {}",
                session_count(able.len()),
                if names.len() == 1 {
                    "1 provider".to_owned()
                } else {
                    format!("{} providers", names.len())
                },
                names.join(", ")
            ),
            "Add executors of other providers; those of one provider are often wrong together.",
        )];
    }
    let detail = format!(
        "{} of {} providers can answer now, which is enough for three replicas",
        session_count(able.len()),
        families.len()
    );
    vec![CheckupFinding::ok("sessions", detail)]
}

fn session_count(number: usize) -> String {
    if number == 1 { "1 session".to_owned() } else { format!("{number} sessions") }
}

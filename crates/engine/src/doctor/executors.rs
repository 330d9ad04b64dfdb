//! How the executors and sessions stand, and whether enough of them are independent.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use jurat_core::{
    checkup::Finding,
    executor::{BreakerState, Executor},
    select::Lane,
    session::Pool,
};

use crate::{
    Engine, EngineError,
    pool::{PoolView, lanes},
    probe::EventsProbe,
};

/// Executors that are asked at a time whether they hear of events.
const ASKED_AT_ONCE: usize = 16;
/// What a round with three replicas needs.
const THREE: usize = 3;

impl Engine {
    /// Asks every executor now, because what was found a minute ago may be over.
    pub(super) async fn executor_findings(&self) -> Result<Vec<Finding>, EngineError> {
        self.probe_every().await;
        let view = self.pool_view().await?;
        if view.pool.executors.is_empty() {
            return Ok(vec![Finding::warning(
                "executors",
                "there are none, so no round can run",
                "Add one with `jurat executors add NAME URL`.",
            )]);
        }
        let mut findings: Vec<Finding> =
            view.pool.executors.values().map(|it| self.executor_finding(&view, it)).collect();
        let names: Vec<String> = view.pool.executors.keys().cloned().collect();
        let probes = names.into_iter().map(|name| async move {
            let probe = self.probe_events(&name).await;
            (name, probe)
        });
        let mut probes = stream::iter(probes).buffered(ASKED_AT_ONCE);
        while let Some((name, probe)) = probes.next().await {
            findings.extend(probe?.and_then(|it| unheard(&name, it)));
        }
        findings.extend(shared_addresses(&view.pool));
        findings.extend(session_findings(&view.pool));
        let standings = self.standings();
        findings.extend(enough(&lanes(&view, &[], &standings)));
        Ok(findings)
    }

    fn executor_finding(&self, view: &PoolView, executor: &Executor) -> Finding {
        let name = &executor.name;
        if !view.addresses.contains_key(name) {
            let detail = format!("`{name}` has the invalid address `{}`", executor.url);
            return Finding::problem(
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
            return Finding::problem("executors", detail, "Set it and restart the server.");
        }
        let seen = self.executor_view(executor.clone());
        let check = format!("Fix it, then run `jurat executors check {name}`.");
        if let BreakerState::Open(until) = seen.circuit {
            let seconds = until.millis_since(self.inner.clock.now()).div_ceil(1_000);
            let detail =
                format!("`{name}` failed repeatedly and is not called for another {seconds} s");
            return Finding::warning("executors", detail, check);
        }
        match seen.executor.probe {
            Some(probe) if probe.is_well() => Finding::ok("executors", format!("`{name}` is up")),
            Some(probe) => {
                let why = probe.problem().unwrap_or_default();
                Finding::warning("executors", format!("`{name}` is down: {why}"), check)
            }
            None => Finding::warning("executors", format!("`{name}` was never checked"), check),
        }
    }
}

/// An executor that wants to be told of events, and does not hear them.
fn unheard(name: &str, probe: EventsProbe) -> Option<Finding> {
    let why = probe.error?;
    let detail = format!("`{name}` does not receive events at `{}`: {why}", probe.url);
    let advice = "Make it listen there, or register it with another `--agent-events-url`.";
    Some(Finding::warning("agent-events", detail, advice))
}

/// Executors that are one service under several names, which rounds take for independent ones.
fn shared_addresses(pool: &Pool) -> Vec<Finding> {
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for executor in pool.executors.values() {
        names.entry(&executor.url).or_default().push(format!("`{}`", executor.name));
    }
    let shared = names.into_iter().filter(|(_, names)| 1 < names.len());
    let shared = shared.map(|(url, names)| {
        let detail = format!("{} share the address `{url}`", names.join(", "));
        let advice = "Remove all but one with `jurat executors remove NAME`, and add several sessions to it if you need them; asking one service twice is not a second opinion.";
        Finding::warning("executors", detail, advice)
    });
    shared.collect()
}

/// Sessions that lead nowhere, and executors that none leads to.
fn session_findings(pool: &Pool) -> Vec<Finding> {
    let lost = pool.sessions.values().filter(|it| !pool.executors.contains_key(&it.executor));
    let lost = lost.map(|session| {
        let detail = format!(
            "`{}` uses the executor `{}`, which is not registered",
            session.id, session.executor
        );
        let advice = format!("Run `jurat sessions remove {}`.", session.id);
        Finding::problem("sessions", detail, advice)
    });
    let led_to: BTreeSet<&str> = pool.sessions.values().map(|it| it.executor.as_str()).collect();
    let idle = pool.executors.keys().filter(|name| !led_to.contains(name.as_str()));
    let idle = idle.map(|name| {
        let detail = format!("no session uses `{name}`, so it is never called");
        let advice = format!("Run `jurat sessions add ID --executor {name}`, or remove it.");
        Finding::warning("sessions", detail, advice)
    });
    lost.chain(idle).collect()
}

/// Whether three can be asked that do not fail together.
fn enough(lanes: &[Lane<'_>]) -> Vec<Finding> {
    let able: Vec<&Lane<'_>> = lanes.iter().filter(|lane| lane.standing.is_ok()).collect();
    if able.len() < THREE {
        return vec![Finding::warning(
            "sessions",
            format!(
                "{} can answer now, but a round with three replicas needs {THREE}",
                sessions(able.len())
            ),
            "Add executors, or fix those that are down.",
        )];
    }
    let families: BTreeSet<String> =
        able.iter().map(|lane| lane.independence().provider_family).collect();
    if families.len() < THREE {
        let names: Vec<String> = families.iter().map(|name| format!("`{name}`")).collect();
        return vec![Finding::warning(
            "sessions",
            format!(
                "{} can answer now, but they come from only {}: {}",
                sessions(able.len()),
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
        sessions(able.len()),
        families.len()
    );
    vec![Finding::ok("sessions", detail)]
}

fn sessions(number: usize) -> String {
    if number == 1 { "1 session".to_owned() } else { format!("{number} sessions") }
}

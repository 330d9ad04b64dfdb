//! Starts the background loops of a node, and expires rounds that a stopped node left open.

use std::time::Duration;

use jurat_core::round::{
    OpenRound, RoundClosing, RoundEnding,
    decision::DecisionEntry,
    replica::{FailureCode, Replica, ReplicaAnswer},
};
use jurat_store::{Behalf, RoundLost, RoundTakeover, TakeoverScope, WriteOutcome};

use super::close::no_consensus;
use crate::{Engine, EngineError};

const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Sooner than a probe expires, so that callers rarely wait for one.
const PROBE_EVERY: Duration = Duration::from_secs(10);
const REFRESH_EVERY: Duration = Duration::from_secs(2);
const CANCELLED_EVERY: Duration = Duration::from_secs(1);
const KEY_USES_EVERY: Duration = Duration::from_secs(15);
const PRUNE_EVERY: Duration = Duration::from_mins(10);
const TAKEOVER_LEASE_MS: u64 = 30_000;
const TAKEOVERS_AT_ONCE: u32 = 100;

/// Whether another node may share the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoleNode {
    /// This process holds the exclusive lock: every open round is an orphan.
    Yes,
    /// Other nodes may be running: only rounds with an expired lease are orphans.
    No,
}

impl Engine {
    /// Expires the rounds of an earlier process, then starts the background loops.
    pub async fn start(&self, alone: SoleNode) -> Result<(), EngineError> {
        let orphans = match alone {
            SoleNode::Yes => TakeoverScope::All,
            SoleNode::No => TakeoverScope::LeaseOver,
        };
        self.expire_orphans(orphans).await?;
        if alone == SoleNode::Yes {
            let now = self.inner.clock.now();
            self.inner.store.payments().take_over(&Behalf::Platform, &now).await?;
        }
        self.watch_pressure();
        let engine = self.clone();
        self.inner.background.repeat_every(PROBE_EVERY, move || {
            let engine = engine.clone();
            async move { engine.probe_registered().await }
        });
        let engine = self.clone();
        self.inner.background.repeat_every(SWEEP_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.expire_orphans(TakeoverScope::LeaseOver).await {
                    tracing::warn!(error = %error, "could not look for abandoned rounds");
                }
            }
        });
        let engine = self.clone();
        self.inner.background.repeat_every(KEY_USES_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.key_uses_write().await {
                    tracing::warn!(error = %error, "could not record when keys were last used");
                }
            }
        });
        self.prune_periodically();
        self.watch_for_changes();
        self.drive_tasks();
        self.deliver_agent_events();
        self.deliver_webhooks();
        self.watch_payments();
        self.serve_peers();
        Ok(())
    }

    /// Prunes expired data periodically.
    fn prune_periodically(&self) {
        let engine = self.clone();
        self.inner.background.repeat_every(PRUNE_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.prune_evidence().await {
                    tracing::warn!(error = %error, "could not remove old evidence");
                }
                match engine.prune_payments().await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "removed old payments"),
                    Err(error) => {
                        tracing::warn!(error = %error, "could not remove old payments");
                    }
                }
                match engine.prune_stored().await {
                    Ok(report) if report.pruned.most() == 0 => {}
                    Ok(report) => {
                        let (accounts, pruned) = (report.accounts, report.pruned);
                        tracing::info!(
                            accounts,
                            answers = pruned.answers,
                            rounds = pruned.rounds,
                            tasks = pruned.tasks,
                            runs = pruned.runs,
                            agent_events = pruned.agent_events,
                            webhook_deliveries = pruned.webhook_deliveries,
                            "removed old data"
                        );
                    }
                    Err(error) => {
                        tracing::warn!(error = %error, "could not remove old data");
                    }
                }
                match engine.prune_verdicts().await {
                    Ok(0) => {}
                    Ok(count) => tracing::info!(count, "removed old cached verdicts"),
                    Err(error) => {
                        tracing::warn!(error = %error, "could not remove old cached verdicts");
                    }
                }
            }
        });
    }

    /// Polls for changes by other nodes, and for changes by this one whose caller left early.
    fn watch_for_changes(&self) {
        let engine = self.clone();
        self.inner.background.repeat_every(REFRESH_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.pool_refresh().await {
                    tracing::warn!(error = %error, "could not look for changed executors");
                }
            }
        });
        let engine = self.clone();
        self.inner.background.repeat_every(CANCELLED_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.stop_cancelled().await {
                    tracing::warn!(error = %error, "could not look for cancelled rounds");
                }
            }
        });
    }

    /// Closes orphaned rounds as expired and returns their number. A round that cannot be closed
    /// does not block others; it is tried again when its lease is over.
    pub async fn expire_orphans(&self, orphans: TakeoverScope) -> Result<usize, EngineError> {
        let (mut ended, mut first_error) = (0, None);
        loop {
            // Setting the clock forward must not expire active rounds, and setting it back must not
            // expire rounds opened afterwards.
            let now = self.inner.clock.now().min(self.inner.clock.steady());
            let claim = RoundTakeover {
                node: self.inner.node.clone(),
                lease_token: crate::rounds::walk::seed(self.inner.clock.bits()),
                lease_until: now.plus_millis(TAKEOVER_LEASE_MS),
                now,
                limit: TAKEOVERS_AT_ONCE,
                orphans,
            };
            let rounds = self.inner.store.rounds().take_over(&Behalf::Platform, &claim).await?;
            if rounds.is_empty() {
                return first_error.map_or(Ok(ended), Err);
            }
            for open in rounds {
                match self.expire(&open).await {
                    Ok(()) => ended += 1,
                    Err(error) => {
                        tracing::warn!(round.id = %open.id, error = %error, "could not expire a round that was left open");
                        first_error.get_or_insert(error);
                    }
                }
            }
        }
    }

    async fn expire(&self, open: &OpenRound) -> Result<(), EngineError> {
        tracing::warn!(round.id = %open.id, "expired a round that a stopped node left open");
        let behalf = Behalf::Account(open.account.clone());
        let judge_calls = self.inner.store.judge_calls();
        // Judge calls are paid, although their answers are lost.
        let sent = judge_calls.sent(&behalf, &open.account, &open.id).await?;
        // A spare that was asked has no replica here, but is paid as well.
        let spares: u64 = sent.iter().skip(open.seats.len()).sum();
        let paid = |index: usize| {
            let own = sent.get(index).copied().unwrap_or_default();
            if index == 0 { own.saturating_add(spares) } else { own }
        };
        let replicas: Vec<Replica> = open
            .seats
            .iter()
            .enumerate()
            .map(|(index, seat)| Replica {
                index,
                seat: index,
                replaced_by: None,
                session_id: seat.session_id.clone(),
                executor: seat.executor.clone(),
                independence: seat.independence.clone(),
                reliability: seat.reliability,
                answer: ReplicaAnswer::nothing(
                    FailureCode::NodeStopped,
                    "the node stopped before the round was closed",
                ),
                latency_ms: 0,
                cost_micros: paid(index),
                usage: None,
            })
            .collect();
        let consensus = no_consensus(&replicas);
        let closed_at = self.inner.clock.now();
        let entry =
            DecisionEntry::new(open, RoundEnding::Expired, &replicas, &consensus, closed_at)
                .canonical_entry();
        let closing = RoundClosing {
            ending: RoundEnding::Expired,
            replicas,
            consensus,
            closed_at,
            receipt_id: entry.digest,
            entry: entry.text,
            bookings: Vec::new(),
        };
        // Another node may have been faster; the round has ended either way.
        if self.inner.store.rounds().close(&Behalf::from(&open.account), open, &closing).await?
            != WriteOutcome::Refused(RoundLost)
        {
            self.inner.metrics.rounds.ended(open, &closing);
        }
        Ok(())
    }
}

//! Limits waiting agent events, and prunes old ones.

use std::collections::BTreeMap;

use jurat_core::{id::AccountId, task::agent_event::NewAgentEvent, time::Timestamp};
use jurat_store::{AgentEventPruning, Behalf, UndeliverableEvent};

use crate::{Engine, EngineError};

/// Events that are removed in one transaction.
const PRUNED_AT_ONCE: u32 = 1_000;

impl Engine {
    /// Separates events within the quota from events that are dropped because too many wait for
    /// their executor. A task continues either way.
    pub(crate) async fn within_event_quota(
        &self,
        account: &AccountId,
        events: Vec<NewAgentEvent>,
    ) -> Result<(Vec<NewAgentEvent>, Vec<UndeliverableEvent>), EngineError> {
        let most = self.inner.limits.agent_events.pending;
        let behalf = Behalf::Account(account.clone());
        let (mut fit, mut given_up) = (Vec::new(), Vec::new());
        let mut pending: BTreeMap<String, u32> = BTreeMap::new();
        for event in events {
            let agent_events = self.inner.store.agent_events();
            let count = match pending.get(&event.executor) {
                Some(count) => *count,
                None => agent_events.pending(&behalf, account, &event.executor, &most).await?,
            };
            pending.insert(event.executor.clone(), count.saturating_add(1));
            if count < most {
                fit.push(event);
            } else {
                let reason = format!(
                    "{most} events are already waiting for the executor, which is the limit; this one was dropped"
                );
                given_up.push(UndeliverableEvent { event, reason });
            }
        }
        Ok((fit, given_up))
    }

    /// Removes old events whose delivery has ended.
    pub(crate) async fn prune_agent_events(&self) -> Result<u64, EngineError> {
        let tasks = self.inner.store.agent_events();
        let keep = self.inner.limits.agent_events.keep;
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        let before = Timestamp::from_micros(self.inner.clock.now().micros().saturating_sub(keep));
        let (mut after, mut pruned) = (String::new(), 0);
        while let Some(account) = tasks.account_after(&Behalf::Platform, &after).await? {
            after = account.as_str().to_owned();
            let pruning = AgentEventPruning { account, before, limit: PRUNED_AT_ONCE };
            loop {
                let writing = tasks.prune(&Behalf::Platform, &pruning);
                let gone = self.inner.metrics.write("agent_event_prune", writing).await?;
                pruned += gone;
                if gone < u64::from(PRUNED_AT_ONCE) || self.is_stopping() {
                    break;
                }
            }
        }
        Ok(pruned)
    }
}

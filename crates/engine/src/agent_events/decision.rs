//! Applies the decision of an executor. An executor is one party: it may decline its own work and
//! dispute a decision, but never decides anything itself.

use jurat_core::task::{
    TaskComplaint, TaskKey,
    agent_event::{AgentAction, AgentEventRecord, DecisionRoute},
};
use jurat_wire::executor::{AgentDecision, AgentEvent as AgentEventBody};
use serde_json::Value;

use crate::{Engine, EngineError};

/// A longer reason is cut.
const LONGEST_REASON: usize = 500;

/// The effect of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecisionEffect {
    /// It is for other systems, which read it here.
    Noted,
    /// It was carried out completely.
    Done,
}

impl Engine {
    /// Carries out a decision, or returns why not.
    pub(super) async fn apply_decision(
        &self,
        told: &AgentEventRecord,
        decision: &AgentDecision,
    ) -> Result<DecisionEffect, String> {
        let route = decision.route.parse().map_err(|()| {
            format!("a decision cannot have the route `{}`", short(&decision.route))
        })?;
        match route {
            DecisionRoute::Noop | DecisionRoute::WattetheriaCommit => {
                return Ok(DecisionEffect::Noted);
            }
            DecisionRoute::WattswarmDirect => {}
        }
        let event: AgentEventBody = serde_json::from_value(told.event.body.clone())
            .map_err(|_| "the event cannot be read back".to_owned())?;
        match allowed(&event, decision)? {
            AgentAction::DecideClaim => self.decline_work(told, &event, decision).await?,
            AgentAction::RejectResult | AgentAction::RequestRetry => {
                self.object_to_decision(told, &event, decision).await?;
            }
            AgentAction::Reply => {
                let content = part(decision, "content").and_then(Value::as_str);
                if content.is_none_or(|it| it.trim().is_empty()) {
                    return Err("a reply needs `payload.content`".to_owned());
                }
            }
            // These are recorded, and one executor's answer has no further effect.
            AgentAction::AcceptResult | AgentAction::HumanReview | AgentAction::Ignore => {}
        }
        Ok(DecisionEffect::Done)
    }

    /// Releases the work of an executor that declines it.
    async fn decline_work(
        &self,
        told: &AgentEventRecord,
        event: &AgentEventBody,
        decision: &AgentDecision,
    ) -> Result<(), String> {
        let accepts = part(decision, "accept").or_else(|| part(decision, "approved"));
        match accepts {
            Some(Value::Bool(true)) => return Ok(()),
            Some(Value::Bool(false)) => {}
            _ => return Err("a decision on a claim needs `payload.accept`".to_owned()),
        }
        let execution = event.payload["execution_id"].as_str().unwrap_or_default();
        let executor = &told.event.executor;
        let detail = match &decision.reason {
            Some(reason) => format!("the executor declined: {}", short(reason)),
            None => "the executor declined".to_owned(),
        };
        let id = event.payload["task_id"].as_str().unwrap_or_default().to_owned();
        let key = TaskKey { account: told.account.clone(), id };
        let done = self.task_decline(&key, executor, execution, detail).await;
        done.map_err(|error| format!("nothing was done: {error}"))
    }

    /// Disputes a final decision, as long as that is possible. Decisions that are not final are
    /// left to the votes.
    async fn object_to_decision(
        &self,
        told: &AgentEventRecord,
        event: &AgentEventBody,
        decision: &AgentDecision,
    ) -> Result<(), String> {
        if event.payload["event_kind"] != "decision_finalized" {
            return Ok(());
        }
        let epoch = event.payload["epoch"].as_u64().unwrap_or_default();
        let why = decision.reason.as_deref().map_or("no reason given", str::trim);
        let reason = format!("`{}` says {}: {why}", told.event.executor, decision.action);
        // The rules about who may dispute also apply on behalf of an executor.
        let feedback = TaskComplaint {
            epoch: Some(epoch),
            reason: short(&reason),
            timestamp: None,
            signature: None,
        };
        let refused = |error: EngineError| format!("nothing was done: {error}");
        let caller = self.caller_without_key(&told.account).await.map_err(refused)?;
        let id = event.payload["task_id"].as_str().unwrap_or_default();
        self.task_complain(&caller, id, feedback, None).await.map_err(refused)?;
        Ok(())
    }
}

/// The action, if the event allows it.
fn allowed(event: &AgentEventBody, decision: &AgentDecision) -> Result<AgentAction, String> {
    let is_allowed = event.allowed_actions.contains(&decision.action);
    let action = decision.action.parse().ok().filter(|_| is_allowed);
    action.ok_or_else(|| {
        let known = event.allowed_actions.join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        format!(
            "the action `{}` is not allowed for this event; allowed: {known}",
            short(&decision.action)
        )
    })
}

fn part<'a>(decision: &'a AgentDecision, name: &str) -> Option<&'a Value> {
    decision.payload.as_ref()?.get(name)
}

/// A shortened text without control characters.
fn short(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(LONGEST_REASON).collect()
}

//! `/agent-events`: messages to executors, and their replies.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{ShapeError, shape};

/// The body of `POST /agent-events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentEventCallbackRequest {
    pub event: AgentEvent,
}

/// A message to an executor besides its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentEvent {
    pub event_id: String,
    pub event_type: String,
    pub source_kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_node_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_executor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_envelope: Option<Value>,
    pub payload: Value,
    /// Whether the sender waits for a decision.
    pub requires_commit: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_actions: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// Deduplication key: the same for every delivery of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedupe_key: Option<String>,
    /// Milliseconds since 1970.
    #[schema(maximum = 9_007_199_254_740_991u64)]
    pub created_at: u64,
}

/// An executor's reply to an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentEventCallbackResponse {
    pub ok: bool,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991u64)]
    pub acked_at: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<AgentDecision>,
}

/// An executor's decision on an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AgentDecision {
    pub decision_id: String,
    pub action: String,
    /// `noop`, `wattetheria_commit` or `wattswarm_direct`.
    pub route: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
}

/// Reads the body of `POST /agent-events`.
pub fn decode_agent_event(body: Value) -> Result<AgentEventCallbackRequest, ShapeError> {
    shape::decode(body)
}

/// Reads an executor's reply to an event.
pub fn decode_agent_event_response(body: Value) -> Result<AgentEventCallbackResponse, ShapeError> {
    shape::decode(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_has_all_that_it_needs_and_no_empty_members() {
        let event = AgentEvent {
            event_id: "e1".to_owned(),
            event_type: "task_result_received".to_owned(),
            source_kind: "task_lifecycle".to_owned(),
            source_node_id: None,
            target_agent_id: None,
            target_executor: Some("rt".to_owned()),
            agent_envelope: None,
            payload: json!({"event_kind": "candidate_proposed"}),
            requires_commit: false,
            allowed_actions: Vec::new(),
            correlation_id: None,
            dedupe_key: Some("k".to_owned()),
            created_at: 7,
        };
        let request = AgentEventCallbackRequest { event };
        let written = serde_json::to_value(&request).unwrap();
        assert_eq!(
            written,
            json!({"event": {
                "event_id": "e1",
                "event_type": "task_result_received",
                "source_kind": "task_lifecycle",
                "target_executor": "rt",
                "payload": {"event_kind": "candidate_proposed"},
                "requires_commit": false,
                "dedupe_key": "k",
                "created_at": 7,
            }})
        );
        assert_eq!(decode_agent_event(written), Ok(request));
    }

    #[test]
    fn an_answer_needs_only_its_word() {
        let read = decode_agent_event_response(json!({"ok": true})).unwrap();
        assert_eq!((read.ok, read.decision), (true, None));
        let wrong = decode_agent_event_response(json!({"ok": true, "decision": {"action": "x"}}));
        assert_eq!(wrong.unwrap_err().field, "decision.decision_id");
    }
}

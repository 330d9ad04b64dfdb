//! The identity and behaviour of a fake executor, put together by a builder.

use std::collections::BTreeMap;

use jurat_core::executor::Capabilities;
use serde_json::{Value, json};

use super::answer::{FakeAnswer, FakeVerdict};
use super::fault::ExecutorFault;
use super::gate::Gate;

/// All properties of a fake: its capabilities, its health, and its answers.
#[derive(Debug, Clone)]
#[must_use]
pub struct Behaviour {
    pub capabilities: Capabilities,
    /// Done instead of answering `/capabilities`.
    pub capabilities_fault: Option<ExecutorFault>,
    pub health: FakeHealth,
    pub answer: FakeAnswer,
    /// Done instead of answering `/execute` and `/verify`.
    pub fault: Option<ExecutorFault>,
    pub pace: AnswerPace,
    /// Answers to events of these types; others are accepted.
    pub events: BTreeMap<String, (u16, Value)>,
    /// Done instead of answering `/agent-events`.
    pub events_fault: Option<ExecutorFault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeHealth {
    Healthy,
    Status(u16),
    /// Closes the connection without an answer.
    HangsUp,
    /// Keeps the connection open without an answer.
    Hangs,
}

/// When `/execute` and `/verify` are answered.
#[derive(Debug, Clone)]
pub enum AnswerPace {
    AtOnce,
    /// After `FakeExecutor::release`; each fake has a gate of its own.
    Gated,
    /// After `Gate::release`; several fakes may share the gate.
    Late(Gate),
}

impl Default for Behaviour {
    /// Healthy, capable of everything, and passes every candidate.
    fn default() -> Self {
        Self {
            capabilities: Capabilities {
                task_types: vec!["*".to_owned()],
                profiles: vec!["default".to_owned(), "careful".to_owned()],
                provider_family: "fake".to_owned(),
                model_id: "fake-1".to_owned(),
                policies: Vec::new(),
            },
            capabilities_fault: None,
            health: FakeHealth::Healthy,
            answer: FakeAnswer::default(),
            fault: None,
            pace: AnswerPace::AtOnce,
            events: BTreeMap::new(),
            events_fault: None,
        }
    }
}

impl Behaviour {
    pub fn provider_family(mut self, family: &str) -> Self {
        family.clone_into(&mut self.capabilities.provider_family);
        self
    }

    pub fn model_id(mut self, model: &str) -> Self {
        model.clone_into(&mut self.capabilities.model_id);
        self
    }

    /// With the provider and the model of another behaviour, unless it names its own.
    pub(super) fn named_like(mut self, other: &Self) -> Self {
        let (usual, own) = (Self::default().capabilities, &mut self.capabilities);
        if own.provider_family == usual.provider_family {
            own.provider_family.clone_from(&other.capabilities.provider_family);
        }
        if own.model_id == usual.model_id {
            own.model_id.clone_from(&other.capabilities.model_id);
        }
        self
    }

    pub fn task_types(mut self, task_types: &[&str]) -> Self {
        self.capabilities.task_types = owned(task_types);
        self
    }

    pub fn profiles(mut self, profiles: &[&str]) -> Self {
        self.capabilities.profiles = owned(profiles);
        self
    }

    pub fn policies(mut self, policies: &[&str]) -> Self {
        self.capabilities.policies = owned(policies);
        self
    }

    pub fn health(mut self, health: FakeHealth) -> Self {
        self.health = health;
        self
    }

    /// Does this instead of answering `/capabilities`.
    pub fn capabilities_fault(mut self, fault: ExecutorFault) -> Self {
        self.capabilities_fault = Some(fault);
        self
    }

    /// Does this instead of answering `/execute` and `/verify`.
    pub fn fault(mut self, fault: ExecutorFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The answer to events of a type; `*` matches any other type.
    pub fn told(mut self, event_type: &str, status: u16, body: Value) -> Self {
        self.events.insert(event_type.to_owned(), (status, body));
        self
    }

    /// Does this instead of answering `/agent-events`.
    pub fn events_fault(mut self, fault: ExecutorFault) -> Self {
        self.events_fault = Some(fault);
        self
    }

    pub fn verdict(mut self, verdict: FakeVerdict) -> Self {
        self.answer.verdict = verdict;
        self
    }

    /// The `candidate_output` of `/execute`.
    pub fn output(mut self, output: Value) -> Self {
        self.answer.output = output;
        self
    }

    /// The score of `/verify`, and the `confidence` of an output of `/execute` that is an object.
    pub fn score(mut self, score: f64) -> Self {
        self.answer.verdict.score = json!(score);
        if let Value::Object(output) = &mut self.answer.output {
            output.insert("confidence".to_owned(), json!(score));
        }
        self
    }

    /// The score of `/verify` exactly as given: `1` instead of `1.0`, or no number at all.
    pub fn score_as(mut self, score: Value) -> Self {
        self.answer.verdict.score = score;
        self
    }

    pub fn reason_codes(mut self, codes: &[u16]) -> Self {
        self.answer.verdict.reason_codes = codes.to_vec();
        self
    }

    /// Omits `verification_status`.
    pub fn without_status(mut self) -> Self {
        self.answer.verdict.status = None;
        self
    }

    /// Adds to `evidence_inline` of `/execute`.
    pub fn evidence(mut self, mime: &str, content: &str) -> Self {
        self.answer.evidence_inline.push(json!({ "mime": mime, "content": content }));
        self
    }

    /// Adds to `evidence_refs` of `/execute`.
    pub fn evidence_ref(mut self, reference: Value) -> Self {
        self.answer.evidence_refs.push(reference);
        self
    }

    pub(super) fn when_told(&self, event_type: &Value) -> (u16, Value) {
        let event_type = event_type.as_str().unwrap_or_default();
        let known = self.events.get(event_type).or_else(|| self.events.get("*"));
        known.cloned().unwrap_or_else(|| {
            (200, json!({ "ok": true, "detail": format!("received {event_type}") }))
        })
    }

    pub(super) fn capabilities_json(&self) -> Value {
        let declared = &self.capabilities;
        let mut body = json!({
            "task_types": declared.task_types,
            "profiles": declared.profiles,
            "provider_family": declared.provider_family,
            "model_id": declared.model_id,
        });
        if !declared.policies.is_empty() {
            body["policies"] = json!(declared.policies);
        }
        body
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

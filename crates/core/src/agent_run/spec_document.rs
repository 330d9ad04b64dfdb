//! Defines the stored form of a spec, which stays readable when the rules for new specs change.
//!
//! The first form has no `version` and the member names of a request, so that earlier programs and
//! the pruning of the store read it too. It includes the specs that earlier programs stored as
//! their callers had sent them. Reading checks no limits.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    AgentRunSpec, AgentSpec, AggregationSpec, ConfidenceFields, NullPolicy, ReexploreLimits,
    ReputationUnits, RetrySpec, TiePolicy,
};

/// The newest form that this program reads and writes.
const VERSION: u32 = 1;

/// The reason why a stored spec cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SpecReadError {
    /// The document has another shape.
    #[error("the stored spec has an unknown shape")]
    Shape(#[from] serde_json::Error),
    /// A later program wrote the document.
    #[error("the stored spec has version {0}, and this program reads up to {VERSION}")]
    Version(u32),
    /// The document has a word that no program wrote.
    #[error("the stored spec has the unknown word `{0}`")]
    Word(String),
}

impl AgentRunSpec {
    /// The stored form, with the labels of the caller.
    pub fn to_document(&self, labels: &BTreeMap<String, String>) -> Value {
        json!(SpecDocument::new(self, labels))
    }

    /// Reads the stored form.
    pub fn from_document(document: &Value) -> Result<Self, SpecReadError> {
        SpecDocument::deserialize(document)?.read()
    }
}

#[derive(Serialize, Deserialize)]
struct SpecDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    run_id: String,
    task_type: Option<String>,
    shared_inputs: Option<Value>,
    agents: Vec<AgentDocument>,
    contract: Option<Value>,
    verifiers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_executor: Option<u32>,
    retry: Option<RetryDocument>,
    aggregation: Option<AggregationDocument>,
    /// Words of the caller that mean nothing here.
    #[serde(flatten)]
    labels: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct AgentDocument {
    agent_id: String,
    executor: String,
    profile: Option<String>,
    prompt: String,
    weight: Option<f64>,
    priority: Option<i32>,
    contract: Option<Value>,
    verifiers: Option<Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct RetryDocument {
    max_attempts: Option<u32>,
    backoff_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct AggregationDocument {
    mode: Option<String>,
    /// Zero means a majority.
    quorum: Option<u32>,
    tie_policy: Option<TieDocument>,
    null_policy: Option<NullDocument>,
}

#[derive(Serialize, Deserialize)]
struct TieDocument {
    enabled_on: Option<Vec<String>>,
    chain: Option<Vec<String>>,
    reexplore: Option<ReexploreDocument>,
    confidence_weighted: Option<ConfidenceDocument>,
    reputation_weighted: Option<ReputationDocument>,
}

#[derive(Serialize, Deserialize)]
struct NullDocument {
    enabled_on: Option<Vec<String>>,
    chain: Option<Vec<String>>,
    reexplore: Option<ReexploreDocument>,
}

#[derive(Serialize, Deserialize)]
struct ReexploreDocument {
    max_tie_iterations: Option<u32>,
    no_new_evidence_rounds: Option<u32>,
    require_new_evidence: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct ConfidenceDocument {
    decision_confidence_field: Option<String>,
    answer_confidence_field: Option<String>,
    confidence_field: Option<String>,
    default_confidence: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct ReputationDocument {
    agent_reputation_units: Option<BTreeMap<String, i64>>,
    missing_reputation: Option<String>,
}

impl SpecDocument {
    fn new(spec: &AgentRunSpec, labels: &BTreeMap<String, String>) -> Self {
        let labels = labels.iter().map(|(name, text)| (name.clone(), json!(text)));
        Self {
            version: None,
            run_id: spec.run_id.clone(),
            task_type: Some(spec.task_type.clone()),
            shared_inputs: Some(spec.shared_inputs.clone()),
            agents: spec.agents.iter().map(AgentDocument::from).collect(),
            contract: Some(spec.contract.clone()),
            verifiers: Some(spec.verifiers.clone()),
            per_executor: spec.per_executor,
            retry: Some(RetryDocument {
                max_attempts: Some(spec.retry.max_attempts),
                backoff_ms: Some(spec.retry.backoff_ms),
            }),
            aggregation: Some((&spec.aggregation).into()),
            labels: labels.collect(),
        }
    }

    fn read(self) -> Result<AgentRunSpec, SpecReadError> {
        if let Some(version) = self.version.filter(|version| VERSION < *version) {
            return Err(SpecReadError::Version(version));
        }
        let aggregation = self.aggregation.map(AggregationDocument::read).transpose()?;
        Ok(AgentRunSpec {
            run_id: self.run_id,
            task_type: self.task_type.unwrap_or_else(|| "swarm".to_owned()),
            shared_inputs: self.shared_inputs.unwrap_or_else(|| json!({})),
            agents: self.agents.into_iter().map(AgentDocument::read).collect(),
            contract: self.contract.unwrap_or_else(|| json!({})),
            verifiers: self.verifiers.unwrap_or_default(),
            per_executor: self.per_executor,
            retry: self.retry.map(RetryDocument::read).unwrap_or_default(),
            aggregation: aggregation.unwrap_or_default(),
        })
    }
}

impl From<&AgentSpec> for AgentDocument {
    fn from(agent: &AgentSpec) -> Self {
        Self {
            agent_id: agent.agent_id.clone(),
            executor: agent.executor.clone(),
            profile: Some(agent.profile.clone()),
            prompt: agent.prompt.clone(),
            weight: Some(agent.weight),
            priority: Some(agent.priority),
            contract: Some(agent.contract.clone()),
            verifiers: Some(agent.verifiers.clone()),
        }
    }
}

impl AgentDocument {
    fn read(self) -> AgentSpec {
        AgentSpec {
            agent_id: self.agent_id,
            executor: self.executor,
            profile: self.profile.unwrap_or_else(|| "default".to_owned()),
            prompt: self.prompt,
            weight: self.weight.unwrap_or(1.0),
            priority: self.priority.unwrap_or(0),
            contract: self.contract.unwrap_or_else(|| json!({})),
            verifiers: self.verifiers.unwrap_or_default(),
        }
    }
}

impl RetryDocument {
    fn read(self) -> RetrySpec {
        let usual = RetrySpec::default();
        RetrySpec {
            max_attempts: self.max_attempts.unwrap_or(usual.max_attempts),
            backoff_ms: self.backoff_ms.unwrap_or(usual.backoff_ms),
        }
    }
}

impl From<&AggregationSpec> for AggregationDocument {
    fn from(spec: &AggregationSpec) -> Self {
        let AggregationSpec { mode, quorum, tie, null } = spec;
        let (confidence, reputation) = (&tie.confidence, &tie.reputation);
        Self {
            mode: Some(mode.clone()),
            quorum: Some(quorum.unwrap_or(0)),
            tie_policy: Some(TieDocument {
                enabled_on: Some(texts(&tie.enabled_on)),
                chain: Some(texts(&tie.chain)),
                reexplore: Some(tie.reexplore.into()),
                confidence_weighted: Some(ConfidenceDocument {
                    decision_confidence_field: Some(confidence.decision.clone()),
                    answer_confidence_field: Some(confidence.answer.clone()),
                    confidence_field: Some(confidence.any.clone()),
                    default_confidence: Some(confidence.default),
                }),
                reputation_weighted: Some(ReputationDocument {
                    agent_reputation_units: Some(reputation.units.clone()),
                    missing_reputation: Some(reputation.missing.to_string()),
                }),
            }),
            null_policy: Some(NullDocument {
                enabled_on: Some(texts(&null.enabled_on)),
                chain: Some(texts(&null.chain)),
                reexplore: Some(null.reexplore.into()),
            }),
        }
    }
}

impl AggregationDocument {
    fn read(self) -> Result<AggregationSpec, SpecReadError> {
        let usual = AggregationSpec::default();
        Ok(AggregationSpec {
            mode: self.mode.unwrap_or(usual.mode),
            quorum: self.quorum.filter(|quorum| 0 < *quorum),
            tie: self.tie_policy.map(TieDocument::read).transpose()?.unwrap_or(usual.tie),
            null: self.null_policy.map(NullDocument::read).transpose()?.unwrap_or(usual.null),
        })
    }
}

impl TieDocument {
    fn read(self) -> Result<TiePolicy, SpecReadError> {
        let usual = TiePolicy::default();
        let enabled_on = words(self.enabled_on)?.map(BTreeSet::from_iter);
        let confidence = self.confidence_weighted.map(ConfidenceDocument::read);
        let reputation = self.reputation_weighted.map(ReputationDocument::read).transpose()?;
        Ok(TiePolicy {
            enabled_on: enabled_on.unwrap_or(usual.enabled_on),
            chain: words(self.chain)?.unwrap_or(usual.chain),
            reexplore: self.reexplore.map(ReexploreDocument::read).unwrap_or_default(),
            confidence: confidence.unwrap_or_default(),
            reputation: reputation.unwrap_or_default(),
        })
    }
}

impl NullDocument {
    fn read(self) -> Result<NullPolicy, SpecReadError> {
        let usual = NullPolicy::default();
        let enabled_on = words(self.enabled_on)?.map(BTreeSet::from_iter);
        Ok(NullPolicy {
            enabled_on: enabled_on.unwrap_or(usual.enabled_on),
            chain: words(self.chain)?.unwrap_or(usual.chain),
            reexplore: self.reexplore.map(ReexploreDocument::read).unwrap_or_default(),
        })
    }
}

impl From<ReexploreLimits> for ReexploreDocument {
    fn from(limits: ReexploreLimits) -> Self {
        Self {
            max_tie_iterations: Some(limits.max_iterations),
            no_new_evidence_rounds: Some(limits.no_new_evidence_rounds),
            require_new_evidence: Some(limits.require_new_evidence),
        }
    }
}

impl ReexploreDocument {
    fn read(self) -> ReexploreLimits {
        let usual = ReexploreLimits::default();
        let rounds = self.no_new_evidence_rounds;
        ReexploreLimits {
            max_iterations: self.max_tie_iterations.unwrap_or(usual.max_iterations),
            no_new_evidence_rounds: rounds.unwrap_or(usual.no_new_evidence_rounds),
            require_new_evidence: self.require_new_evidence.unwrap_or(usual.require_new_evidence),
        }
    }
}

impl ConfidenceDocument {
    fn read(self) -> ConfidenceFields {
        let usual = ConfidenceFields::default();
        ConfidenceFields {
            decision: self.decision_confidence_field.unwrap_or(usual.decision),
            answer: self.answer_confidence_field.unwrap_or(usual.answer),
            any: self.confidence_field.unwrap_or(usual.any),
            default: self.default_confidence.unwrap_or(usual.default),
        }
    }
}

impl ReputationDocument {
    fn read(self) -> Result<ReputationUnits, SpecReadError> {
        let usual = ReputationUnits::default();
        Ok(ReputationUnits {
            units: self.agent_reputation_units.unwrap_or_default(),
            missing: self.missing_reputation.map(word).transpose()?.unwrap_or(usual.missing),
        })
    }
}

fn texts<'a, T: ToString + 'a>(words: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    words.into_iter().map(ToString::to_string).collect()
}

fn words<T: FromStr>(texts: Option<Vec<String>>) -> Result<Option<Vec<T>>, SpecReadError> {
    texts.map(|texts| texts.into_iter().map(word).collect()).transpose()
}

fn word<T: FromStr>(text: String) -> Result<T, SpecReadError> {
    text.parse().map_err(|_| SpecReadError::Word(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> Value {
        json!({
            "run_id": "r1",
            "feed_key": "kept",
            "agents": [{ "agent_id": "a", "executor": "one", "prompt": "why?", "weight": 2 }],
            "per_executor": null,
            "aggregation": {
                "quorum": 1,
                "tie_policy": { "chain": ["REEXPLORE"], "reexplore": { "max_tie_iterations": 3 } },
            },
        })
    }

    #[test]
    fn a_spec_as_it_was_sent_reads_with_the_defaults_of_a_request() {
        let spec = AgentRunSpec::from_document(&stored()).unwrap();
        assert_eq!((spec.task_type.as_str(), spec.per_executor), ("swarm", None));
        assert_eq!((spec.agents[0].profile.as_str(), spec.agents[0].weight), ("default", 2.0));
        assert_eq!(spec.retry, RetrySpec::default());
        assert_eq!(spec.aggregation.quorum, Some(1));
        assert_eq!(spec.aggregation.tie.reexplore.max_iterations, 3);
        assert_eq!(spec.aggregation.null, NullPolicy::default());
    }

    #[test]
    fn a_stored_spec_reads_back() {
        let spec = AgentRunSpec::from_document(&stored()).unwrap();
        let labels = BTreeMap::from([("feed_key".to_owned(), "kept".to_owned())]);
        let document = spec.to_document(&labels);
        assert_eq!(document["feed_key"], "kept");
        assert_eq!(AgentRunSpec::from_document(&document).unwrap(), spec);
    }

    #[test]
    fn a_spec_beyond_the_limits_of_a_request_still_reads() {
        let mut document = stored();
        document["run_id"] = json!("sample");
        document["agents"][0]["weight"] = json!(-7);
        document["agents"][0]["verifiers"] = json!(["v", "v"]);
        document["retry"] = json!({ "max_attempts": 1_000_000 });
        document["member_of_long_ago"] = json!({ "x": 1 });
        let spec = AgentRunSpec::from_document(&document).unwrap();
        assert!(!spec.check().is_empty(), "a request would be refused");
        assert_eq!(spec.retry.max_attempts, 1_000_000);
    }

    #[test]
    fn a_spec_of_a_later_program_is_refused() {
        let mut document = stored();
        document["version"] = json!(2);
        let refused = AgentRunSpec::from_document(&document).unwrap_err();
        assert!(matches!(refused, SpecReadError::Version(2)), "{refused}");
        document["version"] = json!(1);
        assert!(AgentRunSpec::from_document(&document).is_ok());
        document["aggregation"]["tie_policy"]["chain"] = json!(["COIN"]);
        let refused = AgentRunSpec::from_document(&document).unwrap_err();
        assert!(matches!(refused, SpecReadError::Word(word) if word == "COIN"));
    }
}

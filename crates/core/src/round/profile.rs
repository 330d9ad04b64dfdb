//! Consensus profiles: named terms of consensus, which chat clients select as a model.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::job::{Job, PoolEntry};

/// The prefix of every model.
const PREFIX: &str = "jurat/";

/// A named set of terms.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsensusProfile {
    /// The part of the model's name after `jurat/`.
    pub name: String,
    /// The purpose of the profile, in words; its terms if nobody stated it.
    pub about: Option<String>,
    pub author: ProfileAuthor,
    /// The members of a delegate request that the profile sets.
    pub request: Map<String, Value>,
    /// A sample of the jobs that the profile makes.
    pub sample: Job,
}

/// The author of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileAuthor {
    BuiltIn,
    Operator,
}

impl ConsensusProfile {
    /// The name by which clients select the profile.
    pub fn model(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The sessions that the profile names.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.sample.terms.pool.iter().filter_map(|entry| match entry {
            PoolEntry::Session(id) => Some(id.as_str()),
            PoolEntry::Label(_) | PoolEntry::Profile(_) | PoolEntry::Executor { .. } => None,
        })
    }

    /// The terms in a few words.
    pub fn terms(&self) -> String {
        let (job, terms) = (&self.sample, &self.sample.terms);
        let mut parts = vec![match terms.replicas {
            1 => "1 replica".to_owned(),
            several => format!("{several} replicas"),
        }];
        if let Some(tier) = job.tier {
            parts.push(format!("tier {}", tier.as_str()));
        }
        if !terms.pool.is_empty() {
            parts.push(format!("a pool of {}", terms.pool.len()));
        }
        parts.push(format!("aggregation {}", terms.aggregation.as_str()));
        parts.push(format!("policy {}", job.policy.policy_id));
        parts.push(format!("on disagreement {}", terms.disagreement.as_str()));
        parts.push(format!("{} ms", job.timeout_ms));
        parts.join(", ")
    }
}

/// The profiles of a server, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConsensusProfiles(BTreeMap<String, ConsensusProfile>);

impl ConsensusProfiles {
    /// Adds profiles; one whose name is taken is left out.
    #[must_use]
    pub fn with(mut self, profiles: impl IntoIterator<Item = ConsensusProfile>) -> Self {
        for profile in profiles {
            self.0.entry(profile.name.clone()).or_insert(profile);
        }
        self
    }

    /// The profile that a model names.
    pub fn of_model(&self, model: &str) -> Option<&ConsensusProfile> {
        self.0.get(model.strip_prefix(PREFIX)?)
    }

    /// All profiles, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ConsensusProfile> {
        self.0.values()
    }
}

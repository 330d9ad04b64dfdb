//! Consensus profiles: named terms of consensus, which chat clients select as a model.

use std::collections::BTreeMap;

use jurat_core::{
    code::ProblemCode,
    executor::session::Tier,
    policy::Policy,
    round::job::{Job, PoolEntry},
};
use serde_json::{Map, Value, json};

use crate::{
    api::{
        consensus_request,
        kit::{
            request::{self, request, values::NotBlank},
            terms::ConsensusTerms,
        },
        policy_request::{PolicyChoice, TimeoutMs},
    },
    problem::Problem,
};

/// The prefix of every model.
const PREFIX: &str = "jurat/";
/// Maximum length of the name of a profile.
const LONGEST_NAME: usize = 64;

request! {
    /// A profile as an operator writes it: the `consensus` block of a request, with the policy and
    /// the deadline beside it.
    pub strict struct ProfileSection {
        about: Option<NotBlank>,
        policy: Option<PolicyChoice>,
        timeout_ms: Option<TimeoutMs>;
        ..consensus: ConsensusTerms
    }
}

/// A named set of terms.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsensusProfile {
    /// The part of the model's name after `jurat/`.
    pub name: String,
    /// The purpose of the profile, in words.
    pub about: String,
    pub author: ProfileAuthor,
    /// The members of a delegate request that the profile sets.
    request: Map<String, Value>,
    /// A sample of the jobs that the profile makes.
    job: Job,
}

/// The author of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileAuthor {
    BuiltIn,
    Operator,
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFault {
    /// The path of the faulty setting within the profile; empty for the profile itself.
    pub field: String,
    /// The end of a sentence about the setting.
    pub reason: String,
}

impl ConsensusProfile {
    /// A profile of an operator, or everything that is wrong with it.
    pub fn read(name: &str, section: &Value) -> Result<Self, Vec<ProfileFault>> {
        if let Some(reason) = name_fault(name) {
            return Err(vec![ProfileFault { field: String::new(), reason }]);
        }
        request::read_all::<ProfileSection>(section, ProblemCode::ValidationError)
            .map_err(|problems| problems.into_iter().map(fault).collect::<Vec<_>>())?;
        let mut consensus = section.as_object().cloned().unwrap_or_default();
        let about = consensus.remove("about");
        let policy = consensus.remove("policy");
        let timeout_ms = consensus.remove("timeout_ms");
        let mut request = Map::from_iter([("consensus".to_owned(), Value::Object(consensus))]);
        request.extend(policy.map(|policy| ("policy".to_owned(), policy)));
        let execution = timeout_ms.map(|timeout_ms| json!({ "timeout_ms": timeout_ms }));
        request.extend(execution.map(|execution| ("execution".to_owned(), execution)));
        let job = job(&request).map_err(|problem| vec![fault(problem)])?;
        check(&job).map_err(|fault| vec![fault])?;
        let about = about.as_ref().and_then(Value::as_str).map(str::to_owned);
        let about = about.unwrap_or_else(|| summary(&job));
        Ok(Self { name: name.to_owned(), about, author: ProfileAuthor::Operator, request, job })
    }

    /// The profile of a tier.
    fn of_tier(tier: Tier) -> Option<Self> {
        let policy = json!({ "tier": tier.as_str() });
        let request = Map::from_iter([("policy".to_owned(), policy)]);
        let job = job(&request).ok()?;
        let about = summary(&job);
        let (name, author) = (tier.as_str().to_owned(), ProfileAuthor::BuiltIn);
        Some(Self { name, about, author, request, job })
    }

    /// The name by which clients select the profile.
    pub fn model(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The members of a delegate request that the profile sets.
    pub const fn request(&self) -> &Map<String, Value> {
        &self.request
    }

    /// The sessions that the profile names.
    pub fn sessions(&self) -> impl Iterator<Item = &str> {
        self.job.terms.pool.iter().filter_map(|entry| match entry {
            PoolEntry::Session(id) => Some(id.as_str()),
            PoolEntry::Label(_) | PoolEntry::Profile(_) | PoolEntry::Executor { .. } => None,
        })
    }

    /// The terms in a few words.
    pub fn terms(&self) -> String {
        summary(&self.job)
    }
}

/// All profiles of a server: one for each tier, and those of its operator.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsensusProfiles(BTreeMap<String, ConsensusProfile>);

impl Default for ConsensusProfiles {
    fn default() -> Self {
        let tiers = Tier::ALL.iter().filter_map(|tier| ConsensusProfile::of_tier(*tier));
        Self::from_iter(tiers)
    }
}

impl FromIterator<ConsensusProfile> for ConsensusProfiles {
    fn from_iter<I: IntoIterator<Item = ConsensusProfile>>(profiles: I) -> Self {
        Self(profiles.into_iter().map(|profile| (profile.name.clone(), profile)).collect())
    }
}

impl ConsensusProfiles {
    /// The built-in profiles and those of the operator, who cannot replace a built-in one.
    #[must_use]
    pub fn with(mut self, profiles: impl IntoIterator<Item = ConsensusProfile>) -> Self {
        for profile in profiles {
            self.0.entry(profile.name.clone()).or_insert(profile);
        }
        self
    }

    /// The profile that a model names.
    pub fn find(&self, model: &str) -> Result<&ConsensusProfile, Problem> {
        let profile = model.strip_prefix(PREFIX).and_then(|name| self.0.get(name));
        profile.ok_or_else(|| {
            let known: Vec<String> = self.iter().map(|it| format!("`{}`", it.model())).collect();
            let model: String = model.chars().take(80).collect();
            let detail = format!("there is no model `{model}`; use one of {}", known.join(", "));
            Problem::new(ProblemCode::NotFound, detail).at("model")
        })
    }

    /// All profiles, by name.
    pub fn iter(&self) -> impl Iterator<Item = &ConsensusProfile> {
        self.0.values()
    }
}

fn job(request: &Map<String, Value>) -> Result<Job, Problem> {
    let mut request = request.clone();
    request.insert("objective".to_owned(), json!("a sample"));
    consensus_request::delegate(&Value::Object(request))
}

/// Checks the rules that a request meets only when its round begins.
fn check(job: &Job) -> Result<(), ProfileFault> {
    let terms = &job.terms;
    let replicas = usize::from(terms.replicas);
    let are_sessions = terms.pool.iter().all(|entry| matches!(entry, PoolEntry::Session(_)));
    if !terms.pool.is_empty() && are_sessions && terms.pool.len() < replicas {
        let reason = format!(
            "has {} of the {replicas} sessions that the replicas need; add sessions, or set `replicas`",
            terms.pool.len()
        );
        return Err(ProfileFault { field: "session_pool".to_owned(), reason });
    }
    Policy::bind(&job.policy).map(drop).map_err(|error| ProfileFault {
        field: "policy".to_owned(),
        reason: format!("is refused: {error}"),
    })
}

fn name_fault(name: &str) -> Option<String> {
    let is_formed = |symbol: char| symbol.is_ascii_lowercase() || symbol.is_ascii_digit();
    let is_name = name.starts_with(is_formed)
        && name.len() <= LONGEST_NAME
        && name.chars().all(|symbol| is_formed(symbol) || matches!(symbol, '-' | '_' | '.'));
    if name.parse::<Tier>().is_ok() {
        return Some("cannot be set: it is the built-in profile of that tier".to_owned());
    }
    (!is_name).then(|| {
        format!(
            "must have a name of at most {LONGEST_NAME} lowercase letters, digits, `-`, `_` or `.`, which starts with a letter or a digit"
        )
    })
}

/// A problem with a request, as a fault of the profile that makes it.
fn fault(problem: Problem) -> ProfileFault {
    let given = problem.field.unwrap_or_default();
    let field = given.strip_prefix("consensus.").unwrap_or(&given).to_owned();
    let start = format!("`{given}` ");
    let reason = problem.detail.strip_prefix(&start).unwrap_or(&problem.detail);
    ProfileFault { field, reason: reason.to_owned() }
}

fn summary(job: &Job) -> String {
    let terms = &job.terms;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tier_is_a_profile() {
        let profiles = ConsensusProfiles::default();
        let models: Vec<(String, u8)> =
            profiles.iter().map(|it| (it.model(), it.job.terms.replicas)).collect();
        let expected = [("jurat/fast", 1), ("jurat/oracle", 5), ("jurat/safe", 3)];
        assert_eq!(models, expected.map(|(model, replicas)| (model.to_owned(), replicas)));
    }

    #[test]
    fn an_operator_sets_every_term() {
        let section = json!({
            "about": "Numbers.", "replicas": 3, "session_pool": ["a", "b", "c"],
            "aggregation": "median", "equivalence": { "numeric": { "tolerance": 0.5 } },
            "policy": { "tier": "safe", "policy_id": "vp.schema_only.v1" },
            "disagreement_policy": "best_effort", "timeout_ms": 5_000,
        });
        let profile = ConsensusProfile::read("numbers", &section).unwrap();
        assert_eq!(
            profile.terms(),
            "3 replicas, tier safe, a pool of 3, aggregation median, policy vp.schema_only.v1, on disagreement best_effort, 5000 ms"
        );
        assert_eq!((profile.about.as_str(), profile.sessions().count()), ("Numbers.", 3));
        let all = ConsensusProfiles::default().with([profile]);
        assert!(all.find("jurat/numbers").is_ok());
        let problem = all.find("gpt-4o").unwrap_err();
        assert_eq!(
            (problem.code, problem.field.as_deref()),
            (ProblemCode::NotFound, Some("model"))
        );
        assert_eq!(
            problem.detail,
            "there is no model `gpt-4o`; use one of `jurat/fast`, `jurat/numbers`, `jurat/oracle`, `jurat/safe`"
        );
    }

    #[test]
    fn every_fault_names_its_setting() {
        for (name, section, expected) in [
            (
                "safe",
                json!({}),
                vec![("", "cannot be set: it is the built-in profile of that tier")],
            ),
            ("a", json!({ "replicas": 4 }), vec![("replicas", "must be 1, 3 or 5")]),
            (
                "a",
                json!({ "replica": 3, "policy": { "tier": "best" } }),
                vec![
                    ("replica", "is not a known field; did you mean `replicas`?"),
                    ("policy.tier", "must be one of fast, safe, oracle, not `best`"),
                ],
            ),
            (
                "a",
                json!({ "aggregation": "mean", "strategy": "median" }),
                vec![(
                    "strategy",
                    "contradicts `aggregation`, which means the same; leave one out",
                )],
            ),
            (
                "a",
                json!({ "replicas": 3, "session_pool": ["x"] }),
                vec![(
                    "session_pool",
                    "has 1 of the 3 sessions that the replicas need; add sessions, or set `replicas`",
                )],
            ),
            (
                "a",
                json!({ "policy": "vp.none.v1" }),
                vec![("policy", "is refused: policy `vp.none.v1` is not known")],
            ),
        ] {
            let faults = ConsensusProfile::read(name, &section).unwrap_err();
            let faults: Vec<(&str, &str)> =
                faults.iter().map(|it| (it.field.as_str(), it.reason.as_str())).collect();
            assert_eq!(faults, expected, "{section}");
        }
        assert!(
            ConsensusProfile::read("A b", &json!({})).unwrap_err()[0]
                .reason
                .starts_with("must have a name")
        );
    }
}

//! Reads consensus profiles, and finds the one that a model names.

use jurat_core::{
    code::ProblemCode,
    executor::session::Tier,
    policy::Policy,
    round::{
        job::{Job, PoolEntry},
        profile::{ConsensusProfile, ConsensusProfiles, ProfileAuthor},
    },
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

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFault {
    /// The path of the faulty setting within the profile; empty for the profile itself.
    pub field: String,
    /// The end of a sentence about the setting.
    pub reason: String,
}

/// Reads a profile of an operator, or finds everything that is wrong with it.
pub fn read(name: &str, section: &Value) -> Result<ConsensusProfile, Vec<ProfileFault>> {
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
    let sample = job(&request).map_err(|problem| vec![fault(problem)])?;
    check(&sample).map_err(|fault| vec![fault])?;
    let about = about.as_ref().and_then(Value::as_str).map(str::to_owned);
    let author = ProfileAuthor::Operator;
    Ok(ConsensusProfile { name: name.to_owned(), about, author, request, sample })
}

/// The profiles of every server: one for each tier.
pub fn built_in() -> ConsensusProfiles {
    let of_tier = |tier: &Tier| {
        let policy = json!({ "tier": tier.as_str() });
        let request = Map::from_iter([("policy".to_owned(), policy)]);
        let sample = job(&request).ok()?;
        let (name, author) = (tier.as_str().to_owned(), ProfileAuthor::BuiltIn);
        Some(ConsensusProfile { name, about: None, author, request, sample })
    };
    ConsensusProfiles::default().with(Tier::ALL.iter().filter_map(of_tier))
}

/// The profile that the model of a request names.
pub fn find<'a>(
    profiles: &'a ConsensusProfiles,
    model: &str,
) -> Result<&'a ConsensusProfile, Problem> {
    profiles.of_model(model).ok_or_else(|| {
        let known: Vec<String> = profiles.iter().map(|it| format!("`{}`", it.model())).collect();
        let model: String = model.chars().take(80).collect();
        let detail = format!("there is no model `{model}`; use one of {}", known.join(", "));
        Problem::new(ProblemCode::NotFound, detail).at("model")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tier_is_a_profile() {
        let profiles = built_in();
        let models: Vec<(String, u8)> =
            profiles.iter().map(|it| (it.model(), it.sample.terms.replicas)).collect();
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
        let profile = read("numbers", &section).unwrap();
        assert_eq!(
            profile.terms(),
            "3 replicas, tier safe, a pool of 3, aggregation median, policy vp.schema_only.v1, on disagreement best_effort, 5000 ms"
        );
        assert_eq!((profile.about.as_deref(), profile.sessions().count()), (Some("Numbers."), 3));
        let all = built_in().with([profile]);
        assert!(find(&all, "jurat/numbers").is_ok());
        let problem = find(&all, "gpt-4o").unwrap_err();
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
            let faults = read(name, &section).unwrap_err();
            let faults: Vec<(&str, &str)> =
                faults.iter().map(|it| (it.field.as_str(), it.reason.as_str())).collect();
            assert_eq!(faults, expected, "{section}");
        }
        assert!(read("A b", &json!({})).unwrap_err()[0].reason.starts_with("must have a name"));
    }
}

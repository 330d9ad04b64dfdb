//! Decides which executors may propose and vote, and whether they are enough.

use std::collections::BTreeSet;

use jurat_core::{
    policy::{CLAIM, Policy, SEMANTIC},
    verifier::InputError,
};
use jurat_wire::executor::TaskSubmission;
use serde_json::{Value, json};

use crate::rounds::seats::JUDGE_PREFIX;

/// The workers that may take part in a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRoster {
    /// Executors that propose.
    pub proposers: Vec<String>,
    /// Executors that vote.
    pub voters: Vec<String>,
    pub profile: String,
    /// Whether this node votes as well, because there are too few others for the quorum.
    pub has_node: bool,
    /// Whether this node may vote if the voters are gone: it can decide the policy alone, and the
    /// submission named no voters.
    pub has_spare: bool,
    /// The attempt at a step of a run that the task is; 1 if it is none.
    pub attempt: u32,
}

impl TaskRoster {
    /// The stored form.
    pub fn write(&self) -> Value {
        json!({
            "executors": self.proposers,
            "verifiers": self.voters,
            "profile": self.profile,
            "has_node": self.has_node,
            "has_spare": self.has_spare,
            "attempt": self.attempt,
        })
    }

    /// Reads what `write` wrote.
    pub fn read(document: &Value) -> Self {
        let names = |field: &str| {
            let names = document[field].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let attempt = document["attempt"].as_u64().and_then(|it| u32::try_from(it).ok());
        Self {
            proposers: names("executors"),
            voters: names("verifiers"),
            profile: document["profile"].as_str().unwrap_or("default").to_owned(),
            has_node: document["has_node"].as_bool().unwrap_or_default(),
            has_spare: document["has_spare"].as_bool().unwrap_or_default(),
            attempt: attempt.unwrap_or(1),
        }
    }

    /// Lets the node vote if it must and may, and refuses a quorum that cannot be reached. Named
    /// voters vote alone. Voters that never can vote do not count.
    pub fn for_quorum(
        mut self,
        quorum: u32,
        policy_id: &str,
        can_vote: impl Fn(&str) -> bool,
    ) -> Result<Self, InputError> {
        if policy_id == SEMANTIC {
            // The criterion of a verifier never leaves this node.
            self.voters.retain(|it| it.starts_with(JUDGE_PREFIX));
        }
        let able: Vec<&String> = self.voters.iter().filter(|it| can_vote(it)).collect();
        let is_both = able.iter().any(|it| self.proposers.contains(it));
        // A proposer has no vote, and any of those who could propose may be it.
        let voters = able.len() - usize::from(is_both);
        let quorum = usize::try_from(quorum).unwrap_or(usize::MAX);
        self.has_spare &= decides_alone(policy_id);
        self.has_node = voters < quorum && self.has_spare;
        let all = voters + usize::from(self.has_node);
        if quorum <= all {
            return Ok(self);
        }
        let more = if policy_id == SEMANTIC {
            "name judges, such as `judge:provider/model`, as `verifiers`"
        } else {
            "name more `verifiers`"
        };
        let problem = format!(
            "cannot be reached: only {all} of the task's voters can vote on another executor's proposal; {more} or lower it"
        );
        Err(InputError { field: "acceptance.quorum_threshold".to_owned(), problem })
    }

    /// The member of a submission that asks for another roster than this one. Absent members match.
    pub(super) fn differs(&self, order: &TaskSubmission) -> Option<&'static str> {
        let is_other = |asked: &[String], has: &[String]| {
            let (asked, has): (BTreeSet<_>, BTreeSet<_>) =
                (asked.iter().collect(), has.iter().collect());
            !asked.is_empty() && asked != has
        };
        let mut verifiers = order.verifiers.clone();
        if order.contract.acceptance.verifier_policy.policy_id == SEMANTIC {
            verifiers.retain(|it| it.starts_with(JUDGE_PREFIX));
        }
        if is_other(&order.executors, &self.proposers) {
            return Some("executors");
        }
        if is_other(&verifiers, &self.voters) {
            return Some("verifiers");
        }
        order.profile.as_ref().is_some_and(|it| *it != self.profile).then_some("profile")
    }
}

/// Whether this node can vote under a policy, which needs no judge.
fn decides_alone(policy_id: &str) -> bool {
    Policy::is_builtin(policy_id) && policy_id != CLAIM && policy_id != SEMANTIC
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(executors: &[&str], verifiers: &[&str]) -> TaskRoster {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        TaskRoster {
            proposers: names(executors),
            voters: names(verifiers),
            profile: "default".to_owned(),
            has_node: false,
            has_spare: true,
            attempt: 1,
        }
    }

    fn all(_: &str) -> bool {
        true
    }

    #[test]
    fn the_node_votes_only_if_there_are_too_few_others() {
        let schema = "vp.schema_only.v1";
        assert!(panel(&["a"], &["a"]).for_quorum(1, schema, all).unwrap().has_node);
        assert!(!panel(&["a"], &["b"]).for_quorum(1, schema, all).unwrap().has_node);
        assert!(!panel(&["a", "b"], &["a", "b"]).for_quorum(1, schema, all).unwrap().has_node);
        assert!(panel(&["a", "b"], &["a", "b"]).for_quorum(2, schema, all).unwrap().has_node);
    }

    #[test]
    fn an_unreachable_quorum_is_refused() {
        let refused = panel(&["a", "b"], &["a", "b"]).for_quorum(3, "vp.schema_only.v1", all);
        assert_eq!(refused.unwrap_err().field, "acceptance.quorum_threshold");
        // The node cannot judge alone.
        for policy in ["vp.claim.v1", "vp.semantic.v1", "their.own.policy"] {
            assert!(panel(&["a"], &["a"]).for_quorum(1, policy, all).is_err(), "{policy}");
        }
    }

    #[test]
    fn the_node_has_no_vote_if_a_judge_is_needed() {
        let judged = panel(&["a"], &["a", "judge:p/m"]).for_quorum(1, "vp.semantic.v1", all);
        let judged = judged.unwrap();
        assert_eq!(judged.voters, ["judge:p/m"]);
        assert!(!judged.has_node && !judged.has_spare);
    }

    #[test]
    fn executors_that_can_never_vote_do_not_count() {
        let named = || TaskRoster { has_spare: false, ..panel(&["a"], &["b", "c"]) };
        let is_b = |name: &str| name == "b";
        assert!(named().for_quorum(2, "their.own.policy", all).is_ok());
        assert!(named().for_quorum(1, "their.own.policy", is_b).is_ok());
        let refused = named().for_quorum(2, "their.own.policy", is_b).unwrap_err();
        assert!(refused.problem.contains("only 1 of the task's voters"), "{}", refused.problem);
    }

    #[test]
    fn named_voters_vote_alone() {
        let named =
            |verifiers: &[&str]| TaskRoster { has_spare: false, ..panel(&["a"], verifiers) };
        let schema = "vp.schema_only.v1";
        assert!(!named(&["b"]).for_quorum(1, schema, all).unwrap().has_node);
        assert!(named(&["b"]).for_quorum(2, schema, all).is_err());
        assert!(named(&["a"]).for_quorum(1, schema, all).is_err());
    }

    #[test]
    fn a_stored_roster_reads_back() {
        let panel = TaskRoster { attempt: 2, ..panel(&["a"], &["b"]) };
        assert_eq!(TaskRoster::read(&panel.write()), panel);
    }
}

//! Who may work for a task, and whether they are enough.

use jurat_core::{
    policy::{CLAIM, Policy, SEMANTIC},
    verifier::InputError,
};
use serde_json::{Value, json};

/// Who may work for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panel {
    /// Executors that propose.
    pub executors: Vec<String>,
    /// Executors that verify.
    pub verifiers: Vec<String>,
    pub profile: String,
    /// Whether this node votes as well, because the others are too few for the quorum.
    pub has_node: bool,
    /// Whether this node may vote when those who verify are gone: it can decide the policy alone,
    /// and the submission named nobody for it.
    pub has_spare: bool,
}

impl Panel {
    /// As it is stored.
    pub fn write(&self) -> Value {
        json!({
            "executors": self.executors,
            "verifiers": self.verifiers,
            "profile": self.profile,
            "has_node": self.has_node,
            "has_spare": self.has_spare,
        })
    }

    /// Reads what `write` wrote.
    pub fn read(document: &Value) -> Self {
        let names = |field: &str| {
            let names = document[field].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        Self {
            executors: names("executors"),
            verifiers: names("verifiers"),
            profile: document["profile"].as_str().unwrap_or("default").to_owned(),
            has_node: document["has_node"].as_bool().unwrap_or_default(),
            has_spare: document["has_spare"].as_bool().unwrap_or_default(),
        }
    }

    /// Lets the node vote where it must and may, and refuses a quorum that nobody can reach. Where
    /// verifiers are named, they alone vote.
    pub(crate) fn for_quorum(mut self, quorum: u32, policy_id: &str) -> Result<Self, InputError> {
        if policy_id == SEMANTIC {
            // What a verifier of the registry judges never leaves this node.
            self.verifiers.retain(|it| it.starts_with(crate::places::JUDGE_PREFIX));
        }
        let is_both = |it: &&String| self.executors.contains(it);
        let both = self.verifiers.iter().filter(is_both).count();
        // Whoever proposes has no vote, and it may be any of those who could.
        let voters = self.verifiers.len() - usize::from(0 < both);
        let quorum = usize::try_from(quorum).unwrap_or(usize::MAX);
        self.has_spare &= Policy::is_known(policy_id) && policy_id != CLAIM;
        self.has_node = voters < quorum && self.has_spare;
        let all = voters + usize::from(self.has_node);
        if quorum <= all {
            return Ok(self);
        }
        let problem = format!(
            "cannot be reached: {all} of the panel can verify what another proposed; name more \
             `verifiers` or lower it"
        );
        Err(InputError { field: "acceptance.quorum_threshold".to_owned(), problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(executors: &[&str], verifiers: &[&str]) -> Panel {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        Panel {
            executors: names(executors),
            verifiers: names(verifiers),
            profile: "default".to_owned(),
            has_node: false,
            has_spare: true,
        }
    }

    #[test]
    fn the_node_votes_only_where_the_others_are_too_few() {
        let schema = "vp.schema_only.v1";
        assert!(panel(&["a"], &["a"]).for_quorum(1, schema).unwrap().has_node);
        assert!(!panel(&["a"], &["b"]).for_quorum(1, schema).unwrap().has_node);
        assert!(!panel(&["a", "b"], &["a", "b"]).for_quorum(1, schema).unwrap().has_node);
        assert!(panel(&["a", "b"], &["a", "b"]).for_quorum(2, schema).unwrap().has_node);
    }

    #[test]
    fn a_quorum_that_nobody_can_reach_is_refused() {
        let refused = panel(&["a", "b"], &["a", "b"]).for_quorum(3, "vp.schema_only.v1");
        assert_eq!(refused.unwrap_err().field, "acceptance.quorum_threshold");
        // A judgement is nothing that the node can make alone.
        assert!(panel(&["a"], &["a"]).for_quorum(1, "vp.claim.v1").is_err());
        assert!(panel(&["a"], &["a"]).for_quorum(1, "their.own.policy").is_err());
    }

    #[test]
    fn verifiers_that_are_named_vote_alone() {
        let named = |verifiers: &[&str]| Panel { has_spare: false, ..panel(&["a"], verifiers) };
        let schema = "vp.schema_only.v1";
        assert!(!named(&["b"]).for_quorum(1, schema).unwrap().has_node);
        assert!(named(&["b"]).for_quorum(2, schema).is_err());
        assert!(named(&["a"]).for_quorum(1, schema).is_err());
    }

    #[test]
    fn what_is_stored_reads_back() {
        let panel = panel(&["a"], &["b"]);
        assert_eq!(Panel::read(&panel.write()), panel);
    }
}

//! Decides which value of a bucket wins, and what happens if none does.

use sha2::{Digest as _, Sha256};

use super::{
    AgentOutput, AggregationSpec, BucketName, BucketOutcome, MissingReputation, NullAction,
    TieBreak, UnresolvedCause, ValueCandidate,
};

/// Which policies may still ask the agents again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReexplorePermission {
    pub for_ties: bool,
    pub for_nulls: bool,
}

pub(super) struct BucketCount<'a> {
    pub(super) run_id: &'a str,
    pub(super) name: BucketName,
    /// The heaviest first.
    pub(super) candidates: &'a [ValueCandidate],
    pub(super) said: &'a [AgentOutput],
    pub(super) spec: &'a AggregationSpec,
}

impl BucketCount<'_> {
    pub(super) fn outcome(&self, may: ReexplorePermission) -> BucketOutcome {
        let Some(first) = self.candidates.first() else {
            return self.null(UnresolvedCause::Empty, may);
        };
        let heaviest = |it: &&ValueCandidate| it.weight_micros == first.weight_micros;
        let mut leaders: Vec<&ValueCandidate> = self.candidates.iter().filter(heaviest).collect();
        let quorum = usize::try_from(self.spec.quorum.unwrap_or(0)).unwrap_or(usize::MAX);
        let has_quorum = |it: &&ValueCandidate| quorum <= it.agents.len();
        let why = if leaders.iter().any(has_quorum) {
            leaders.retain(has_quorum);
            if let [only] = leaders.as_slice() {
                return BucketOutcome::Value { value: only.value.clone(), decided_by: None };
            }
            UnresolvedCause::Tie
        } else {
            UnresolvedCause::QuorumNull
        };
        if self.spec.tie.enabled_on.contains(&why) {
            for step in &self.spec.tie.chain {
                if *step == TieBreak::Reexplore && may.for_ties {
                    return BucketOutcome::Reexplore(why);
                }
                if let Some(winner) = self.decided(*step, &leaders) {
                    let decided_by = Some(step.as_str());
                    return BucketOutcome::Value { value: winner.value.clone(), decided_by };
                }
            }
        }
        self.null(why, may)
    }

    fn null(&self, why: UnresolvedCause, may: ReexplorePermission) -> BucketOutcome {
        let policy = &self.spec.null;
        let begins_anew = policy
            .chain
            .iter()
            .take_while(|step| **step != NullAction::FinalizeNull)
            .next()
            .is_some();
        if policy.enabled_on.contains(&why) && begins_anew && may.for_nulls {
            BucketOutcome::Reexplore(why)
        } else {
            BucketOutcome::None(why)
        }
    }

    fn decided<'a>(
        &self,
        step: TieBreak,
        leaders: &[&'a ValueCandidate],
    ) -> Option<&'a ValueCandidate> {
        match step {
            TieBreak::Reexplore => None,
            TieBreak::ConfidenceWeighted => heaviest(leaders, |agent| self.confidence(agent)),
            TieBreak::ReputationWeighted => heaviest(leaders, |agent| self.reputation(agent)),
            TieBreak::Stochastic => self.drawn(leaders),
        }
    }

    /// The confidence that an agent states.
    fn confidence(&self, agent: &str) -> f64 {
        let fields = &self.spec.tie.confidence;
        let own = match self.name {
            BucketName::Decision => &fields.decision,
            BucketName::Answer => &fields.answer,
        };
        let output = self.said.iter().find(|it| it.agent_id == agent).map(|it| &it.output);
        let stated = output.and_then(|output| {
            output.get(own).or_else(|| output.get(&fields.any)).and_then(serde_json::Value::as_f64)
        });
        stated.unwrap_or(fields.default).clamp(0.0, 1.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "units are small, and only compared")]
    fn reputation(&self, agent: &str) -> f64 {
        let reputation = &self.spec.tie.reputation;
        match (reputation.units.get(agent), reputation.missing) {
            (Some(units), _) => *units as f64,
            (None, MissingReputation::Uniform) => 1.0,
            (None, MissingReputation::Skip) => 0.0,
        }
    }

    /// A random choice that anybody can repeat: it depends only on the run and the candidates.
    fn drawn<'a>(&self, leaders: &[&'a ValueCandidate]) -> Option<&'a ValueCandidate> {
        let mut sorted: Vec<&ValueCandidate> = leaders.to_vec();
        sorted.sort_by(|one, other| one.key.cmp(&other.key));
        let keys: Vec<&str> = sorted.iter().map(|it| it.key.as_str()).collect();
        let text = format!("{}:{}:{}", self.run_id, self.name, keys.join("|"));
        let digest = Sha256::digest(text.as_bytes());
        let head: [u8; 8] = digest.get(..8)?.try_into().ok()?;
        let count = u64::try_from(sorted.len()).ok().filter(|count| *count > 0)?;
        let index = usize::try_from(u64::from_be_bytes(head) % count).ok()?;
        let key = &sorted.get(index)?.key;
        leaders.iter().find(|it| it.key == *key).copied()
    }
}

/// The candidate with the heaviest agents; `None` if several share the weight.
fn heaviest<'a>(
    leaders: &[&'a ValueCandidate],
    weight: impl Fn(&str) -> f64,
) -> Option<&'a ValueCandidate> {
    let total = |it: &ValueCandidate| it.agents.iter().map(|agent| weight(agent)).sum::<f64>();
    let mut weighed: Vec<(f64, &ValueCandidate)> =
        leaders.iter().map(|it| (total(it), *it)).collect();
    weighed.sort_by(|one, other| other.0.total_cmp(&one.0));
    match weighed.as_slice() {
        [first, second, ..] if first.0 > second.0 => Some(first.1),
        [only] => Some(only.1),
        _ => None,
    }
}

//! One task of a world: its terms, its roster, and the wishes of its callers.

use jurat_core::{
    policy::{CROSSCHECK, SCHEMA_ONLY},
    task::{Budget, BudgetRenewal, DecisionMode, TaskTerms, VoteAggregation},
};
use jurat_engine::tasks::TaskRoster;
use serde_json::{Value, json};

use super::{BEGINNING, Plan, Rule, Weather};
use crate::simulation::chance::Chance;

#[derive(Debug, Clone)]
pub(in crate::simulation) struct Order {
    pub(in crate::simulation) at: u64,
    pub(in crate::simulation) matter: usize,
    pub(in crate::simulation) terms: TaskTerms,
    pub(in crate::simulation) panel: TaskRoster,
    pub(in crate::simulation) wishes: Vec<Wish>,
}

/// A request of a caller to a node.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulation) struct Wish {
    /// The time after the task was submitted.
    pub(in crate::simulation) after: u64,
    pub(in crate::simulation) node: usize,
    pub(in crate::simulation) what: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::simulation) enum Asked {
    Cancel,
    /// Disputes the decision of an epoch; the newest if none is named.
    Complain(Option<u64>),
    NextEpoch,
}

impl Order {
    /// The contract, as far as the driver and the executors read it.
    pub(in crate::simulation) fn contract(&self, rule: Rule) -> Value {
        let params = match rule {
            Rule::Plain | Rule::Compared { prior: false } => json!({}),
            Rule::Compared { prior: true } => json!({ "prior_decisions": true }),
        };
        json!({
            "task_type": "sum",
            "inputs": { "matter": self.matter },
            "output_schema": {},
            "acceptance": {
                "verifier_policy": { "policy_id": policy_id(rule), "policy_params": params },
            },
        })
    }
}

const fn policy_id(rule: Rule) -> &'static str {
    match rule {
        Rule::Plain => SCHEMA_ONLY,
        Rule::Compared { .. } => CROSSCHECK,
    }
}

impl Plan {
    /// A task that the roster can do, under acceptable terms.
    pub(super) fn order(&self, chance: &mut Chance) -> Order {
        let matter = usize::from(chance.percent(30));
        let rule = self.matters[matter].rule;
        let is_calm = self.weather == Weather::Calm;
        let (panel, quorum) = self.panel(chance, rule);
        let is_continuous = chance.percent(35);
        // Later ones find the decisions of others.
        let at =
            if chance.percent(50) { chance.between(0, 2_000) } else { chance.between(0, 9_000) };
        let mut terms = self.terms(chance, quorum, is_continuous);
        let lasts = if is_continuous { (8_000, 14_000) } else { (12_000, 40_000) };
        terms.expires_at = BEGINNING.plus_millis(at + chance.between(lasts.0, lasts.1));
        if rule != Rule::Plain && (is_calm || chance.percent(80)) {
            // There must be something to compare with.
            terms.max_proposers = terms.max_proposers.max(2);
            terms.topk = terms.topk.max(2);
            let budget = &mut terms.budget;
            budget.cost_units += 2_u64.saturating_sub(budget.explore);
            budget.explore = budget.explore.max(2);
            budget.max_steps += 1;
        }
        assert_eq!(terms.check(BEGINNING), [], "{terms:?}");
        let wishes = self.wishes(chance, is_continuous);
        Order { at, matter, terms, panel, wishes }
    }

    /// The roster, and the quorum.
    fn panel(&self, chance: &mut Chance, rule: Rule) -> (TaskRoster, u32) {
        let names: Vec<String> = self.executors.iter().map(|it| it.name.clone()).collect();
        let count = u32::try_from(names.len()).unwrap();
        let is_calm = self.weather == Weather::Calm;
        let is_named = !is_calm && chance.percent(20);
        let proposing = if is_named { chance.count(1, count) } else { count };
        let executors = names[..usize::try_from(proposing).unwrap()].to_vec();
        let panel = TaskRoster {
            proposers: executors,
            voters: names,
            profile: "default".to_owned(),
            has_node: false,
            has_spare: !is_named,
            attempt: 1,
        };
        let most = match self.weather {
            Weather::Calm => (count - 2).min(3),
            Weather::Showers => count.min(2),
            Weather::Storm => count.min(3),
        };
        let mut quorum = chance.count(1, most);
        loop {
            if let Ok(panel) = panel.clone().for_quorum(quorum, policy_id(rule), |_| true) {
                return (panel, quorum);
            }
            if quorum == 1 {
                // Nobody else can vote, so the node must.
                let panel = TaskRoster { has_spare: true, ..panel };
                return (panel.for_quorum(1, policy_id(rule), |_| true).unwrap(), 1);
            }
            quorum -= 1;
        }
    }

    fn terms(&self, chance: &mut Chance, quorum: u32, is_continuous: bool) -> TaskTerms {
        let is_calm = self.weather == Weather::Calm;
        let max_verifiers = quorum + chance.count(0, 2);
        let most = if chance.percent(50) { quorum + 1 } else { chance.count(1, quorum) };
        let da_quorum = if chance.percent(40) { most } else { 0 };
        let da_quorum = da_quorum.min(if is_calm { quorum } else { max_verifiers });
        let aggregations = [
            VoteAggregation::Quorum,
            VoteAggregation::ConfidenceWeighted,
            VoteAggregation::ReputationWeighted,
        ];
        let pick = usize::try_from(chance.between(0, 2)).unwrap();
        TaskTerms {
            mode: if is_continuous { DecisionMode::Continuous } else { DecisionMode::OneShot },
            lease_ms: chance.between(300, 2_000),
            propose_at_once: chance.count(1, 2),
            verify_at_once: chance.count(1, 3),
            max_proposers: chance.count(1, 3),
            topk: chance.count(1, 3),
            no_new_evidence_rounds: chance.count(1, 3),
            max_verifiers,
            max_finalizers: 1,
            quorum,
            da_quorum,
            reveal_ms: chance.between(300, 4_000),
            max_repeats: 2,
            max_retries: chance.count(0, 4),
            backoff_ms: chance.between(50, 500),
            aggregation: aggregations[pick],
            budget: self.budget(chance, quorum.max(da_quorum), is_continuous),
            window_ms: chance.between(500, 6_000),
            expires_at: BEGINNING,
        }
    }

    fn budget(&self, chance: &mut Chance, verdicts: u32, is_continuous: bool) -> Budget {
        let is_ample = self.weather != Weather::Storm || chance.percent(30);
        let steps = chance.count(0, 20) + verdicts + 1;
        let verify = u64::from(verdicts) + chance.between(0, 12);
        let (explore, finalize) = (chance.between(1, 8), chance.between(1, 3));
        let (explore, verify) = if is_ample { (20, 40) } else { (explore, verify) };
        let lasts = if is_continuous { (3_000, 7_000) } else { (10_000, 30_000) };
        Budget {
            time_ms: chance.between(lasts.0, lasts.1),
            max_steps: if is_ample { 40 } else { steps },
            cost_units: explore + verify + finalize,
            explore,
            verify,
            finalize,
            reuse_verify_time_ms: chance.between(200, 2_500),
            reuse_verify_cost_units: 4.min(explore + verify),
            reuse_max_attempts: chance.count(1, 2),
            renewal: if is_continuous {
                BudgetRenewal::EpochRenew
            } else {
                BudgetRenewal::Lifetime
            },
        }
    }

    /// Requests of callers at any time, suitable or not.
    fn wishes(&self, chance: &mut Chance, is_continuous: bool) -> Vec<Wish> {
        let mut wishes = Vec::new();
        let mut wish = |chance: &mut Chance, last: u64, what: Asked| {
            let node = usize::try_from(chance.between(0, 2)).unwrap();
            wishes.push(Wish { after: chance.between(0, last), node, what });
        };
        if chance.percent(self.weather.of_hundred(if is_continuous { 30 } else { 12 })) {
            wish(chance, if is_continuous { 11_000 } else { 4_000 }, Asked::Cancel);
        }
        for _ in 0..chance.between(0, 2) {
            let epoch = chance.percent(30).then(|| chance.between(1, 3));
            wish(chance, 12_000, Asked::Complain(epoch));
        }
        // Those on a task that is decided once are refused.
        let epochs = if is_continuous { chance.between(2, 6) } else { chance.between(0, 9) / 9 };
        for _ in 0..epochs {
            wish(chance, 11_000, Asked::NextEpoch);
        }
        wishes
    }
}

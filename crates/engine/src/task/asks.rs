//! The hands of a node: each call of a task is a step, which is a round with one seat.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jurat_core::{
    caller::Credit,
    consensus::reliability_prior,
    executor::Independence,
    id::AccountId,
    policy::{CROSSCHECK, PRIOR_DECISIONS, Policy, Rules},
    replica::FailureCode,
    session::{BUILTIN_LANE, NODE_FAMILY, NODE_MODEL, Session},
    task::{Ballot, Task, Weigher},
};
use jurat_store::{Behalf, TaskCandidate};
use jurat_wire::executor::read_task_contract;
use serde_json::Value;

use super::{
    DeskError, Failure, Filed, Hands, Made, Panel, ProposeOrder, TaskKey, Verdict, VerifyOrder,
    Worker, WorkerKind, knowledge,
};
use crate::{
    Engine, EngineError, StepBy, StepDone, StepOrder, StepOutcome, StepWork,
    places::{JUDGE_PREFIX, NODE_RELIABILITY},
    pool::{PoolView, Standings},
};

/// How many other candidates a verifier that compares is shown.
const MOST_OTHERS: usize = 32;

/// The executors and judges of a node, and the node itself.
#[derive(Debug, Clone)]
pub(crate) struct StepHands {
    pub(crate) engine: Engine,
}

impl Hands for StepHands {
    async fn objection(&self, task: &TaskKey, filed: &Filed) -> Result<Option<String>, DeskError> {
        match self.engine.key_of(&task.account, filed.ordered_by.as_deref()).await {
            Ok(_) => Ok(None),
            Err(error @ EngineError::KeyEnded) => Ok(Some(error.to_string())),
            Err(error) => Err(DeskError(error.to_string())),
        }
    }

    async fn weights(&self, filed: &Filed) -> Result<Weigher, DeskError> {
        let panel = &filed.panel;
        let view = self.view(&names(panel)).await?;
        let node = (panel.has_node || panel.has_spare)
            .then(|| (BUILTIN_LANE.to_owned(), NODE_RELIABILITY));
        let right = |name: &str| {
            if name.starts_with(JUDGE_PREFIX) {
                reliability_prior(None)
            } else {
                let lane = lane(&view, name, &panel.profile);
                lane.map_or_else(|| reliability_prior(None), |lane| lane.reliability())
            }
        };
        let executors = names(panel).into_iter().map(|name| (name.to_owned(), right(name)));
        Ok(executors.chain(node).collect())
    }

    async fn workers(&self, filed: &Filed) -> Result<Vec<Worker>, DeskError> {
        let panel = &filed.panel;
        let names = names(panel);
        let view = self.view(&names).await?;
        self.engine.probe_named(&view, &names).await;
        let standings = self.engine.standings();
        let mut workers: Vec<Worker> =
            names.into_iter().map(|name| self.worker(filed, name, (&view, &standings))).collect();
        let spare = panel.has_spare.then_some(WorkerKind::Spare);
        // Where answers are compared, those who answer are worth more than those who look on: as many
        // as the contract allows propose, and the node has the vote that is then missing.
        let votes = panel.has_node || panel.has_spare && compares(&filed.contract);
        workers.extend(votes.then_some(WorkerKind::Node).or(spare).map(node));
        Ok(workers)
    }

    async fn propose(&self, order: ProposeOrder) -> Result<Made, Failure> {
        let ProposeOrder { key, filed, executor, execution_id, within } = order;
        let seed_bundle = self.seed_bundle(&key.account, &filed).await;
        let step = StepOrder {
            task_id: key.id.clone(),
            execution_id,
            attempt: filed.panel.attempt.saturating_add(filed.task.retries),
            contract: filed.contract.clone(),
            by: StepBy::Executor { name: executor, profile: filed.panel.profile.clone() },
            timeout_ms: millis(within),
            work: StepWork::Propose { seed_bundle },
        };
        let done = self.step(&key.account, filed.ordered_by.as_deref(), step).await?;
        match done.outcome {
            StepOutcome::Candidate(candidate) => Ok(Made { candidate, round_id: done.round_id }),
            StepOutcome::Verdict(_) => Err(ours("internal", "a proposal came as a verdict")),
            StepOutcome::Failed { code, detail } => Err(theirs(code, detail)),
        }
    }

    async fn verify(&self, order: VerifyOrder) -> Result<Verdict, Failure> {
        let (made, others) = self.made(&order).await?;
        let VerifyOrder { key, filed, verifier, execution_id, candidate, within } = order;
        let by = if verifier == BUILTIN_LANE {
            StepBy::Node
        } else {
            StepBy::Executor { name: verifier, profile: filed.panel.profile.clone() }
        };
        let turn = filed.task.place(&candidate.candidate_id, "").turn;
        let is_fetched = filed.task.terms.da_quorum > 0;
        let step = StepOrder {
            task_id: key.id.clone(),
            execution_id,
            attempt: 1,
            contract: filed.contract.clone(),
            by,
            timeout_ms: millis(within),
            work: StepWork::Verify {
                candidate: Box::new(candidate),
                proposed_at: made.created_at,
                producer: made.executor,
                turn,
                others,
                fetch_evidence: is_fetched,
            },
        };
        let done = self.step(&key.account, filed.ordered_by.as_deref(), step).await?;
        let verdict = match done.outcome {
            StepOutcome::Verdict(verdict) => verdict,
            StepOutcome::Candidate(_) => {
                return Err(ours("internal", "a verdict came as a proposal"));
            }
            StepOutcome::Failed { code, detail } => return Err(theirs(code, detail)),
        };
        let ballot = Ballot {
            status: verdict.status,
            score: verdict.score,
            reason_codes: verdict.reason_codes,
            verdict_digest: verdict.result_hash,
            available: Vec::new(),
        };
        let available = if is_fetched { done.available } else { Vec::new() };
        Ok(Verdict { ballot, available, round_id: done.round_id })
    }
}

impl StepHands {
    /// The executors that this node knows, and those that others know where a name is strange.
    async fn view(&self, names: &BTreeSet<&str>) -> Result<Arc<PoolView>, DeskError> {
        let trouble = |error: EngineError| DeskError(error.to_string());
        let view = self.engine.pool_view().await.map_err(trouble)?;
        let is_strange =
            |it: &&str| !it.starts_with(JUDGE_PREFIX) && !view.pool.executors.contains_key(*it);
        if !names.iter().any(is_strange) {
            return Ok(view);
        }
        self.engine.pool_refresh().await.map_err(trouble)?;
        self.engine.pool_view().await.map_err(trouble)
    }

    async fn step(
        &self,
        account: &AccountId,
        key: Option<&str>,
        order: StepOrder,
    ) -> Result<StepDone, Failure> {
        let said = |error: EngineError| ours(error.code().as_str(), &error.to_string());
        let caller = self.engine.caller_of_step(account, key).await.map_err(said)?;
        self.engine.inner.points.pass("task_ask_before");
        let done = self.engine.step_run(&caller, order).await.map_err(said);
        self.engine.inner.points.pass("task_ask_after");
        done
    }

    /// Earlier decisions for whoever proposes. Without them an executor can work as well.
    async fn seed_bundle(&self, account: &AccountId, filed: &Filed) -> Option<Value> {
        let (tasks, behalf) = (self.engine.inner.store.tasks(), Behalf::Account(account.clone()));
        let counts = (knowledge::MOST_SAME, knowledge::LOOKED_THROUGH);
        let asked = knowledge::asked(account, &filed.contract, counts);
        let hits = tasks.knowledge_hits(&behalf, &asked).await.unwrap_or_default();
        let picks = knowledge::picks(&hits, &filed.contract);
        let wanted = knowledge::wanted(account, knowledge::keys(&picks));
        let learned = tasks.knowledge_read(&behalf, &wanted).await.unwrap_or_default();
        let refused: Vec<String> = filed.task.blacklist.iter().cloned().collect();
        knowledge::bundle((&picks, &learned), &filed.contract, &refused)
    }

    /// What was decided on the same before, where the policy counts that as further answers.
    async fn prior(&self, order: &VerifyOrder) -> Result<Vec<(String, Value)>, Failure> {
        let lost = |_| ours("store_unavailable", "earlier decisions could not be read");
        let VerifyOrder { key, filed, candidate, .. } = order;
        let (tasks, behalf) =
            (self.engine.inner.store.tasks(), Behalf::Account(key.account.clone()));
        let asked = knowledge::asked(&key.account, &filed.contract, (knowledge::MOST_SAME, 0));
        let hits = tasks.knowledge_hits(&behalf, &asked).await.map_err(lost)?;
        let proposal = filed.task.proposal(&candidate.candidate_id);
        let prior = knowledge::prior(&hits, proposal.and_then(|it| it.source.as_deref()));
        let wanted = knowledge::wanted(&key.account, prior);
        let found = tasks.knowledge_read(&behalf, &wanted).await.map_err(lost)?;
        Ok(found.into_iter().map(|it| (knowledge::name(&it.key()), it.knowledge.output)).collect())
    }

    /// Who made a candidate and when, and what others answered where the policy compares.
    async fn made(
        &self,
        order: &VerifyOrder,
    ) -> Result<(TaskCandidate, Vec<(String, Value)>), Failure> {
        let id = &order.candidate.candidate_id;
        let made = self.candidate(order, id).await?;
        let policy = &order.filed.contract["acceptance"]["verifier_policy"];
        let mut others = Vec::new();
        if policy["policy_id"] == CROSSCHECK {
            let mut outputs = BTreeMap::from([(id.as_str(), made.output.clone())]);
            let voices = voices(&order.filed.task, id);
            for (candidate, name) in &voices {
                if !outputs.contains_key(candidate.as_str()) {
                    outputs.insert(candidate, self.candidate(order, candidate).await?.output);
                }
                let output = outputs.get(candidate.as_str()).cloned().unwrap_or_default();
                others.push((name.clone(), output));
            }
            if policy["policy_params"][PRIOR_DECISIONS] == true {
                others.extend(self.prior(order).await?);
            }
        }
        Ok((made, others))
    }

    async fn candidate(&self, order: &VerifyOrder, id: &str) -> Result<TaskCandidate, Failure> {
        let tasks = self.engine.inner.store.tasks();
        let behalf = Behalf::Account(order.key.account.clone());
        let lost = |_| ours("store_unavailable", "the candidate could not be read");
        let made = tasks.task_candidate(&behalf, &order.key, id).await.map_err(lost)?;
        made.ok_or_else(|| ours("internal", "the candidate is missing"))
    }

    fn worker(
        &self,
        filed: &Filed,
        name: &str,
        (view, standings): (&PoolView, &Standings),
    ) -> Worker {
        let panel = &filed.panel;
        let is_in = |names: &[String]| names.iter().any(|it| it == name);
        let mut worker = Worker {
            name: name.to_owned(),
            independence: name.to_owned(),
            proposes: false,
            verifies: is_in(&panel.verifiers),
            is_ready: false,
            kind: WorkerKind::Executor,
        };
        if let Some(model) = name.strip_prefix(JUDGE_PREFIX).and_then(|it| it.parse().ok()) {
            worker.is_ready = self.engine.is_judge_known(&model);
            return worker;
        }
        let Some(session) = lane(view, name, &panel.profile) else { return worker };
        let Some(address) = view.addresses.get(name) else { return worker };
        let Ok(declared) = standings.of(name) else { return worker };
        let task_type = filed.contract["task_type"].as_str().unwrap_or_default();
        let independence = Independence {
            provider_family: declared.provider_family.clone(),
            model_id: declared.model_id.clone(),
            host: address.host.clone(),
            executor: name.to_owned(),
        };
        worker.independence = independence.to_string();
        worker.is_ready = declared.has_profile(&panel.profile);
        worker.proposes =
            is_in(&panel.executors) && declared.takes_task_type(session.task_type(task_type));
        worker
    }
}

fn names(panel: &Panel) -> BTreeSet<&str> {
    panel.executors.iter().chain(&panel.verifiers).map(String::as_str).collect()
}

/// How an executor is reached. Whether the account may use a lane without a price is asked when the
/// task is submitted, and with every step.
fn lane<'a>(view: &'a PoolView, name: &str, profile: &str) -> Option<Cow<'a, Session>> {
    view.lane_to(name, profile, Credit::Unmetered).ok()
}

/// Whether the policy of a contract compares what several executors answer.
fn compares(contract: &Value) -> bool {
    let Ok(contract) = read_task_contract(contract) else { return false };
    let policy = Policy::bind(&contract.acceptance.verifier_policy.into());
    matches!(policy, Ok(Policy::Crosscheck { rules: Rules::Jurat, .. }))
}

fn node(kind: WorkerKind) -> Worker {
    Worker {
        name: BUILTIN_LANE.to_owned(),
        independence: format!("{NODE_FAMILY}/{NODE_MODEL}"),
        proposes: false,
        verifies: true,
        is_ready: true,
        kind,
    }
}

/// The answers of this epoch that a candidate is compared with, each as the candidate that it is
/// and a name of its own: each who answered is one voice. Equal outputs are one candidate, of which
/// the first who made it is the one that is compared. What is only remembered is no answer.
pub fn voices(task: &Task, own: &str) -> Vec<(String, String)> {
    let answers = task.proposals.iter().filter(|it| it.source.is_none() || it.id == own);
    let voices = answers.flat_map(|it| {
        let first = usize::from(it.id == own);
        let name = |voice: usize| (it.id.clone(), format!("{}~{}", it.id, voice + 1));
        (first..it.proposers.len()).map(name)
    });
    voices.take(MOST_OTHERS).collect()
}

/// What this node could not do, or may not for this account. It says nothing of who was asked.
fn ours(code: &str, detail: &str) -> Failure {
    Failure { code: code.to_owned(), detail: detail.to_owned(), is_ours: true }
}

/// What came of asking somebody. A round may also end because this node failed, or stopped.
fn theirs(code: &'static str, detail: String) -> Failure {
    let ours = [FailureCode::Internal, FailureCode::NodeStopped];
    let is_ours = ours.iter().any(|it| it.as_str() == code);
    Failure { code: code.to_owned(), detail, is_ours }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_stops_says_nothing_of_who_was_asked() {
        let is_ours = |code: FailureCode| theirs(code.as_str(), "why".to_owned()).is_ours;
        assert!(is_ours(FailureCode::NodeStopped) && is_ours(FailureCode::Internal));
        assert!(!is_ours(FailureCode::HttpStatus));
    }
}

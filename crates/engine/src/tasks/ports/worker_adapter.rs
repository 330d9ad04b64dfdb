//! Implements the worker port with task calls, each of which is a round with one seat.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jurat_core::{
    account::caller::CreditMode,
    code::ProblemCode,
    executor::{
        Independence,
        session::{BUILTIN_SESSION, NODE_FAMILY, NODE_MODEL, Session},
    },
    id::AccountId,
    policy::{CROSSCHECK, PRIOR_DECISIONS, Policy, PolicyRules},
    round::{consensus::reliability_prior, replica::FailureCode},
    task::{Ballot, Task, TaskCandidateRow, TaskKey, VoterReliability},
};
use jurat_store::Behalf;
use jurat_wire::executor::read_task_contract;
use serde_json::Value;

use crate::{
    Engine, EngineError, TaskCallOrder, TaskCallOutcome, TaskCallResult, TaskCallTarget,
    TaskCallWork,
    executors::pool::{PoolHealth, PoolView},
    rounds::seats::{JUDGE_PREFIX, NODE_RELIABILITY},
};
use crate::{
    TaskCallFailure,
    tasks::{
        ProposeOrder, ProposerAnswer, TaskPortError, TaskRoster, TaskSnapshot, TaskWorker,
        TaskWorkerKind, VoteOrder, VoterAnswer, WorkerFailure, WorkerPort, knowledge,
    },
};

/// How many other candidates a comparing voter sees.
const MOST_OTHERS: usize = 32;

/// The executors and judges of a node, and the node itself.
#[derive(Debug, Clone)]
pub(crate) struct WorkerAdapter {
    pub(crate) engine: Engine,
}

impl WorkerPort for WorkerAdapter {
    async fn objection(
        &self,
        task: &TaskKey,
        filed: &TaskSnapshot,
    ) -> Result<Option<String>, TaskPortError> {
        match self.engine.live_submitting_key(&task.account, filed.submitted_by.as_deref()).await {
            Ok(_) => Ok(None),
            Err(error @ EngineError::KeyEnded) => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    async fn weights(&self, filed: &TaskSnapshot) -> Result<VoterReliability, TaskPortError> {
        let panel = &filed.roster;
        let view = self.view(&roster_names(panel)).await?;
        let node = (panel.has_node || panel.has_spare)
            .then(|| (BUILTIN_SESSION.to_owned(), NODE_RELIABILITY));
        let right = |name: &str| {
            if name.starts_with(JUDGE_PREFIX) {
                reliability_prior(None)
            } else {
                let session = session_to(&view, name, &panel.profile);
                session.map_or_else(|| reliability_prior(None), |session| session.reliability())
            }
        };
        let executors = roster_names(panel).into_iter().map(|name| (name.to_owned(), right(name)));
        Ok(executors.chain(node).collect())
    }

    async fn workers(&self, filed: &TaskSnapshot) -> Result<Vec<TaskWorker>, TaskPortError> {
        let panel = &filed.roster;
        let names = roster_names(panel);
        let view = self.view(&names).await?;
        self.engine.probe_named(&view, &names).await;
        let standings = self.engine.pool_health();
        let mut workers: Vec<TaskWorker> =
            names.into_iter().map(|name| self.worker(filed, name, &view, &standings)).collect();
        let spare = panel.has_spare.then_some(TaskWorkerKind::Spare);
        // If answers are compared, proposers are worth more than voters: as many as the contract
        // allows propose, and the node casts the missing vote.
        let votes = panel.has_node || panel.has_spare && compares(&filed.contract);
        workers.extend(votes.then_some(TaskWorkerKind::Node).or(spare).map(node_worker));
        Ok(workers)
    }

    async fn propose(&self, order: ProposeOrder) -> Result<ProposerAnswer, WorkerFailure> {
        let ProposeOrder { key, snapshot: filed, executor, execution_id, within } = order;
        let seed_bundle = self.seed_bundle(&key.account, &filed).await;
        let step = TaskCallOrder {
            task_id: key.id.clone(),
            execution_id,
            attempt: filed.roster.attempt.saturating_add(filed.task.retries),
            contract: filed.contract.clone(),
            target: TaskCallTarget::Executor {
                name: executor,
                profile: filed.roster.profile.clone(),
            },
            timeout_ms: millis(within),
            work: TaskCallWork::Propose { seed_bundle },
        };
        let done = self.make_call(&key.account, filed.submitted_by.as_deref(), step).await?;
        match done.outcome {
            TaskCallOutcome::Candidate(candidate) => {
                Ok(ProposerAnswer { candidate, round_id: done.round_id })
            }
            TaskCallOutcome::Verdict(_) => Err(defect("a proposal came as a verdict")),
            TaskCallOutcome::Failed { code, detail } => Err(WorkerFailure { code, detail }),
        }
    }

    async fn vote(&self, order: VoteOrder) -> Result<VoterAnswer, WorkerFailure> {
        let (made, others) = self.candidate_and_others(&order).await?;
        let VoteOrder { key, snapshot: filed, voter: verifier, execution_id, candidate, within } =
            order;
        let by = if verifier == BUILTIN_SESSION {
            TaskCallTarget::Node
        } else {
            TaskCallTarget::Executor { name: verifier, profile: filed.roster.profile.clone() }
        };
        let turn = filed.task.vote_context(&candidate.candidate_id, "").turn;
        let is_fetched = filed.task.terms.da_quorum > 0;
        let step = TaskCallOrder {
            task_id: key.id.clone(),
            execution_id,
            attempt: 1,
            contract: filed.contract.clone(),
            target: by,
            timeout_ms: millis(within),
            work: TaskCallWork::Vote {
                candidate: Box::new(candidate),
                proposed_at: made.created_at,
                producer: made.executor,
                turn,
                others,
                fetch_evidence: is_fetched,
            },
        };
        let done = self.make_call(&key.account, filed.submitted_by.as_deref(), step).await?;
        let verdict = match done.outcome {
            TaskCallOutcome::Verdict(verdict) => verdict,
            TaskCallOutcome::Candidate(_) => {
                return Err(defect("a verdict came as a proposal"));
            }
            TaskCallOutcome::Failed { code, detail } => return Err(WorkerFailure { code, detail }),
        };
        let ballot = Ballot {
            status: verdict.status,
            score: verdict.score,
            reason_codes: verdict.reason_codes,
            verdict_digest: verdict.result_hash,
            available: Vec::new(),
        };
        let available = if is_fetched { done.available } else { Vec::new() };
        Ok(VoterAnswer { ballot, available, round_id: done.round_id })
    }
}

impl WorkerAdapter {
    /// The executors that this node knows; the store is read again for an unknown name.
    async fn view(&self, names: &BTreeSet<&str>) -> Result<Arc<PoolView>, TaskPortError> {
        let view = self.engine.pool_view().await?;
        let is_strange =
            |it: &&str| !it.starts_with(JUDGE_PREFIX) && !view.pool.executors.contains_key(*it);
        if !names.iter().any(is_strange) {
            return Ok(view);
        }
        self.engine.pool_refresh().await?;
        Ok(self.engine.pool_view().await?)
    }

    async fn make_call(
        &self,
        account: &AccountId,
        key: Option<&str>,
        order: TaskCallOrder,
    ) -> Result<TaskCallResult, WorkerFailure> {
        let said = |error: EngineError| node_failure(error.code(), &error.to_string());
        let caller = self.engine.caller_of_task_call(account, key).await.map_err(said)?;
        self.engine.inner.failpoints.pass("task_ask_before");
        let done = self.engine.task_call(&caller, order).await.map_err(said);
        self.engine.inner.failpoints.pass("task_ask_after");
        done
    }

    /// Earlier decisions for a proposer. An executor can also work without them.
    async fn seed_bundle(&self, account: &AccountId, filed: &TaskSnapshot) -> Option<Value> {
        let (knowledge, behalf) =
            (self.engine.inner.store.knowledge(), Behalf::Account(account.clone()));
        let (exact, others) = (knowledge::MOST_SAME, knowledge::LOOKED_THROUGH);
        let asked = knowledge::knowledge_query(account, &filed.contract, exact, others);
        let hits = knowledge.hits(&behalf, &asked).await.unwrap_or_default();
        let picks = knowledge::picks(&hits, &filed.contract);
        let wanted = knowledge::output_query(account, knowledge::keys(&picks));
        let learned = knowledge.read(&behalf, &wanted).await.unwrap_or_default();
        let refused: Vec<String> = filed.task.blacklist.iter().cloned().collect();
        knowledge::bundle(&picks, &learned, &filed.contract, &refused)
    }

    /// Earlier decisions on the same inputs, if the policy counts them as further answers.
    async fn prior_outputs(
        &self,
        order: &VoteOrder,
    ) -> Result<Vec<(String, Value)>, WorkerFailure> {
        let lost =
            |_| node_failure(ProblemCode::StoreUnavailable, "earlier decisions could not be read");
        let VoteOrder { key, snapshot: filed, candidate, .. } = order;
        let (tasks, behalf) =
            (self.engine.inner.store.knowledge(), Behalf::Account(key.account.clone()));
        let asked =
            knowledge::knowledge_query(&key.account, &filed.contract, knowledge::MOST_SAME, 0);
        let hits = tasks.hits(&behalf, &asked).await.map_err(lost)?;
        let proposal = filed.task.proposal(&candidate.candidate_id);
        let prior = knowledge::prior(&hits, proposal.and_then(|it| it.source.as_deref()));
        let wanted = knowledge::output_query(&key.account, prior);
        let found = tasks.read(&behalf, &wanted).await.map_err(lost)?;
        Ok(found
            .into_iter()
            .map(|it| (knowledge::source_name(&it.key()), it.knowledge.output))
            .collect())
    }

    /// The author and time of a candidate, and the other answers if the policy compares.
    async fn candidate_and_others(
        &self,
        order: &VoteOrder,
    ) -> Result<(TaskCandidateRow, Vec<(String, Value)>), WorkerFailure> {
        let id = &order.candidate.candidate_id;
        let made = self.candidate(order, id).await?;
        let policy = &order.snapshot.contract["acceptance"]["verifier_policy"];
        let mut others = Vec::new();
        if policy["policy_id"] == CROSSCHECK {
            let mut outputs = BTreeMap::from([(id.as_str(), made.output.clone())]);
            let voices = voices(&order.snapshot.task, id);
            for (candidate, name) in &voices {
                if !outputs.contains_key(candidate.as_str()) {
                    outputs.insert(candidate, self.candidate(order, candidate).await?.output);
                }
                let output = outputs.get(candidate.as_str()).cloned().unwrap_or_default();
                others.push((name.clone(), output));
            }
            if policy["policy_params"][PRIOR_DECISIONS] == true {
                others.extend(self.prior_outputs(order).await?);
            }
        }
        Ok((made, others))
    }

    async fn candidate(
        &self,
        order: &VoteOrder,
        id: &str,
    ) -> Result<TaskCandidateRow, WorkerFailure> {
        let tasks = self.engine.inner.store.tasks();
        let behalf = Behalf::Account(order.key.account.clone());
        let lost =
            |_| node_failure(ProblemCode::StoreUnavailable, "the candidate could not be read");
        let made = tasks.candidate(&behalf, &order.key, id).await.map_err(lost)?;
        made.ok_or_else(|| defect("the candidate is missing"))
    }

    fn worker(
        &self,
        filed: &TaskSnapshot,
        name: &str,
        view: &PoolView,
        standings: &PoolHealth,
    ) -> TaskWorker {
        let panel = &filed.roster;
        let is_in = |names: &[String]| names.iter().any(|it| it == name);
        let mut worker = TaskWorker {
            name: name.to_owned(),
            independence: name.to_owned(),
            proposes: false,
            votes: is_in(&panel.voters),
            is_ready: false,
            kind: TaskWorkerKind::Executor,
        };
        if let Some(model) = name.strip_prefix(JUDGE_PREFIX).and_then(|it| it.parse().ok()) {
            worker.is_ready = self.engine.is_judge_known(&model);
            return worker;
        }
        let Some(session) = session_to(view, name, &panel.profile) else { return worker };
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
            is_in(&panel.proposers) && declared.takes_task_type(session.task_type(task_type));
        worker
    }
}

fn roster_names(panel: &TaskRoster) -> BTreeSet<&str> {
    panel.proposers.iter().chain(&panel.voters).map(String::as_str).collect()
}

/// The session to an executor. Whether the account may use a session without a price is checked
/// when the task is submitted, and with every call.
fn session_to<'a>(view: &'a PoolView, name: &str, profile: &str) -> Option<Cow<'a, Session>> {
    view.session_to(name, profile, CreditMode::Unmetered).ok()
}

/// Whether the policy of a contract compares the answers of several executors.
fn compares(contract: &Value) -> bool {
    let Ok(contract) = read_task_contract(contract) else { return false };
    let policy = Policy::bind(&contract.acceptance.verifier_policy.into());
    matches!(policy, Ok(Policy::Crosscheck { rules: PolicyRules::Jurat, .. }))
}

fn node_worker(kind: TaskWorkerKind) -> TaskWorker {
    TaskWorker {
        name: BUILTIN_SESSION.to_owned(),
        independence: format!("{NODE_FAMILY}/{NODE_MODEL}"),
        proposes: false,
        votes: true,
        is_ready: true,
        kind,
    }
}

/// The answers of this epoch that a candidate is compared with, each with its candidate and a
/// distinct name: each executor that answered counts once. Equal outputs are one candidate, whose
/// first proposer is the one that is compared. A remembered candidate is not an answer.
pub fn voices(task: &Task, own: &str) -> Vec<(String, String)> {
    let answers = task.proposals.iter().filter(|it| it.source.is_none() || it.id == own);
    let voices = answers.flat_map(|it| {
        let first = usize::from(it.id == own);
        let name = |voice: usize| (it.id.clone(), format!("{}~{}", it.id, voice + 1));
        (first..it.proposers.len()).map(name)
    });
    voices.take(MOST_OTHERS).collect()
}

/// A fault of this node, or of the account. It says nothing about the executor.
fn node_failure(code: ProblemCode, detail: &str) -> WorkerFailure {
    WorkerFailure { code: TaskCallFailure::Node(code), detail: detail.to_owned() }
}

/// A state that cannot occur.
fn defect(detail: &str) -> WorkerFailure {
    let code = TaskCallFailure::Replica(FailureCode::Internal);
    WorkerFailure { code, detail: detail.to_owned() }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1)
}

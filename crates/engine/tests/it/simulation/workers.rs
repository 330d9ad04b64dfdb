//! Executors that fail, hang, lie, change their minds, and die; and the node itself, which does
//! not.

use std::{
    sync::{Arc, LazyLock, atomic::Ordering},
    time::Duration,
};

use jurat_core::{
    canonical::digest_json,
    code::ProblemCode,
    executor::session::BUILTIN_SESSION,
    policy::{Evaluation, EvaluationStatus, Policy, PolicyBinding},
    reason,
    round::{
        candidate::{Candidate, Evidence, InlineEvidence},
        replica::{AnswerContent, FailureCode, Label, ReplicaAnswer, ReplicaVote},
    },
    schema::Schema,
    task::{Ballot, VoterReliability},
};
use jurat_engine::{
    TaskCallFailure,
    tasks::{
        ProposeOrder, ProposerAnswer, TaskPortError, TaskSnapshot, TaskWorker, TaskWorkerKind,
        VoteOrder, VoterAnswer, WorkerFailure, WorkerPort, knowledge, voices,
    },
};
use serde_json::{Value, json};

use super::{
    chance::Chance,
    evidence,
    plan::{Character, Rule},
    store::SimStore,
    world::{Call, World, matter_of, pause},
};

/// Accepts anything.
static OPEN: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&json!({})).unwrap());

#[derive(Debug, Clone)]
pub(super) struct SimWorkers {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
}

/// Other answers by name.
type Others = Vec<(String, Value)>;

impl SimWorkers {
    /// What happens to a call before there is an answer; the random numbers are those of its
    /// execution.
    async fn reach(
        &self,
        name: &str,
        execution_id: &str,
    ) -> Result<(Character, Chance), WorkerFailure> {
        let plan = &self.world.plan;
        if self.world.draw(|chance| chance.percent(plan.ours)) {
            return Err(failure(TaskCallFailure::Node(ProblemCode::Overloaded)));
        }
        let chance = Chance::of(plan.seed, &format!("{name} {execution_id}"));
        if name == BUILTIN_SESSION {
            return Ok((Character::honest(name), chance));
        }
        let character = plan.executors.iter().find(|it| it.name == name).cloned();
        let character =
            character.ok_or_else(|| failure(TaskCallFailure::Replica(FailureCode::Unavailable)))?;
        let latency = self.world.draw(|chance| chance.between(0, character.slowest_ms));
        pause(Duration::from_millis(latency)).await;
        if character.dies_at.is_some_and(|at| at <= self.world.millis()) {
            return Err(failure(TaskCallFailure::Replica(FailureCode::Unreachable)));
        }
        if self.world.draw(|chance| chance.percent(character.hangs)) {
            std::future::pending::<()>().await;
        }
        if self.world.draw(|chance| chance.percent(character.fails)) {
            return Err(failure(TaskCallFailure::Replica(FailureCode::Disconnected)));
        }
        Ok((character, chance))
    }

    /// The answers that a candidate is compared with: other answers, and earlier decisions.
    async fn others(&self, order: &VoteOrder) -> Result<(Others, Others), WorkerFailure> {
        let Rule::Compared { prior } = self.world.rule_of(&order.snapshot) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let store = SimStore { world: Arc::clone(&self.world), node: self.node };
        let VoteOrder { key, snapshot: filed, candidate, .. } = order.clone();
        let proposal = filed.task.proposal(&candidate.candidate_id);
        let source = proposal.and_then(|it| it.source.clone());
        let voices = voices(&filed.task, &candidate.candidate_id);
        let reading = store.send(move |shelf| {
            let most = knowledge::MOST_SAME;
            let asked = knowledge::knowledge_query(&key.account, &filed.contract, most, 0);
            let hits = shelf.hits(&asked);
            let before =
                if prior { knowledge::prior(&hits, source.as_deref()) } else { Vec::new() };
            let before = before.iter().filter_map(|it| shelf.output(it)).collect();
            let made = shelf.tasks.get(&key).map(|it| &it.candidates);
            let answer =
                |(id, name): &(String, String)| Some((name.clone(), made?.get(id)?.output.clone()));
            (voices.iter().filter_map(answer).collect(), before)
        });
        let lost = |_| failure(TaskCallFailure::Node(ProblemCode::StoreUnavailable));
        reading.await.map_err(lost)
    }
}

impl WorkerPort for SimWorkers {
    async fn weights(&self, _: &TaskSnapshot) -> Result<VoterReliability, TaskPortError> {
        Ok(self.world.weights())
    }

    async fn workers(&self, filed: &TaskSnapshot) -> Result<Vec<TaskWorker>, TaskPortError> {
        self.world.asks.fetch_add(1, Ordering::SeqCst);
        if self.world.plan.probe_ms != 0 {
            pause(Duration::from_millis(self.world.plan.probe_ms)).await;
        }
        let now = self.world.millis();
        let panel = &filed.roster;
        let worker = |it: &Character| TaskWorker {
            name: it.name.clone(),
            independence: it.independence.clone(),
            proposes: panel.proposers.contains(&it.name),
            votes: panel.voters.contains(&it.name),
            is_ready: !(it.rests.0..it.rests.1).contains(&now),
            kind: TaskWorkerKind::Executor,
        };
        let spare = panel.has_spare.then_some(TaskWorkerKind::Spare);
        let node =
            panel.has_node.then_some(TaskWorkerKind::Node).or(spare).map(|kind| TaskWorker {
                name: BUILTIN_SESSION.to_owned(),
                independence: "node".to_owned(),
                proposes: false,
                votes: true,
                is_ready: true,
                kind,
            });
        Ok(self.world.plan.executors.iter().map(worker).chain(node).collect())
    }

    async fn propose(&self, order: ProposeOrder) -> Result<ProposerAnswer, WorkerFailure> {
        self.world.note(Call::propose(&order));
        let (character, mut chance) = self.reach(&order.executor, &order.execution_id).await?;
        let matter = matter_of(&order.snapshot);
        let is_wrong = chance.percent(character.wrong);
        let answer = if is_wrong { chance.between(0, 2) } else { right(matter) };
        let refs = evidence::refs(&mut chance, matter, &order);
        let candidate = Candidate {
            candidate_id: format!("cand-{}", order.execution_id),
            execution_id: order.execution_id,
            output: json!({ "answer": answer }),
            evidence: Evidence { inline: Vec::new(), refs },
        };
        Ok(ProposerAnswer { candidate, round_id: None })
    }

    async fn vote(&self, order: VoteOrder) -> Result<VoterAnswer, WorkerFailure> {
        let (others, before) = self.others(&order).await?;
        self.world.note(Call::verify(&order, &others, &before));
        let (character, mut chance) = self.reach(&order.voter, &order.execution_id).await?;
        let seen = self.judge(&order, others.into_iter().chain(before));
        let answer = self.say(seen, &character, &mut chance);
        let verdict_digest = digest_json(&json!([order.voter, answer.label().as_str()]));
        let refs = &order.candidate.evidence.refs;
        let is_fetched = order.snapshot.task.terms.da_quorum > 0 && !refs.is_empty();
        let (answer, available) = if is_fetched {
            evidence::fetch(&self.world, answer, refs).await
        } else {
            (answer, vec![])
        };
        let ballot = Ballot {
            status: status_of(&answer),
            score: 0.9,
            reason_codes: answer.content().map(|it| it.reason_codes.clone()).unwrap_or_default(),
            verdict_digest,
            available: Vec::new(),
        };
        Ok(VoterAnswer { ballot, available, round_id: None })
    }
}

impl SimWorkers {
    /// An honest evaluation of a candidate.
    fn judge(
        &self,
        order: &VoteOrder,
        others: impl Iterator<Item = (String, Value)>,
    ) -> Evaluation {
        if self.world.rule_of(&order.snapshot) == Rule::Plain {
            let right = json!({ "answer": right(matter_of(&order.snapshot)) });
            let is_right = order.candidate.output == right;
            let wrong = || Evaluation::failed(Vec::new(), Vec::new());
            return if is_right { Evaluation::passed(Vec::new()) } else { wrong() };
        }
        let mut candidate = order.candidate.clone();
        candidate.evidence.inline.extend(others.map(|(id, output)| InlineEvidence {
            mime: "application/json".to_owned(),
            content:
                json!({ "kind": "candidate", "candidate_id": id, "output": output }).to_string(),
        }));
        let policy = &order.snapshot.contract["acceptance"]["verifier_policy"];
        let id = policy["policy_id"].as_str().unwrap_or_default();
        let binding = PolicyBinding::new(id, policy["policy_params"].clone());
        Policy::bind(&binding).unwrap().evaluate(&candidate, &OPEN)
    }

    /// The answer of an executor with this character after such an evaluation.
    fn say(&self, seen: Evaluation, character: &Character, chance: &mut Chance) -> ReplicaAnswer {
        let flip = |status: EvaluationStatus| match status {
            EvaluationStatus::Passed => EvaluationStatus::Failed,
            EvaluationStatus::Failed | EvaluationStatus::Inconclusive => EvaluationStatus::Passed,
        };
        let mut status =
            if chance.percent(character.lies) { flip(seen.status) } else { seen.status };
        let mut reason_codes = if status == seen.status { seen.reason_codes } else { Vec::new() };
        if chance.percent(character.inconclusive) {
            // Some report that they could not reach the evidence, whatever else they answer.
            reason_codes.extend(chance.percent(50).then_some(reason::EVIDENCE_UNREACHABLE));
            status = if chance.percent(60) { EvaluationStatus::Inconclusive } else { status };
        }
        // An equivocator gives another verdict each time, under the same execution id.
        if self.world.draw(|chance| chance.percent(character.equivocates)) {
            status = flip(status);
        }
        let said = AnswerContent { reason_codes, ..AnswerContent::default() };
        match status {
            EvaluationStatus::Passed => {
                ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said })
            }
            EvaluationStatus::Failed => {
                ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, said })
            }
            EvaluationStatus::Inconclusive => {
                ReplicaAnswer::Abstained { label: Label::Retry, said }
            }
        }
    }
}

fn status_of(answer: &ReplicaAnswer) -> EvaluationStatus {
    let label = answer.label();
    if label == Label::Valid {
        EvaluationStatus::Passed
    } else if label == Label::Invalid {
        EvaluationStatus::Failed
    } else {
        EvaluationStatus::Inconclusive
    }
}

/// The right answer to a matter.
pub(super) const fn right(matter: u64) -> u64 {
    42 + matter
}

fn failure(code: TaskCallFailure) -> WorkerFailure {
    WorkerFailure { code, detail: "it broke".to_owned() }
}

//! Executors that fail, hang, lie, change their minds, and die.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    candidate::{ArtifactRef, Candidate, Evidence},
    canonical::digest_json,
    policy::Status,
    task::Ballot,
};
use jurat_engine::task::{
    DeskError, Failure, Filed, Hands, Made, ProposeOrder, Verdict, VerifyOrder, Worker, WorkerKind,
};
use serde_json::json;

use super::{
    chance::Chance,
    plan::{Character, Weather},
    world::{Call, World, pause},
};

#[derive(Debug, Clone)]
pub(super) struct SimHands {
    pub(super) world: Arc<World>,
}

impl SimHands {
    /// What happens to a call before there is an answer; the chances are those of its execution.
    async fn reach(&self, name: &str, execution_id: &str) -> Result<(Character, Chance), Failure> {
        let plan = &self.world.plan;
        let character = plan.executors.iter().find(|it| it.name == name).cloned();
        let character = character.ok_or_else(|| failure("unknown"))?;
        let latency = self.world.draw(|chance| chance.between(0, character.slowest_ms));
        pause(Duration::from_millis(latency)).await;
        if character.dies_at.is_some_and(|at| at <= self.world.millis()) {
            return Err(failure("refused"));
        }
        if self.world.draw(|chance| chance.percent(character.hangs)) {
            std::future::pending::<()>().await;
        }
        if self.world.draw(|chance| chance.percent(character.fails)) {
            return Err(failure("reset"));
        }
        let chance = Chance::of(plan.seed, &format!("{name} {execution_id}"));
        Ok((character, chance))
    }
}

impl Hands for SimHands {
    async fn workers(&self, _: &Filed) -> Result<Vec<Worker>, DeskError> {
        let now = self.world.millis();
        let worker = |it: &Character| Worker {
            name: it.name.clone(),
            independence: it.independence.clone(),
            proposes: true,
            verifies: true,
            is_ready: !(it.rests.0..it.rests.1).contains(&now),
            kind: WorkerKind::Executor,
            reliability: 0.8,
        };
        Ok(self.world.plan.executors.iter().map(worker).collect())
    }

    async fn propose(&self, order: ProposeOrder) -> Result<Made, Failure> {
        self.world.note(Call::propose(&order));
        let (character, mut chance) = self.reach(&order.executor, &order.execution_id).await?;
        let is_wrong = chance.percent(character.wrong);
        let answer = if is_wrong { chance.between(0, 3) } else { 42 };
        let has_evidence = chance.percent(40);
        let evidence = ArtifactRef {
            uri: "https://evidence.example/1".to_owned(),
            digest: "sha256:evidence".to_owned(),
            size_bytes: 1,
            mime: "text/plain".to_owned(),
            created_at: 0,
            producer: order.executor.clone(),
        };
        let refs = if has_evidence { vec![evidence] } else { Vec::new() };
        let candidate = Candidate {
            candidate_id: format!("cand-{}", order.execution_id),
            execution_id: order.execution_id,
            output: json!({ "answer": answer }),
            evidence: Evidence { inline: Vec::new(), refs },
        };
        Ok(Made { candidate, round_id: None })
    }

    async fn verify(&self, order: VerifyOrder) -> Result<Verdict, Failure> {
        self.world.note(Call::verify(&order));
        let (character, mut chance) = self.reach(&order.verifier, &order.execution_id).await?;
        let is_right = order.candidate.output == json!({ "answer": 42 });
        let is_pass = if chance.percent(character.lies) { !is_right } else { is_right };
        let mut status = if is_pass { Status::Passed } else { Status::Failed };
        if chance.percent(character.inconclusive) {
            status = Status::Inconclusive;
        }
        // Whoever equivocates says something else each time, under the same execution.
        let is_other = self.world.draw(|chance| chance.percent(character.equivocates));
        if is_other {
            status = if status == Status::Passed { Status::Failed } else { Status::Passed };
        }
        let is_storm = self.world.plan.weather == Weather::Storm;
        let found = self.world.draw(|chance| !is_storm || chance.percent(95));
        let refs = order.candidate.evidence.refs.iter().map(|it| it.digest.clone());
        let ballot = Ballot {
            status,
            score: 0.9,
            reason_codes: Vec::new(),
            verdict_digest: digest_json(&json!([order.verifier, status.as_str()])),
            available: Vec::new(),
        };
        let available = if found { refs.collect() } else { Vec::new() };
        Ok(Verdict { ballot, available, round_id: None })
    }
}

fn failure(code: &str) -> Failure {
    Failure { code: code.to_owned(), detail: "it broke".to_owned(), is_ours: false }
}

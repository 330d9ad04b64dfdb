//! Reads tasks: one, a list, the events, and the decision.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    account::caller::{Caller, Scope},
    task::{
        TaskCandidateRow, TaskEventRow, TaskFilter, TaskKey, TaskRecord, TaskSummary,
        knowledge::{KnowledgeFilter, KnowledgeScope},
    },
};
use jurat_store::{Behalf, TaskBallotRow, TaskEventsQuery};
use jurat_wire::executor::TaskContract;

use crate::{
    Engine, EngineError,
    access::{behalf_of, require_scope},
};

/// The decision of a task, as far as there is one.
#[derive(Debug, Clone)]
pub struct TaskDecision {
    pub record: TaskRecord,
    /// The approved candidate.
    pub candidate: Option<TaskCandidateRow>,
    /// The executor that proposed it, even if it comes from an earlier decision.
    pub executor: Option<String>,
    /// Provider and model of the proposer, as declared now.
    pub declared: Option<(String, String)>,
    /// The confidence in it, and the digest of the decision, once it is final.
    pub confidence: Option<f64>,
    pub final_hash: Option<String>,
    /// The rounds of the revealed votes, by voter.
    pub rounds: BTreeMap<String, String>,
}

impl Engine {
    pub async fn task_show(&self, caller: &Caller, id: &str) -> Result<TaskRecord, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        self.task_of(&key(caller, id)).await
    }

    /// The caller's tasks, newest first.
    pub async fn task_list(
        &self,
        caller: &Caller,
        filter: &TaskFilter,
    ) -> Result<Vec<TaskSummary>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let tasks = self.inner.store.tasks();
        Ok(tasks.page(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// The events of a task after an event, in order.
    pub async fn task_events(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<TaskEventRow>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let task = key(caller, id);
        let asked = TaskEventsQuery { task: task.clone(), after, limit };
        let found = self.inner.store.tasks().events(&behalf_of(caller), &asked).await?;
        if found.is_empty() {
            // Either there are no further events, or no such task.
            self.task_of(&task).await?;
        }
        Ok(found)
    }

    pub async fn task_decision(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<TaskDecision, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let key = key(caller, id);
        let record = self.task_of(&key).await?;
        let task = &record.state;
        let approved = task.approved().map(|it| it.id.clone());
        let Some(decided) = task.decided.clone().or(approved) else {
            return Ok(TaskDecision {
                record,
                candidate: None,
                executor: None,
                declared: None,
                confidence: None,
                final_hash: None,
                rounds: BTreeMap::new(),
            });
        };
        let candidate =
            self.inner.store.tasks().candidate(&behalf_of(caller), &key, &decided).await?;
        let proposers = task.proposal(&decided).map(|it| &it.proposers);
        let executor = proposers.and_then(|it| it.first().cloned());
        let declared = match &executor {
            Some(executor) => self.declared_identity(executor).await?,
            None => None,
        };
        let rounds = self.vote_rounds(caller, &record, &decided).await?;
        let (confidence, final_hash) = self.final_decision_of(caller, &record).await?.unzip();
        Ok(TaskDecision { record, candidate, executor, declared, confidence, final_hash, rounds })
    }

    /// A sample contract; a name is drawn if none is given.
    pub fn task_sample(
        &self,
        caller: &Caller,
        task_id: Option<&str>,
    ) -> Result<TaskContract, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let now = self.inner.clock.now();
        let drawn = || jurat_core::id::RoundId::new(now, self.inner.clock.bits()).to_string();
        let id = task_id.map_or_else(|| drawn().replacen("rnd_", "task-", 1), str::to_owned);
        let now_ms = u64::try_from(now.micros() / 1_000).unwrap_or_default();
        Ok(TaskContract::sample(&id, now_ms))
    }

    pub(crate) async fn task_of(&self, key: &TaskKey) -> Result<TaskRecord, EngineError> {
        let behalf = Behalf::Account(key.account.clone());
        let found = self.inner.store.tasks().get(&behalf, key).await?;
        found.ok_or_else(|| EngineError::NotFound { what: "task", id: key.id.clone() })
    }

    async fn declared_identity(
        &self,
        executor: &str,
    ) -> Result<Option<(String, String)>, EngineError> {
        let found = self.inner.store.executors().get(&Behalf::Platform, executor).await?;
        let probe = found.and_then(|it| it.probe);
        let capabilities = probe.and_then(|it| it.capabilities.ok());
        Ok(capabilities.map(|it| (it.provider_family, it.model_id)))
    }

    /// Nothing about a vote is shown before it is revealed.
    async fn vote_rounds(
        &self,
        caller: &Caller,
        record: &TaskRecord,
        candidate: &str,
    ) -> Result<BTreeMap<String, String>, EngineError> {
        let Some(proposal) = record.state.proposal(candidate) else { return Ok(BTreeMap::new()) };
        let turns: BTreeSet<u32> = proposal.votes.values().map(|it| it.turn).collect();
        let mut rounds = BTreeMap::new();
        for turn in turns {
            let tasks = self.inner.store.tasks();
            let found = tasks.ballots(&behalf_of(caller), &record.key, candidate, &turn).await?;
            for TaskBallotRow { voter, round, .. } in found {
                let vote = proposal.votes.get(&voter).filter(|it| it.turn == turn);
                if let (Some(round), true) = (round, vote.is_some_and(|it| it.revealed.is_some())) {
                    rounds.insert(voter, round.to_string());
                }
            }
        }
        Ok(rounds)
    }

    /// The confidence and the digest of this epoch's decision.
    async fn final_decision_of(
        &self,
        caller: &Caller,
        record: &TaskRecord,
    ) -> Result<Option<(f64, String)>, EngineError> {
        let of = KnowledgeScope::Task(record.key.id.clone());
        let filter = KnowledgeFilter { of, before: None, limit: 1 };
        let knowledge = self.inner.store.knowledge();
        let found = knowledge.export(&behalf_of(caller), caller.account(), &filter).await?;
        let newest = found.into_iter().next().map(|it| it.knowledge);
        let newest = newest.filter(|it| it.epoch == record.state.epoch);
        Ok(newest.map(|it| (it.confidence, it.final_hash)))
    }
}

fn key(caller: &Caller, id: &str) -> TaskKey {
    TaskKey { account: caller.account().clone(), id: id.to_owned() }
}

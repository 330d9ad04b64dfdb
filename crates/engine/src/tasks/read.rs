//! Reading tasks: one, a list, what happened, and what was decided.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    account::caller::{Caller, Scope},
    task::TaskPhase,
};
use jurat_store::{
    Behalf, KnowledgePageQuery, KnowledgeScope, ListPosition, TaskBallotRow, TaskCandidateRow,
    TaskEventRow, TaskEventsQuery, TaskFilter, TaskKey, TaskRecord, TaskSummary,
};
use jurat_wire::executor::TaskContract;

use crate::{
    Engine, EngineError,
    access::{behalf_of, require_scope},
};

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    pub state: Option<TaskPhase>,
    pub task_type: Option<String>,
    /// Starts behind this task, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}

/// What a task decided, as far as it did.
#[derive(Debug, Clone)]
pub struct TaskDecision {
    pub record: TaskRecord,
    /// What the votes approved.
    pub candidate: Option<TaskCandidateRow>,
    /// Who proposed it, also where it is taken from an earlier decision.
    pub executor: Option<String>,
    /// Provider and model of who proposed it, as declared now.
    pub declared: Option<(String, String)>,
    /// How likely it is right, and the digest of the decision, once it is final.
    pub confidence: Option<f64>,
    pub final_hash: Option<String>,
    /// The rounds in which the revealed votes were cast, by voter.
    pub rounds: BTreeMap<String, String>,
}

impl Engine {
    pub async fn task_get(&self, caller: &Caller, id: &str) -> Result<TaskRecord, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        self.task_of(&key(caller, id)).await
    }

    /// The caller's tasks, newest first.
    pub async fn task_list(
        &self,
        caller: &Caller,
        query: TaskQuery,
    ) -> Result<Vec<TaskSummary>, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let filter = TaskFilter {
            account: caller.account().clone(),
            phase: query.state,
            task_type: query.task_type,
            before: query.before,
            limit: query.limit,
        };
        Ok(self.inner.store.tasks().task_page(&behalf_of(caller), &filter).await?)
    }

    /// What happened to a task behind an event, in its order.
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
        let found = self.inner.store.tasks().task_events(&behalf_of(caller), &asked).await?;
        if found.is_empty() {
            // No events behind this one, or no such task.
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
            self.inner.store.tasks().task_candidate(&behalf_of(caller), &key, &decided).await?;
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

    /// A contract to begin with; a name is drawn where none is given.
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
        let found = self.inner.store.tasks().task_get(&behalf, key).await?;
        found.ok_or_else(|| EngineError::NotFound { what: "task", id: key.id.clone() })
    }

    async fn declared_identity(
        &self,
        executor: &str,
    ) -> Result<Option<(String, String)>, EngineError> {
        let found = self.inner.store.executor_get(executor).await?;
        let probe = found.and_then(|it| it.probe);
        let capabilities = probe.and_then(|it| it.capabilities.ok());
        Ok(capabilities.map(|it| (it.provider_family, it.model_id)))
    }

    /// Nothing of a vote is told before it is revealed.
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
            let found =
                tasks.task_ballots(&behalf_of(caller), &record.key, candidate, &turn).await?;
            for TaskBallotRow { voter, round, .. } in found {
                let vote = proposal.votes.get(&voter).filter(|it| it.turn == turn);
                if let (Some(round), true) = (round, vote.is_some_and(|it| it.revealed.is_some())) {
                    rounds.insert(voter, round.to_string());
                }
            }
        }
        Ok(rounds)
    }

    /// What is remembered of the decision of this epoch: its confidence and its digest.
    async fn final_decision_of(
        &self,
        caller: &Caller,
        record: &TaskRecord,
    ) -> Result<Option<(f64, String)>, EngineError> {
        let page = KnowledgePageQuery {
            account: caller.account().clone(),
            of: KnowledgeScope::Task(record.key.id.clone()),
            before: None,
            limit: 1,
        };
        let found = self.inner.store.tasks().knowledge_export(&behalf_of(caller), &page).await?;
        let newest = found.into_iter().next().map(|it| it.knowledge);
        let newest = newest.filter(|it| it.epoch == record.state.epoch);
        Ok(newest.map(|it| (it.confidence, it.final_hash)))
    }
}

fn key(caller: &Caller, id: &str) -> TaskKey {
    TaskKey { account: caller.account().clone(), id: id.to_owned() }
}

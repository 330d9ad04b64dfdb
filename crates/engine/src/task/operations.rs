//! Operations on tasks. What belongs to another account does not exist.

use std::time::Duration;

use jurat_core::{
    caller::{Caller, Scope},
    canonical::digest_json,
    task::{Event, Phase, Task},
    time::Timestamp,
};
use jurat_store::{
    KnowledgeOf, KnowledgePage, Learned, Position, SubmitRefused, TaskCandidate, TaskEvent, TaskEventsAsked,
    TaskFilter, TaskRecord, TaskSubmit, TaskSubmitted, TaskSummary,
};
use jurat_wire::{api::tasks::TaskSubmission, executor::TaskContract};
use tokio::time::Instant;

use super::{TaskKey, cancel, keep::StoreDesk};
use crate::{Done, Engine, EngineError, Keyed, executors::require, workflows::behalf};

/// How soon, and how seldom, a task that another node drives is looked at.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which tasks to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    pub phase: Option<Phase>,
    pub task_type: Option<String>,
    /// Starts behind this task.
    pub before: Option<Position>,
    pub limit: u32,
}

/// What a task decided, with the candidate and what is remembered of the decision.
#[derive(Debug, Clone)]
pub struct TaskDecision {
    pub record: TaskRecord,
    /// The candidate that the votes approved, once they did.
    pub candidate: Option<TaskCandidate>,
    /// Once the decision is final.
    pub learned: Option<Learned>,
}

impl Engine {
    /// Takes a task. The same contract under the same identifier is the same task.
    pub async fn task_submit(
        &self,
        caller: &Caller,
        order: TaskSubmission,
        keyed: Option<Keyed<TaskSubmitted>>,
    ) -> Result<Done<TaskSubmitted>, EngineError> {
        require(caller, Scope::TasksWrite)?;
        if self.is_stopping() {
            return Err(EngineError::ShuttingDown);
        }
        let id = order.contract.task_id.clone();
        let contract = serde_json::to_value(&order.contract)
            .map_err(|_| EngineError::Bug("a contract cannot be written"))?;
        let digest = digest_json(&contract);
        if let Some(known) = self.task_before(caller, &id, &digest).await?
            && keyed.is_none()
        {
            return Ok(Done::Now(known));
        }
        let panel = self.task_check(&order).await?;
        let now = self.inner.clock.now();
        let terms = order.contract.terms();
        let submit = TaskSubmit {
            task: key(caller, &id),
            task_type: order.contract.task_type,
            contract,
            contract_digest: digest,
            panel: panel.write(),
            state: Task::created(&id, terms.clone(), now),
            events: vec![Event::Created { terms: Box::new(terms) }],
            due_at: Some(now),
            at: now,
            most_open: self.inner.limits.open_tasks,
        };
        let tasks = self.inner.store.tasks();
        let written = self
            .write_once(caller, keyed.as_ref(), async |once| {
                let writing = tasks.task_submit(&behalf(caller), &submit, once);
                self.inner.metrics.write("task_submit", writing).await
            })
            .await?;
        let done = written.map_err(|refused| match refused {
            SubmitRefused::Taken => taken(&id),
            SubmitRefused::TooManyOpen => EngineError::Conflict(format!(
                "{} tasks of the account are open, which is as many as may be; wait, or cancel some",
                self.inner.limits.open_tasks
            )),
        })?;
        self.inner.driven.wake.notify_one();
        Ok(done)
    }

    /// The task that has the identifier already, if its contract is the same.
    async fn task_before(
        &self,
        caller: &Caller,
        id: &str,
        digest: &str,
    ) -> Result<Option<TaskSubmitted>, EngineError> {
        let tasks = self.inner.store.tasks();
        match tasks.task_get(&behalf(caller), &key(caller, id)).await? {
            None => Ok(None),
            Some(record) if record.contract_digest == digest => {
                Ok(Some(TaskSubmitted { record, is_new: false }))
            }
            Some(_) => Err(taken(id)),
        }
    }

    pub async fn task_get(&self, caller: &Caller, id: &str) -> Result<TaskRecord, EngineError> {
        require(caller, Scope::TasksRead)?;
        self.task_of(caller, id).await
    }

    pub async fn task_list(
        &self,
        caller: &Caller,
        query: TaskQuery,
    ) -> Result<Vec<TaskSummary>, EngineError> {
        require(caller, Scope::TasksRead)?;
        let filter = TaskFilter {
            account: caller.account().clone(),
            phase: query.phase,
            task_type: query.task_type,
            before: query.before,
            limit: query.limit,
        };
        Ok(self.inner.store.tasks().task_page(&behalf(caller), &filter).await?)
    }

    /// The events of a task behind a number, in order.
    pub async fn task_events(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        limit: u32,
    ) -> Result<Vec<TaskEvent>, EngineError> {
        require(caller, Scope::TasksRead)?;
        let asked = TaskEventsAsked { task: key(caller, id), after, limit };
        let events = self.inner.store.tasks().task_events(&behalf(caller), &asked).await?;
        if events.is_empty() {
            // Nothing new, or nothing at all.
            self.task_of(caller, id).await?;
        }
        Ok(events)
    }

    /// The task as it is when it has more events than these, is over, or the time is up.
    pub async fn task_wait(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        within: Duration,
    ) -> Result<TaskRecord, EngineError> {
        require(caller, Scope::TasksRead)?;
        let following = self.inner.followers.follow(&key(caller, id));
        let until = Instant::now() + within;
        let mut pause = FIRST_LOOK;
        loop {
            // Listened to before the task is read, so that nothing in between is missed.
            let mut news = std::pin::pin!(following.news());
            news.as_mut().enable();
            let record = self.task_of(caller, id).await?;
            let is_time_up = until <= Instant::now() || self.is_stopping();
            if after < record.seq || record.state.is_over() || is_time_up {
                return Ok(record);
            }
            let next = until.min(Instant::now() + pause);
            pause = LOOK_EVERY.min(pause * 2);
            let either = async {
                tokio::select! {
                    () = news => {}
                    () = self.stopping() => {}
                }
            };
            let _elapsed = tokio::time::timeout_at(next, either).await;
        }
    }

    pub async fn task_decision(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<TaskDecision, EngineError> {
        require(caller, Scope::TasksRead)?;
        let record = self.task_of(caller, id).await?;
        let tasks = self.inner.store.tasks();
        let task = &record.state;
        let approved = task.approved().map(|it| it.id.clone());
        let chosen = task.decided.clone().or(approved);
        let candidate = match &chosen {
            Some(chosen) => tasks.task_candidate(&behalf(caller), &record.key, chosen).await?,
            None => None,
        };
        let page = KnowledgePage {
            account: caller.account().clone(),
            of: KnowledgeOf::Task(id.to_owned()),
            before: None,
            limit: 1,
        };
        let learned = match &task.decided {
            Some(_) => tasks.knowledge_export(&behalf(caller), &page).await?.into_iter().next(),
            None => None,
        };
        Ok(TaskDecision { record, candidate, learned })
    }

    /// Calls a task off. One that is over otherwise stays as it is, and that is a conflict.
    pub async fn task_cancel(
        &self,
        caller: &Caller,
        id: &str,
        reason: Option<&str>,
    ) -> Result<TaskRecord, EngineError> {
        require(caller, Scope::TasksWrite)?;
        let key = key(caller, id);
        let desk = StoreDesk { engine: self.clone() };
        let reason = reason.unwrap_or("its caller called it off");
        let ended = cancel(&desk, &*self.inner.clock, &key, reason).await;
        let ended = ended.map_err(|_| EngineError::Late("the task could not be called off now"))?;
        self.inner.driven.tell(&key);
        let filed = ended.ok_or_else(|| missing(id))?;
        if filed.task.phase != Phase::Cancelled {
            let phase = filed.task.phase;
            return Err(EngineError::Conflict(format!("the task `{id}` is over already: {phase}")));
        }
        self.task_of(caller, id).await
    }

    /// A contract to begin with, under the identifier.
    pub fn task_sample(&self, task_id: &str) -> TaskContract {
        TaskContract::sample(task_id, millis(self.inner.clock.now()))
    }

    async fn task_of(&self, caller: &Caller, id: &str) -> Result<TaskRecord, EngineError> {
        let found = self.inner.store.tasks().task_get(&behalf(caller), &key(caller, id)).await?;
        found.ok_or_else(|| missing(id))
    }
}

fn key(caller: &Caller, id: &str) -> TaskKey {
    TaskKey { account: caller.account().clone(), id: id.to_owned() }
}

fn missing(id: &str) -> EngineError {
    EngineError::NotFound { what: "task", id: id.chars().take(128).collect() }
}

fn taken(id: &str) -> EngineError {
    EngineError::Conflict(format!("there is a task `{id}` already, under another contract"))
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.millis()).unwrap_or_default()
}

//! The desk of a node: tasks as the store keeps them.

use std::{collections::BTreeSet, sync::Arc};

use jurat_core::{
    agent_event::Direction,
    candidate::{ArtifactRef, Candidate},
    task::Event,
    time::Timestamp,
};
use jurat_store::{
    AppendRefused, AppendedWith, Behalf, NewAgentEvent, StoreError, TaskAppend, TaskBallot,
    TaskCandidate, TaskRecord, TaskTake, Written,
};
use serde_json::Value;

use super::{
    Append, Appended, Candidacy, Desk, DeskError, Due, Filed, News, Panel, Remembered, Sealed,
    TaskKey, announce, knowledge,
};
use crate::{Engine, agent_events::AgentNotice};

/// The store as a desk.
#[derive(Debug, Clone)]
pub(crate) struct StoreDesk {
    pub(crate) engine: Engine,
}

impl Desk for StoreDesk {
    async fn load(&self, key: &TaskKey) -> Result<Option<Filed>, DeskError> {
        let tasks = self.engine.inner.store.tasks();
        let found = tasks.task_get(&behalf(key), key).await.map_err(|error| trouble(&error))?;
        Ok(found.map(Filed::from))
    }

    async fn append(&self, append: Append) -> Result<Appended, DeskError> {
        let inner = &self.engine.inner;
        let key = append.key.clone();
        let note = append.note.clone();
        let append = self.fill(append).await?;
        let is_told = !append.with.agent_events.is_empty();
        let given_up = append.with.given_up.len();
        inner.points.pass("task_append_before");
        let writing =
            async { inner.store.tasks().task_append(&behalf(&key), &append, note.as_ref()).await };
        let written = inner.metrics.write("task_append", writing).await;
        inner.points.pass("task_append_after");
        match written.map_err(|error| trouble(&error))? {
            Written::Done(()) => {
                inner.metrics.tasks.wrote(&append.state, &append.events, append.at);
                inner.metrics.agent_events.crowded(given_up);
                let added = u64::try_from(append.events.len()).unwrap_or(u64::MAX);
                let events = append.expected_seq.saturating_add(added);
                let is_at_rest = append.state.is_at_rest();
                inner.followers.tell(&key, News { events, is_at_rest });
                if is_told {
                    inner.agent_news.notify_one();
                }
                Ok(Appended::Written)
            }
            Written::Refused(AppendRefused::Stale { .. } | AppendRefused::Deprecated) => {
                Ok(Appended::Stale)
            }
            Written::Refused(AppendRefused::Unknown) => {
                Err(DeskError("there is no such task".to_owned()))
            }
            Written::Repeated => Ok(Appended::Repeated),
        }
    }

    async fn candidate(&self, key: &TaskKey, id: &str) -> Result<Option<Candidate>, DeskError> {
        let found = self.engine.inner.store.tasks().task_candidate(&behalf(key), key, id).await;
        Ok(found.map_err(|error| trouble(&error))?.map(plain))
    }

    async fn references(&self, key: &TaskKey, digest: &str) -> Result<Vec<ArtifactRef>, DeskError> {
        let tasks = self.engine.inner.store.tasks();
        let found = tasks.task_references(&behalf(key), key, digest).await;
        found.map_err(|error| trouble(&error))
    }

    async fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> Result<Vec<Sealed>, DeskError> {
        let tasks = self.engine.inner.store.tasks();
        let found = tasks.task_ballots(&behalf(key), key, candidate, &turn).await;
        let found = found.map_err(|error| trouble(&error))?;
        let sealed = |it: TaskBallot| Sealed {
            candidate: it.candidate,
            turn: it.turn,
            voter: it.voter,
            ballot: it.ballot,
            salt: it.salt,
            round_id: it.round,
        };
        Ok(found.into_iter().map(sealed).collect())
    }

    async fn remembered(&self, key: &TaskKey, filed: &Filed) -> Result<Vec<Remembered>, DeskError> {
        let asked = knowledge::asked(&key.account, &filed.contract, (knowledge::MOST_SAME, 0));
        let tasks = self.engine.inner.store.tasks();
        let hits = tasks.knowledge_hits(&behalf(key), &asked).await;
        let exact = hits.map_err(|error| trouble(&error))?.exact;
        let mut found = Vec::new();
        for known in knowledge::reusable(&exact, &key.id, &filed.panel) {
            let before = TaskKey { account: key.account.clone(), id: known.key.task_id.clone() };
            let made = tasks.task_candidate(&behalf(key), &before, &known.candidate).await;
            let made = made.map_err(|error| trouble(&error))?;
            found.extend(made.map(|made| knowledge::remembered((known, filed.task.epoch), made)));
        }
        Ok(found)
    }

    async fn take_due(&self, take: TaskTake) -> Result<Due, DeskError> {
        let tasks = self.engine.inner.store.tasks();
        let taken = tasks.task_take_due(&Behalf::Platform, &take, None).await;
        let taken = match taken.map_err(|error| trouble(&error))? {
            Written::Done(taken) => taken,
            Written::Refused(never) => match never {},
            Written::Repeated => {
                return Err(DeskError("tasks were taken with a key".to_owned()));
            }
        };
        if !taken.tasks.is_empty() {
            self.engine.inner.points.pass("task_take_after");
        }
        if taken.some_wait {
            return Ok(Due { taken, next: None });
        }
        let next = tasks.task_next_due(&Behalf::Platform).await;
        Ok(Due { taken, next: next.map_err(|error| trouble(&error))? })
    }
}

impl StoreDesk {
    /// The write as the store wants it, with what is to be remembered of a decision and what
    /// executors are told of.
    async fn fill(&self, append: Append) -> Result<TaskAppend, DeskError> {
        let listening = self.listening(&append.events).await?;
        let finalized = append.events.iter().enumerate().find_map(|(place, event)| {
            let Event::Finalized { epoch, candidate, .. } = event else { return None };
            Some((place, *epoch, candidate.clone()))
        });
        let mut made = None;
        let mut knowledge = None;
        if let Some((place, epoch, candidate)) = finalized {
            made = self.made(&append, &candidate).await?;
            let seq = append.before.seq + u64::try_from(place).unwrap_or(u64::MAX) + 1;
            knowledge = made.as_ref().map(|it| knowledge::learned(&append, (epoch, seq), it));
        }
        let output = made.as_ref().map(|it| &it.output);
        let told =
            if listening.is_empty() { Vec::new() } else { self.told(&append, output, &listening) };
        let fitting = self.engine.agent_events_fit(&append.key.account, told).await;
        let (agent_events, given_up) = fitting.map_err(|error| DeskError(error.to_string()))?;
        let at = append.at;
        let reused = append.events.iter().find_map(knowledge::taken_over);
        let candidate = append.candidate.map(|it| stored(it, at));
        let ballot = append.ballot.map(|it| sealed(it, at));
        Ok(TaskAppend {
            task: append.key,
            expected_seq: append.before.seq,
            events: append.events,
            state: append.task,
            due_at: append.due_at,
            at,
            with: AppendedWith { candidate, ballot, knowledge, reused, agent_events, given_up },
        })
    }

    /// The executors that want to be told, if there is something to tell.
    async fn listening(&self, events: &[Event]) -> Result<BTreeSet<String>, DeskError> {
        if !events.iter().any(announce::is_told) {
            return Ok(BTreeSet::new());
        }
        let view = self.engine.pool_view().await.map_err(|error| DeskError(error.to_string()))?;
        let executors = view.pool.executors.values();
        let listening = executors.filter(|it| it.agent_events_url.is_some());
        Ok(listening.map(|it| it.name.clone()).collect())
    }

    fn told(
        &self,
        append: &Append,
        output: Option<&Value>,
        listening: &BTreeSet<String>,
    ) -> Vec<NewAgentEvent> {
        let filed = &append.before;
        let told = announce::Told {
            task: &filed.task,
            seq: filed.seq,
            task_type: filed.contract["task_type"].as_str().unwrap_or_default(),
            panel: &filed.panel,
            events: &append.events,
            at: append.at,
            output,
        };
        let announced = announce::announce(&told, listening).into_iter().map(|it| {
            let dedupe_key = it.dedupe_key(&append.key.id);
            let notice = AgentNotice {
                direction: Direction::Out,
                event_type: it.event_type,
                executor: it.executor,
                source_node_id: None,
                target_agent_id: None,
                agent_envelope: None,
                payload: it.payload,
                requires_commit: false,
                correlation_id: Some(append.key.id.clone()),
                dedupe_key: Some(dedupe_key),
            };
            self.engine.agent_event_made(&append.key.account, notice, append.at)
        });
        announced.collect()
    }

    async fn made(&self, append: &Append, id: &str) -> Result<Option<Candidate>, DeskError> {
        let own = append.candidate.as_ref().filter(|it| it.candidate.candidate_id == id);
        match own {
            Some(own) => Ok(Some(own.candidate.clone())),
            None => self.candidate(&append.key, id).await,
        }
    }
}

impl From<TaskRecord> for Filed {
    fn from(record: TaskRecord) -> Self {
        Self {
            task: record.state,
            seq: record.seq,
            contract: Arc::new(record.contract),
            panel: Panel::read(&record.panel),
            ordered_by: record.ordered_by,
        }
    }
}

fn stored(it: Candidacy, created_at: Timestamp) -> TaskCandidate {
    TaskCandidate {
        id: it.candidate.candidate_id,
        execution_id: it.candidate.execution_id,
        executor: it.proposer,
        round: it.round_id,
        output: it.candidate.output,
        evidence: it.candidate.evidence,
        digest: it.digest,
        created_at,
    }
}

fn plain(it: TaskCandidate) -> Candidate {
    Candidate {
        candidate_id: it.id,
        execution_id: it.execution_id,
        output: it.output,
        evidence: it.evidence,
    }
}

fn sealed(it: Sealed, created_at: Timestamp) -> TaskBallot {
    TaskBallot {
        candidate: it.candidate,
        turn: it.turn,
        voter: it.voter,
        ballot: it.ballot,
        salt: it.salt,
        round: it.round_id,
        created_at,
    }
}

fn behalf(key: &TaskKey) -> Behalf {
    Behalf::Account(key.account.clone())
}

fn trouble(error: &StoreError) -> DeskError {
    DeskError(error.to_string())
}

//! Implements the store port on the real store.

use std::{collections::BTreeSet, sync::Arc};

use jurat_core::{
    round::candidate::{ArtifactRef, Candidate},
    task::{
        TaskCandidateRow, TaskEvent, TaskKey, TaskRecord, TaskTake,
        agent_event::{EventDirection, NewAgentEvent},
    },
    time::Timestamp,
};
use jurat_store::{
    Behalf, TaskAppend, TaskAppendExtras, TaskAppendRefusal, TaskBallotRow, WriteOutcome,
};
use serde_json::Value;

use crate::{
    Engine,
    agent_events::AgentNotice,
    tasks::{
        DueTasks, NewCandidate, PriorDecision, SecretBallot, TaskNews, TaskPortError, TaskRoster,
        TaskSnapshot, TaskStorePort, TaskWrite, TaskWriteOutcome, announce, knowledge,
    },
};

/// The store as a port.
#[derive(Debug, Clone)]
pub(crate) struct TaskStoreAdapter {
    pub(crate) engine: Engine,
}

impl TaskStorePort for TaskStoreAdapter {
    async fn load(&self, key: &TaskKey) -> Result<Option<TaskSnapshot>, TaskPortError> {
        let tasks = self.engine.inner.store.tasks();
        let found = tasks.get(&behalf_of_task(key), key).await?;
        Ok(found.map(TaskSnapshot::from))
    }

    async fn append(&self, append: TaskWrite) -> Result<TaskWriteOutcome, TaskPortError> {
        let inner = &self.engine.inner;
        let key = append.key.clone();
        let note = append.idempotency.clone();
        let append = self.task_append(append).await?;
        let is_told = !append.with.agent_events.is_empty();
        let given_up = append.with.given_up.len();
        inner.failpoints.pass("task_append_before");
        let writing = async {
            inner.store.tasks().append(&behalf_of_task(&key), &append, note.as_ref()).await
        };
        let written = inner.metrics.write("task_append", writing).await;
        inner.failpoints.pass("task_append_after");
        match written? {
            WriteOutcome::Done(()) => {
                inner.metrics.tasks.task_written(&append.state, &append.events, append.at);
                inner.metrics.agent_events.crowded(given_up);
                let added = u64::try_from(append.events.len()).unwrap_or(u64::MAX);
                let events = append.expected_seq.saturating_add(added);
                let is_at_rest = append.state.is_at_rest();
                inner.task_followers.tell(&key, TaskNews { events, is_at_rest });
                if is_told {
                    inner.agent_event_wake.notify_one();
                }
                Ok(TaskWriteOutcome::Written)
            }
            WriteOutcome::Refused(
                TaskAppendRefusal::Stale { .. } | TaskAppendRefusal::Deprecated,
            ) => Ok(TaskWriteOutcome::Stale),
            WriteOutcome::Refused(TaskAppendRefusal::Unknown) => Err(TaskPortError::Missing),
            WriteOutcome::Repeated => Ok(TaskWriteOutcome::Repeated),
        }
    }

    async fn candidate(&self, key: &TaskKey, id: &str) -> Result<Option<Candidate>, TaskPortError> {
        let found = self.engine.inner.store.tasks().candidate(&behalf_of_task(key), key, id).await;
        Ok(found?.map(plain_candidate))
    }

    async fn references(
        &self,
        key: &TaskKey,
        digest: &str,
    ) -> Result<Vec<ArtifactRef>, TaskPortError> {
        let tasks = self.engine.inner.store.tasks();
        Ok(tasks.references(&behalf_of_task(key), key, digest).await?)
    }

    async fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> Result<Vec<SecretBallot>, TaskPortError> {
        let tasks = self.engine.inner.store.tasks();
        let found = tasks.ballots(&behalf_of_task(key), key, candidate, &turn).await?;
        let sealed = |it: TaskBallotRow| SecretBallot {
            candidate: it.candidate,
            turn: it.turn,
            voter: it.voter,
            ballot: it.ballot,
            salt: it.salt,
            round_id: it.round,
        };
        Ok(found.into_iter().map(sealed).collect())
    }

    async fn prior_decisions(
        &self,
        key: &TaskKey,
        filed: &TaskSnapshot,
    ) -> Result<Vec<PriorDecision>, TaskPortError> {
        let asked =
            knowledge::knowledge_query(&key.account, &filed.contract, knowledge::MOST_SAME, 0);
        let store = &self.engine.inner.store;
        let hits = store.knowledge().hits(&behalf_of_task(key), &asked).await;
        let exact = hits?.exact;
        let mut found = Vec::new();
        for known in knowledge::reusable(&exact, &key.id, &filed.roster) {
            let before = TaskKey { account: key.account.clone(), id: known.key.task_id.clone() };
            let made =
                store.tasks().candidate(&behalf_of_task(key), &before, &known.candidate).await;
            found
                .extend(made?.map(|made| knowledge::prior_decision(known, filed.task.epoch, made)));
        }
        Ok(found)
    }

    async fn take_due(&self, take: TaskTake) -> Result<DueTasks, TaskPortError> {
        let tasks = self.engine.inner.store.tasks();
        let taken = tasks.take_due(&Behalf::Platform, &take).await?;
        if !taken.tasks.is_empty() {
            self.engine.inner.failpoints.pass("task_take_after");
        }
        if taken.some_wait {
            return Ok(DueTasks { taken, next: None });
        }
        let next = tasks.next_due(&Behalf::Platform).await?;
        Ok(DueTasks { taken, next })
    }
}

impl TaskStoreAdapter {
    /// The write in the form of the store, with the knowledge from a decision and the agent events.
    async fn task_append(&self, append: TaskWrite) -> Result<TaskAppend, TaskPortError> {
        let listening = self.listening(&append.events).await?;
        let finalized = append.events.iter().enumerate().find_map(|(place, event)| {
            let TaskEvent::Finalized { epoch, candidate, .. } = event else { return None };
            Some((place, *epoch, candidate.clone()))
        });
        let mut made = None;
        let mut knowledge = None;
        if let Some((place, epoch, candidate)) = finalized {
            made = self.final_candidate(&append, &candidate).await?;
            let seq = append.before.seq + u64::try_from(place).unwrap_or(u64::MAX) + 1;
            knowledge = made.as_ref().map(|it| knowledge::knowledge_of(&append, epoch, seq, it));
        }
        let output = made.as_ref().map(|it| &it.output);
        let told = if listening.is_empty() {
            Vec::new()
        } else {
            self.announcements(&append, output, &listening)
        };
        let fitting = self.engine.within_event_quota(&append.key.account, told).await;
        let (agent_events, given_up) = fitting?;
        let at = append.at;
        let reused = append.events.iter().find_map(knowledge::reused_key);
        let candidate = append.candidate.map(|it| stored_candidate(it, at));
        let ballot = append.ballot.map(|it| stored_ballot(it, at));
        Ok(TaskAppend {
            task: append.key,
            expected_seq: append.before.seq,
            events: append.events,
            state: append.task,
            due_at: append.due_at,
            at,
            with: TaskAppendExtras { candidate, ballot, knowledge, reused, agent_events, given_up },
        })
    }

    /// The executors that subscribed to events, if there is one to announce.
    async fn listening(&self, events: &[TaskEvent]) -> Result<BTreeSet<String>, TaskPortError> {
        if !events.iter().any(announce::is_announced) {
            return Ok(BTreeSet::new());
        }
        let view = self.engine.pool_view().await?;
        let executors = view.pool.executors.values();
        let listening = executors.filter(|it| it.agent_events_url.is_some());
        Ok(listening.map(|it| it.name.clone()).collect())
    }

    fn announcements(
        &self,
        append: &TaskWrite,
        output: Option<&Value>,
        listening: &BTreeSet<String>,
    ) -> Vec<NewAgentEvent> {
        let filed = &append.before;
        let told = announce::TaskUpdate {
            task: &filed.task,
            seq: filed.seq,
            task_type: filed.contract["task_type"].as_str().unwrap_or_default(),
            roster: &filed.roster,
            events: &append.events,
            at: append.at,
            output,
        };
        let announced = announce::announce(&told, listening).into_iter().map(|it| {
            let dedupe_key = it.dedupe_key(&append.key.id);
            let notice = AgentNotice {
                direction: EventDirection::Out,
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
            self.engine.new_agent_event(&append.key.account, notice, append.at)
        });
        announced.collect()
    }

    async fn final_candidate(
        &self,
        append: &TaskWrite,
        id: &str,
    ) -> Result<Option<Candidate>, TaskPortError> {
        let own = append.candidate.as_ref().filter(|it| it.candidate.candidate_id == id);
        match own {
            Some(own) => Ok(Some(own.candidate.clone())),
            None => self.candidate(&append.key, id).await,
        }
    }
}

impl From<TaskRecord> for TaskSnapshot {
    fn from(record: TaskRecord) -> Self {
        Self {
            task: record.state,
            seq: record.seq,
            contract: Arc::new(record.contract),
            roster: TaskRoster::read(&record.panel),
            submitted_by: record.ordered_by,
        }
    }
}

fn stored_candidate(it: NewCandidate, created_at: Timestamp) -> TaskCandidateRow {
    TaskCandidateRow {
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

fn plain_candidate(it: TaskCandidateRow) -> Candidate {
    Candidate {
        candidate_id: it.id,
        execution_id: it.execution_id,
        output: it.output,
        evidence: it.evidence,
    }
}

fn stored_ballot(it: SecretBallot, created_at: Timestamp) -> TaskBallotRow {
    TaskBallotRow {
        candidate: it.candidate,
        turn: it.turn,
        voter: it.voter,
        ballot: it.ballot,
        salt: it.salt,
        round: it.round_id,
        created_at,
    }
}

fn behalf_of_task(key: &TaskKey) -> Behalf {
    Behalf::Account(key.account.clone())
}

//! The content of the simulated store: tasks with their documents, and the knowledge from
//! decisions.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    account::fair_share::share_fairly,
    canonical::digest_json,
    id::AccountId,
    round::{
        VoteTicket,
        candidate::{Candidate, Evidence},
    },
    task::{
        TakenTasks, Task, TaskCandidateRow, TaskEvent, TaskKey, TaskTake,
        knowledge::{Knowledge, KnowledgeKey, KnowledgeRecord},
    },
    time::Timestamp,
};
use jurat_engine::tasks::{
    DueTasks, NewCandidate, PriorDecision, SecretBallot, TaskSnapshot, TaskWrite, TaskWriteOutcome,
    knowledge,
};
use jurat_store::{KnowledgeHits, KnowledgeLookup, KnowledgeSummary};
use serde_json::{Value, json};

/// A task with everything that is stored for it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) filed: TaskSnapshot,
    pub(super) events: Vec<(Timestamp, TaskEvent)>,
    /// The writer of each event, and the time.
    pub(super) writers: Vec<(usize, u64)>,
    pub(super) due_at: Option<Timestamp>,
    pub(super) candidates: BTreeMap<String, TaskCandidateRow>,
    /// By candidate, number of the vote, and voter.
    pub(super) ballots: BTreeMap<(String, u32, String), SecretBallot>,
}

impl Kept {
    pub(super) fn new(filed: TaskSnapshot, at: Timestamp) -> Self {
        let event = TaskEvent::Created { terms: Box::new(filed.task.terms.clone()) };
        Self {
            filed,
            events: vec![(at, event)],
            writers: vec![(0, 0)],
            due_at: Some(at),
            candidates: BTreeMap::new(),
            ballots: BTreeMap::new(),
        }
    }

    /// Adds the documents of events; `false` if they existed already.
    fn add(&mut self, append: &TaskWrite) -> bool {
        let made = append.candidate.as_ref().map(|it| stored(it, append.at));
        let before = made.and_then(|it| self.candidates.insert(it.id.clone(), it));
        let cast = append.ballot.as_ref().and_then(|it| {
            let place = (it.candidate.clone(), it.turn, it.voter.clone());
            self.ballots.insert(place, it.clone())
        });
        before.is_none() && cast.is_none()
    }
}

fn stored(it: &NewCandidate, created_at: Timestamp) -> TaskCandidateRow {
    TaskCandidateRow {
        id: it.candidate.candidate_id.clone(),
        execution_id: it.candidate.execution_id.clone(),
        executor: it.proposer.clone(),
        round: None,
        output: it.candidate.output.clone(),
        evidence: it.candidate.evidence.clone(),
        digest: it.digest.clone(),
        created_at,
    }
}

pub(super) fn plain(it: &TaskCandidateRow) -> Candidate {
    Candidate {
        candidate_id: it.id.clone(),
        execution_id: it.execution_id.clone(),
        output: it.output.clone(),
        evidence: it.evidence.clone(),
    }
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) tasks: BTreeMap<TaskKey, Kept>,
    knowledge: Vec<KnowledgeRecord>,
    /// The idempotency keys of callers that were used.
    notes: BTreeSet<String>,
    /// How many times a request was not repeated under such a key.
    pub(super) repeated: u32,
    /// How many times a decision was not remembered because it was disputed.
    pub(super) left_out: u32,
    /// How many times a decision was disputed just before it was reused.
    pub(super) withdrawn: u32,
    /// Violations of invariants.
    pub(super) wrongs: Vec<String>,
}

impl Shelf {
    pub(super) fn append(
        &mut self,
        append: &TaskWrite,
        (node, at): (usize, u64),
    ) -> TaskWriteOutcome {
        let note = append.idempotency.as_ref().map(|it| it.key.clone());
        if note.as_ref().is_some_and(|it| self.notes.contains(it)) {
            self.repeated += 1;
            return TaskWriteOutcome::Repeated;
        }
        let Some(kept) = self.tasks.get_mut(&append.key) else { return TaskWriteOutcome::Stale };
        if kept.filed.seq != append.before.seq {
            return TaskWriteOutcome::Stale;
        }
        let reused = append.events.iter().find_map(knowledge::reused_key);
        if reused.is_some_and(|it| is_deprecated(&self.knowledge, &it)) {
            self.withdrawn += 1;
            return TaskWriteOutcome::Stale;
        }
        let id = &append.key.id;
        if !kept.add(append) {
            self.wrongs.push(format!("{id}: a candidate or a ballot was written twice"));
        }
        let learned = learn(append, kept);
        kept.filed.task = append.task.clone();
        kept.filed.seq += append.events.len() as u64;
        kept.events.extend(append.events.iter().map(|event| (append.at, event.clone())));
        kept.writers.resize(kept.events.len(), (node, at));
        kept.due_at = append.due_at;
        self.wrongs.extend(shown(&append.task).map(|it| format!("{id}: {it} can be seen")));
        self.knowledge.extend(learned.map(|it| self.derived(it)));
        for event in &append.events {
            if let TaskEvent::Complained { epoch, .. } = event {
                let key = KnowledgeKey { task_id: id.clone(), epoch: *epoch };
                self.deprecate(&key, append.at);
            }
            let reused = knowledge::reused_key(event);
            if reused.is_some_and(|it| is_deprecated(&self.knowledge, &it)) {
                self.wrongs.push(format!("{id}: reused what somebody complained of"));
            }
        }
        self.notes.extend(note);
        TaskWriteOutcome::Written
    }

    /// A decision derived from a disputed one is not used, either.
    fn derived(&self, mut learned: KnowledgeRecord) -> KnowledgeRecord {
        let source = learned.knowledge.source.as_ref();
        let source = self.knowledge.iter().find(|it| source == Some(&it.key()));
        learned.knowledge.deprecated_at = source.and_then(|it| it.knowledge.deprecated_at);
        learned
    }

    /// Marks a decision as not reusable, and all others with the same output on the same inputs.
    pub(super) fn deprecate(&mut self, key: &KnowledgeKey, at: Timestamp) {
        let Some(wrong) = self.knowledge.iter().find(|it| it.key() == *key) else { return };
        let (digests, output) =
            (wrong.knowledge.digests.clone(), wrong.knowledge.output_digest.clone());
        for it in &mut self.knowledge {
            if it.knowledge.digests == digests && it.knowledge.output_digest == output {
                it.knowledge.deprecated_at.get_or_insert(at);
            }
        }
    }

    /// Decisions on the same inputs, the newest first.
    pub(super) fn hits(&mut self, asked: &KnowledgeLookup) -> KnowledgeHits {
        let mut exact = Vec::new();
        for it in self.knowledge.iter().rev().filter(|it| it.knowledge.digests == asked.digests) {
            if it.knowledge.deprecated_at.is_some() {
                self.left_out += 1;
            } else if exact.len() < asked.exact as usize {
                exact.push(known(it));
            }
        }
        KnowledgeHits { exact, others: Vec::new() }
    }

    pub(super) fn output(&self, key: &KnowledgeKey) -> Option<(String, Value)> {
        let found = self.knowledge.iter().find(|it| it.key() == *key)?;
        Some((knowledge::source_name(key), found.knowledge.output.clone()))
    }

    pub(super) fn remembered(&mut self, key: &TaskKey, filed: &TaskSnapshot) -> Vec<PriorDecision> {
        let most = knowledge::MOST_SAME;
        let hits = self.hits(&knowledge::knowledge_query(&key.account, &filed.contract, most, 0));
        let found = knowledge::reusable(&hits.exact, &key.id, &filed.roster);
        let made = |it: &KnowledgeSummary| {
            let before = TaskKey { account: key.account.clone(), id: it.key.task_id.clone() };
            let kept = self.tasks.get(&before);
            let made = kept.and_then(|of| of.candidates.get(&it.candidate).cloned());
            made.unwrap_or_else(|| self.made_before(it))
        };
        found.map(|it| knowledge::prior_decision(it, filed.task.epoch, made(it))).collect()
    }

    /// A candidate of a task from before the world started.
    fn made_before(&self, it: &KnowledgeSummary) -> TaskCandidateRow {
        let output = self.output(&it.key).map(|(_, output)| output).unwrap_or_default();
        TaskCandidateRow {
            id: it.candidate.clone(),
            execution_id: "exec-before".to_owned(),
            executor: it.proposers[0].clone(),
            round: None,
            digest: digest_json(&output),
            output,
            evidence: Evidence::default(),
            created_at: Timestamp::from_millis(0),
        }
    }

    /// A decision from before the world started.
    pub(super) fn remember(&mut self, task: &str, contract: &Value, answer: u64) {
        let asked = knowledge::knowledge_query(&AccountId::admin(), contract, 1, 0);
        let output = json!({ "answer": answer });
        let knowledge = Knowledge {
            epoch: 1,
            task_type: asked.task_type,
            digests: asked.digests,
            words: String::new(),
            candidate: "cand-before".to_owned(),
            output_digest: digest_json(&output),
            output,
            profile: "default".to_owned(),
            proposers: vec!["executor-0".to_owned()],
            source: None,
            reason_codes: Vec::new(),
            confidence: 0.9,
            quorum: json!({}),
            final_hash: digest_json(&json!(["before", task])),
            created_at: Timestamp::from_millis(0),
            deprecated_at: None,
        };
        self.knowledge.push(KnowledgeRecord { task_id: task.to_owned(), knowledge });
    }

    pub(super) fn take_due(&mut self, take: &TaskTake) -> DueTasks {
        let mut waiting: BTreeMap<AccountId, Vec<(Timestamp, TaskKey)>> = BTreeMap::new();
        for (key, kept) in &self.tasks {
            let due_at = kept.due_at.filter(|at| *at <= take.now);
            let of_account = waiting.entry(key.account.clone()).or_default();
            of_account.extend(due_at.map(|at| (at, key.clone())));
        }
        let all: usize = waiting.values().map(Vec::len).sum();
        let chosen = share_fairly(waiting, &take.in_flight, take.limit as usize);
        let tasks: Vec<TaskKey> = chosen.into_iter().map(|(_, key)| key).collect();
        for key in &tasks {
            self.tasks.get_mut(key).unwrap().due_at = Some(take.until);
        }
        let some_wait = tasks.len() < all;
        let next = self.tasks.values().filter_map(|it| it.due_at).min();
        DueTasks {
            taken: TakenTasks { tasks, some_wait, looked_to: None },
            next: next.filter(|_| !some_wait),
        }
    }
}

fn is_deprecated(knowledge: &[KnowledgeRecord], key: &KnowledgeKey) -> bool {
    knowledge.iter().any(|it| it.key() == *key && it.knowledge.deprecated_at.is_some())
}

/// The knowledge from a write that makes a decision final.
fn learn(append: &TaskWrite, kept: &Kept) -> Option<KnowledgeRecord> {
    let (place, epoch, candidate) =
        append.events.iter().enumerate().find_map(|(place, event)| {
            let TaskEvent::Finalized { epoch, candidate, .. } = event else { return None };
            Some((place, *epoch, candidate))
        })?;
    let made = plain(kept.candidates.get(candidate)?);
    let seq = append.before.seq + place as u64 + 1;
    let knowledge = knowledge::knowledge_of(append, epoch, seq, &made);
    Some(KnowledgeRecord { task_id: append.key.id.clone(), knowledge })
}

fn known(it: &KnowledgeRecord) -> KnowledgeSummary {
    let Knowledge { candidate, output, profile, proposers, source, final_hash, .. } =
        it.knowledge.clone();
    let output_bytes = output.to_string().len() as u64;
    let key = it.key();
    KnowledgeSummary { key, candidate, output_bytes, profile, proposers, source, final_hash }
}

/// Votes that others could copy: their rounds are visible before the reveal.
fn shown(task: &Task) -> impl Iterator<Item = String> {
    let live = task.proposals.iter().filter(|it| it.is_live() && !task.is_at_rest());
    live.flat_map(move |proposal| {
        let is_shown = move |execution_id: &str, turn: u32| {
            !task.hides(&VoteTicket { candidate: proposal.id.clone(), turn }, execution_id)
        };
        let cast = proposal
            .votes
            .iter()
            .filter(move |(_, it)| it.is_hidden() && is_shown(&it.execution_id, it.turn));
        let at_work = task.claims.values().filter(move |it| {
            it.candidate.as_ref() == Some(&proposal.id) && is_shown(&it.execution_id, proposal.turn)
        });
        cast.map(|(voter, _)| voter.clone()).chain(at_work.map(|it| it.holder.clone()))
    })
}

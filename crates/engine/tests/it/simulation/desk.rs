//! A desk in memory behind a network that loses, delays, repeats and reorders.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use jurat_core::{
    candidate::{Candidate, Evidence},
    id::AccountId,
    task::Event,
    time::Timestamp,
    turns::take_turns,
};
use jurat_engine::task::{
    Append, Appended, Desk, DeskError, Due, Filed, Remembered, Sealed, TaskKey, TaskTake, TaskTaken,
};
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    chance::Chance,
    world::{World, pause, spawn},
};

/// How long a node waits for the desk.
const PATIENCE: Duration = Duration::from_millis(300);

/// A task with all that is kept of it.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) filed: Filed,
    pub(super) events: Vec<(Timestamp, Event)>,
    pub(super) due_at: Option<Timestamp>,
    pub(super) candidates: BTreeMap<String, Candidate>,
    /// By candidate, turn and voter.
    pub(super) ballots: BTreeMap<(String, u32, String), Sealed>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) tasks: BTreeMap<TaskKey, Kept>,
}

impl Shelf {
    fn append(&mut self, append: &Append) -> Appended {
        let Some(kept) = self.tasks.get_mut(&append.key) else { return Appended::Stale };
        if kept.filed.seq != append.before.seq {
            return Appended::Stale;
        }
        kept.filed.task = append.task.clone();
        kept.filed.seq += append.events.len() as u64;
        kept.events.extend(append.events.iter().map(|event| (append.at, event.clone())));
        kept.due_at = append.due_at;
        if let Some(it) = &append.candidate {
            kept.candidates.insert(it.candidate.candidate_id.clone(), it.candidate.clone());
        }
        if let Some(it) = &append.ballot {
            let place = (it.candidate.clone(), it.turn, it.voter.clone());
            let before = kept.ballots.insert(place, it.clone());
            assert!(before.is_none(), "a ballot was replaced");
        }
        Appended::Written
    }

    fn take_due(&mut self, take: &TaskTake) -> Due {
        let mut waiting: BTreeMap<AccountId, Vec<(Timestamp, TaskKey)>> = BTreeMap::new();
        for (key, kept) in &self.tasks {
            let due_at = kept.due_at.filter(|at| *at <= take.now);
            let of_account = waiting.entry(key.account.clone()).or_default();
            of_account.extend(due_at.map(|at| (at, key.clone())));
        }
        let all: usize = waiting.values().map(Vec::len).sum();
        let chosen = take_turns(waiting, &take.under_way, take.limit as usize);
        let tasks: Vec<TaskKey> = chosen.into_iter().map(|(_, key)| key).collect();
        for key in &tasks {
            self.tasks.get_mut(key).unwrap().due_at = Some(take.until);
        }
        let some_wait = tasks.len() < all;
        let next = self.tasks.values().filter_map(|it| it.due_at).min();
        Due {
            taken: TaskTaken { tasks, some_wait, looked_to: None },
            next: next.filter(|_| !some_wait),
        }
    }
}

/// The desk as one node reaches it.
#[derive(Debug, Clone)]
pub(super) struct SimDesk {
    pub(super) world: Arc<World>,
}

impl SimDesk {
    /// Sends a request. It arrives whether or not its sender is still there.
    async fn send<T: Send + 'static>(
        &self,
        request: impl Fn(&mut Shelf) -> T + Send + 'static,
    ) -> Result<T, DeskError> {
        let trip = self.world.trip();
        let (reply, answer) = oneshot::channel();
        let world = Arc::clone(&self.world);
        spawn(async move {
            pause(trip.there).await;
            if world.is_desk_down() {
                let _gone = reply.send(Err(DeskError("the desk is down".to_owned())));
                return;
            }
            let done = request(&mut world.shelf.lock().unwrap());
            if let Some(again) = trip.again {
                pause(again).await;
                let _repeated = request(&mut world.shelf.lock().unwrap());
            }
            pause(trip.back).await;
            if !trip.is_lost {
                let _gone = reply.send(Ok(done));
            }
        });
        let waited = tokio::time::timeout(PATIENCE, answer).await;
        waited.ok().and_then(Result::ok).unwrap_or_else(|| Err(DeskError("no answer".to_owned())))
    }
}

impl Desk for SimDesk {
    async fn load(&self, key: &TaskKey) -> Result<Option<Filed>, DeskError> {
        let key = key.clone();
        self.send(move |shelf| shelf.tasks.get(&key).map(|it| it.filed.clone())).await
    }

    async fn append(&self, append: Append) -> Result<Appended, DeskError> {
        self.world.writes.fetch_add(1, Ordering::SeqCst);
        if self.world.plan.is_read_only {
            return self.send(|_| ()).await.and(Err(DeskError("it takes nothing".to_owned())));
        }
        self.send(move |shelf| shelf.append(&append)).await
    }

    async fn candidate(&self, key: &TaskKey, id: &str) -> Result<Option<Candidate>, DeskError> {
        let (key, id) = (key.clone(), id.to_owned());
        self.send(move |shelf| shelf.tasks.get(&key)?.candidates.get(&id).cloned()).await
    }

    async fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> Result<Vec<Sealed>, DeskError> {
        let (key, candidate) = (key.clone(), candidate.to_owned());
        self.send(move |shelf| {
            let ballots = shelf.tasks.get(&key).map(|it| it.ballots.values()).into_iter().flatten();
            let is_asked = |it: &&Sealed| it.candidate == candidate && it.turn == turn;
            ballots.filter(is_asked).cloned().collect()
        })
        .await
    }

    async fn remembered(&self, key: &TaskKey, _: &Filed) -> Result<Vec<Remembered>, DeskError> {
        let mut chance = Chance::of(self.world.plan.seed, &key.id);
        // What was decided once may be wrong by now.
        let answer = if chance.percent(70) { 42 } else { 41 };
        let candidate = Candidate {
            candidate_id: format!("cand-remembered-{}", key.id),
            execution_id: "exec-remembered".to_owned(),
            output: json!({ "answer": answer }),
            evidence: Evidence::default(),
        };
        let source = "knowledge:before#1".to_owned();
        let found = Remembered { source, candidate, proposers: vec!["executor-0".to_owned()] };
        let found = if chance.percent(25) { vec![found] } else { Vec::new() };
        self.send(move |_| found.clone()).await
    }

    async fn take_due(&self, take: TaskTake) -> Result<Due, DeskError> {
        // A repeated request would take what nobody hears of; that is a task that waits.
        self.send(move |shelf| shelf.take_due(&take)).await
    }
}

/// So that others can be named in a lock.
pub(super) type SharedShelf = Mutex<Shelf>;

//! A store in memory behind a network that loses, delays, repeats and reorders messages.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use jurat_core::{
    round::candidate::{ArtifactRef, Candidate},
    task::{TaskKey, TaskTake},
};
use jurat_engine::tasks::{
    DueTasks, PriorDecision, SecretBallot, TaskPortError, TaskSnapshot, TaskStorePort, TaskWrite,
    TaskWriteOutcome,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{
    shelf::{Shelf, plain},
    world::{World, pause, spawn},
};

/// How long a node waits for the store.
const PATIENCE: Duration = Duration::from_millis(300);

/// The store as one node reaches it.
#[derive(Debug, Clone)]
pub(super) struct SimStore {
    pub(super) world: Arc<World>,
    pub(super) node: usize,
}

impl SimStore {
    /// Sends a request. It arrives even if its sender is gone.
    pub(super) async fn send<T: Send + 'static>(
        &self,
        request: impl Fn(&mut Shelf) -> T + Send + 'static,
    ) -> Result<T, TaskPortError> {
        let trip = self.world.trip();
        let (reply, answer) = oneshot::channel();
        let world = Arc::clone(&self.world);
        spawn(async move {
            pause(trip.there).await;
            if world.is_desk_down() {
                let _gone = reply.send(Err(TaskPortError::NoAnswer));
                return;
            }
            let done = request(&mut world.shelf.lock());
            if let Some(again) = trip.again {
                pause(again).await;
                let _repeated = request(&mut world.shelf.lock());
            }
            pause(trip.back).await;
            if !trip.is_lost {
                let _gone = reply.send(Ok(done));
            }
        });
        let waited = tokio::time::timeout(PATIENCE, answer).await;
        waited.ok().and_then(Result::ok).unwrap_or_else(|| Err(TaskPortError::NoAnswer))
    }
}

impl TaskStorePort for SimStore {
    async fn load(&self, key: &TaskKey) -> Result<Option<TaskSnapshot>, TaskPortError> {
        let key = key.clone();
        self.send(move |shelf| shelf.tasks.get(&key).map(|it| it.filed.clone())).await
    }

    async fn append(&self, append: TaskWrite) -> Result<TaskWriteOutcome, TaskPortError> {
        self.world.writes.fetch_add(1, Ordering::SeqCst);
        if self.world.plan.is_read_only {
            return self.send(|_| ()).await.and(Err(TaskPortError::NoAnswer));
        }
        let writer = (self.node, self.world.millis());
        self.send(move |shelf| shelf.append(&append, writer)).await
    }

    async fn candidate(&self, key: &TaskKey, id: &str) -> Result<Option<Candidate>, TaskPortError> {
        let (key, id) = (key.clone(), id.to_owned());
        self.send(move |shelf| shelf.tasks.get(&key)?.candidates.get(&id).map(plain)).await
    }

    async fn references(
        &self,
        key: &TaskKey,
        digest: &str,
    ) -> Result<Vec<ArtifactRef>, TaskPortError> {
        let (key, digest) = (key.clone(), digest.to_owned());
        self.send(move |shelf| {
            let made = shelf.tasks.get(&key).map(|it| it.candidates.values()).into_iter().flatten();
            let same = made.filter(|it| it.digest == digest);
            same.flat_map(|it| it.evidence.refs.clone()).collect()
        })
        .await
    }

    async fn ballots(
        &self,
        key: &TaskKey,
        candidate: &str,
        turn: u32,
    ) -> Result<Vec<SecretBallot>, TaskPortError> {
        let (key, candidate) = (key.clone(), candidate.to_owned());
        self.send(move |shelf| {
            let ballots = shelf.tasks.get(&key).map(|it| it.ballots.values()).into_iter().flatten();
            let is_asked = |it: &&SecretBallot| it.candidate == candidate && it.turn == turn;
            ballots.filter(is_asked).cloned().collect()
        })
        .await
    }

    async fn prior_decisions(
        &self,
        key: &TaskKey,
        filed: &TaskSnapshot,
    ) -> Result<Vec<PriorDecision>, TaskPortError> {
        let (key, filed) = (key.clone(), filed.clone());
        self.send(move |shelf| shelf.remembered(&key, &filed)).await
    }

    async fn take_due(&self, take: TaskTake) -> Result<DueTasks, TaskPortError> {
        // A repeated request would take tasks that nobody learns of; such a task waits.
        self.send(move |shelf| shelf.take_due(&take)).await
    }
}

/// So that others can be named in a lock.
pub(super) type SharedShelf = Mutex<Shelf>;

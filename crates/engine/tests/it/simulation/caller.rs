//! Callers of a simulated world: they cancel tasks, dispute decisions, and start the next epoch at
//! any time.

use std::{sync::Arc, time::Duration};

use jurat_core::task::{TaskCommand, TaskKey};
use jurat_engine::tasks::{TaskChange, TaskPortError, TaskStorePort as _, change_task};
use jurat_store::{IdempotencyAnswer, IdempotencyRecord};

use super::{
    plan::{Asked, Wish},
    store::SimStore,
    world::{SimClock, World, pause},
};

impl World {
    /// Repeats a request to a node until its result is known.
    pub(super) async fn grant(self: Arc<Self>, key: TaskKey, place: usize, wish: Wish) {
        pause(Duration::from_millis(wish.after)).await;
        let node = wish.node % self.machines.len();
        let store = SimStore { world: Arc::clone(&self), node };
        let clock = SimClock { world: Arc::clone(&self), node, skew_ms: 0 };
        loop {
            match self.ask(&store, &clock, &key, (place, wish.what)).await {
                Ok(()) => break,
                Err(_) => pause(Duration::from_millis(50)).await,
            }
        }
        let under_way = Arc::clone(&self.machines[node].under_way.lock());
        under_way.tell(&key);
        under_way.wake.notify_one();
    }

    async fn ask(
        &self,
        store: &SimStore,
        clock: &SimClock,
        key: &TaskKey,
        (place, what): (usize, Asked),
    ) -> Result<(), TaskPortError> {
        let command = match what {
            Asked::Cancel => TaskCommand::Cancel { reason: "enough".to_owned() },
            Asked::NextEpoch => TaskCommand::NextEpoch,
            Asked::Complain(epoch) => {
                let filed = store.load(key).await?;
                let newest = filed.and_then(|it| it.task.newest_decision());
                let epoch = epoch.or(newest).unwrap_or(1);
                TaskCommand::Complain { epoch, reason: "it is wrong".to_owned(), signed: None }
            }
        };
        // A repeated request under the same key is done once.
        let note = format!("{} {place}", key.id);
        let once = move |append: &jurat_engine::tasks::TaskWrite| {
            Some(IdempotencyRecord {
                account: append.key.account.clone(),
                key: note.clone(),
                operation: "task".to_owned(),
                request_digest: note.clone(),
                answer: IdempotencyAnswer::Round,
                at: append.at,
            })
        };
        let wanted = TaskChange { command, weigher: self.weights(), idempotency: Box::new(once) };
        change_task(store, clock, key, &wanted).await.map(drop)
    }
}

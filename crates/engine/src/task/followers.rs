//! Who waits for news of a task on this node.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, futures::Notified};

use super::TaskKey;

/// The tasks that somebody follows.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    tasks: Mutex<BTreeMap<TaskKey, Arc<Notify>>>,
}

impl Followers {
    /// Tells all who follow a task that something was written.
    pub(crate) fn tell(&self, key: &TaskKey) {
        if let Some(news) = self.lock().get(key) {
            news.notify_waiters();
        }
    }

    pub(crate) fn follow(&self, key: &TaskKey) -> Following<'_> {
        let news = Arc::clone(self.lock().entry(key.clone()).or_default());
        Following { followers: self, key: key.clone(), news }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<Notify>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody follows a task until this is dropped.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    followers: &'a Followers,
    key: TaskKey,
    news: Arc<Notify>,
}

impl Following<'_> {
    pub(crate) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let mut tasks = self.followers.lock();
        // The list's own and this one: nobody else follows it.
        if Arc::strong_count(&self.news) <= 2 {
            tasks.remove(&self.key);
        }
    }
}

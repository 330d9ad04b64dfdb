//! Who waits for news of a task on this node.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use super::TaskKey;

/// What was written of a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct News {
    /// How many events there are by now.
    pub(crate) events: u64,
    /// Whether nothing more is done unless somebody asks.
    pub(crate) is_at_rest: bool,
}

/// The tasks that somebody follows.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    tasks: Mutex<BTreeMap<TaskKey, Arc<watch::Sender<News>>>>,
}

impl Followers {
    /// Tells all who follow a task what was written.
    pub(crate) fn tell(&self, key: &TaskKey, news: News) {
        if let Some(sender) = self.lock().get(key) {
            // Of two who wrote, the first may be the last to tell.
            sender.send_if_modified(|known| {
                let is_news = known.events < news.events;
                if is_news {
                    *known = news;
                }
                is_news
            });
        }
    }

    /// Lets all who follow it look for themselves.
    pub(crate) fn stir(&self, key: &TaskKey) {
        if let Some(sender) = self.lock().get(key) {
            sender.send_replace(News { events: 0, is_at_rest: true });
        }
    }

    pub(crate) fn follow(&self, key: &TaskKey) -> Following<'_> {
        let sender = Arc::clone(self.lock().entry(key.clone()).or_default());
        let news = sender.subscribe();
        Following { followers: self, key: key.clone(), sender, news }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskKey, Arc<watch::Sender<News>>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody follows a task until this is dropped.
#[derive(Debug)]
pub(crate) struct Following<'a> {
    followers: &'a Followers,
    key: TaskKey,
    sender: Arc<watch::Sender<News>>,
    news: watch::Receiver<News>,
}

impl Following<'_> {
    /// Until there are more events than these, or nothing more is done.
    pub(crate) async fn until(&mut self, after: u64) {
        loop {
            // The sender is held here, so there is always somebody who could tell.
            if self.news.changed().await.is_err() {
                return std::future::pending().await;
            }
            let News { events, is_at_rest } = *self.news.borrow_and_update();
            if after < events || is_at_rest {
                return;
            }
        }
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let mut tasks = self.followers.lock();
        // The list's own and this one: nobody else follows it.
        if Arc::strong_count(&self.sender) <= 2 {
            tasks.remove(&self.key);
        }
    }
}

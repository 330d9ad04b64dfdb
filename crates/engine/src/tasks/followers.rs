//! Waits for news of a task or a run, whichever node works on it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jurat_core::task::TaskKey;
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use crate::{Engine, EngineError, pauses::Pauses};

/// The news of a write to a task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TaskNews {
    /// How many events there are by now.
    pub(crate) events: u64,
    /// Whether nothing more happens unless a caller asks for it.
    pub(crate) is_at_rest: bool,
}

/// The followed tasks.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    tasks: Mutex<BTreeMap<TaskKey, Arc<watch::Sender<TaskNews>>>>,
}

impl Followers {
    /// Tells all followers of a task about a write.
    pub(crate) fn tell(&self, key: &TaskKey, news: TaskNews) {
        if let Some(sender) = self.tasks.lock().get(key) {
            // Of two writers, the first may be the last to report.
            sender.send_if_modified(|known| {
                let is_news = known.events < news.events;
                if is_news {
                    *known = news;
                }
                is_news
            });
        }
    }

    /// Lets all followers read it again.
    pub(crate) fn wake(&self, key: &TaskKey) {
        if let Some(sender) = self.tasks.lock().get(key) {
            sender.send_replace(TaskNews { events: 0, is_at_rest: true });
        }
    }

    pub(crate) fn follow(&self, key: &TaskKey) -> Follower<'_> {
        let sender = Arc::clone(self.tasks.lock().entry(key.clone()).or_default());
        let news = sender.subscribe();
        Follower { followers: self, key: key.clone(), sender, news }
    }
}

/// A follower of a task, until this is dropped.
#[derive(Debug)]
pub(crate) struct Follower<'a> {
    followers: &'a Followers,
    key: TaskKey,
    sender: Arc<watch::Sender<TaskNews>>,
    news: watch::Receiver<TaskNews>,
}

impl Follower<'_> {
    /// Waits until there are more events than these, or nothing more happens.
    async fn until(&mut self, after: u64) {
        loop {
            // The sender is held here, so the channel never closes.
            if self.news.changed().await.is_err() {
                return std::future::pending().await;
            }
            let TaskNews { events, is_at_rest } = *self.news.borrow_and_update();
            if after < events || is_at_rest {
                return;
            }
        }
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        let mut tasks = self.followers.tasks.lock();
        // Only the list and this follower hold it: nobody else follows the task.
        if Arc::strong_count(&self.sender) <= 2 {
            tasks.remove(&self.key);
        }
    }
}

/// How long to wait, and for how many events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongPoll {
    /// How many events are known already.
    pub(crate) after: u64,
    pub(crate) within: Duration,
}

impl Engine {
    /// Reads repeatedly until the condition holds or the time is up. The follower must exist
    /// before, so that nothing is missed between two reads.
    pub(crate) async fn follow<'a, T>(
        &self,
        mut following: Follower<'_>,
        patience: LongPoll,
        read: impl Fn() -> BoxFuture<'a, Result<T, EngineError>>,
        is_enough: impl Fn(&T) -> bool,
    ) -> Result<T, EngineError> {
        let until = Instant::now() + patience.within;
        let mut pauses = Pauses::between_reads();
        loop {
            let found = read().await?;
            if is_enough(&found) || until <= Instant::now() || self.is_stopping() {
                return Ok(found);
            }
            let next = until.min(Instant::now() + pauses.advance());
            let either = async {
                tokio::select! {
                    () = following.until(patience.after) => {}
                    () = self.stopping() => {}
                }
            };
            let _elapsed = tokio::time::timeout_at(next, either).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use jurat_core::id::AccountId;

    use super::*;

    fn news(events: u64, is_at_rest: bool) -> TaskNews {
        TaskNews { events, is_at_rest }
    }

    #[test]
    fn a_wait_for_the_end_ignores_earlier_news_and_late_reports() {
        let followers = Followers::default();
        let key = TaskKey { account: AccountId::admin(), id: "t-1".to_owned() };
        let mut following = followers.follow(&key);
        followers.tell(&key, news(3, false));
        assert!(following.until(u64::MAX).now_or_never().is_none());
        followers.tell(&key, news(5, true));
        followers.tell(&key, news(4, false));
        assert!(following.until(u64::MAX).now_or_never().is_some());
        followers.tell(&key, news(7, false));
        assert!(following.until(6).now_or_never().is_some());
        drop(following);
        assert!(followers.tasks.lock().is_empty());
    }
}

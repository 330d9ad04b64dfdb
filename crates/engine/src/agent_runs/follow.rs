//! Waits for news of a run, whichever node does its steps.

use std::time::Duration;

use futures::FutureExt as _;
use jurat_core::{
    account::caller::{Caller, Scope},
    agent_run::AgentRunKey,
    task::TaskKey,
};
use tokio::sync::Notify;

use super::{AgentRunView, key};
use crate::{
    Engine, EngineError,
    access::require_scope,
    tasks::{Followers, LongPoll},
};

/// Wakes the followers of runs and the workers of this node.
#[derive(Debug, Default)]
pub(crate) struct AgentRunNews {
    followers: Followers,
    /// There may be a step to take.
    pub(crate) step_wake: Notify,
}

impl AgentRunNews {
    /// A run changed, and there may be work.
    pub(crate) fn tell(&self, key: &AgentRunKey) {
        self.news(key);
        self.step_wake.notify_one();
    }

    /// A run changed.
    pub(crate) fn news(&self, key: &AgentRunKey) {
        self.followers.wake(&follower_key(key));
    }
}

fn follower_key(key: &AgentRunKey) -> TaskKey {
    TaskKey { account: key.account.clone(), id: key.id.clone() }
}

impl Engine {
    /// The run once it has more events than these, has ended, or the time is up.
    pub async fn agent_run_wait(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        within: Duration,
    ) -> Result<AgentRunView, EngineError> {
        require_scope(caller, Scope::TasksRead)?;
        let key = key(caller, id);
        let following = self.inner.agent_run_news.followers.follow(&follower_key(&key));
        let read = || self.agent_run_of(&key).boxed();
        let is_enough = |it: &AgentRunView| after < it.events || it.run.status.is_over();
        self.follow(following, LongPoll { after, within }, read, is_enough).await
    }
}

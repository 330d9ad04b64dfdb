//! Waiting for news of a run, on whichever node its steps are done.

use std::time::Duration;

use futures::FutureExt as _;
use jurat_core::caller::{Caller, Scope};
use jurat_store::RunKey;
use tokio::sync::Notify;

use super::{TaskRunView, key};
use crate::{
    Engine, EngineError,
    executors::require,
    task::{Followers, Patience, TaskKey},
};

/// What this node knows of runs: who follows which, and whether there may be work.
#[derive(Debug, Default)]
pub(crate) struct RunNews {
    followers: Followers,
    /// There may be a step to take.
    pub(crate) work: Notify,
}

impl RunNews {
    /// Something happened to a run, and there may be work.
    pub(crate) fn tell(&self, key: &RunKey) {
        self.news(key);
        self.work.notify_one();
    }

    /// Something happened to a run.
    pub(crate) fn news(&self, key: &RunKey) {
        self.followers.stir(&name(key));
    }
}

fn name(key: &RunKey) -> TaskKey {
    TaskKey { account: key.account.clone(), id: key.id.clone() }
}

impl Engine {
    /// The run as it is when it has more events than these, is over, or the time is up.
    pub async fn task_run_wait(
        &self,
        caller: &Caller,
        id: &str,
        after: u64,
        within: Duration,
    ) -> Result<TaskRunView, EngineError> {
        require(caller, Scope::TasksRead)?;
        let key = key(caller, id);
        let following = self.inner.runs.followers.follow(&name(&key));
        let read = || self.task_run_of(&key).boxed();
        let is_enough = |it: &TaskRunView| after < it.events || it.run.status.is_over();
        self.follow(following, Patience { after, within }, read, is_enough).await
    }
}

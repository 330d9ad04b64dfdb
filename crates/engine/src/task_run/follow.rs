//! Waiting for news of a run, on whichever node its steps are done.

use std::time::Duration;

use jurat_core::caller::{Caller, Scope};
use jurat_store::RunKey;
use tokio::{sync::Notify, time::Instant};

use super::{TaskRunView, key};
use crate::{
    Engine, EngineError,
    executors::require,
    task::{Followers, TaskKey},
};

/// How soon, and how seldom, a run that another node works on is looked at.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
        // Followed before the run is read, so that nothing in between is missed.
        let mut following = self.inner.runs.followers.follow(&name(&key));
        let until = Instant::now() + within;
        let mut pause = FIRST_LOOK;
        loop {
            let view = self.task_run_of(&key).await?;
            let is_time_up = until <= Instant::now() || self.is_stopping();
            if after < view.events || view.run.status.is_over() || is_time_up {
                return Ok(view);
            }
            let next = until.min(Instant::now() + pause);
            pause = LOOK_EVERY.min(pause * 2);
            let either = async {
                tokio::select! {
                    () = following.until(after) => {}
                    () = self.stopping() => {}
                }
            };
            let _elapsed = tokio::time::timeout_at(next, either).await;
        }
    }
}

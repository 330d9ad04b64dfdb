//! A word from the side: a command on a task by somebody who does not drive it.

use jurat_core::task::{Command, Task, needs};

use super::{
    Appended, Desk as _, DeskError, Hands as _, TaskKey, asks::StepHands, choose, draft::Draft,
    keep::StoreDesk,
};
use crate::Engine;

/// How often others may write in between before it is given up.
const TRIES: u32 = 16;

impl Engine {
    /// Decides a command on a task as it is now, and writes what follows; or says why not.
    pub(crate) async fn task_aside(
        &self,
        key: &TaskKey,
        command: impl Fn(&Task) -> Result<Command, String> + Send + Sync,
    ) -> Result<(), String> {
        let desk = StoreDesk { engine: self.clone() };
        let hands = StepHands { engine: self.clone() };
        let trouble = |error: DeskError| error.to_string();
        for _ in 0..TRIES {
            let filed = desk.load(key).await.map_err(trouble)?;
            let filed = filed.ok_or("there is no such task")?;
            // What follows from it may depend on how much each vote weighs.
            let workers = hands.workers(&filed).await.map_err(trouble)?;
            let known = choose::known(&workers);
            let mut draft = Draft::new(&filed, self.inner.clock.now(), &known);
            let command = command(&draft.task)?;
            draft.decide(&command).map_err(|refusal| refusal.to_string())?;
            let (mut append, _) = draft.finish(key);
            // Where there is something to do, whoever drives it is to look at once.
            if !needs(&append.task, append.at).is_empty() {
                append.due_at = append.due_at.map(|at| at.min(append.at));
            }
            if desk.append(append).await.map_err(trouble)? == Appended::Written {
                self.inner.driven.tell(key);
                self.inner.driven.wake.notify_one();
                return Ok(());
            }
        }
        Err("others write to the task all the time".to_owned())
    }
}

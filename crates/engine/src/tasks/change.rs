//! What somebody does to a task from outside, whoever drives it: decided and written, if nobody else
//! wrote meanwhile.

use std::fmt;

use jurat_core::task::{ExhaustedRoles, TaskCommand, TaskRefusal, VoterReliability, needs};
use jurat_store::IdempotencyRecord;

use super::{
    TaskKey, TaskPortError, TaskSnapshot, TaskStorePort, TaskWrite, TaskWriteOutcome,
    draft::TaskDraft,
};
use crate::Clock;

/// How often others may write in between before it is given up.
const TRIES: u32 = 64;

/// Says what is noted with a write, for those who ask again.
pub type TaskIdempotency<'a> =
    Box<dyn Fn(&TaskWrite) -> Option<IdempotencyRecord> + Send + Sync + 'a>;

/// What is to happen to a task.
pub struct TaskChange<'a> {
    pub command: TaskCommand,
    /// How often each voter is right, should a vote be counted on the way.
    pub weigher: VoterReliability,
    pub idempotency: TaskIdempotency<'a>,
}

impl fmt::Debug for TaskChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskChange").field("command", &self.command).finish_non_exhaustive()
    }
}

/// What came of it, with the task as it is then.
#[derive(Debug)]
pub enum TaskChangeOutcome {
    Done(TaskSnapshot),
    Refused(TaskRefusal, TaskSnapshot),
    /// The same was done before under the key of the caller.
    Before,
    Missing,
}

/// Decides a command on a task and writes what follows from it.
pub async fn change_task(
    desk: &impl TaskStorePort,
    clock: &dyn Clock,
    key: &TaskKey,
    wanted: &TaskChange<'_>,
) -> Result<TaskChangeOutcome, TaskPortError> {
    for _ in 0..TRIES {
        let Some(mut filed) = desk.load(key).await? else { return Ok(TaskChangeOutcome::Missing) };
        let mut draft = TaskDraft::new(&filed, clock.now(), &wanted.weigher);
        // What the clock made due is written even where the rest is refused because of it.
        draft.tick(ExhaustedRoles::default());
        let refused = draft.decide(&wanted.command).err();
        if let (true, Some(refusal)) = (draft.is_empty(), &refused) {
            return Ok(TaskChangeOutcome::Refused(refusal.clone(), filed));
        }
        let (mut append, _) = draft.finish(key, &filed);
        if !needs(&append.task, append.at).is_empty() {
            // Perhaps nobody drives it, and somebody is to look at once.
            append.due_at = append.due_at.map(|at| at.min(append.at));
        }
        append.idempotency = if refused.is_none() { (wanted.idempotency)(&append) } else { None };
        let (task, count) = (append.task.clone(), append.events.len());
        match desk.append(append).await? {
            TaskWriteOutcome::Stale => {}
            TaskWriteOutcome::Repeated => return Ok(TaskChangeOutcome::Before),
            TaskWriteOutcome::Written => {
                filed.task = task;
                filed.seq += u64::try_from(count).unwrap_or(u64::MAX);
                let done = TaskChangeOutcome::Done(filed.clone());
                return Ok(
                    refused.map_or(done, |refusal| TaskChangeOutcome::Refused(refusal, filed))
                );
            }
        }
    }
    Err(TaskPortError("other writers keep changing the task".to_owned()))
}

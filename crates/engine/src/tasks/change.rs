//! Applies a command from outside to a task, whichever node drives it, and writes it unless the
//! task changed meanwhile.

use std::fmt;

use jurat_core::task::{
    ExhaustedRoles, TaskCommand, TaskKey, TaskRefusal, VoterReliability, needs,
};
use jurat_store::IdempotencyRecord;

use super::{
    TaskPortError, TaskSnapshot, TaskStorePort, TaskWrite, TaskWriteOutcome, draft::TaskDraft,
};
use crate::Clock;

/// How many concurrent writes are tolerated before it fails.
const TRIES: u32 = 64;

/// The idempotency record of a write.
pub type TaskIdempotency<'a> =
    Box<dyn Fn(&TaskWrite) -> Option<IdempotencyRecord<()>> + Send + Sync + 'a>;

/// A change of a task.
pub struct TaskChange<'a> {
    pub command: TaskCommand,
    /// How often each voter is right, in case votes are counted on the way.
    pub weigher: VoterReliability,
    pub idempotency: TaskIdempotency<'a>,
}

impl fmt::Debug for TaskChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskChange").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The outcome, with the resulting task.
#[derive(Debug)]
pub enum TaskChangeOutcome {
    Done(TaskSnapshot),
    Refused(TaskRefusal, TaskSnapshot),
    /// It was done before under the key of the caller.
    Before,
    Missing,
}

/// Decides a command on a task and writes its events.
pub async fn change_task(
    store: &impl TaskStorePort,
    clock: &dyn Clock,
    key: &TaskKey,
    wanted: &TaskChange<'_>,
) -> Result<TaskChangeOutcome, TaskPortError> {
    for _ in 0..TRIES {
        let Some(mut filed) = store.load(key).await? else { return Ok(TaskChangeOutcome::Missing) };
        let mut draft = TaskDraft::new(&filed, clock.now(), &wanted.weigher);
        // Events due by the clock are written even if they cause the command to be refused.
        draft.tick(ExhaustedRoles::default());
        let refused = draft.decide(&wanted.command).err();
        if let (true, Some(refusal)) = (draft.is_empty(), &refused) {
            return Ok(TaskChangeOutcome::Refused(refusal.clone(), filed));
        }
        let (mut append, _) = draft.finish(key, &filed);
        if !needs(&append.task, append.at).is_empty() {
            // Perhaps no node drives it, so one must look at it soon.
            append.due_at = append.due_at.map(|at| at.min(append.at));
        }
        append.idempotency = if refused.is_none() { (wanted.idempotency)(&append) } else { None };
        let (task, count) = (append.task.clone(), append.events.len());
        match store.append(append).await? {
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
    Err(TaskPortError::Contended)
}

//! Calling a task off, whoever drives it.

use jurat_core::task::{Command, Exhausted, Weigher};

use super::{Appended, Desk, DeskError, Filed, TaskKey, draft::Draft};
use crate::Clock;

/// How often others may write in between before it is given up.
const TRIES: u32 = 64;

/// Ends a task as cancelled and returns it as it is then: it may have ended otherwise before.
pub async fn cancel(
    desk: &impl Desk,
    clock: &dyn Clock,
    key: &TaskKey,
    reason: &str,
) -> Result<Option<Filed>, DeskError> {
    let known = Weigher::new();
    for _ in 0..TRIES {
        let Some(mut filed) = desk.load(key).await? else { return Ok(None) };
        if filed.task.is_over() {
            return Ok(Some(filed));
        }
        let mut draft = Draft::new(&filed, clock.now(), &known);
        draft.tick(Exhausted::default());
        // A task that the clock just ended is over all the same.
        let _refused = draft.decide(&Command::Cancel { reason: reason.to_owned() });
        let (append, _) = draft.finish(key);
        let (task, count) = (append.task.clone(), append.events.len());
        if desk.append(append).await? == Appended::Written {
            filed.task = task;
            filed.seq += u64::try_from(count).unwrap_or(u64::MAX);
            return Ok(Some(filed));
        }
    }
    Err(DeskError("others write to the task all the time".to_owned()))
}

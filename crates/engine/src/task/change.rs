//! What somebody does to a task from outside, whoever drives it: decided and written, if nobody else
//! wrote meanwhile.

use std::fmt;

use jurat_core::task::{Command, Exhausted, Refusal, Weigher, needs};
use jurat_store::Once;

use super::{Append, Appended, Desk, DeskError, Filed, TaskKey, draft::Draft};
use crate::Clock;

/// How often others may write in between before it is given up.
const TRIES: u32 = 64;

/// Says what is noted with a write, for those who ask again.
pub type Note<'a> = Box<dyn Fn(&Append) -> Option<Once> + Send + Sync + 'a>;

/// What is to happen to a task.
pub struct Change<'a> {
    pub command: Command,
    /// How often each voter is right, should a vote be counted on the way.
    pub known: Weigher,
    pub note: Note<'a>,
}

impl fmt::Debug for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").field("command", &self.command).finish_non_exhaustive()
    }
}

/// What came of it, with the task as it is then.
#[derive(Debug)]
pub enum Changed {
    Done(Filed),
    Refused(Refusal, Filed),
    /// The same was done before under the key of the caller.
    Before,
    Missing,
}

/// Decides a command on a task and writes what follows from it.
pub async fn change(
    desk: &impl Desk,
    clock: &dyn Clock,
    key: &TaskKey,
    wanted: &Change<'_>,
) -> Result<Changed, DeskError> {
    for _ in 0..TRIES {
        let Some(mut filed) = desk.load(key).await? else { return Ok(Changed::Missing) };
        let mut draft = Draft::new(&filed, clock.now(), &wanted.known);
        // What the clock made due is written even where the rest is refused because of it.
        draft.tick(Exhausted::default());
        let refused = draft.decide(&wanted.command).err();
        if let (true, Some(refusal)) = (draft.is_empty(), &refused) {
            return Ok(Changed::Refused(refusal.clone(), filed));
        }
        let (mut append, _) = draft.finish(key, &filed);
        if !needs(&append.task, append.at).is_empty() {
            // Perhaps nobody drives it, and somebody is to look at once.
            append.due_at = append.due_at.map(|at| at.min(append.at));
        }
        append.note = if refused.is_none() { (wanted.note)(&append) } else { None };
        let (task, count) = (append.task.clone(), append.events.len());
        match desk.append(append).await? {
            Appended::Stale => {}
            Appended::Repeated => return Ok(Changed::Before),
            Appended::Written => {
                filed.task = task;
                filed.seq += u64::try_from(count).unwrap_or(u64::MAX);
                let done = Changed::Done(filed.clone());
                return Ok(refused.map_or(done, |refusal| Changed::Refused(refusal, filed)));
            }
        }
    }
    Err(DeskError("other writers keep changing the task".to_owned()))
}

//! Checks that a task ended in time, and as its callers wanted.

use jurat_core::{
    task::{Task, TaskEvent},
    time::Timestamp,
};

use super::count;
use crate::simulation::{
    plan::{Asked, BEGINNING, HEALED, Order},
    shelf::Kept,
};

/// How long after its deadline a task may still be open: a node must look at it first.
const SLACK_MS: u64 = 8_000;

fn is_end(task: &Task, event: &TaskEvent) -> bool {
    let is_once = task.terms.mode == jurat_core::task::DecisionMode::OneShot;
    let is_other = matches!(
        event,
        TaskEvent::Failed { .. } | TaskEvent::Expired { .. } | TaskEvent::Cancelled { .. }
    );
    is_other || is_once && matches!(event, TaskEvent::Finalized { .. })
}

/// Events that may follow the end: none that decides.
const fn is_afterwards(event: &TaskEvent) -> bool {
    matches!(
        event,
        TaskEvent::Complained { .. } | TaskEvent::Settled { .. } | TaskEvent::Equivocated { .. }
    )
}

pub(super) fn in_time(kept: &Kept) -> Result<(), String> {
    let task = &kept.filed.task;
    if !task.is_over() {
        return Err(format!("is open for ever, in {}", task.phase));
    }
    if kept.due_at.is_some() || !task.windows.is_empty() {
        return Err("is over, and never settled".to_owned());
    }
    let place = kept.events.iter().position(|(_, it)| is_end(task, it));
    let place = place.ok_or("is over without an end")?;
    let (ended, how) = &kept.events[place];
    if let TaskEvent::Failed { reason }
    | TaskEvent::Expired { reason }
    | TaskEvent::Cancelled { reason } = how
        && reason.is_empty()
    {
        return Err("ended without a reason".to_owned());
    }
    if let Some((_, late)) = kept.events[place + 1..].iter().find(|(_, it)| !is_afterwards(it)) {
        return Err(format!("went on after {} with {}", how.name(), late.name()));
    }
    let deadline = before(kept, place).deadline();
    let last = deadline.max(BEGINNING.plus_millis(HEALED)).plus_millis(SLACK_MS);
    is_by(*ended, last)
}

fn is_by(ended: Timestamp, last: Timestamp) -> Result<(), String> {
    if ended <= last { Ok(()) } else { Err(format!("ended {} ms late", ended.millis_since(last))) }
}

/// The task before one of its events.
fn before(kept: &Kept, place: usize) -> Task {
    let task = &kept.filed.task;
    let mut before = Task::created(&task.id, task.terms.clone(), task.created_at);
    for (at, event) in &kept.events[1..place] {
        before.apply(event, *at);
    }
    before
}

/// Nothing happens from outside that no caller asked for, and no request takes effect twice.
pub(super) fn as_was_asked(kept: &Kept, order: &Order) -> Result<(), String> {
    let wishes =
        |is_such: fn(&Asked) -> bool| order.wishes.iter().filter(|it| is_such(&it.what)).count();
    let happened = |is_such: fn(&TaskEvent) -> bool| count(&kept.events, is_such);
    let asked = [
        (
            "was cancelled",
            happened(|it| matches!(it, TaskEvent::Cancelled { .. })),
            wishes(|it| *it == Asked::Cancel),
        ),
        (
            "was complained of",
            happened(|it| matches!(it, TaskEvent::Complained { .. })),
            wishes(|it| matches!(it, Asked::Complain(_))),
        ),
        (
            "began another epoch",
            happened(|it| matches!(it, TaskEvent::EpochEnded { .. })),
            wishes(|it| *it == Asked::NextEpoch),
        ),
    ];
    for (what, times, most) in asked {
        if most < times {
            return Err(format!("{what} {times} times, and that was asked for {most} times"));
        }
    }
    Ok(())
}

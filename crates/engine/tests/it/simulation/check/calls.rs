//! Checks the calls of a world, and whether they were paid for.

use std::collections::BTreeMap;

use jurat_core::task::{TaskEvent, TaskKey, TaskRole};

use crate::simulation::{shelf::Kept, world::Call};

/// An execution belongs to one executor, and stays the same however often it is requested.
pub(super) fn are_repeated_alike(calls: &[Call]) -> Result<(), String> {
    let mut first: BTreeMap<&str, &Call> = BTreeMap::new();
    for call in calls {
        let before = *first.entry(&call.execution_id).or_insert(call);
        let (id, by) = (&call.execution_id, &call.executor);
        if (&before.task, before.role, &before.executor) != (&call.task, call.role, by) {
            return Err(format!("the execution {id} was asked of {} and of {by}", before.executor));
        }
        if before.content != call.content {
            return Err(format!("the execution {id} of {by} was asked for two different things"));
        }
    }
    Ok(())
}

/// Every call has a lease of its own.
pub(super) fn are_paid(calls: &[Call], key: &TaskKey, kept: &Kept) -> Result<(), String> {
    let mut claims: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (_, event) in &kept.events {
        let TaskEvent::Claimed { claim, .. } = event else { continue };
        if claim.role != TaskRole::Finalize {
            *claims.entry((&claim.execution_id, &claim.holder)).or_default() += 1;
        }
    }
    for call in calls.iter().filter(|it| it.task == *key) {
        let left = claims.entry((&call.execution_id, &call.executor)).or_default();
        *left -= 1;
        if *left < 0 {
            return Err(format!("{} was asked more often than it was claimed", call.executor));
        }
    }
    Ok(())
}

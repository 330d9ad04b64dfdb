//! Checks the invariants of a simulated world, whatever went wrong in it.

mod calls;
mod ends;
mod features;
mod spending;
mod votes;

use std::collections::BTreeMap;

use jurat_core::{
    task::{Task, TaskEvent, TaskKey},
    time::Timestamp,
};

use self::features::FLOORS;
use super::{shelf::Kept, world::World};

/// How one or more worlds ended.
#[derive(Debug, Default, Clone)]
pub(super) struct Report {
    pub(super) worlds: u32,
    pub(super) tasks: u32,
    pub(super) finalized: u32,
    pub(super) events: usize,
    pub(super) calls: usize,
    /// What happened, and in how many worlds.
    pub(super) seen: BTreeMap<&'static str, u32>,
}

impl Report {
    pub(super) fn add(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.tasks += other.tasks;
        self.finalized += other.finalized;
        self.events += other.events;
        self.calls += other.calls;
        for (what, worlds) in &other.seen {
            *self.seen.entry(what).or_default() += worlds;
        }
    }

    /// What happened in too few worlds. The minimums are for 500 worlds.
    pub(super) fn missed(&self) -> Vec<String> {
        let rate = |count: u32| f64::from(count) * 500.0;
        let seen = |what: &str| self.seen.get(what).copied().unwrap_or_default();
        let is_missed = |(what, floor): &&(&str, u32)| {
            rate(seen(what)) < f64::from(*floor) * f64::from(self.worlds)
        };
        let missed = FLOORS.iter().filter(is_missed);
        missed
            .map(|(what, floor)| format!("{what}: {} worlds, not {floor} of 500", seen(what)))
            .collect()
    }
}

/// The events of one epoch.
type Epoch<'a> = &'a [(Timestamp, TaskEvent)];

/// The report on a world, or its fault.
pub(super) fn check(world: &World) -> Result<Report, String> {
    let shelf = world.shelf.lock();
    if let Some(wrong) = shelf.wrongs.first() {
        return Err(wrong.clone());
    }
    if shelf.tasks.len() != world.plan.tasks.len() {
        return Err("a task is missing".to_owned());
    }
    let calls = world.calls.lock();
    calls::are_repeated_alike(&calls)?;
    let mut report = Report { worlds: 1, calls: calls.len(), ..Report::default() };
    for ((key, kept), order) in shelf.tasks.iter().zip(&world.plan.tasks) {
        let of = || check_task(key, kept).and_then(|()| ends::as_was_asked(kept, order));
        let of = of().and_then(|()| calls::are_paid(&calls, key, kept));
        of.map_err(|wrong| format!("{}: {wrong}", key.id))?;
        report.tasks += 1;
        report.finalized += u32::from(kept.events.iter().any(|(_, it)| is_final(it)));
        report.events += kept.events.len();
    }
    let seen = features::of(world, &shelf, &calls);
    report.seen = seen.into_iter().map(|what| (what, 1)).collect();
    Ok(report)
}

fn check_task(key: &TaskKey, kept: &Kept) -> Result<(), String> {
    is_the_fold_of_its_events(key, kept)?;
    ends::in_time(kept)?;
    for epoch in epochs(&kept.events) {
        votes::count_once(kept, epoch)?;
        spending::is_within(kept, epoch)?;
    }
    spending::is_known(kept)
}

/// The events by epoch.
fn epochs(events: &[(Timestamp, TaskEvent)]) -> impl Iterator<Item = Epoch<'_>> {
    events.split_inclusive(|(_, it)| matches!(it, TaskEvent::EpochEnded { .. }))
}

const fn is_final(event: &TaskEvent) -> bool {
    matches!(event, TaskEvent::Finalized { .. })
}

/// How many events match.
fn count(events: Epoch<'_>, is_such: impl Fn(&TaskEvent) -> bool) -> usize {
    events.iter().filter(|(_, it)| is_such(it)).count()
}

/// The stored projection equals the replayed events, also after it was written and read.
fn is_the_fold_of_its_events(key: &TaskKey, kept: &Kept) -> Result<(), String> {
    let Some((at, TaskEvent::Created { terms })) = kept.events.first() else {
        return Err("does not begin with its creation".to_owned());
    };
    let mut task = Task::created(&key.id, (**terms).clone(), *at);
    for (at, event) in kept.events.iter().skip(1) {
        task.apply(event, *at);
    }
    let is_fold = task == kept.filed.task && kept.filed.seq == kept.events.len() as u64;
    let written = serde_json::to_string(&kept.filed.task).unwrap();
    let read: Task = serde_json::from_str(&written).unwrap();
    if is_fold && read == kept.filed.task {
        Ok(())
    } else {
        Err("is not what its events make of it".to_owned())
    }
}

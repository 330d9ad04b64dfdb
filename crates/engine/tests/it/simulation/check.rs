//! What must be true of every world, whatever went wrong in it.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    task::{Event, Role, Task},
    time::Timestamp,
};
use jurat_engine::task::TaskKey;

use super::{
    desk::Kept,
    plan::{BEGINNING, HEALED},
    world::World,
};

/// How long after its deadline a task may be found open: somebody must look at it first.
const SLACK_MS: u64 = 8_000;

/// How a world ended.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Report {
    pub(super) tasks: u32,
    pub(super) finalized: u32,
    pub(super) events: u32,
    pub(super) calls: u32,
    pub(super) equivocations: u32,
}

impl Report {
    pub(super) fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.finalized += other.finalized;
        self.events += other.events;
        self.calls += other.calls;
        self.equivocations += other.equivocations;
    }
}

/// What became of a world, or what is wrong with it.
pub(super) fn check(world: &World) -> Result<Report, String> {
    let shelf = world.shelf.lock().unwrap();
    let calls = world.calls.lock().unwrap();
    let mut report = Report { calls: u32::try_from(calls.len()).unwrap(), ..Report::default() };
    let mut executors: BTreeMap<&str, &str> = BTreeMap::new();
    for call in calls.iter() {
        let before = executors.insert(&call.execution_id, &call.executor);
        if before.is_some_and(|before| before != call.executor) {
            return Err(format!("the execution {} was asked of two", call.execution_id));
        }
    }
    if shelf.tasks.len() != world.plan.tasks.len() {
        return Err("a task is missing".to_owned());
    }
    for (key, kept) in &shelf.tasks {
        let asked = calls.iter().filter(|call| call.task == *key).count();
        check_task(key, kept, asked).map_err(|wrong| format!("{}: {wrong}", key.id))?;
        let is_final = kept.events.iter().any(|(_, it)| matches!(it, Event::Finalized { .. }));
        let is_two = |it: &&(Timestamp, Event)| matches!(it.1, Event::Equivocated { .. });
        report.tasks += 1;
        report.finalized += u32::from(is_final);
        report.events += u32::try_from(kept.events.len()).unwrap();
        report.equivocations += u32::try_from(kept.events.iter().filter(is_two).count()).unwrap();
    }
    Ok(report)
}

fn check_task(key: &TaskKey, kept: &Kept, asked: usize) -> Result<(), String> {
    ends_in_time(kept)?;
    is_the_fold_of_its_events(key, kept)?;
    is_decided_once(kept)?;
    counts_votes_once(kept)?;
    keeps_its_budget(kept, asked)
}

fn ends_in_time(kept: &Kept) -> Result<(), String> {
    let task = &kept.filed.task;
    if !task.is_over() {
        return Err(format!("is open for ever, in {}", task.phase));
    }
    let is_end = |it: &Event| {
        matches!(
            it,
            Event::Finalized { .. }
                | Event::Failed { .. }
                | Event::Expired { .. }
                | Event::Cancelled { .. }
        )
    };
    let ended = kept.events.iter().find(|(_, it)| is_end(it)).map(|(at, _)| *at);
    let ended = ended.ok_or("is over without an end")?;
    let last = task.deadline().max(BEGINNING.plus_millis(HEALED)).plus_millis(SLACK_MS);
    if ended <= last { Ok(()) } else { Err(format!("ended {} ms late", ended.millis_since(last))) }
}

fn is_the_fold_of_its_events(key: &TaskKey, kept: &Kept) -> Result<(), String> {
    let Some((at, Event::Created { terms })) = kept.events.first() else {
        return Err("does not begin with its creation".to_owned());
    };
    let mut task = Task::created(&key.id, (**terms).clone(), *at);
    for (at, event) in kept.events.iter().skip(1) {
        task.apply(event, *at);
    }
    if task == kept.filed.task && kept.filed.seq == kept.events.len() as u64 {
        Ok(())
    } else {
        Err("is not what its events make of it".to_owned())
    }
}

fn is_decided_once(kept: &Kept) -> Result<(), String> {
    let of = |wanted: fn(&Event) -> bool| kept.events.iter().filter(|(_, it)| wanted(it)).count();
    let finals = of(|it| matches!(it, Event::Finalized { .. }));
    let committed = of(|it| matches!(it, Event::Committed { .. }));
    if 1 < finals || 1 < committed {
        return Err(format!("was decided {finals} times, and committed to {committed}"));
    }
    for (_, event) in &kept.events {
        let Event::Finalized { candidate, .. } = event else { continue };
        if !kept.candidates.contains_key(candidate) {
            return Err("has a final candidate that nobody has".to_owned());
        }
        approved_by_a_quorum(kept, candidate)?;
    }
    Ok(())
}

/// Counts the votes from the events alone, without the lifecycle.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some events are about votes")]
fn approved_by_a_quorum(kept: &Kept, candidate: &str) -> Result<(), String> {
    let mut approvals: BTreeSet<&str> = BTreeSet::new();
    for (_, event) in &kept.events {
        match event {
            // What is proven afterwards is recorded, and changes nothing of the decision.
            Event::Committed { candidate: of } if of == candidate => break,
            Event::VoteRevealed { candidate: of, voter, ballot }
                if of == candidate && ballot.status == jurat_core::policy::Status::Passed =>
            {
                approvals.insert(voter);
            }
            Event::VoteForfeited { candidate: of, voter, .. }
            | Event::Equivocated { candidate: of, voter, .. }
                if of == candidate =>
            {
                approvals.remove(voter.as_str());
            }
            _ => {}
        }
    }
    let quorum = usize::try_from(kept.filed.task.terms.quorum).unwrap();
    if quorum <= approvals.len() {
        return Ok(());
    }
    Err(format!("is final with {} approvals, and needs {quorum}", approvals.len()))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only some events are about votes")]
fn counts_votes_once(kept: &Kept) -> Result<(), String> {
    let mut holders: BTreeMap<u64, (&str, Role, Option<&str>)> = BTreeMap::new();
    let mut proposers: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut ended: BTreeSet<u64> = BTreeSet::new();
    let mut votes = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (_, event) in &kept.events {
        match event {
            Event::Claimed { token, claim } => {
                let holder = (claim.holder.as_str(), claim.role, claim.candidate.as_deref());
                if holders.insert(*token, holder).is_some() {
                    return Err(format!("gave the token {token} out twice"));
                }
            }
            Event::Released { token, .. } => {
                ended.insert(*token);
            }
            Event::Proposed { token, digest, candidate, .. } => {
                if !ended.insert(*token) {
                    return Err(format!("took a proposal under the dead token {token}"));
                }
                let name = holders.get(token).map(|it| it.0).unwrap_or_default();
                proposers.entry(digest).or_default().insert(name);
                proposers.entry(candidate).or_default().insert(name);
            }
            Event::VoteCommitted { token, candidate, turn, .. } => {
                if !ended.insert(*token) {
                    return Err(format!("took a vote under the dead token {token}"));
                }
                let name = holders.get(token).map(|it| it.0).unwrap_or_default();
                if !votes.insert((candidate.as_str(), *turn, name)) {
                    return Err(format!("{name} voted twice on {candidate}"));
                }
                if proposers.get(candidate.as_str()).is_some_and(|it| it.contains(name)) {
                    return Err(format!("{name} verified its own candidate"));
                }
            }
            Event::RevealOpened { candidate, turn, .. } => {
                open.insert((candidate.as_str(), *turn));
            }
            Event::VoteRevealed { candidate, voter, .. } => {
                let is_open = open.iter().any(|(of, turn)| {
                    of == candidate && votes.contains(&(*of, *turn, voter.as_str()))
                });
                if !is_open {
                    return Err(format!("{voter} was revealed early"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn keeps_its_budget(kept: &Kept, asked: usize) -> Result<(), String> {
    let (task, budget) = (&kept.filed.task, kept.filed.task.terms.budget);
    let count = |wanted: Role| {
        let paid = |it: &&(Timestamp, Event)| matches!(&it.1, Event::Charged { role, .. } if *role == wanted);
        let back = |it: &&(Timestamp, Event)| matches!(&it.1, Event::Refunded { role, .. } if *role == wanted);
        let paid = kept.events.iter().filter(paid).count() as u64;
        paid.saturating_sub(kept.events.iter().filter(back).count() as u64)
    };
    let is_refund = |it: &&(Timestamp, Event)| matches!(it.1, Event::Refunded { .. });
    let refunds = kept.events.iter().filter(is_refund).count();
    let claims = kept.events.iter().filter(|(_, it)| matches!(it, Event::Claimed { .. })).count();
    let (explore, verify, finalize) =
        (count(Role::Propose), count(Role::Verify), count(Role::Finalize));
    if budget.explore < explore || budget.verify < verify || budget.finalize < finalize {
        return Err("spent more than its stages have".to_owned());
    }
    let steps = explore + verify;
    if u64::from(budget.max_steps) < steps || budget.cost_units < steps + finalize {
        return Err("spent more than it has".to_owned());
    }
    if claims as u64 != steps + finalize + refunds as u64 {
        return Err(format!("paid {} times for {claims} claims", steps + finalize));
    }
    if steps < asked as u64 {
        return Err(format!("asked {asked} times, and paid for {steps}"));
    }
    if u64::from(task.spent.steps) != steps {
        return Err("does not know what it spent".to_owned());
    }
    Ok(())
}

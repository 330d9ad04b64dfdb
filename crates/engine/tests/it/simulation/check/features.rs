//! Lists what happened in a world, to check that many worlds cover everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::Ordering,
};

use jurat_core::{
    executor::session::BUILTIN_SESSION,
    policy::EvaluationStatus,
    reason,
    task::{Ballot, Forfeit, LeaseRelease, TaskEvent, TaskLease, TaskRole, VoteGap},
};

use super::{Epoch, count, epochs, is_final};
use crate::simulation::{
    plan::Rule,
    shelf::{Kept, Shelf},
    world::{Call, World},
};

/// What must happen, and in at least how many of 500 worlds.
pub(in crate::simulation) const FLOORS: &[(&str, u32)] = &[
    ("a budget of time was used up", 40),
    ("a caller's request was repeated and done once", 6),
    ("a claim was given up", 20),
    ("a clock was set ahead", 30),
    ("a clock was set back", 30),
    ("a comparison refused", 1),
    ("a comparison was decided", 60),
    ("a contract expired", 60),
    ("a decided task was cancelled", 2),
    ("a decision settled as bad", 40),
    ("a decision was made on evidence that was found", 45),
    ("a deprecated decision was left out", 40),
    ("a later epoch was not decided", 12),
    ("a lease ran out", 100),
    ("a node failed and was not charged", 80),
    ("a node slept past its lease and wrote again", 20),
    ("a remembered decision was left undecided", 60),
    ("a remembered decision was proposed anew", 40),
    ("a remembered decision was refused", 6),
    ("a remembered decision was reused", 60),
    ("a second epoch was decided", 50),
    ("a task failed because nobody found its evidence", 30),
    ("a task failed otherwise", 100),
    ("a third epoch was decided", 30),
    ("a verification was repeated", 80),
    ("a verifier equivocated", 8),
    ("a vote was forfeited as late", 6),
    ("a vote was forfeited by equivocation", 6),
    ("an execution was asked for again", 100),
    ("an undecided task was cancelled", 15),
    ("evidence was denied", 12),
    ("evidence was late", 10),
    ("evidence was something else", 12),
    ("evidence was unreachable", 30),
    ("executors proposed several candidates", 18),
    ("more verifiers were asked", 70),
    ("other answers were compared", 80),
    ("other answers were split", 3),
    ("prior decisions were compared", 25),
    ("proposing was tried anew", 3),
    ("the node decided", 30),
    ("the node voted", 25),
    ("the spare node voted", 50),
    ("the time to reuse was used up", 45),
    ("there was nothing to compare with", 50),
];

type Seen = BTreeSet<&'static str>;

pub(super) fn of(world: &World, shelf: &Shelf, calls: &[Call]) -> Seen {
    let mut seen = Seen::new();
    let mut note = |what: &'static str, is_so: bool| _ = is_so.then(|| seen.insert(what));
    note("a caller's request was repeated and done once", shelf.repeated != 0);
    note("a deprecated decision was left out", shelf.left_out != 0);
    note("a decision was deprecated before it was taken over", shelf.withdrawn != 0);
    let ahead = || world.machines.iter().map(|it| it.ahead_ms.load(Ordering::SeqCst));
    note("a clock was set ahead", ahead().any(|it| 0 < it));
    note("a clock was set back", ahead().any(|it| it < 0));
    note("other answers were compared", calls.iter().any(|it| it.compared.0 != 0));
    note("prior decisions were compared", calls.iter().any(|it| it.compared.1 != 0));
    let executions: BTreeSet<&str> = calls.iter().map(|it| it.execution_id.as_str()).collect();
    note("an execution was asked for again", executions.len() < calls.len());
    for kept in shelf.tasks.values() {
        let of_task = Told { kept, rule: world.rule_of(&kept.filed) };
        seen.extend(of_task.named());
        seen.extend(of_task.as_a_whole());
        if woke_late(world, kept) {
            seen.insert("a node slept past its lease and wrote again");
        }
        for epoch in epochs(&kept.events) {
            seen.extend(of_task.decided(epoch));
        }
    }
    seen
}

struct Told<'a> {
    kept: &'a Kept,
    rule: Rule,
}

impl Told<'_> {
    /// The features of single events.
    fn named(&self) -> Seen {
        let mut seen = Seen::new();
        for (_, event) in &self.kept.events {
            seen.extend(named(event));
            if let TaskEvent::VoteRevealed { voter, ballot, .. } = event {
                seen.extend(coded(ballot));
                if voter == BUILTIN_SESSION {
                    let panel = &self.kept.filed.roster;
                    let is_spare = !panel.has_node;
                    seen.insert(if is_spare { "the spare node voted" } else { "the node voted" });
                }
            }
        }
        seen
    }

    /// The features of the end and of the callers.
    fn as_a_whole(&self) -> Seen {
        let events = &self.kept.events;
        let mut seen = Seen::new();
        let mut note = |what: &'static str, is_so: bool| _ = is_so.then(|| seen.insert(what));
        let has = |is_such: fn(&TaskEvent) -> bool| events.iter().any(|(_, it)| is_such(it));
        let is_second =
            |it: &TaskEvent| matches!(it, TaskEvent::Finalized { epoch, .. } if *epoch == 2);
        let is_third =
            |it: &TaskEvent| matches!(it, TaskEvent::Finalized { epoch, .. } if 2 < *epoch);
        note("a second epoch was decided", has(is_second));
        note("a third epoch was decided", has(is_third));
        let is_open = self.kept.filed.task.decided.is_none();
        let has_ended = has(|it| matches!(it, TaskEvent::EpochEnded { .. }));
        note("a later epoch was not decided", has_ended && is_open);
        let is_cancelled = has(|it| matches!(it, TaskEvent::Cancelled { .. }));
        note("a decided task was cancelled", is_cancelled && has(is_final));
        note("an undecided task was cancelled", is_cancelled && !has(is_final));
        seen
    }

    /// The features of one epoch.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only some events are about candidates")]
    fn decided(&self, epoch: Epoch<'_>) -> Seen {
        let mut seen = Seen::new();
        let mut reused = BTreeSet::new();
        let mut proposed = BTreeSet::new();
        for (_, event) in epoch {
            match event {
                TaskEvent::Reused { candidate, .. } => _ = reused.insert(candidate),
                TaskEvent::Proposed { candidate, .. } => _ = proposed.insert(candidate),
                TaskEvent::Rejected { candidate } if reused.contains(candidate) => {
                    seen.insert("a remembered decision was refused");
                }
                TaskEvent::Undecided { candidate, .. } if reused.contains(candidate) => {
                    seen.insert("a remembered decision was left undecided");
                }
                TaskEvent::Finalized { candidate, .. } => {
                    seen.extend(self.of_final(epoch, candidate));
                }
                _ => {}
            }
            if let TaskEvent::Finalized { candidate, .. } = event
                && reused.contains(candidate)
                && !proposed.contains(candidate)
            {
                seen.insert("a remembered decision was reused");
            }
        }
        let is_revealed = |it: &TaskEvent| matches!(it, TaskEvent::VoteRevealed { .. });
        let is_missed = |it: &TaskEvent| {
            let TaskEvent::VoteRevealed { ballot, .. } = it else { return false };
            ballot.reason_codes.iter().any(|code| (200..=203).contains(code))
        };
        let revealed = count(epoch, is_revealed);
        let is_failed = count(epoch, |it| matches!(it, TaskEvent::Failed { .. })) != 0;
        if is_failed && revealed != 0 && revealed == count(epoch, is_missed) {
            seen.insert("a task failed because nobody found its evidence");
        }
        if 1 < proposed.len() {
            seen.insert("executors proposed several candidates");
        }
        if reused.iter().any(|it| proposed.contains(it)) {
            seen.insert("a remembered decision was proposed anew");
        }
        seen
    }

    fn of_final(&self, epoch: Epoch<'_>, candidate: &str) -> Seen {
        let mut seen = Seen::new();
        let by_node = count(epoch, |it| {
            matches!(it, TaskEvent::VoteRevealed { candidate: of, voter, ballot }
                if of == candidate && voter == BUILTIN_SESSION && ballot.status == EvaluationStatus::Passed)
        });
        if by_node != 0 {
            seen.insert("the node decided");
        }
        let found = count(
            epoch,
            |it| matches!(it, TaskEvent::EvidenceSeen { candidate: of, .. } if of == candidate),
        );
        if self.kept.filed.task.terms.da_quorum != 0 && found != 0 {
            seen.insert("a decision was made on evidence that was found");
        }
        if self.rule != Rule::Plain {
            seen.insert("a comparison was decided");
        }
        seen
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others are not rare")]
fn named(event: &TaskEvent) -> Option<&'static str> {
    Some(match event {
        TaskEvent::Released { reason: LeaseRelease::LeaseRanOut, .. } => "a lease ran out",
        TaskEvent::Released { reason: LeaseRelease::GivenUp { .. }, .. } => "a claim was given up",
        TaskEvent::Refunded { .. } => "a node failed and was not charged",
        TaskEvent::VoteForfeited { why: Forfeit::Late, .. } => "a vote was forfeited as late",
        TaskEvent::Equivocated { .. } => "a verifier equivocated",
        TaskEvent::VoteForfeited { why: Forfeit::Equivocation, .. } => {
            "a vote was forfeited by equivocation"
        }
        TaskEvent::VotingExtended { .. } => "more verifiers were asked",
        TaskEvent::VerificationRepeated { .. } => "a verification was repeated",
        TaskEvent::Undecided { why: VoteGap::Tie, .. } => "votes were tied",
        TaskEvent::Undecided { why: VoteGap::Dependent, .. } => "votes were dependent",
        TaskEvent::Undecided { why: VoteGap::EvidenceMissing, .. } => "evidence was missing",
        TaskEvent::Undecided { why: VoteGap::ReuseTime, .. } => "the time to reuse was used up",
        TaskEvent::RetryScheduled { .. } => "proposing was tried anew",
        TaskEvent::Complained { .. } => "a decision was complained of",
        TaskEvent::Settled { is_bad: true, .. } => "a decision settled as bad",
        TaskEvent::Failed { reason } if reason.contains("evidence") => "a task failed on evidence",
        TaskEvent::Failed { .. } => "a task failed otherwise",
        TaskEvent::Expired { reason } if reason.contains("contract") => "a contract expired",
        TaskEvent::Expired { .. } => "a budget of time was used up",
        _ => return None,
    })
}

/// The features of a revealed ballot.
fn coded(ballot: &Ballot) -> impl Iterator<Item = &'static str> {
    ballot.reason_codes.iter().filter_map(|code| match *code {
        reason::EVIDENCE_UNREACHABLE => Some("evidence was unreachable"),
        reason::EVIDENCE_TIMEOUT => Some("evidence was late"),
        reason::EVIDENCE_AUTH_DENIED => Some("evidence was denied"),
        reason::EVIDENCE_DIGEST_MISMATCH => Some("evidence was something else"),
        reason::CROSSCHECK_INCONSISTENT => Some("a comparison refused"),
        reason::CROSSCHECK_EMPTY => Some("there was nothing to compare with"),
        reason::CROSSCHECK_SPLIT => Some("other answers were split"),
        _ => None,
    })
}

/// Whether a node was paused while one of its leases expired, and wrote to the task when it
/// resumed.
#[expect(clippy::wildcard_enum_match_arm, reason = "only some events are about leases")]
fn woke_late(world: &World, kept: &Kept) -> bool {
    let mut lost: Vec<(&TaskLease, u64)> = Vec::new();
    let mut claims = BTreeMap::new();
    for ((_, event), (node, at)) in kept.events.iter().zip(&kept.writers) {
        if lost.iter().any(|(claim, until)| claim.node == format!("node-{node}") && until < at) {
            return true;
        }
        match event {
            TaskEvent::Claimed { token, claim } if claim.role != TaskRole::Finalize => {
                claims.insert(*token, claim);
            }
            TaskEvent::Released { token, reason: LeaseRelease::LeaseRanOut } => {
                let Some(claim) = claims.get(token) else { continue };
                let machine = claim.node.strip_prefix("node-").and_then(|it| it.parse().ok());
                let machine = &world.machines[machine.unwrap_or(0_usize)];
                let pauses = machine.pauses.lock();
                let slept = pauses.iter().find(|(from, until)| (*from..*until).contains(at));
                lost.extend(slept.map(|(_, until)| (*claim, *until)));
            }
            _ => {}
        }
    }
    false
}

//! Decides which events a command causes, or why it causes none.

mod leases;
mod votes;

use self::votes::VoteRef;
use super::{
    Ballot, ComplaintSignature, DecisionMode, LeaseRelease, Task, TaskEvent, TaskLease, TaskPhase,
    TaskRole, VoterReliability, check::MOST, consequences::follow_up,
};
use crate::time::Timestamp;

/// A command on a task.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskCommand {
    /// Takes a lease. The token must be above all issued tokens.
    TakeLease {
        token: u64,
        claim: TaskLease,
    },
    /// Extends the lease, by at most its full length.
    Renew {
        token: u64,
        until: Timestamp,
    },
    /// Ends the lease without a result.
    Release {
        token: u64,
        reason: LeaseRelease,
    },
    /// Proposes an output under a new id. A known output keeps its id, and the event names that id.
    Propose {
        token: u64,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        round_id: String,
    },
    /// Takes a candidate from an earlier decision, `knowledge:<task>#<epoch>`. Voters vote on it
    /// before anybody proposes, and it costs no unit of the explore stage.
    Reuse {
        source: String,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
        /// The executors that proposed it for the earlier decision.
        proposers: Vec<String>,
    },
    /// A vote, bound by its commitment.
    CommitVote {
        token: u64,
        commitment: String,
        round_id: String,
    },
    Reveal {
        candidate: String,
        voter: String,
        ballot: Ballot,
        salt: String,
    },
    /// A voter gave two different verdicts in one vote on a candidate; these are their digests.
    Accuse {
        candidate: String,
        voter: String,
        turn: u32,
        verdicts: (String, String),
    },
    Finalize {
        token: u64,
    },
    /// Disputes a final decision.
    Complain {
        epoch: u64,
        reason: String,
        /// The signature of an authority that the contract names; the sender of the command has
        /// checked it.
        signed: Option<ComplaintSignature>,
    },
    /// Starts the next epoch of a continuous task.
    NextEpoch,
    Cancel {
        reason: String,
    },
    /// Time has passed, or no proposers or voters are left.
    Tick {
        exhausted: ExhaustedRoles,
    },
}

/// The roles that nobody is left for: everybody who could take one is in the `without` list of
/// `needs`. A tick carries it; it is ignored while somebody holds a lease of the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExhaustedRoles {
    /// No further executor can propose.
    pub proposers: bool,
    /// No further executor can vote on the current candidate.
    pub verifiers: bool,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefusal {
    #[error("the task is {0} and accepts no more work")]
    Over(TaskPhase),
    #[error("the lease with the token {0} is no longer held")]
    NotHeld(u64),
    #[error("the token {given} is not above {last}, the last one issued")]
    OldToken { given: u64, last: u64 },
    #[error("`{0}` proposed the candidate and cannot vote on it")]
    OwnCandidate(String),
    #[error("`{0}` is already voting on the candidate")]
    VotesAlready(String),
    #[error("`{0}` gave two different verdicts and has lost its vote")]
    Equivocator(String),
    #[error("the contract allows no more leases to {0}")]
    TooMany(TaskRole),
    #[error("the task's budget to {0} is used up")]
    Budget(TaskRole),
    #[error("the task has no candidate `{0}` in that state")]
    NoCandidate(String),
    #[error("the candidate `{0}` has a different output")]
    IdTaken(String),
    #[error("`{0}` has no vote on the candidate in that attempt")]
    NoVote(String),
    #[error("votes on the candidate cannot be revealed {0}")]
    NotRevealing(&'static str),
    #[error("this does not prove two different verdicts by `{0}`")]
    NoProof(String),
    #[error("nothing is reused from knowledge: {0}")]
    NoReuse(&'static str),
    #[error("the decision of epoch {epoch} cannot be disputed: {why}")]
    NoWindow { epoch: u64, why: &'static str },
    #[error("there is no next epoch: {0}")]
    NoEpoch(&'static str),
    #[error("it is too early to try again")]
    TooEarly,
}

pub(super) type DecideResult = Result<Vec<TaskEvent>, TaskRefusal>;

/// The events that a command causes at a time. Events due by the clock come first, and a command
/// for a task that they ended is refused: a tick records that end.
pub fn decide(
    task: &Task,
    command: &TaskCommand,
    now: Timestamp,
    known: &VoterReliability,
) -> DecideResult {
    let mut task = task.clone();
    let mut events = task.due(now);
    follow(&mut task, &events, now);
    let caused = caused(&task, command, now)?;
    follow(&mut task, &caused, now);
    events.extend(caused);
    let exhausted = if let TaskCommand::Tick { exhausted } = command {
        *exhausted
    } else {
        ExhaustedRoles::default()
    };
    events.extend(follow_up(&mut task, exhausted, now, known));
    Ok(events)
}

fn follow(task: &mut Task, events: &[TaskEvent], now: Timestamp) {
    for event in events {
        task.apply(event, now);
    }
}

fn caused(task: &Task, command: &TaskCommand, now: Timestamp) -> DecideResult {
    // These commands concern the decision, and may come after the end, too.
    match command {
        TaskCommand::Tick { .. } => return Ok(Vec::new()),
        TaskCommand::Complain { epoch, reason, signed } => {
            no_complaint(task, *epoch)?;
            let (reason, signed) = (reason.clone(), signed.clone());
            return Ok(vec![TaskEvent::Complained { epoch: *epoch, reason, signed }]);
        }
        TaskCommand::NextEpoch if task.terms.mode == DecisionMode::OneShot => {
            return next_epoch(task);
        }
        TaskCommand::Accuse { candidate, voter, turn, verdicts } => {
            return votes::accused(task, VoteRef { candidate, voter }, *turn, verdicts);
        }
        TaskCommand::TakeLease { .. }
        | TaskCommand::Renew { .. }
        | TaskCommand::Release { .. }
        | TaskCommand::Propose { .. }
        | TaskCommand::Reuse { .. }
        | TaskCommand::CommitVote { .. }
        | TaskCommand::Reveal { .. }
        | TaskCommand::Finalize { .. }
        | TaskCommand::NextEpoch
        | TaskCommand::Cancel { .. } => {}
    }
    if task.is_over() { Err(TaskRefusal::Over(task.phase)) } else { of_work(task, command, now) }
}

fn of_work(task: &Task, command: &TaskCommand, now: Timestamp) -> DecideResult {
    let lease = now.plus_millis(task.terms.lease_ms);
    match command {
        TaskCommand::TakeLease { token, claim } => leases::leased(task, *token, claim, now),
        TaskCommand::Renew { token, until } => {
            held(task, *token)?;
            Ok(vec![TaskEvent::Renewed { token: *token, until: (*until).min(lease) }])
        }
        TaskCommand::Release { token, reason } => {
            let claim = held(task, *token)?;
            Ok(leases::released(task, *token, claim, reason))
        }
        TaskCommand::Propose { token, candidate, digest, evidence, round_id } => {
            with_role(task, *token, TaskRole::Propose)?;
            free_id(task, candidate, digest)?;
            // A known output keeps its id.
            let same = task.proposals.iter().find(|it| it.digest == *digest);
            Ok(vec![TaskEvent::Proposed {
                token: *token,
                candidate: same.map_or(candidate, |it| &it.id).clone(),
                digest: digest.clone(),
                evidence: evidence.clone(),
                round_id: round_id.clone(),
            }])
        }
        TaskCommand::Reuse { source, candidate, digest, evidence, proposers } => {
            may_reuse(task, candidate, digest, now)?;
            Ok(vec![TaskEvent::Reused {
                source: source.clone(),
                candidate: candidate.clone(),
                digest: digest.clone(),
                evidence: evidence.clone(),
                proposers: proposers.clone(),
            }])
        }
        TaskCommand::CommitVote { .. } => votes::committed(task, command),
        TaskCommand::Reveal { candidate, voter, ballot, salt } => {
            votes::revealed(task, VoteRef { candidate, voter }, ballot, salt)
        }
        TaskCommand::Finalize { token } => finalized(task, *token, now),
        TaskCommand::NextEpoch => next_epoch(task),
        TaskCommand::Cancel { reason } => Ok(vec![TaskEvent::Cancelled { reason: reason.clone() }]),
        TaskCommand::Accuse { .. } | TaskCommand::Complain { .. } | TaskCommand::Tick { .. } => {
            Ok(Vec::new())
        }
    }
}

fn held(task: &Task, token: u64) -> Result<&TaskLease, TaskRefusal> {
    task.claims.get(&token).ok_or(TaskRefusal::NotHeld(token))
}

fn with_role(task: &Task, token: u64, role: TaskRole) -> Result<&TaskLease, TaskRefusal> {
    held(task, token)
        .and_then(|it| if it.role == role { Ok(it) } else { Err(TaskRefusal::NotHeld(token)) })
}

/// An id names one output.
fn free_id(task: &Task, id: &str, digest: &str) -> Result<(), TaskRefusal> {
    let is_taken = task.proposal(id).is_some_and(|it| it.digest != digest);
    if is_taken { Err(TaskRefusal::IdTaken(id.to_owned())) } else { Ok(()) }
}

fn may_reuse(task: &Task, id: &str, digest: &str, now: Timestamp) -> Result<(), TaskRefusal> {
    free_id(task, id, digest)?;
    let is_begun = task.is_explored
        || task.approved().is_some()
        || task.leases_of(TaskRole::Propose) > 0
        || task.proposals.iter().any(|it| it.is_live() || it.source.is_none());
    let is_late = task.reuse_until().is_some_and(|until| until <= now);
    let is_known = task.proposals.iter().any(|it| it.digest == digest);
    let why = if is_begun {
        "other candidates are already in progress"
    } else if task.blacklist.contains(digest) {
        "the voters rejected that output"
    } else if is_known {
        "that output was already tried"
    } else if task.terms.budget.reuse_max_attempts <= task.reuses {
        "the contract allows no more tries"
    } else if is_late {
        "the time for it is used up"
    } else if task.payable(true) < u64::from(task.terms.quorum) {
        "the budget cannot pay for the votes"
    } else {
        return Ok(());
    };
    Err(TaskRefusal::NoReuse(why))
}

fn finalized(task: &Task, token: u64, now: Timestamp) -> DecideResult {
    let claim = with_role(task, token, TaskRole::Finalize)?;
    let id = claim.candidate.clone().unwrap_or_default();
    let approved = task.approved().filter(|it| it.id == id);
    let proposal = approved.ok_or_else(|| TaskRefusal::NoCandidate(id.clone()))?;
    let settles_at = now.plus_millis(task.terms.window_ms);
    Ok(vec![TaskEvent::Finalized { epoch: task.epoch, candidate: proposal.id.clone(), settles_at }])
}

/// Only one complaint is accepted, and only in time.
fn no_complaint(task: &Task, epoch: u64) -> Result<(), TaskRefusal> {
    let why = match task.windows.iter().find(|it| it.epoch == epoch) {
        Some(window) if window.complaint.is_none() => return Ok(()),
        Some(_) => "it was already disputed",
        None if task.newest_decision().is_none_or(|newest| newest < epoch) => {
            "there is no decision yet"
        }
        None => "the time to dispute it is over",
    };
    Err(TaskRefusal::NoWindow { epoch, why })
}

fn next_epoch(task: &Task) -> DecideResult {
    let open = u32::try_from(task.windows.len()).unwrap_or(u32::MAX);
    let why = if task.terms.mode == DecisionMode::OneShot {
        "the task is decided once, because its mode is ONE_SHOT"
    } else if !task.is_waiting() {
        "the current epoch is not decided"
    } else if MOST <= open {
        "too many decisions have not settled yet"
    } else {
        return Ok(vec![TaskEvent::EpochEnded { epoch: task.epoch }]);
    };
    Err(TaskRefusal::NoEpoch(why))
}

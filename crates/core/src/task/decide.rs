//! Which events follow from a command, or why none do.

use super::{
    Ballot, Claim, End, Event, Forfeit, Phase, Proposal, Role, Standing, Task, Terms, Weigher,
    aggregate::{self, Tally},
    vote::commitment,
};
use crate::time::Timestamp;

/// What somebody wants to be done with a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Takes up work. The token must be above all that were given out.
    Claim {
        token: u64,
        claim: Claim,
    },
    /// Goes on holding it.
    Renew {
        token: u64,
        until: Timestamp,
    },
    /// Gives it up.
    Release {
        token: u64,
        reason: String,
    },
    Propose {
        token: u64,
        candidate: String,
        digest: String,
        evidence: Vec<String>,
    },
    /// A verdict, bound by its commitment, with the evidence that the verifier found.
    CommitVote {
        token: u64,
        commitment: String,
        available: Vec<String>,
    },
    Reveal {
        candidate: String,
        voter: String,
        ballot: Ballot,
        salt: String,
    },
    Finalize {
        token: u64,
    },
    Cancel {
        reason: String,
    },
    /// Time went on, or what can propose and verify is used up.
    Tick {
        exhausted: Exhausted,
    },
}

/// What there is nobody left for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exhausted {
    /// No further executor can propose.
    pub proposers: bool,
    /// No further executor can verify what is there.
    pub verifiers: bool,
}

/// Why a command changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the task is over: it {0}")]
    Over(Phase),
    #[error("the claim with the token {0} does not hold any more")]
    NotHeld(u64),
    #[error("the token {given} is not above {last}, the last that was given out")]
    OldToken { given: u64, last: u64 },
    #[error("`{0}` proposed the candidate, and cannot verify it")]
    OwnCandidate(String),
    #[error("`{0}` votes on the candidate already")]
    VotesAlready(String),
    #[error("there are as many claims to {0} as the contract allows")]
    TooMany(Role),
    #[error("the budget of the task for {0} is used up")]
    Budget(Role),
    #[error("the task has no candidate `{0}` for that")]
    NoCandidate(String),
    #[error("`{0}` has no vote on the candidate")]
    NoVote(String),
    #[error("votes on the candidate are not revealed {0}")]
    NotRevealing(&'static str),
    #[error("evidence of the candidate was not found by enough verifiers")]
    EvidenceMissing,
    #[error("nothing is tried again before its time")]
    TooEarly,
}

type Decided = Result<Vec<Event>, Refusal>;

/// The events that a command causes at a time. What the clock made due comes first.
pub fn decide(task: &Task, command: &Command, now: Timestamp, known: &Weigher) -> Decided {
    let mut task = task.clone();
    let due = task.due(now);
    let mut events = follow(&mut task, due, now);
    if task.phase.is_over() {
        // A task that ended by the clock takes no other command, and says so by its events.
        let is_tick = matches!(command, Command::Tick { .. });
        let is_refused = events.is_empty() && !is_tick;
        return if is_refused { Err(Refusal::Over(task.phase)) } else { Ok(events) };
    }
    let caused = match command {
        Command::Claim { token, claim } => claimed(&task, *token, claim, now)?,
        Command::Renew { token, until } => {
            held(&task, *token)?;
            vec![Event::Renewed { token: *token, until: *until }]
        }
        Command::Release { token, reason } => {
            held(&task, *token)?;
            vec![Event::Released { token: *token, reason: reason.clone() }]
        }
        Command::Propose { token, candidate, digest, evidence } => {
            with_role(&task, *token, Role::Propose)?;
            let (candidate, digest) = (candidate.clone(), digest.clone());
            vec![Event::Proposed { token: *token, candidate, digest, evidence: evidence.clone() }]
        }
        Command::CommitVote { token, commitment, available } => {
            vote_committed(&task, *token, commitment, available)?
        }
        Command::Reveal { candidate, voter, ballot, salt } => {
            revealed(&task, (candidate, voter), ballot, salt)?
        }
        Command::Finalize { token } => finalized(&task, *token)?,
        Command::Cancel { reason } => {
            vec![Event::Ended { end: End::Cancelled { reason: reason.clone() } }]
        }
        Command::Tick { .. } => Vec::new(),
    };
    events.extend(follow(&mut task, caused, now));
    let exhausted =
        if let Command::Tick { exhausted } = command { *exhausted } else { Exhausted::default() };
    events.extend(consequences(&mut task, exhausted, now, known));
    Ok(events)
}

/// Applies events to the task and hands them on.
fn follow(task: &mut Task, events: Vec<Event>, now: Timestamp) -> Vec<Event> {
    for event in &events {
        task.apply(event, now);
    }
    events
}

fn held(task: &Task, token: u64) -> Result<&Claim, Refusal> {
    task.claims.get(&token).ok_or(Refusal::NotHeld(token))
}

fn with_role(task: &Task, token: u64, role: Role) -> Result<&Claim, Refusal> {
    held(task, token)
        .and_then(|it| if it.role == role { Ok(it) } else { Err(Refusal::NotHeld(token)) })
}

/// Whether another step of a role can be paid for.
pub(super) fn can_pay(task: &Task, role: Role) -> bool {
    let (budget, spent) = (&task.terms.budget, &task.spent);
    let has_step = spent.steps < budget.max_steps;
    match role {
        Role::Propose => has_step && spent.explore < budget.explore,
        Role::Verify => has_step && spent.verify < budget.verify,
        Role::Finalize => spent.finalize < budget.finalize,
    }
}

pub(super) fn claims_of(task: &Task, role: Role) -> u32 {
    let count = task.claims.values().filter(|claim| claim.role == role).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn claimed(task: &Task, token: u64, claim: &Claim, now: Timestamp) -> Decided {
    if token <= task.last_token {
        return Err(Refusal::OldToken { given: token, last: task.last_token });
    }
    if task.retry_at.is_some_and(|at| now < at) {
        return Err(Refusal::TooEarly);
    }
    let Terms { propose_at_once, verify_at_once, max_finalizers, .. } = &task.terms;
    let most = match claim.role {
        Role::Propose => *propose_at_once,
        Role::Verify => *verify_at_once,
        Role::Finalize => *max_finalizers,
    };
    if most <= claims_of(task, claim.role) {
        return Err(Refusal::TooMany(claim.role));
    }
    if !can_pay(task, claim.role) {
        return Err(Refusal::Budget(claim.role));
    }
    match claim.role {
        Role::Propose => may_propose(task, claim)?,
        Role::Verify => may_verify(task, claim)?,
        Role::Finalize => {
            let id = claim.candidate.clone().unwrap_or_default();
            let approved = task.approved().filter(|it| it.id == id);
            approved.ok_or(Refusal::NoCandidate(id))?;
        }
    }
    let charged = Event::Charged { role: claim.role };
    Ok(vec![Event::Claimed { token, claim: claim.clone() }, charged])
}

fn may_propose(task: &Task, claim: &Claim) -> Result<(), Refusal> {
    let has_proposed = task.proposals.iter().any(|it| it.proposers.contains(&claim.holder));
    let proposes =
        task.claims.values().any(|it| it.role == Role::Propose && it.holder == claim.holder);
    if has_proposed || proposes || task.approved().is_some() {
        return Err(Refusal::TooMany(Role::Propose));
    }
    let proposers: usize = task.proposals.iter().map(|it| it.proposers.len()).sum();
    let asked =
        u32::try_from(proposers).unwrap_or(u32::MAX).saturating_add(claims_of(task, Role::Propose));
    if task.terms.max_proposers <= asked { Err(Refusal::TooMany(Role::Propose)) } else { Ok(()) }
}

fn may_verify(task: &Task, claim: &Claim) -> Result<(), Refusal> {
    let id = claim.candidate.clone().unwrap_or_default();
    let open = |it: &&Proposal| matches!(it.standing, Standing::Waiting | Standing::Verifying);
    let proposal = task.proposal(&id).filter(open).ok_or(Refusal::NoCandidate(id))?;
    if proposal.proposers.contains(&claim.holder) {
        return Err(Refusal::OwnCandidate(claim.holder.clone()));
    }
    let on_it = |it: &&Claim| it.role == Role::Verify && it.candidate == claim.candidate;
    let is_under_way = task.claims.values().filter(on_it).any(|it| it.holder == claim.holder);
    if is_under_way || proposal.votes.contains_key(&claim.holder) {
        return Err(Refusal::VotesAlready(claim.holder.clone()));
    }
    let asked = task.claims.values().filter(on_it).count() + proposal.votes.len();
    let most = usize::try_from(task.terms.max_verifiers).unwrap_or(usize::MAX);
    if most <= asked { Err(Refusal::TooMany(Role::Verify)) } else { Ok(()) }
}

fn vote_committed(task: &Task, token: u64, digest: &str, available: &[String]) -> Decided {
    let claim = with_role(task, token, Role::Verify)?;
    let id = claim.candidate.clone().unwrap_or_default();
    let proposal = task.proposal(&id).filter(|it| it.standing == Standing::Verifying);
    let proposal = proposal.ok_or_else(|| Refusal::NoCandidate(id.clone()))?;
    let found = available.iter().filter(|digest| proposal.evidence.contains(*digest));
    let mut events: Vec<Event> = found
        .map(|digest| Event::EvidenceSeen {
            candidate: id.clone(),
            verifier: claim.holder.clone(),
            digest: digest.clone(),
        })
        .collect();
    events.push(Event::VoteCommitted { token, candidate: id, commitment: digest.to_owned() });
    Ok(events)
}

/// A vote counts when it is revealed in time and as it was committed.
fn revealed(task: &Task, (id, voter): (&str, &str), ballot: &Ballot, salt: &str) -> Decided {
    let proposal = task.proposal(id).ok_or_else(|| Refusal::NoCandidate(id.to_owned()))?;
    let vote = proposal.votes.get(voter).ok_or_else(|| Refusal::NoVote(voter.to_owned()))?;
    match proposal.standing {
        Standing::Revealing => {}
        Standing::Waiting | Standing::Verifying => return Err(Refusal::NotRevealing("yet")),
        Standing::Approved | Standing::Rejected | Standing::Undecided => {
            return Err(Refusal::NotRevealing("any more"));
        }
    }
    if vote.forfeited.is_some() {
        return Err(Refusal::NotRevealing("any more"));
    }
    let (candidate, voter) = (id.to_owned(), voter.to_owned());
    let forfeit =
        |why| Event::VoteForfeited { candidate: id.to_owned(), voter: voter.clone(), why };
    let is_committed = commitment((&task.id, id, &voter), ballot, salt) == vote.commitment;
    Ok(match &vote.revealed {
        // Both ballots open the same commitment only if they are the same.
        Some(before) if before == ballot => Vec::new(),
        Some(_) => vec![forfeit(Forfeit::Equivocation)],
        None if !is_committed => vec![forfeit(Forfeit::Mismatch)],
        None => vec![Event::VoteRevealed { candidate, voter, ballot: ballot.clone() }],
    })
}

fn finalized(task: &Task, token: u64) -> Decided {
    let claim = with_role(task, token, Role::Finalize)?;
    let id = claim.candidate.clone().unwrap_or_default();
    let approved = task.approved().filter(|it| it.id == id);
    let proposal = approved.ok_or_else(|| Refusal::NoCandidate(id.clone()))?;
    if !is_available(task, proposal) {
        return Err(Refusal::EvidenceMissing);
    }
    Ok(vec![Event::Ended { end: End::Finalized { candidate: id } }])
}

pub(super) fn is_available(task: &Task, proposal: &Proposal) -> bool {
    let needed = usize::try_from(task.terms.da_quorum).unwrap_or(usize::MAX);
    let seen =
        |digest: &String| proposal.available.get(digest).map_or(0, std::collections::BTreeSet::len);
    proposal.evidence.iter().all(|digest| needed <= seen(digest))
}

/// What follows from how the task stands: reveals that open, votes that decide, ends.
fn consequences(
    task: &mut Task,
    exhausted: Exhausted,
    now: Timestamp,
    known: &Weigher,
) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(event) = consequence(task, exhausted, now, known) {
        task.apply(&event, now);
        events.push(event);
    }
    events
}

fn consequence(
    task: &Task,
    exhausted: Exhausted,
    now: Timestamp,
    known: &Weigher,
) -> Option<Event> {
    if task.phase.is_over() {
        return None;
    }
    if let Some(approved) = task.approved() {
        let is_lost = !is_available(task, approved);
        let reason = || "evidence was not found by enough verifiers".to_owned();
        return is_lost.then(|| Event::Ended { end: End::Failed { reason: reason() } });
    }
    let voting = task.proposals.iter().find_map(|it| of_votes(task, it, exhausted, (now, known)));
    voting.or_else(|| of_proposals(task, exhausted, now))
}

/// What follows from the votes on a candidate.
fn of_votes(
    task: &Task,
    proposal: &Proposal,
    exhausted: Exhausted,
    (now, known): (Timestamp, &Weigher),
) -> Option<Event> {
    let candidate = proposal.id.clone();
    let id = Some(&proposal.id);
    let is_claimed =
        task.claims.values().any(|it| it.role == Role::Verify && it.candidate.as_ref() == id);
    let votes = u32::try_from(proposal.votes.len()).unwrap_or(u32::MAX);
    // Nobody else will vote: as many did as may, or nobody is left who could.
    let is_full = task.terms.max_verifiers <= votes;
    let is_last = is_full || exhausted.verifiers || !can_pay(task, Role::Verify);
    match proposal.standing {
        Standing::Verifying | Standing::Waiting if !is_claimed && is_last && votes > 0 => {
            let until = now.plus_millis(task.terms.reveal_ms);
            Some(Event::RevealOpened { candidate, until })
        }
        Standing::Verifying | Standing::Waiting if !is_claimed && is_last => {
            Some(Event::Undecided { candidate })
        }
        Standing::Revealing => {
            let is_open = |it: &super::Vote| it.revealed.is_none() && it.forfeited.is_none();
            if proposal.votes.values().any(is_open) {
                return None;
            }
            Some(match aggregate::tally(proposal, &task.terms, known) {
                Tally::Approved => Event::Committed { candidate },
                Tally::Rejected => Event::Rejected { candidate },
                Tally::Undecided if may_repeat(task, proposal, exhausted) => {
                    Event::VerificationRepeated { candidate }
                }
                Tally::Undecided => Event::Undecided { candidate },
            })
        }
        Standing::Waiting
        | Standing::Verifying
        | Standing::Approved
        | Standing::Rejected
        | Standing::Undecided => None,
    }
}

fn may_repeat(task: &Task, proposal: &Proposal, exhausted: Exhausted) -> bool {
    proposal.repeats < task.terms.max_repeats && can_pay(task, Role::Verify) && !exhausted.verifiers
}

/// What follows when no candidate can be approved any more.
fn of_proposals(task: &Task, exhausted: Exhausted, now: Timestamp) -> Option<Event> {
    let is_done = |it: &Proposal| matches!(it.standing, Standing::Rejected | Standing::Undecided);
    if !task.claims.is_empty() || !task.proposals.iter().all(is_done) {
        return None;
    }
    let can_propose = can_pay(task, Role::Propose);
    if !exhausted.proposers && can_propose {
        return None;
    }
    // Executors that failed may be well again; those whose candidates were refused will not change.
    let is_hopeful = task.proposals.is_empty() && can_propose;
    if is_hopeful && task.retries < task.terms.max_retries {
        let wait = task.terms.backoff_ms.saturating_mul(1 << task.retries.min(16));
        return Some(Event::RetryScheduled { at: now.plus_millis(wait) });
    }
    let reason = if task.proposals.is_empty() {
        "no executor proposed a candidate"
    } else if task.proposals.iter().any(|it| it.standing == Standing::Undecided) {
        "the verifiers came to no decision"
    } else {
        "the verifiers refused every candidate"
    };
    Some(Event::Ended { end: End::Failed { reason: reason.to_owned() } })
}

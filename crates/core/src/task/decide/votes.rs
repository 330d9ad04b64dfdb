//! Decides which votes are accepted, which count, and which are forfeited.

use super::{DecideResult, TaskCommand, TaskRefusal, with_role};
use crate::task::{
    Ballot, Forfeit, ProposalStanding, Task, TaskEvent, TaskRole, VoteContext, vote::commitment,
};

pub(super) fn committed(task: &Task, command: &TaskCommand) -> DecideResult {
    let TaskCommand::CommitVote { token, commitment, round_id } = command else {
        return Ok(Vec::new());
    };
    let claim = with_role(task, *token, TaskRole::Verify)?;
    if task.equivocators.contains(&claim.holder) {
        return Err(TaskRefusal::Equivocator(claim.holder.clone()));
    }
    let id = claim.candidate.clone().unwrap_or_default();
    let proposal = task.proposal(&id).filter(|it| it.standing == ProposalStanding::Verifying);
    let proposal = proposal.ok_or_else(|| TaskRefusal::NoCandidate(id.clone()))?;
    Ok(vec![TaskEvent::VoteCommitted {
        token: *token,
        candidate: id,
        turn: proposal.turn,
        commitment: commitment.clone(),
        round_id: round_id.clone(),
    }])
}

/// The vote of a voter on a candidate.
#[derive(Clone, Copy)]
pub(super) struct VoteRef<'a> {
    pub(super) candidate: &'a str,
    pub(super) voter: &'a str,
}

/// A vote counts if it is revealed in time and as it was committed.
pub(super) fn revealed(task: &Task, of: VoteRef<'_>, ballot: &Ballot, salt: &str) -> DecideResult {
    let VoteRef { candidate: id, voter } = of;
    let proposal = task.proposal(id).ok_or_else(|| TaskRefusal::NoCandidate(id.to_owned()))?;
    let vote = proposal.votes.get(voter).ok_or_else(|| TaskRefusal::NoVote(voter.to_owned()))?;
    match proposal.standing {
        ProposalStanding::Revealing => {}
        ProposalStanding::Waiting | ProposalStanding::Verifying => {
            return Err(TaskRefusal::NotRevealing("yet"));
        }
        ProposalStanding::Approved | ProposalStanding::Rejected | ProposalStanding::Undecided => {
            return Err(TaskRefusal::NotRevealing("any more"));
        }
    }
    if vote.forfeited.is_some() {
        return Err(TaskRefusal::NotRevealing("any more"));
    }
    if let Some(before) = &vote.revealed {
        let verdicts = (before.verdict_digest.clone(), ballot.verdict_digest.clone());
        // A repeated reveal adds nothing.
        let is_same = before == ballot;
        return if is_same { Ok(Vec::new()) } else { accused(task, of, vote.turn, &verdicts) };
    }
    let context =
        VoteContext { task: &task.id, epoch: task.epoch, candidate: id, turn: vote.turn, voter };
    let is_committed = commitment(context, ballot, salt) == vote.commitment;
    let (candidate, verifier) = (id.to_owned(), voter.to_owned());
    // A score that is not a number can be neither weighed nor recorded.
    if !is_committed || !ballot.score.is_finite() {
        let why = Forfeit::Mismatch;
        return Ok(vec![TaskEvent::VoteForfeited { candidate, voter: verifier, why }]);
    }
    // The evidence that a voter found hints at its verdict, so it is revealed together with it.
    let found = proposal.evidence.iter().filter(|digest| ballot.available.contains(digest));
    let mut events: Vec<TaskEvent> = found
        .map(|digest| TaskEvent::EvidenceSeen {
            candidate: candidate.clone(),
            verifier: verifier.clone(),
            digest: digest.clone(),
        })
        .collect();
    events.push(TaskEvent::VoteRevealed { candidate, voter: verifier, ballot: ballot.clone() });
    Ok(events)
}

/// Two different verdicts in one vote on a candidate cost the voter its vote. Once the candidate is
/// decided, they are recorded and do not change the decision.
pub(super) fn accused(
    task: &Task,
    of: VoteRef<'_>,
    turn: u32,
    verdicts: &(String, String),
) -> DecideResult {
    let VoteRef { candidate: id, voter } = of;
    let proposal = task.proposal(id).ok_or_else(|| TaskRefusal::NoCandidate(id.to_owned()))?;
    let vote = proposal.votes.get(voter).filter(|it| it.turn == turn);
    let vote = vote.ok_or_else(|| TaskRefusal::NoVote(voter.to_owned()))?;
    let is_about = |ballot: &Ballot| {
        ballot.verdict_digest == verdicts.0 || ballot.verdict_digest == verdicts.1
    };
    if verdicts.0 == verdicts.1 || !vote.revealed.as_ref().is_none_or(is_about) {
        return Err(TaskRefusal::NoProof(voter.to_owned()));
    }
    if vote.equivocated {
        return Ok(Vec::new());
    }
    let (candidate, voter) = (id.to_owned(), voter.to_owned());
    let verdicts = verdicts.clone();
    let proof = TaskEvent::Equivocated {
        candidate: candidate.clone(),
        voter: voter.clone(),
        turn,
        verdicts,
    };
    let forfeit = TaskEvent::VoteForfeited { candidate, voter, why: Forfeit::Equivocation };
    // An undecided candidate from knowledge is voted on again once an executor proposes it.
    let may_revive = proposal.standing == ProposalStanding::Undecided && proposal.source.is_some();
    let is_open = !task.is_over() && (proposal.is_live() || may_revive);
    let counts = is_open && vote.forfeited.is_none();
    Ok(if counts { vec![proof, forfeit] } else { vec![proof] })
}

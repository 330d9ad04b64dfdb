//! Turns the result of a call into a command on the task.

use jurat_core::{
    canonical::digest_json,
    task::{Ballot, LeaseRelease, TaskCommand, TaskRefusal, commitment},
};

use crate::tasks::{
    NewCandidate, ProposerAnswer, SecretBallot, VoterAnswer, WorkerFailure,
    draft::{PendingLease, TaskDraft},
};

/// A call that has ended, and is not recorded yet.
#[derive(Debug)]
pub(crate) struct FinishedTaskCall {
    pub(crate) lease: PendingLease,
    pub(crate) answer: WorkerAnswer,
    /// Drawn once, so that a second try writes the same.
    pub(crate) salt: String,
    /// Whether it is in the draft that is about to be written.
    pub(crate) is_noted: bool,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum WorkerAnswer {
    Candidate(Box<ProposerAnswer>),
    Verdict(Box<VoterAnswer>),
    /// Nothing usable. It is not a verdict.
    Nothing(WorkerFailure),
}

/// A verdict that came after its lease was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LateVerdict {
    pub(crate) candidate: String,
    pub(crate) turn: u32,
    pub(crate) voter: String,
    pub(crate) verdict_digest: String,
}

impl FinishedTaskCall {
    /// Whether it fits into a draft, which carries one document of a kind.
    pub(crate) fn fits(&self, draft: &TaskDraft<'_>) -> bool {
        match self.answer {
            WorkerAnswer::Candidate(_) => draft.candidate.is_none(),
            WorkerAnswer::Verdict(_) => draft.ballot.is_none(),
            WorkerAnswer::Nothing(_) => true,
        }
    }

    /// Adds it to a draft. If the lease was lost meanwhile, it is refused.
    pub(crate) fn write_to(&self, draft: &mut TaskDraft<'_>) -> Result<(), TaskRefusal> {
        match &self.answer {
            WorkerAnswer::Candidate(made) => self.write_candidate(draft, made),
            WorkerAnswer::Verdict(verdict) => self.write_verdict(draft, verdict),
            WorkerAnswer::Nothing(failure) => {
                let (code, detail) = (failure.code.as_str().to_owned(), failure.detail.clone());
                let reason = if failure.code.is_ours() {
                    LeaseRelease::NodeFailed { code, detail }
                } else {
                    LeaseRelease::Failed { code, detail }
                };
                draft.decide(&TaskCommand::Release { token: self.lease.token, reason })
            }
        }
    }

    fn write_candidate(
        &self,
        draft: &mut TaskDraft<'_>,
        made: &ProposerAnswer,
    ) -> Result<(), TaskRefusal> {
        let candidate = &made.candidate;
        // Equal outputs are one candidate, whoever made them and when.
        let digest = digest_json(&candidate.output);
        draft.decide(&TaskCommand::Propose {
            token: self.lease.token,
            candidate: candidate.candidate_id.clone(),
            digest: digest.clone(),
            evidence: candidate.evidence.refs.iter().map(|it| it.digest.clone()).collect(),
            round_id: made.round_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        })?;
        draft.candidate = Some(NewCandidate {
            proposer: self.lease.claim.holder.clone(),
            candidate: candidate.clone(),
            digest,
            round_id: made.round_id.clone(),
        });
        Ok(())
    }

    fn write_verdict(
        &self,
        draft: &mut TaskDraft<'_>,
        verdict: &VoterAnswer,
    ) -> Result<(), TaskRefusal> {
        let PendingLease { token, claim, turn } = &self.lease;
        let sealed = SecretBallot {
            candidate: claim.candidate.clone().unwrap_or_default(),
            turn: *turn,
            voter: claim.holder.clone(),
            ballot: Ballot { available: verdict.available.clone(), ..verdict.ballot.clone() },
            salt: self.salt.clone(),
            round_id: verdict.round_id.clone(),
        };
        let place = draft.task.vote_context(&sealed.candidate, &sealed.voter);
        let commitment = commitment(place, &sealed.ballot, &sealed.salt);
        draft.decide(&TaskCommand::CommitVote {
            token: *token,
            commitment,
            round_id: verdict.round_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        })?;
        draft.ballot = Some(sealed);
        Ok(())
    }

    /// A verdict whose lease is lost: the voter may give another one elsewhere.
    pub(crate) fn into_late_verdict(self) -> Option<LateVerdict> {
        let WorkerAnswer::Verdict(verdict) = self.answer else { return None };
        Some(LateVerdict {
            candidate: self.lease.claim.candidate?,
            turn: self.lease.turn,
            voter: self.lease.claim.holder,
            verdict_digest: verdict.ballot.verdict_digest,
        })
    }
}

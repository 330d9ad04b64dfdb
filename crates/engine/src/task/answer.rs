//! What a call came to, as a command to the task.

use jurat_core::{
    canonical::digest_json,
    task::{Ballot, Command, Refusal, Release, commitment},
};

use super::{
    Candidacy, Failure, Made, Sealed, Verdict,
    draft::{Draft, Start},
};

/// A call that has ended, and is not on record yet.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) start: Start,
    pub(super) came: Came,
    /// Drawn once, so that a second try to write it writes the same.
    pub(super) salt: String,
    /// Whether it is in the draft that is about to be written.
    pub(super) is_noted: bool,
}

/// What came of a call.
#[derive(Debug)]
pub(super) enum Came {
    Candidate(Box<Made>),
    Verdict(Box<Verdict>),
    /// Nothing that can be used. It is no verdict.
    Nothing(Failure),
}

/// A verdict that came when its claim was lost already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Late {
    pub(super) candidate: String,
    pub(super) turn: u32,
    pub(super) voter: String,
    pub(super) verdict_digest: String,
}

impl Finished {
    /// Whether there is room for it in a draft, which carries one document of a kind.
    pub(super) fn fits(&self, draft: &Draft<'_>) -> bool {
        match self.came {
            Came::Candidate(_) => draft.candidate.is_none(),
            Came::Verdict(_) => draft.ballot.is_none(),
            Came::Nothing(_) => true,
        }
    }

    /// Notes it in a draft. Whoever lost the claim meanwhile is refused.
    pub(super) fn note(&self, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        match &self.came {
            Came::Candidate(made) => self.note_candidate(draft, made),
            Came::Verdict(verdict) => self.note_verdict(draft, verdict),
            Came::Nothing(Failure { code, detail, is_ours }) => {
                let (code, detail) = (code.clone(), detail.clone());
                let reason = if *is_ours {
                    Release::NodeFailed { code, detail }
                } else {
                    Release::Failed { code, detail }
                };
                draft.decide(&Command::Release { token: self.start.token, reason })
            }
        }
    }

    fn note_candidate(&self, draft: &mut Draft<'_>, made: &Made) -> Result<(), Refusal> {
        let candidate = &made.candidate;
        // Equal outputs are one candidate, whoever made them and when.
        let digest = digest_json(&candidate.output);
        draft.decide(&Command::Propose {
            token: self.start.token,
            candidate: candidate.candidate_id.clone(),
            digest: digest.clone(),
            evidence: candidate.evidence.refs.iter().map(|it| it.digest.clone()).collect(),
            round_id: made.round_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        })?;
        draft.candidate = Some(Candidacy {
            proposer: self.start.claim.holder.clone(),
            candidate: candidate.clone(),
            digest,
            round_id: made.round_id.clone(),
        });
        Ok(())
    }

    fn note_verdict(&self, draft: &mut Draft<'_>, verdict: &Verdict) -> Result<(), Refusal> {
        let Start { token, claim, turn } = &self.start;
        let sealed = Sealed {
            candidate: claim.candidate.clone().unwrap_or_default(),
            turn: *turn,
            voter: claim.holder.clone(),
            ballot: Ballot { available: verdict.available.clone(), ..verdict.ballot.clone() },
            salt: self.salt.clone(),
            round_id: verdict.round_id.clone(),
        };
        let place = draft.task.place(&sealed.candidate, &sealed.voter);
        let commitment = commitment(place, &sealed.ballot, &sealed.salt);
        draft.decide(&Command::CommitVote {
            token: *token,
            commitment,
            round_id: verdict.round_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        })?;
        draft.ballot = Some(sealed);
        Ok(())
    }

    /// What is left of a verdict whose claim is lost: the voter may say something else elsewhere.
    pub(super) fn into_late(self) -> Option<Late> {
        let Came::Verdict(verdict) = self.came else { return None };
        Some(Late {
            candidate: self.start.claim.candidate?,
            turn: self.start.turn,
            voter: self.start.claim.holder,
            verdict_digest: verdict.ballot.verdict_digest,
        })
    }
}

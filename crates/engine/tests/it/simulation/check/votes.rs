//! Counts the votes of an epoch from its events alone, without the core.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    policy::EvaluationStatus,
    task::{TaskEvent, TaskLease, TaskRole, TaskTerms},
};

use super::Epoch;
use crate::simulation::shelf::Kept;

/// The counted state of a candidate.
#[derive(Default)]
struct Counted<'a> {
    proposers: BTreeSet<&'a str>,
    evidence: BTreeSet<&'a str>,
    /// The evidence that each voter found.
    found: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// The number of the vote in which each voter voted last.
    cast: BTreeMap<&'a str, u32>,
    /// The votes that are being revealed.
    open: BTreeSet<u32>,
    /// The revealed ballots that count, by voter.
    revealed: BTreeMap<&'a str, (u32, EvaluationStatus)>,
    is_approved: bool,
}

#[derive(Default)]
struct Book<'a> {
    claims: BTreeMap<u64, &'a TaskLease>,
    ended: BTreeSet<u64>,
    candidates: BTreeMap<&'a str, Counted<'a>>,
    decided: Vec<&'a str>,
}

pub(super) fn count_once(kept: &Kept, epoch: Epoch<'_>) -> Result<(), String> {
    let mut book = Book::default();
    for (_, event) in epoch {
        book.take(event, &kept.filed.task.terms)?;
        if let TaskEvent::Finalized { candidate, .. } = event
            && !kept.candidates.contains_key(candidate)
        {
            return Err("has a final candidate that nobody has".to_owned());
        }
    }
    Ok(())
}

impl<'a> Book<'a> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only some events are about votes")]
    fn take(&mut self, event: &'a TaskEvent, terms: &TaskTerms) -> Result<(), String> {
        match event {
            TaskEvent::Claimed { token, claim } => return self.claimed(*token, claim),
            TaskEvent::Released { token, .. } => return self.end(*token).map(drop),
            TaskEvent::Proposed { token, candidate, evidence, .. } => {
                let name = self.end(*token)?.holder.as_str();
                self.of(candidate).proposed_by(name, evidence);
            }
            TaskEvent::Reused { candidate, evidence, proposers, .. } => {
                for name in proposers {
                    self.of(candidate).proposed_by(name, evidence);
                }
            }
            TaskEvent::VoteCommitted { token, candidate, turn, .. } => {
                let name = self.end(*token)?.holder.as_str();
                return self.of(candidate).cast_by(name, *turn);
            }
            TaskEvent::RevealOpened { candidate, turn, .. } => {
                self.of(candidate).open.insert(*turn);
            }
            TaskEvent::EvidenceSeen { candidate, verifier, digest } => {
                return self.of(candidate).found_by(verifier, digest);
            }
            TaskEvent::VoteRevealed { candidate, voter, ballot } => {
                return self.of(candidate).revealed_by(voter, ballot.status);
            }
            TaskEvent::VoteForfeited { candidate, voter, .. }
            | TaskEvent::Equivocated { candidate, voter, .. } => {
                let counted = self.of(candidate);
                // A later proof is recorded, and does not change the decision.
                if !counted.is_approved {
                    counted.revealed.remove(voter.as_str());
                }
            }
            TaskEvent::Committed { candidate } => return self.of(candidate).approve(terms),
            TaskEvent::Finalized { candidate, .. } => return self.decide(candidate),
            _ => {}
        }
        Ok(())
    }

    fn of(&mut self, candidate: &'a str) -> &mut Counted<'a> {
        self.candidates.entry(candidate).or_default()
    }

    fn claimed(&mut self, token: u64, claim: &'a TaskLease) -> Result<(), String> {
        if self.claims.last_key_value().is_some_and(|(last, _)| token <= *last) {
            return Err(format!("gave the token {token} out twice"));
        }
        self.claims.insert(token, claim);
        if let (TaskRole::Verify, Some(candidate)) = (claim.role, &claim.candidate)
            && self.of(candidate).proposers.contains(claim.holder.as_str())
        {
            return Err(format!("{} is to verify its own candidate", claim.holder));
        }
        Ok(())
    }

    /// Ends a lease, which is invalid then.
    fn end(&mut self, token: u64) -> Result<&'a TaskLease, String> {
        let claim = self.claims.get(&token).copied();
        if !self.ended.insert(token) {
            return Err(format!("went on under the dead token {token}"));
        }
        claim.ok_or_else(|| format!("ended the token {token}, which nobody had"))
    }

    fn decide(&mut self, candidate: &'a str) -> Result<(), String> {
        self.decided.push(candidate);
        let approved = self.candidates.values().filter(|it| it.is_approved).count();
        if self.decided.len() == 1 && approved == 1 && self.of(candidate).is_approved {
            return Ok(());
        }
        Err(format!("decided {:?} in one epoch, and approved {approved}", self.decided))
    }
}

impl<'a> Counted<'a> {
    /// A proposer has no vote on its candidate, not even an earlier one.
    fn proposed_by(&mut self, name: &'a str, evidence: &'a [String]) {
        self.proposers.insert(name);
        self.cast.remove(name);
        self.revealed.remove(name);
        self.found.values_mut().for_each(|it| _ = it.remove(name));
        self.evidence.extend(evidence.iter().map(String::as_str));
    }

    fn cast_by(&mut self, name: &'a str, turn: u32) -> Result<(), String> {
        if self.proposers.contains(name) {
            return Err(format!("{name} verified its own candidate"));
        }
        if self.open.contains(&turn) {
            return Err(format!("{name} voted when the votes of turn {turn} could be seen"));
        }
        let before = self.cast.insert(name, turn);
        if before.is_some_and(|before| turn <= before) || self.revealed.contains_key(name) {
            // An inconclusive vote is repeated later.
            let said =
                self.revealed.remove(name).filter(|(_, it)| *it != EvaluationStatus::Inconclusive);
            if said.is_some() || before == Some(turn) {
                return Err(format!("{name} voted twice"));
            }
        }
        Ok(())
    }

    /// Whether a vote is visible by now.
    fn is_open(&self, voter: &str) -> Result<u32, String> {
        let turn = self.cast.get(voter).copied().filter(|it| self.open.contains(it));
        turn.ok_or_else(|| format!("{voter} was revealed early"))
    }

    fn found_by(&mut self, voter: &'a str, digest: &'a str) -> Result<(), String> {
        self.is_open(voter)?;
        self.found.entry(digest).or_default().insert(voter);
        Ok(())
    }

    fn revealed_by(&mut self, voter: &'a str, status: EvaluationStatus) -> Result<(), String> {
        let turn = self.is_open(voter)?;
        let before = self.revealed.insert(voter, (turn, status));
        if before.is_some_and(|(of, _)| of == turn) {
            return Err(format!("{voter} was revealed twice"));
        }
        Ok(())
    }

    fn approve(&mut self, terms: &TaskTerms) -> Result<(), String> {
        self.is_approved = true;
        let passed =
            self.revealed.values().filter(|(_, it)| *it == EvaluationStatus::Passed).count();
        let needed = terms.quorum as usize;
        if passed < needed {
            return Err(format!("approved with {passed} votes, and needs {needed}"));
        }
        let seen = |digest: &&str| self.found.get(digest).map_or(0, BTreeSet::len);
        let least = self.evidence.iter().map(seen).min().unwrap_or(usize::MAX);
        if terms.da_quorum != 0 && least < terms.da_quorum as usize {
            return Err(format!("approved with evidence that {least} verifiers found"));
        }
        Ok(())
    }
}

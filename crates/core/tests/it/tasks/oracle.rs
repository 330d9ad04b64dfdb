//! Checks the invariants of a task from its events alone, without looking at the task.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    policy::EvaluationStatus,
    task::{
        Ballot, LeaseRelease, TaskCommand, TaskEvent, TaskLease, TaskRole, TaskSpending, TaskTerms,
        VoteAggregation,
    },
    time::Timestamp,
};

/// A candidate, rebuilt from its events.
#[derive(Debug, Default)]
struct Seen {
    digest: String,
    makers: BTreeSet<String>,
    /// Revealed and not forfeited, by voter.
    counted: BTreeMap<String, Ballot>,
    /// Committed in the current vote.
    committed: BTreeSet<String>,
    keys: BTreeMap<String, String>,
    pool_keys: u32,
    is_open: bool,
    evidence: BTreeSet<String>,
    /// Which evidence was found, and by whom.
    found: BTreeSet<(String, String)>,
    /// Whether it is known only from knowledge and was left undecided.
    is_remembered: bool,
    is_undecided: bool,
}

impl Seen {
    fn new(digest: &str, makers: &[String], evidence: &[String]) -> Self {
        let makers = makers.iter().cloned().collect();
        let evidence = evidence.iter().cloned().collect();
        Self { digest: digest.to_owned(), makers, evidence, ..Self::default() }
    }
}

/// Who does what, on which candidate.
type Work = (TaskRole, String, Option<String>);

fn work(claim: &TaskLease) -> Work {
    (claim.role, claim.holder.clone(), claim.candidate.clone())
}

/// Reads events one after the other, and panics at the first invalid one.
#[derive(Debug)]
pub(super) struct Oracle {
    terms: TaskTerms,
    epoch: u64,
    live: BTreeMap<u64, TaskLease>,
    last_token: u64,
    candidates: BTreeMap<String, Seen>,
    proposers: BTreeSet<String>,
    spent: TaskSpending,
    refunds: u32,
    began: Option<Timestamp>,
    unpaid: Option<TaskRole>,
    /// Work that was charged and interrupted, by role, holder and candidate.
    left: BTreeMap<Work, String>,
    resumed: Option<TaskRole>,
    approved: Option<String>,
    finalized: BTreeMap<u64, String>,
    settled: BTreeSet<u64>,
    equivocators: BTreeSet<String>,
    is_over: bool,
}

impl Oracle {
    pub(super) fn new(terms: TaskTerms) -> Self {
        Self {
            terms,
            epoch: 1,
            live: BTreeMap::new(),
            last_token: 0,
            candidates: BTreeMap::new(),
            proposers: BTreeSet::new(),
            spent: TaskSpending::default(),
            refunds: 0,
            began: None,
            unpaid: None,
            left: BTreeMap::new(),
            resumed: None,
            approved: None,
            finalized: BTreeMap::new(),
            settled: BTreeSet::new(),
            equivocators: BTreeSet::new(),
            is_over: false,
        }
    }

    /// A command with an invalid token must have been refused.
    pub(super) fn accepted(&self, command: &TaskCommand, now: Timestamp) {
        let token = match command {
            TaskCommand::Renew { token, .. }
            | TaskCommand::Release { token, .. }
            | TaskCommand::Propose { token, .. }
            | TaskCommand::CommitVote { token, .. }
            | TaskCommand::Finalize { token } => token,
            TaskCommand::TakeLease { token, .. } => {
                assert!(self.last_token < *token, "the token {token} was given out before");
                return;
            }
            TaskCommand::Reuse { .. }
            | TaskCommand::Reveal { .. }
            | TaskCommand::Accuse { .. }
            | TaskCommand::Complain { .. }
            | TaskCommand::NextEpoch
            | TaskCommand::Cancel { .. }
            | TaskCommand::Tick { .. } => return,
        };
        let is_held = self.live.get(token).is_some_and(|claim| now < claim.until);
        assert!(is_held, "{command:?} was taken with a token that does not hold");
    }

    pub(super) fn read(&mut self, event: &TaskEvent, now: Timestamp) {
        self.assert_paid_once(event);
        let is_after = matches!(
            event,
            TaskEvent::Settled { .. }
                | TaskEvent::Complained { .. }
                | TaskEvent::Equivocated { .. }
        );
        assert!(!self.is_over || is_after, "{} after the end", event.name());
        match event {
            TaskEvent::Claimed { token, claim } => self.claimed(*token, claim, now),
            TaskEvent::Renewed { token, until } => {
                assert!(*until <= now.plus_millis(self.terms.lease_ms));
                self.live.get_mut(token).unwrap().until = *until;
            }
            TaskEvent::Released { token, reason } => self.released(*token, reason),
            TaskEvent::Charged { role, reuse } => self.charged(*role, *reuse),
            TaskEvent::Refunded { role, reuse } => self.refunded(*role, *reuse),
            TaskEvent::Proposed { token, candidate, digest, evidence, .. } => {
                let claim = self.live.remove(token).unwrap();
                self.proposed(&claim.holder, (candidate, digest), evidence);
            }
            TaskEvent::Reused { candidate, digest, proposers, evidence, .. } => {
                self.began.get_or_insert(now);
                let mut seen = Seen::new(digest, proposers, evidence);
                seen.is_remembered = true;
                assert!(self.candidates.insert(candidate.clone(), seen).is_none());
            }
            TaskEvent::Finalized { epoch, candidate, .. } => {
                assert_eq!(*epoch, self.epoch);
                assert_eq!(self.approved.as_ref(), Some(candidate), "final, and never approved");
                let before = self.finalized.insert(*epoch, candidate.clone());
                assert_eq!(before, None, "two final candidates in one epoch");
                self.live.clear();
            }
            TaskEvent::Settled { epoch, candidate, .. } => {
                assert_eq!(self.finalized.get(epoch), Some(candidate));
                assert!(self.settled.insert(*epoch), "settled twice");
            }
            TaskEvent::EpochEnded { epoch } => self.next_epoch(*epoch),
            TaskEvent::Failed { .. } | TaskEvent::Expired { .. } | TaskEvent::Cancelled { .. } => {
                self.is_over = true;
                self.live.clear();
            }
            TaskEvent::EvidenceSeen { .. }
            | TaskEvent::VoteCommitted { .. }
            | TaskEvent::RevealOpened { .. }
            | TaskEvent::VoteRevealed { .. }
            | TaskEvent::VoteForfeited { .. }
            | TaskEvent::Equivocated { .. }
            | TaskEvent::VotingExtended { .. }
            | TaskEvent::Committed { .. }
            | TaskEvent::Rejected { .. }
            | TaskEvent::VerificationRepeated { .. }
            | TaskEvent::Undecided { .. } => self.voted(event),
            TaskEvent::Created { .. }
            | TaskEvent::ExploreClosed { .. }
            | TaskEvent::RetryScheduled { .. }
            | TaskEvent::Complained { .. } => {}
        }
    }

    /// Work is charged when it is leased, unless it was charged before and interrupted.
    fn assert_paid_once(&mut self, event: &TaskEvent) {
        let is_paid = |role: TaskRole| matches!(event, TaskEvent::Charged { role: paid, .. } if *paid == role);
        assert!(self.unpaid.take().is_none_or(is_paid), "work was begun and not paid for");
        let is_free = |role: TaskRole| !is_paid(role);
        assert!(self.resumed.take().is_none_or(is_free), "what was interrupted is paid for again");
    }

    fn released(&mut self, token: u64, reason: &LeaseRelease) {
        let claim = self.live.remove(&token).unwrap();
        if matches!(reason, LeaseRelease::LeaseRanOut | LeaseRelease::GivenUp { .. }) {
            self.left.insert(work(&claim), claim.execution_id);
        }
    }

    fn claimed(&mut self, token: u64, claim: &TaskLease, now: Timestamp) {
        assert!(self.last_token < token, "a token was given out twice");
        self.last_token = token;
        let began = *self.began.get_or_insert(now);
        assert!(now < began.plus_millis(self.terms.budget.time_ms), "work after the time");
        assert!(now < self.terms.expires_at, "work after the contract expired");
        assert!(claim.until <= now.plus_millis(self.terms.lease_ms), "a lease that is too long");
        let is_resumed = self.left.remove(&work(claim)).is_some_and(|it| it == claim.execution_id);
        *(if is_resumed { &mut self.resumed } else { &mut self.unpaid }) = Some(claim.role);
        if claim.role == TaskRole::Verify {
            let candidate = claim.candidate.clone().unwrap();
            let seen = self.candidates.get_mut(&candidate).unwrap();
            assert!(!seen.makers.contains(&claim.holder), "it verifies what it proposed");
            seen.pool_keys = claim.pool_keys;
        }
        self.live.insert(token, claim.clone());
        let of = |role: TaskRole| self.live.values().filter(|it| it.role == role).count();
        let limits = [
            (TaskRole::Propose, self.terms.propose_at_once),
            (TaskRole::Verify, self.terms.verify_at_once),
            (TaskRole::Finalize, self.terms.max_finalizers),
        ];
        for (role, most) in limits {
            assert!(of(role) <= usize::try_from(most).unwrap(), "too many {role} at once");
        }
    }

    /// At most so often in an epoch, and never more than was charged.
    fn refunded(&mut self, role: TaskRole, is_reuse: bool) {
        let spent = &mut self.spent;
        let stage = match role {
            TaskRole::Propose => &mut spent.explore,
            TaskRole::Verify => &mut spent.verify,
            TaskRole::Finalize => &mut spent.finalize,
        };
        assert!(*stage > 0, "more is given back than was paid");
        *stage -= 1;
        spent.steps -= u32::from(role != TaskRole::Finalize);
        spent.reuse -= u64::from(is_reuse);
        self.refunds += 1;
        assert!(self.refunds <= 8, "a task is tried for ever");
    }

    fn charged(&mut self, role: TaskRole, is_reuse: bool) {
        let budget = &self.terms.budget;
        let spent = &mut self.spent;
        match role {
            TaskRole::Propose => spent.explore += 1,
            TaskRole::Verify => spent.verify += 1,
            TaskRole::Finalize => spent.finalize += 1,
        }
        spent.steps += u32::from(role != TaskRole::Finalize);
        spent.reuse += u64::from(is_reuse);
        if role == TaskRole::Propose || is_reuse {
            let steps = budget.max_steps.saturating_sub(spent.steps);
            assert!(self.terms.quorum <= steps, "nothing is left to verify a candidate with");
        }
        assert!(spent.steps <= budget.max_steps, "too many steps");
        assert!(spent.explore <= budget.explore, "exploring costs too much");
        assert!(spent.verify <= budget.verify, "verifying costs too much");
        assert!(spent.finalize <= budget.finalize, "making final costs too much");
        assert!(spent.units() <= budget.cost_units, "all costs too much");
        assert!(spent.reuse <= budget.reuse_verify_cost_units, "what is known costs too much");
    }

    fn proposed(&mut self, holder: &str, (candidate, digest): (&str, &str), evidence: &[String]) {
        assert!(self.proposers.insert(holder.to_owned()), "it proposed twice");
        assert!(self.proposers.len() <= usize::try_from(self.terms.max_proposers).unwrap());
        let same = self.candidates.values_mut().find(|it| it.digest == digest);
        let Some(same) = same else {
            let seen = Seen::new(digest, &[holder.to_owned()], evidence);
            assert!(self.candidates.insert(candidate.to_owned(), seen).is_none());
            return;
        };
        // A candidate from knowledge that an executor proposes is voted on from the beginning.
        if std::mem::take(&mut same.is_undecided) {
            same.is_remembered = false;
            self.left.retain(|(_, _, on), _| on.as_deref() != Some(candidate));
        }
        // The proposer's earlier vote on this output no longer counts.
        same.makers.insert(holder.to_owned());
        same.evidence.extend(evidence.iter().cloned());
        same.counted.remove(holder);
        same.counted.retain(|_, it| it.status != EvaluationStatus::Inconclusive);
        same.committed.clear();
        same.is_open = false;
    }

    fn voted(&mut self, event: &TaskEvent) {
        if let TaskEvent::VoteCommitted { token, candidate, .. } = event {
            let claim = self.live.remove(token).unwrap();
            let seen = self.candidates.get_mut(candidate).unwrap();
            assert!(!seen.is_open, "a vote is committed while others are seen");
            assert!(!seen.makers.contains(&claim.holder), "it votes on what it proposed");
            assert!(!self.equivocators.contains(&claim.holder), "it equivocated, and votes");
            assert!(!seen.counted.contains_key(&claim.holder), "it votes, and has a vote");
            assert!(seen.committed.insert(claim.holder.clone()), "it committed twice");
            seen.keys.insert(claim.holder, claim.independence);
        } else if let TaskEvent::RevealOpened { candidate, .. } = event {
            let on_it = |it: &&TaskLease| it.candidate.as_deref() == Some(candidate);
            assert_eq!(self.live.values().filter(on_it).count(), 0, "somebody is still to vote");
            self.candidates.get_mut(candidate).unwrap().is_open = true;
        } else if let TaskEvent::VoteRevealed { candidate, voter, ballot } = event {
            let seen = self.candidates.get_mut(candidate).unwrap();
            assert!(seen.is_open, "a vote was revealed before its time");
            assert!(seen.committed.contains(voter), "a vote that was not committed");
            let before = seen.counted.insert(voter.clone(), ballot.clone());
            assert_eq!(before, None, "{voter} is counted twice");
            let most = usize::try_from(self.terms.max_verifiers).unwrap();
            assert!(seen.counted.len() <= most, "more votes than the contract allows");
        } else if let TaskEvent::EvidenceSeen { candidate, verifier, digest } = event {
            let seen = self.candidates.get_mut(candidate).unwrap();
            assert!(!seen.makers.contains(verifier), "it vouches for what it proposed");
            seen.found.insert((digest.clone(), verifier.clone()));
        } else if let TaskEvent::VoteForfeited { candidate, voter, .. } = event {
            self.candidates.get_mut(candidate).unwrap().counted.remove(voter);
        } else if let TaskEvent::Equivocated { voter, .. } = event {
            self.equivocators.insert(voter.clone());
        } else if let TaskEvent::VotingExtended { candidate, .. } = event {
            let seen = self.candidates.get_mut(candidate).unwrap();
            seen.is_open = false;
            seen.committed.clear();
        } else if let TaskEvent::VerificationRepeated { candidate, .. } = event {
            let seen = self.candidates.get_mut(candidate).unwrap();
            seen.is_open = false;
            seen.committed.clear();
            seen.counted.retain(|_, it| it.status != EvaluationStatus::Inconclusive);
        } else if let TaskEvent::Undecided { candidate, .. } = event {
            let seen = self.candidates.get_mut(candidate).unwrap();
            seen.is_undecided = seen.is_remembered;
        } else if let TaskEvent::Committed { candidate } = event {
            assert_eq!(self.approved.replace(candidate.clone()), None, "two were approved");
            self.assert_approved(candidate);
        }
    }

    /// Enough different voters approved, with enough keys, and they outweigh those against.
    fn assert_approved(&self, candidate: &str) {
        let seen = &self.candidates[candidate];
        let of = |status: EvaluationStatus| {
            seen.counted.iter().filter(move |(_, it)| it.status == status)
        };
        let quorum = usize::try_from(self.terms.quorum).unwrap();
        let pro = of(EvaluationStatus::Passed).count();
        assert!(quorum <= pro, "approved without its quorum");
        let keys: BTreeSet<&String> =
            of(EvaluationStatus::Passed).map(|(it, _)| &seen.keys[it]).collect();
        let pool = usize::try_from(seen.pool_keys.max(1)).unwrap();
        assert!(quorum.min(pool) <= keys.len(), "approved by too few keys");
        let against = of(EvaluationStatus::Failed).count();
        if self.terms.aggregation == VoteAggregation::Quorum && pool < quorum {
            assert!(against < pro, "approved, and as many are against");
        }
        assert!(seen.makers.iter().all(|it| !seen.counted.contains_key(it)), "its own vote");
        let needed = usize::try_from(self.terms.da_quorum).unwrap();
        for digest in &seen.evidence {
            let by_others =
                |it: &&(String, String)| it.0 == *digest && !seen.makers.contains(&it.1);
            let found = seen.found.iter().filter(by_others).count();
            assert!(needed <= found, "approved without its evidence");
        }
    }

    fn next_epoch(&mut self, epoch: u64) {
        assert_eq!(epoch, self.epoch);
        assert!(self.finalized.contains_key(&epoch), "an epoch ended without its decision");
        let terms = self.terms.clone();
        let before = std::mem::replace(self, Self::new(terms));
        self.epoch = epoch + 1;
        self.last_token = before.last_token;
        self.finalized = before.finalized;
        self.settled = before.settled;
        self.equivocators = before.equivocators;
    }
}

//! The lifecycle of tasks under random commands: whatever comes in whatever order, what a contract
//! says is kept.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::{
    policy::Status,
    task::{
        Aggregation, Ballot, Budget, Claim, Command, End, Event, Exhausted, Phase, Refusal, Role,
        Task, Terms, commitment, decide, needs,
    },
    time::Timestamp,
};
use proptest::prelude::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

fn terms(quorum: u32) -> Terms {
    Terms {
        lease_ms: 1_000,
        propose_at_once: 2,
        verify_at_once: 3,
        max_proposers: 2,
        topk: 2,
        max_verifiers: 3,
        max_finalizers: 1,
        quorum,
        da_quorum: 1,
        reveal_ms: 500,
        max_repeats: 1,
        max_retries: 1,
        backoff_ms: 200,
        aggregation: Aggregation::Quorum,
        budget: Budget {
            time_ms: 20_000,
            max_steps: 12,
            cost_units: 30,
            explore: 4,
            verify: 8,
            finalize: 2,
        },
        expires_at: at(30_000),
    }
}

fn ballot(status: Status) -> Ballot {
    let verdict_digest = format!("sha256:{}", status.as_str());
    Ballot { status, score: 0.9, reason_codes: Vec::new(), verdict_digest }
}

/// A task with its events, driven as an engine does.
struct Driven {
    task: Task,
    events: Vec<Event>,
    now: u64,
    salts: BTreeMap<(String, String), (Ballot, String)>,
}

impl Driven {
    fn new(terms: Terms) -> Self {
        let task = Task::created("t1", terms, at(0));
        Self { task, events: Vec::new(), now: 0, salts: BTreeMap::new() }
    }

    fn tell(&mut self, command: &Command) -> Result<Vec<Event>, Refusal> {
        let events = decide(&self.task, command, at(self.now), &BTreeMap::new())?;
        for event in &events {
            self.task.apply(event, at(self.now));
        }
        self.events.extend(events.iter().cloned());
        Ok(events)
    }

    fn claim(&mut self, role: Role, holder: &str, candidate: Option<&str>) -> Result<u64, Refusal> {
        let token = self.task.last_token + 1;
        let claim = Claim {
            role,
            holder: holder.to_owned(),
            independence: holder.to_owned(),
            execution_id: format!("exec-{token}"),
            candidate: candidate.map(str::to_owned),
            until: at(self.now + self.task.terms.lease_ms),
        };
        self.tell(&Command::Claim { token, claim })?;
        if self.task.claims.contains_key(&token) { Ok(token) } else { Err(Refusal::NotHeld(token)) }
    }

    fn propose(&mut self, token: u64, digest: &str) -> Result<Vec<Event>, Refusal> {
        let candidate = format!("cand-{token}");
        let digest = digest.to_owned();
        self.tell(&Command::Propose { token, candidate, digest, evidence: Vec::new() })
    }

    fn vote(&mut self, token: u64, status: Status) -> Result<Vec<Event>, Refusal> {
        let Some(claim) = self.task.claims.get(&token).cloned() else {
            return Err(Refusal::NotHeld(token));
        };
        let candidate = claim.candidate.unwrap();
        let (ballot, salt) = (ballot(status), format!("salt-{token}"));
        let commitment = commitment((&self.task.id, &candidate, &claim.holder), &ballot, &salt);
        self.salts.insert((candidate, claim.holder), (ballot, salt));
        self.tell(&Command::CommitVote { token, commitment, available: Vec::new() })
    }

    fn reveal(&mut self, candidate: &str, voter: &str) -> Result<Vec<Event>, Refusal> {
        let key = (candidate.to_owned(), voter.to_owned());
        let Some((ballot, salt)) = self.salts.get(&key).cloned() else {
            return Err(Refusal::NoVote(voter.to_owned()));
        };
        let (candidate, voter) = key;
        self.tell(&Command::Reveal { candidate, voter, ballot, salt })
    }

    fn reveal_all(&mut self) {
        let open: Vec<(String, String)> = self.salts.keys().cloned().collect();
        for (candidate, voter) in open {
            self.reveal(&candidate, &voter).ok();
        }
    }

    fn tick(&mut self, exhausted: Exhausted) {
        self.tell(&Command::Tick { exhausted }).unwrap();
    }
}

#[test]
fn a_candidate_that_its_quorum_approves_is_final() {
    let mut driven = Driven::new(terms(2));
    let token = driven.claim(Role::Propose, "a", None).unwrap();
    assert_eq!(driven.task.phase, Phase::Claimed);
    driven.propose(token, "d1").unwrap();
    assert_eq!(driven.task.phase, Phase::Proposed);
    for (voter, status) in [("b", Status::Passed), ("c", Status::Passed), ("d", Status::Failed)] {
        let token = driven.claim(Role::Verify, voter, Some("cand-1")).unwrap();
        driven.vote(token, status).unwrap();
    }
    assert_eq!(driven.task.phase, Phase::Verifying);
    driven.reveal_all();
    assert_eq!(driven.task.phase, Phase::Committed);
    let token = driven.claim(Role::Finalize, "node", Some("cand-1")).unwrap();
    driven.tell(&Command::Finalize { token }).unwrap();
    assert_eq!(driven.task.end, Some(End::Finalized { candidate: "cand-1".to_owned() }));
    let late = driven.tell(&Command::Cancel { reason: "late".to_owned() });
    assert_eq!(late, Err(Refusal::Over(Phase::Finalized)));
}

#[test]
fn nobody_verifies_what_it_proposed() {
    let mut driven = Driven::new(terms(1));
    for proposer in ["a", "b"] {
        let token = driven.claim(Role::Propose, proposer, None).unwrap();
        // Equal outputs are one candidate, and both are its proposers.
        driven.propose(token, "same").unwrap();
    }
    assert_eq!(driven.task.proposals.len(), 1);
    for proposer in ["a", "b"] {
        let refused = driven.claim(Role::Verify, proposer, Some("cand-1"));
        assert_eq!(refused, Err(Refusal::OwnCandidate(proposer.to_owned())));
    }
    driven.claim(Role::Verify, "c", Some("cand-1")).unwrap();
}

#[test]
fn a_late_writer_is_refused_and_its_work_is_taken_over() {
    let mut driven = Driven::new(terms(1));
    let slow = driven.claim(Role::Propose, "a", None).unwrap();
    driven.now = 1_500;
    let other = driven.claim(Role::Propose, "b", None).unwrap();
    assert_eq!(driven.propose(slow, "d1"), Err(Refusal::NotHeld(slow)));
    driven.propose(other, "d2").unwrap();
    assert_eq!(driven.task.proposals.len(), 1);
}

#[test]
fn no_vote_is_seen_before_the_last_one_is_committed() {
    let mut driven = Driven::new(terms(2));
    let token = driven.claim(Role::Propose, "a", None).unwrap();
    driven.propose(token, "d1").unwrap();
    let token = driven.claim(Role::Verify, "b", Some("cand-1")).unwrap();
    driven.vote(token, Status::Passed).unwrap();
    assert_eq!(driven.reveal("cand-1", "b"), Err(Refusal::NotRevealing("yet")));
    driven.tick(Exhausted { proposers: false, verifiers: true });
    let late = driven.claim(Role::Verify, "c", Some("cand-1"));
    assert_eq!(late, Err(Refusal::NoCandidate("cand-1".to_owned())));
    driven.reveal("cand-1", "b").unwrap();
}

#[test]
fn a_vote_that_is_not_what_was_committed_is_forfeited() {
    let mut driven = Driven::new(terms(1));
    let token = driven.claim(Role::Propose, "a", None).unwrap();
    driven.propose(token, "d1").unwrap();
    let token = driven.claim(Role::Verify, "b", Some("cand-1")).unwrap();
    driven.vote(token, Status::Failed).unwrap();
    driven.tick(Exhausted { proposers: true, verifiers: true });
    let key = ("cand-1".to_owned(), "b".to_owned());
    driven.salts.get_mut(&key).unwrap().0 = ballot(Status::Passed);
    driven.reveal("cand-1", "b").unwrap();
    assert!(driven.events.iter().any(|event| event.name() == "VOTE_FORFEITED"));
    assert_ne!(driven.task.phase, Phase::Committed);
}

#[test]
fn a_budget_is_never_exceeded_and_its_end_is_an_end() {
    let mut narrow = terms(1);
    narrow.budget.explore = 1;
    let mut driven = Driven::new(narrow);
    let token = driven.claim(Role::Propose, "a", None).unwrap();
    driven.tell(&Command::Release { token, reason: "it crashed".to_owned() }).unwrap();
    assert_eq!(driven.claim(Role::Propose, "b", None), Err(Refusal::Over(Phase::Failed)));
    let reason = "no executor proposed a candidate".to_owned();
    assert_eq!(driven.task.end, Some(End::Failed { reason }));
}

#[test]
fn a_task_expires_by_itself() {
    let mut driven = Driven::new(terms(1));
    driven.claim(Role::Propose, "a", None).unwrap();
    assert_eq!(driven.task.wakes_at(), Some(at(1_000)));
    driven.now = 20_000;
    driven.tick(Exhausted::default());
    let reason = "its budget of time is used up".to_owned();
    assert_eq!(driven.task.end, Some(End::Expired { reason }));
    assert_eq!(driven.task.wakes_at(), None);
    assert_eq!(needs(&driven.task, at(driven.now)), []);
}

#[test]
fn terms_that_cannot_be_kept_are_named() {
    let mut wrong = terms(2);
    wrong.quorum = 5;
    wrong.budget.verify = 1;
    wrong.budget.cost_units = 3;
    wrong.expires_at = at(0);
    let fields: BTreeSet<&str> = wrong.check(at(1)).iter().map(|error| error.field).collect();
    let expected = [
        "acceptance.quorum_threshold",
        "budget.cost_units",
        "budget.verify_cost_units",
        "expiry_ms",
    ];
    assert_eq!(fields, BTreeSet::from(expected));
    assert_eq!(terms(2).check(at(1)), []);
}

/// What a random walk does next.
#[derive(Debug, Clone)]
enum Step {
    Claim(u8, u8),
    Propose(u8, u8),
    Vote(u8, u8),
    Reveal(u8),
    WrongReveal(u8),
    Release(u8),
    Renew(u8),
    Finalize(u8),
    Wait(u16),
    Tick(bool, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..8_u8, 0..6_u8).prop_map(|(role, holder)| Step::Claim(role, holder)),
        4 => (any::<u8>(), 0..3_u8).prop_map(|(claim, digest)| Step::Propose(claim, digest)),
        6 => (any::<u8>(), 0..3_u8).prop_map(|(claim, status)| Step::Vote(claim, status)),
        6 => any::<u8>().prop_map(Step::Reveal),
        1 => any::<u8>().prop_map(Step::WrongReveal),
        1 => any::<u8>().prop_map(Step::Release),
        1 => any::<u8>().prop_map(Step::Renew),
        3 => any::<u8>().prop_map(Step::Finalize),
        2 => (0..900_u16).prop_map(Step::Wait),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(p, v)| Step::Tick(p, v)),
    ];
    prop::collection::vec(step, 1..120)
}

/// Any token that was ever given out, so that late writers are among them.
fn token_of(driven: &Driven, pick: u8) -> u64 {
    1 + u64::from(pick) % driven.task.last_token.max(1)
}

fn walk(driven: &mut Driven, step: &Step) {
    const STATUSES: [Status; 3] = [Status::Passed, Status::Failed, Status::Inconclusive];
    match step {
        Step::Claim(role, holder) => {
            let holder = format!("e{holder}");
            let candidates: Vec<String> =
                driven.task.proposals.iter().map(|it| it.id.clone()).collect();
            let picked = candidates.get(usize::from(*role) % candidates.len().max(1)).cloned();
            match role % 4 {
                0 => driven.claim(Role::Propose, &holder, None).ok(),
                3 => driven.claim(Role::Finalize, &holder, picked.as_deref()).ok(),
                _ => driven.claim(Role::Verify, &holder, picked.as_deref()).ok(),
            };
        }
        Step::Propose(pick, digest) => {
            driven.propose(token_of(driven, *pick), &format!("d{digest}")).ok();
        }
        Step::Vote(pick, status) => {
            let token = token_of(driven, *pick);
            let is_verify =
                driven.task.claims.get(&token).is_some_and(|claim| claim.role == Role::Verify);
            if is_verify {
                driven.vote(token, STATUSES[usize::from(*status)]).ok();
            }
        }
        Step::Reveal(pick) | Step::WrongReveal(pick) => {
            let keys: Vec<(String, String)> = driven.salts.keys().cloned().collect();
            let Some(key) = keys.get(usize::from(*pick) % keys.len().max(1)) else { return };
            if matches!(step, Step::WrongReveal(_)) {
                "another".clone_into(&mut driven.salts.get_mut(key).unwrap().1);
            }
            driven.reveal(&key.0, &key.1).ok();
        }
        Step::Release(pick) => {
            let token = token_of(driven, *pick);
            driven.tell(&Command::Release { token, reason: "gave up".to_owned() }).ok();
        }
        Step::Renew(pick) => {
            let (token, until) = (token_of(driven, *pick), at(driven.now + 1_000));
            driven.tell(&Command::Renew { token, until }).ok();
        }
        Step::Finalize(pick) => {
            driven.tell(&Command::Finalize { token: token_of(driven, *pick) }).ok();
        }
        Step::Wait(millis) => driven.now += u64::from(*millis),
        Step::Tick(proposers, verifiers) => {
            driven.tick(Exhausted { proposers: *proposers, verifiers: *verifiers });
        }
    }
}

/// What no sequence of commands may break.
fn assert_kept(driven: &Driven) {
    let Task { terms, spent, .. } = &driven.task;
    let budget = &terms.budget;
    assert!(spent.steps <= budget.max_steps && spent.explore <= budget.explore);
    assert!(spent.verify <= budget.verify && spent.finalize <= budget.finalize);
    let named = |name: &str| driven.events.iter().filter(|it| it.name() == name).count();
    assert!(named("DECISION_FINALIZED") <= 1);
    let ends = driven.events.iter().filter(|it| matches!(it, Event::Ended { .. })).count();
    assert_eq!(ends, usize::from(driven.task.phase.is_over()));
    let mut counted = BTreeSet::new();
    let mut voters = BTreeMap::new();
    for event in &driven.events {
        match event {
            // Anew, with new votes.
            Event::VerificationRepeated { candidate } => {
                counted.retain(|(of, _): &(String, String)| of != candidate);
            }
            Event::VoteRevealed { candidate, voter, .. } => {
                let key = (candidate.clone(), voter.clone());
                assert!(counted.insert(key), "{voter} is counted twice");
                *voters.entry(candidate.clone()).or_insert(0_u32) += 1;
            }
            Event::Created { .. }
            | Event::Claimed { .. }
            | Event::Renewed { .. }
            | Event::Released { .. }
            | Event::Charged { .. }
            | Event::Proposed { .. }
            | Event::EvidenceSeen { .. }
            | Event::VoteCommitted { .. }
            | Event::RevealOpened { .. }
            | Event::VoteForfeited { .. }
            | Event::Committed { .. }
            | Event::Rejected { .. }
            | Event::Undecided { .. }
            | Event::RetryScheduled { .. }
            | Event::Ended { .. } => {}
        }
    }
    if let Some(End::Finalized { candidate }) = &driven.task.end {
        assert!(terms.quorum <= voters.get(candidate).copied().unwrap_or(0));
        let proposal = driven.task.proposal(candidate).unwrap();
        assert!(proposal.votes.keys().all(|voter| !proposal.proposers.contains(voter)));
    }
}

proptest! {
    #[test]
    fn whatever_is_commanded_the_contract_is_kept(steps in steps(), quorum in 1..4_u32) {
        let mut driven = Driven::new(terms(quorum));
        for step in &steps {
            walk(&mut driven, step);
        }
        assert_kept(&driven);
        // The events alone make the same task.
        let mut again = Task::created("t1", terms(quorum), at(0));
        for event in &driven.events {
            again.apply(event, at(0));
        }
        prop_assert_eq!(again.phase, driven.task.phase);
        prop_assert_eq!(again.spent, driven.task.spent);
        // And it is never open for ever.
        driven.now += 40_000;
        driven.tick(Exhausted::default());
        prop_assert!(driven.task.phase.is_over());
    }
}

//! Tasks under random commands of honest and hostile workers: the contract holds in every order.

use jurat_core::{
    policy::EvaluationStatus,
    task::{
        Ballot, BudgetRenewal, DecisionMode, ExhaustedRoles, LeaseRelease, Task, TaskCommand,
        TaskEvent, TaskLease, TaskNeed, TaskRefusal, TaskRole, TaskTerms, VoteAggregation, needs,
    },
};
use proptest::prelude::*;

use super::{
    driven::{Driven, at, ballot, terms},
    oracle::Oracle,
};

const STATUSES: [EvaluationStatus; 4] = [
    EvaluationStatus::Passed,
    EvaluationStatus::Failed,
    EvaluationStatus::Inconclusive,
    EvaluationStatus::Passed,
];

/// The next action of a random walk. Numbers pick among the options.
#[derive(Debug, Clone)]
enum Step {
    /// Does the work that is needed, as an honest node would.
    Work(u8, u8),
    /// Takes a lease, whether or not it is needed.
    Claim(u8, u8, u8),
    Propose(u8, u8),
    Vote(u8, u8),
    Reveal(u8),
    /// Reveals another ballot, or uses another salt.
    WrongReveal(u8, u8),
    Accuse(u8, u8),
    Release(u8, u8),
    Renew(u8, u16),
    Finalize(u8),
    Reuse(u8, u8),
    Complain(u8),
    NextEpoch,
    Cancel,
    Wait(u16),
    Tick(bool, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let byte = any::<u8>;
    prop_oneof![
        20 => (byte(), byte()).prop_map(|(who, what)| Step::Work(who, what)),
        4 => (byte(), byte(), byte()).prop_map(|(role, who, on)| Step::Claim(role, who, on)),
        3 => (byte(), byte()).prop_map(|(token, digest)| Step::Propose(token, digest)),
        3 => (byte(), byte()).prop_map(|(token, status)| Step::Vote(token, status)),
        3 => byte().prop_map(Step::Reveal),
        1 => (byte(), byte()).prop_map(|(vote, how)| Step::WrongReveal(vote, how)),
        2 => (byte(), byte()).prop_map(|(vote, how)| Step::Accuse(vote, how)),
        2 => (byte(), byte()).prop_map(|(token, why)| Step::Release(token, why)),
        1 => (byte(), any::<u16>()).prop_map(|(token, until)| Step::Renew(token, until)),
        2 => byte().prop_map(Step::Finalize),
        4 => (byte(), byte()).prop_map(|(digest, by)| Step::Reuse(digest, by)),
        1 => byte().prop_map(Step::Complain),
        2 => Just(Step::NextEpoch),
        1 => prop::bool::weighted(0.05).prop_map(|it| if it { Step::Cancel } else { Step::Wait(1) }),
        4 => (0..1_500_u16).prop_map(Step::Wait),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(p, v)| Step::Tick(p, v)),
    ]
}

/// Valid terms that are narrow enough to reach their limits.
fn any_terms() -> impl Strategy<Value = TaskTerms> {
    let counts = (1..4_u32, 0..3_u32, 1..4_u32, 1..3_u32, 1..3_u32, 0..3_u32);
    let budget = (0..4_u64, 0..6_u64, 1..3_u64, 0..8_u32, 1..6_u64);
    let rest = (0..3_usize, any::<bool>(), 0..3_u32, 0..3_u32, 1..4_u32);
    let times = (2_000..20_000_u64, 100..2_000_u64);
    (counts, budget, rest, times).prop_map(|(counts, budget, rest, times)| {
        let (quorum, spare, max_proposers, topk, at_once, da_quorum) = counts;
        let (explore, verify, finalize, steps, reuse) = budget;
        let (aggregation, is_continuous, max_repeats, max_retries, rounds) = rest;
        let max_verifiers = quorum + spare;
        let mut terms = TaskTerms {
            quorum,
            max_verifiers,
            max_proposers,
            topk,
            propose_at_once: at_once,
            verify_at_once: at_once + 1,
            max_finalizers: at_once,
            no_new_evidence_rounds: rounds,
            da_quorum: da_quorum.min(max_verifiers),
            aggregation: VoteAggregation::ALL[aggregation],
            max_repeats,
            max_retries,
            ..terms()
        };
        let verdicts = terms.quorum.max(terms.da_quorum);
        terms.budget.explore = 1 + explore;
        terms.budget.verify = u64::from(verdicts) + verify;
        terms.budget.finalize = finalize;
        terms.budget.max_steps = 1 + verdicts + steps;
        terms.budget.reuse_verify_cost_units = reuse;
        (terms.budget.time_ms, terms.budget.reuse_verify_time_ms) = times;
        if is_continuous {
            terms.mode = DecisionMode::Continuous;
            terms.budget.renewal = BudgetRenewal::EpochRenew;
        }
        assert_eq!(terms.check(at(0)), []);
        terms
    })
}

fn proposal(token: u64, digest: u8) -> TaskCommand {
    let is_odd = digest.is_multiple_of(16);
    let digest = format!("d{}", digest % 4);
    TaskCommand::Propose {
        token,
        candidate: if is_odd { "c-d0".to_owned() } else { format!("c-{digest}") },
        digest,
        evidence: vec!["x1".to_owned()],
        round_id: "round".to_owned(),
    }
}

/// Everybody except those who alone may do something.
fn others_than(only: Option<Vec<String>>) -> Vec<String> {
    let all = (0..6).map(|it| format!("e{it}"));
    only.map(|only| all.filter(|it| !only.contains(it)).collect()).unwrap_or_default()
}

/// A task and the oracle that watches it.
struct Walk {
    driven: Driven,
    oracle: Oracle,
    read: usize,
    /// The task rebuilt from the events alone.
    replayed: Task,
}

impl Walk {
    fn new(terms: TaskTerms) -> Self {
        let driven = Driven::new(terms.clone());
        let replayed = driven.replayed();
        Self { driven, oracle: Oracle::new(terms), read: 0, replayed }
    }

    fn tell(&mut self, command: &TaskCommand) -> Result<Vec<TaskEvent>, TaskRefusal> {
        let found = self.driven.tell(command);
        if found.is_ok() {
            self.oracle.accepted(command, at(self.driven.now));
        }
        self.read_on();
        found
    }

    /// Shows the oracle the new events.
    fn read_on(&mut self) {
        for (event, at) in &self.driven.events[self.read..] {
            if let TaskEvent::VoteRevealed { candidate, voter, ballot } = event {
                let (secret, _) = &self.driven.secret[&(candidate.clone(), voter.clone())];
                assert_eq!(secret, ballot, "another ballot than was committed");
            }
            self.oracle.read(event, *at);
            self.replayed.apply(event, *at);
        }
        self.read = self.driven.events.len();
    }

    /// Any token that was issued, or the next ones, so that late writers are included.
    fn token(&self, pick: u8) -> u64 {
        u64::from(pick) % (self.driven.task.last_token + 2)
    }

    fn candidate(&self, pick: u8) -> String {
        let proposals = &self.driven.task.proposals;
        let picked = proposals.get(usize::from(pick) % (proposals.len() + 1));
        picked.map_or_else(|| "c-none".to_owned(), |it| it.id.clone())
    }

    fn secret(&self, pick: u8) -> Option<(String, String)> {
        let keys: Vec<&(String, String)> = self.driven.secret.keys().collect();
        keys.get(usize::from(pick) % keys.len().max(1)).map(|key| (*key).clone())
    }

    /// Each key is shared by two executors.
    fn claim(&self, role: TaskRole, who: u8, candidate: Option<&str>) -> TaskLease {
        let base = self.driven.claim_of(role, &format!("e{}", who % 6), candidate);
        let pool_keys = 1 + u32::from(who) % 4;
        TaskLease { independence: format!("k{}", who % 3), pool_keys, ..base }
    }

    fn vote(&mut self, token: u64, status: EvaluationStatus) {
        let ballot = ballot(status, 0.6);
        let command_time = at(self.driven.now);
        let evidence = ["x1".to_owned()];
        let held = self.driven.task.claims.get(&token).cloned();
        if self.driven.vote(token, ballot, &evidence).is_ok() {
            let is_held =
                held.is_some_and(|it| it.role == TaskRole::Verify && command_time < it.until);
            assert!(is_held, "a vote was taken with a token that does not hold");
        }
        self.read_on();
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Work(who, what) => self.work(*who, *what),
            Step::Vote(token, status) => {
                self.vote(self.token(*token), STATUSES[usize::from(*status % 3)]);
            }
            Step::Wait(millis) => self.driven.now += u64::from(*millis),
            Step::Claim(..)
            | Step::Propose(..)
            | Step::Reveal(..)
            | Step::WrongReveal(..)
            | Step::Accuse(..)
            | Step::Release(..)
            | Step::Renew(..)
            | Step::Finalize(..)
            | Step::Reuse(..)
            | Step::Complain(..)
            | Step::NextEpoch
            | Step::Cancel
            | Step::Tick(..) => {
                let Some(command) = self.command(step) else { return };
                self.tell(&command).ok();
            }
        }
    }

    fn command(&self, step: &Step) -> Option<TaskCommand> {
        Some(match step {
            Step::Claim(role, who, on) => {
                let candidate = self.candidate(*on);
                let role = TaskRole::ALL[usize::from(*role) % 3];
                let of = (role != TaskRole::Propose).then_some(candidate.as_str());
                let claim = self.claim(role, *who, of);
                let old = u64::from(on.is_multiple_of(8));
                TaskCommand::TakeLease { token: self.driven.task.last_token + 1 - old, claim }
            }
            Step::Propose(token, digest) => proposal(self.token(*token), *digest),
            Step::Reveal(pick) => self.reveal(*pick, None)?,
            Step::WrongReveal(pick, how) => self.reveal(*pick, Some(*how))?,
            Step::Accuse(pick, how) => self.accusation(*pick, *how)?,
            Step::Release(token, why) => {
                let detail = "it was so".to_owned();
                let reason = match why % 3 {
                    0 => LeaseRelease::GivenUp { detail },
                    1 => LeaseRelease::NodeFailed { code: "internal".to_owned(), detail },
                    _ => LeaseRelease::Failed { code: "timeout".to_owned(), detail },
                };
                TaskCommand::Release { token: self.token(*token), reason }
            }
            Step::Renew(token, until) => TaskCommand::Renew {
                token: self.token(*token),
                until: at(self.driven.now + u64::from(*until)),
            },
            Step::Finalize(token) => TaskCommand::Finalize { token: self.token(*token) },
            Step::Reuse(digest, by) => TaskCommand::Reuse {
                source: "knowledge:t0#1".to_owned(),
                candidate: format!("c-d{}", digest % 4),
                digest: format!("d{}", digest % 4),
                evidence: Vec::new(),
                proposers: vec![format!("e{}", by % 6)],
            },
            Step::Complain(epoch) => TaskCommand::Complain {
                epoch: u64::from(epoch % 4),
                reason: "wrong".to_owned(),
                signed: None,
            },
            Step::NextEpoch => TaskCommand::NextEpoch,
            Step::Cancel => TaskCommand::Cancel { reason: "not wanted".to_owned() },
            Step::Tick(proposers, verifiers) => {
                let exhausted = ExhaustedRoles { proposers: *proposers, verifiers: *verifiers };
                TaskCommand::Tick { exhausted }
            }
            Step::Work(..) | Step::Vote(..) | Step::Wait(..) => return None,
        })
    }

    /// Accuses a voter, mostly of something that can be proven.
    fn accusation(&self, pick: u8, how: u8) -> Option<TaskCommand> {
        let (candidate, voter) = self.secret(pick)?;
        let task = &self.driven.task;
        let vote = task.proposal(&candidate).and_then(|it| it.votes.get(&voter));
        let turn = vote.map_or(1, |it| it.turn) + u32::from(how.is_multiple_of(8));
        let (secret, _) = &self.driven.secret[&(candidate.clone(), voter.clone())];
        let other = format!("sha256:{}", STATUSES[usize::from(how % 4)].as_str());
        let verdicts = (secret.verdict_digest.clone(), other);
        Some(TaskCommand::Accuse { candidate, voter, turn, verdicts })
    }

    fn reveal(&self, pick: u8, wrong: Option<u8>) -> Option<TaskCommand> {
        let (candidate, voter) = self.secret(pick)?;
        let (mut ballot, mut salt) =
            self.driven.secret[&(candidate.clone(), voter.clone())].clone();
        match wrong.map(|how| how % 4) {
            None => {}
            Some(0) => "another".clone_into(&mut salt),
            Some(1) => ballot.score = f64::NAN,
            Some(2) => ballot.status = EvaluationStatus::Passed,
            Some(_) => {
                ballot = Ballot { verdict_digest: "sha256:other".to_owned(), ..ballot };
            }
        }
        Some(TaskCommand::Reveal { candidate, voter, ballot, salt })
    }

    /// Does the needed work. No such command is refused: a requested lease can be taken.
    fn work(&mut self, who: u8, what: u8) {
        self.driven.tick(false, false);
        self.read_on();
        let now = at(self.driven.now);
        let Some(need) = needs(&self.driven.task, now).into_iter().next() else {
            return self.go_on(what);
        };
        let before = self.read;
        self.do_what(need, who);
        if before == self.read {
            // Nobody is left for it, and the leases in progress may decide without.
            self.go_on(what);
        }
    }

    /// Ends the work in progress.
    fn go_on(&mut self, what: u8) {
        let status = STATUSES[usize::from(what % 4)];
        let claims = self.driven.task.claims.clone();
        let Some((token, claim)) = claims.iter().next() else { return };
        self.finish(*token, claim, status, what);
    }

    fn do_what(&mut self, need: TaskNeed, who: u8) {
        match need {
            TaskNeed::Proposals { count, mut without, only } => {
                without.extend(others_than(only));
                for _ in 0..count {
                    without.extend(self.take(TaskRole::Propose, who, (None, &without)));
                }
            }
            TaskNeed::Verdicts { candidate, count, mut without, only, .. } => {
                without.extend(others_than(only));
                for _ in 0..count {
                    without.extend(self.take(TaskRole::Verify, who, (Some(&candidate), &without)));
                }
            }
            TaskNeed::Reveals { candidate, voters } => {
                assert!(!voters.is_empty());
                let found = self.driven.reveal(&candidate, &voters[0]);
                assert!(found.is_ok(), "a reveal that is asked for is refused: {found:?}");
                self.read_on();
            }
            TaskNeed::Final { candidate } => {
                self.take(TaskRole::Finalize, who, (Some(&candidate), &[]));
            }
        }
    }

    /// Takes a lease for a free executor, or reports that there is none.
    fn take(
        &mut self,
        role: TaskRole,
        who: u8,
        (candidate, without): (Option<&str>, &[String]),
    ) -> Option<String> {
        let mut picks = (0..6).map(|shift| who.wrapping_add(shift));
        let free = picks.find(|it| !without.contains(&format!("e{}", it % 6)));
        let Some(who) = free else {
            let (proposers, verifiers) = (role == TaskRole::Propose, role == TaskRole::Verify);
            self.driven.tick(proposers, verifiers);
            self.read_on();
            return None;
        };
        let claim = self.claim(role, who, candidate);
        let token = self.driven.task.last_token + 1;
        let found = self.tell(&TaskCommand::TakeLease { token, claim });
        assert!(found.is_ok(), "what is asked for is refused: {role} by e{}: {found:?}", who % 6);
        Some(format!("e{}", who % 6))
    }

    fn finish(&mut self, token: u64, claim: &TaskLease, status: EvaluationStatus, what: u8) {
        match claim.role {
            TaskRole::Propose => {
                let command = proposal(token, 1 + what % 8);
                self.tell(&command).ok();
            }
            TaskRole::Verify => self.vote(token, status),
            TaskRole::Finalize => {
                self.tell(&TaskCommand::Finalize { token }).unwrap();
            }
        }
    }

    /// The invariants of the state itself.
    fn assert_kept(&self) {
        let task = &self.driven.task;
        assert_eq!(self.replayed, *task, "the events make another task");
        let written = serde_json::to_string(task).unwrap();
        assert_eq!(serde_json::from_str::<Task>(&written).unwrap(), *task, "written otherwise");
        for proposal in &task.proposals {
            let mut own = proposal.votes.keys().filter(|it| proposal.proposers.contains(*it));
            assert_eq!(own.next(), None, "a proposer has a vote on its own candidate");
            let most = usize::try_from(task.terms.max_verifiers).unwrap();
            assert!(proposal.votes.len() <= most, "more votes than the contract allows");
            assert!(proposal.repeats <= task.terms.max_repeats, "verified anew too often");
        }
        assert!(task.retries <= task.terms.max_retries, "tried anew too often");
        assert!(task.reuses <= task.terms.budget.reuse_max_attempts, "reused too often");
        let fresh = task.proposals.iter().filter(|it| it.source.is_none()).count();
        let most = usize::try_from(task.terms.topk).unwrap();
        assert!(fresh <= most, "more candidates than the contract allows");
    }

    /// The clock alone ends the task at its deadline, and settles its decisions.
    fn assert_ends(mut self) {
        let deadline = self.driven.task.deadline().max(at(self.driven.now));
        for _ in 0..1_000 {
            let Some(wakes) = self.driven.task.wakes_at() else { break };
            if !self.driven.task.is_over() {
                assert!(wakes <= self.driven.task.terms.expires_at, "it wakes after its end");
            }
            let next = u64::try_from(wakes.millis()).unwrap();
            self.driven.now = self.driven.now.max(next);
            let before = self.driven.task.clone();
            self.driven.tick(false, false);
            self.read_on();
            if before == self.driven.task {
                // A wait is over, and no worker comes.
                self.driven.now += 1_000;
            }
            let is_late = deadline.plus_millis(1_000) < at(self.driven.now);
            assert!(self.driven.task.is_over() || !is_late, "open after its deadline");
        }
        assert!(self.driven.task.is_over(), "open for ever");
        assert_eq!(self.driven.task.wakes_at(), None, "something is left to happen");
        assert_eq!(needs(&self.driven.task, at(self.driven.now)), []);
    }
}

proptest! {
    #[test]
    fn the_contract_holds_under_any_commands(
        terms in any_terms(),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut walk = Walk::new(terms);
        for step in &steps {
            let before = walk.read;
            walk.step(step);
            if before != walk.read {
                walk.assert_kept();
            }
        }
        walk.assert_ends();
    }

    #[test]
    fn honest_executors_finish_without_the_clock(
        terms in any_terms(),
        steps in prop::collection::vec(any::<(u8, u8)>(), 400),
    ) {
        let mut walk = Walk::new(terms);
        for (who, what) in steps {
            if walk.driven.task.is_over() || walk.driven.task.is_waiting() {
                break;
            }
            let before = walk.driven.events.len();
            walk.work(who, what);
            if before == walk.driven.events.len() {
                // Only a wait keeps the executors from working.
                let wakes = walk.driven.task.wakes_at().unwrap();
                let now = u64::try_from(wakes.millis()).unwrap();
                prop_assert!(walk.driven.now < now, "nothing is done and nothing is waited for");
                walk.driven.now = now;
            }
        }
        prop_assert!(walk.driven.task.is_over() || walk.driven.task.is_waiting());
        let is_expired = walk.driven.events.iter().any(|(it, _)| it.name() == "TASK_EXPIRED");
        prop_assert!(!is_expired, "the panel did all, and the clock ended it");
    }
}

//! A task that is driven as the engine does, with all its events.

use std::collections::BTreeMap;

use jurat_core::{
    policy::EvaluationStatus,
    task::{
        Ballot, Budget, BudgetRenewal, DecisionMode, ExhaustedRoles, Task, TaskCommand, TaskEvent,
        TaskLease, TaskRefusal, TaskRole, TaskTerms, VoteAggregation, VoterReliability, commitment,
        decide,
    },
    time::Timestamp,
};

pub(super) fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(i64::try_from(millis).unwrap())
}

/// Terms that suit most stories.
pub(super) fn terms() -> TaskTerms {
    TaskTerms {
        mode: DecisionMode::OneShot,
        lease_ms: 1_000,
        propose_at_once: 2,
        verify_at_once: 3,
        max_proposers: 1,
        topk: 3,
        no_new_evidence_rounds: 2,
        max_verifiers: 3,
        max_finalizers: 1,
        quorum: 2,
        da_quorum: 0,
        reveal_ms: 500,
        max_repeats: 1,
        max_retries: 1,
        backoff_ms: 200,
        aggregation: VoteAggregation::Quorum,
        budget: Budget {
            time_ms: 20_000,
            max_steps: 20,
            cost_units: 30,
            explore: 6,
            verify: 12,
            finalize: 2,
            reuse_verify_time_ms: 5_000,
            reuse_verify_cost_units: 6,
            reuse_max_attempts: 2,
            renewal: BudgetRenewal::Lifetime,
        },
        window_ms: 1_000,
        expires_at: at(30_000),
    }
}

pub(super) fn ballot(status: EvaluationStatus, score: f64) -> Ballot {
    let verdict_digest = format!("sha256:{}", status.as_str());
    Ballot { status, score, reason_codes: Vec::new(), verdict_digest, available: Vec::new() }
}

/// The secret votes that a node keeps until the reveal, by candidate and voter.
pub(super) type SecretVotes = BTreeMap<(String, String), (Ballot, String)>;

#[derive(Debug)]
pub(super) struct Driven {
    pub(super) task: Task,
    pub(super) events: Vec<(TaskEvent, Timestamp)>,
    pub(super) now: u64,
    pub(super) secret: SecretVotes,
    pub(super) known: VoterReliability,
}

impl Driven {
    pub(super) fn new(terms: TaskTerms) -> Self {
        let created = TaskEvent::Created { terms: Box::new(terms.clone()) };
        Self {
            task: Task::created("t1", terms, at(0)),
            events: vec![(created, at(0))],
            now: 0,
            secret: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    pub(super) fn tell(&mut self, command: &TaskCommand) -> Result<Vec<TaskEvent>, TaskRefusal> {
        let now = at(self.now);
        let events = decide(&self.task, command, now, &self.known)?;
        for event in &events {
            self.task.apply(event, now);
            self.events.push((event.clone(), now));
        }
        Ok(events)
    }

    /// Takes a lease with the next token. The independence key of a holder is its name, unless one
    /// is given after a slash, and the pool has as many keys as could be needed.
    pub(super) fn claim(
        &mut self,
        role: TaskRole,
        holder: &str,
        candidate: Option<&str>,
    ) -> Result<u64, TaskRefusal> {
        let token = self.task.last_token + 1;
        let claim = self.claim_of(role, holder, candidate);
        self.tell(&TaskCommand::TakeLease { token, claim }).map(|_| token)
    }

    pub(super) fn claim_of(
        &self,
        role: TaskRole,
        holder: &str,
        candidate: Option<&str>,
    ) -> TaskLease {
        let token = self.task.last_token + 1;
        let resumed = self.task.resumable(role, holder, candidate);
        TaskLease {
            role,
            holder: holder.to_owned(),
            node: "node-1".to_owned(),
            independence: holder.to_owned(),
            pool_keys: 64,
            execution_id: resumed.map_or_else(|| format!("exec-{token}"), str::to_owned),
            candidate: candidate.map(str::to_owned),
            until: at(self.now + self.task.terms.lease_ms),
        }
    }

    pub(super) fn propose_with(
        &mut self,
        token: u64,
        digest: &str,
        evidence: &[String],
    ) -> Result<Vec<TaskEvent>, TaskRefusal> {
        self.tell(&TaskCommand::Propose {
            token,
            candidate: format!("c-{digest}"),
            digest: digest.to_owned(),
            evidence: evidence.to_vec(),
            round_id: format!("round-{token}"),
        })
    }

    pub(super) fn vote(
        &mut self,
        token: u64,
        ballot: Ballot,
        available: &[String],
    ) -> Result<Vec<TaskEvent>, TaskRefusal> {
        let ballot = Ballot { available: available.to_vec(), ..ballot };
        let claim = self.task.claims.get(&token).cloned();
        let (candidate, voter) =
            claim.map_or_else(Default::default, |it| (it.candidate.unwrap_or_default(), it.holder));
        let salt = format!("salt-{token}");
        let commitment = commitment(self.task.vote_context(&candidate, &voter), &ballot, &salt);
        let events = self.tell(&TaskCommand::CommitVote {
            token,
            commitment,
            round_id: format!("round-{token}"),
        })?;
        self.secret.insert((candidate, voter), (ballot, salt));
        Ok(events)
    }

    pub(super) fn reveal(
        &mut self,
        candidate: &str,
        voter: &str,
    ) -> Result<Vec<TaskEvent>, TaskRefusal> {
        let (candidate, voter) = (candidate.to_owned(), voter.to_owned());
        let secret = self.secret.get(&(candidate.clone(), voter.clone())).cloned();
        let (ballot, salt) =
            secret.unwrap_or_else(|| (ballot(EvaluationStatus::Passed, 0.9), String::new()));
        self.tell(&TaskCommand::Reveal { candidate, voter, ballot, salt })
    }

    pub(super) fn tick(&mut self, proposers: bool, verifiers: bool) -> Vec<TaskEvent> {
        self.tell(&TaskCommand::Tick { exhausted: ExhaustedRoles { proposers, verifiers } })
            .unwrap()
    }

    /// The task rebuilt from the events alone.
    pub(super) fn replayed(&self) -> Task {
        let mut task = Task::created(&self.task.id, self.task.terms.clone(), at(0));
        for (event, at) in &self.events {
            task.apply(event, *at);
        }
        task
    }
}

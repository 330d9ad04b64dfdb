//! One driver's pass over a task: its knowledge, its leases, and its waits.

use std::{mem, time::Duration};

use futures::FutureExt as _;
use jurat_core::{
    canonical::digest_json,
    round::replica::FailureCode,
    task::{
        ExhaustedRoles, LeaseRelease, Task, TaskCommand, TaskKey, TaskLease, TaskNeed, TaskRole,
        VoterReliability, needs,
    },
    time::Timestamp,
};

use super::{
    calls_in_flight::TaskCallsInFlight,
    choose,
    worker_answer::{FinishedTaskCall, LateVerdict, WorkerAnswer},
    worker_call,
    worker_search::WorkerSearch,
};
use crate::{
    TaskCallFailure,
    pauses::Pauses,
    tasks::{
        DriverContext, DriverExit, DriverSignals, NewCandidate, PriorDecision, SecretBallot,
        TaskPortError, TaskSnapshot, TaskStorePort, TaskWorker, TaskWriteOutcome, WorkerFailure,
        WorkerPort,
        draft::{PendingLease, TaskDraft},
    },
};

/// How many leases with an unknown write are remembered.
const MOST_UNSURE: usize = 16;
/// How long a write waits to learn who can work, which is mostly known immediately.
const PROMPT: Duration = Duration::from_millis(50);

/// What the store holds besides the task itself, for one pass.
#[derive(Default)]
struct TaskLookup {
    /// Ballots to reveal.
    ballots: Vec<SecretBallot>,
    /// Accusations of voters that gave two verdicts, as commands.
    accusations: Vec<TaskCommand>,
    remembered: Vec<PriorDecision>,
}

pub(crate) struct TaskDriver<'a, D, H> {
    context: &'a DriverContext<'a, D, H>,
    key: &'a TaskKey,
    snapshot: TaskSnapshot,
    /// Whether others may have written since.
    is_stale: bool,
    /// How often each voter is right, as it was last known.
    weigher: VoterReliability,
    /// Those who could work when they were last looked for.
    workers: Vec<TaskWorker>,
    search: WorkerSearch<'a>,
    calls: TaskCallsInFlight<'a>,
    /// Leases that may be recorded: the store did not answer.
    unsure: Vec<PendingLease>,
    /// Verdicts with lost leases, as long as their voters may give another verdict.
    late_verdicts: Vec<LateVerdict>,
    pauses: Pauses,
}

impl<'a, D: TaskStorePort, H: WorkerPort> TaskDriver<'a, D, H> {
    pub(crate) fn new(
        context: &'a DriverContext<'a, D, H>,
        key: &'a TaskKey,
        snapshot: TaskSnapshot,
    ) -> Self {
        Self {
            context,
            key,
            snapshot,
            is_stale: false,
            weigher: VoterReliability::new(),
            workers: Vec::new(),
            search: WorkerSearch::Due,
            calls: TaskCallsInFlight::default(),
            unsure: Vec::new(),
            late_verdicts: Vec::new(),
            pauses: store_pauses(),
        }
    }

    /// Whether nothing is lost if the driver ends here.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.calls.is_empty()
            && self.calls.finished.is_empty()
            && self.late_verdicts.is_empty()
    }

    /// Whether the driver may end here if the store does not answer: it was asked often enough, and
    /// no recorded lease is lost.
    pub(crate) fn may_leave(&self) -> bool {
        self.is_idle() && self.pauses.is_longest()
    }

    /// Writes everything that can be written now. `None` means that there is something to wait for.
    pub(crate) async fn advance(&mut self) -> Result<Option<DriverExit>, TaskPortError> {
        if let WorkerSearch::Done = self.search {
            self.search = WorkerSearch::Due;
        }
        loop {
            if self.is_stale && !self.load().await? {
                return Ok(Some(DriverExit::Missing));
            }
            if self.snapshot.task.is_over() {
                // Nobody needs the answers any more, except those that contradict others.
                self.calls.calls.clear();
                self.calls.leases.clear();
            }
            // A lease that expires meanwhile is lost, so renewals come first.
            let known = self.weigher.clone();
            if let Some(renewals) = self.renewals(&known) {
                self.write(renewals).await?;
                continue;
            }
            if self.cancel_on_objection().await? {
                continue;
            }
            let told = self.look_up().await?;
            let weighing = self.context.workers.weights(&self.snapshot);
            self.weigher = self.calls.meanwhile(weighing).await?;
            let known = self.weigher.clone();
            let late = self.late_verdicts.len();
            let mut draft = self.compose(&told, &known);
            self.lease_work(&mut draft).await?;
            if !draft.is_empty() {
                self.write(draft).await?;
                continue;
            }
            if late < self.late_verdicts.len() {
                // The store was not asked yet for the recorded verdicts of these voters.
                continue;
            }
            // A voter whose recorded vote does not contradict is trusted.
            self.late_verdicts
                .retain(|it| !self.snapshot.task.is_over() && !has_voted(&self.snapshot, it));
            let left = self.snapshot.task.wakes_at().map_or(DriverExit::Over, DriverExit::Waiting);
            let is_searching = matches!(self.search, WorkerSearch::Running(_));
            let is_done = self.is_idle() && !is_searching;
            return Ok(is_done.then_some(left));
        }
    }

    /// Cancels a task that may not continue; its work in progress is dropped.
    async fn cancel_on_objection(&mut self) -> Result<bool, TaskPortError> {
        if self.snapshot.task.is_at_rest() {
            return Ok(false);
        }
        let (driver, filed) = (self.context, self.snapshot.clone());
        let asking = driver.workers.objection(self.key, &filed);
        let Some(reason) = self.calls.meanwhile(asking).await? else { return Ok(false) };
        let known = self.weigher.clone();
        let mut draft = TaskDraft::new(&self.snapshot, driver.clock.now(), &known);
        if draft.decide(&TaskCommand::Cancel { reason }).is_err() {
            return Ok(false);
        }
        self.write(draft).await?;
        Ok(true)
    }

    /// Reads the task again; `false` if it is gone.
    async fn load(&mut self) -> Result<bool, TaskPortError> {
        let loading = self.context.store.load(self.key);
        let Some(filed) = self.calls.meanwhile(loading).await? else { return Ok(false) };
        self.snapshot = filed;
        self.is_stale = false;
        for start in mem::take(&mut self.unsure) {
            let task = &self.snapshot.task;
            if task.claims.get(&start.token) == Some(&start.claim) {
                self.begin_call(start);
            } else if task.last_token < start.token {
                // The write may still reach the store.
                self.unsure.push(start);
            }
        }
        Ok(true)
    }

    async fn look_up(&mut self) -> Result<TaskLookup, TaskPortError> {
        let (driver, key) = (self.context, self.key);
        let mut told = TaskLookup::default();
        // Only recorded votes are revealed, and only once no more votes are accepted.
        for need in needs(&self.snapshot.task, driver.clock.now()) {
            let TaskNeed::Reveals { candidate, voters } = need else { continue };
            let turn = self.snapshot.task.vote_context(&candidate, "").turn;
            let reading = driver.store.ballots(key, &candidate, turn);
            let sealed = self.calls.meanwhile(reading).await?;
            told.ballots.extend(sealed.into_iter().filter(|it| voters.contains(&it.voter)));
        }
        self.late_verdicts.retain(|it| may_matter(&self.snapshot, it));
        for late in &self.late_verdicts {
            let reading = driver.store.ballots(key, &late.candidate, late.turn);
            let sealed = self.calls.meanwhile(reading).await?;
            let cast = sealed.into_iter().find(|it| it.voter == late.voter);
            told.accusations.extend(cast.and_then(|cast| contradiction(late, cast)));
        }
        if self.may_reuse() {
            let reading = driver.store.prior_decisions(key, &self.snapshot);
            told.remembered = self.calls.meanwhile(reading).await?;
        }
        Ok(told)
    }

    /// Whether an earlier decision may be tried: no other work has started.
    fn may_reuse(&self) -> bool {
        let task = &self.snapshot.task;
        let is_idle = !task.is_over() && task.claims.is_empty() && task.proposed.is_empty();
        let is_open =
            is_idle && task.current_candidate().is_none() && task.failed_proposers.is_empty();
        is_open && task.reuses < task.terms.budget.reuse_max_attempts
    }

    /// Everything that needs no worker.
    fn compose<'k>(&mut self, told: &TaskLookup, known: &'k VoterReliability) -> TaskDraft<'k> {
        let now = self.context.clock.now();
        let mut draft = TaskDraft::new(&self.snapshot, now, known);
        draft.tick(ExhaustedRoles::default());
        self.write_finished(&mut draft);
        for accusation in &told.accusations {
            // An accusation that proves nothing any more is refused.
            let _refused = draft.decide(accusation);
        }
        for SecretBallot { candidate, voter, ballot, salt, .. } in told.ballots.iter().cloned() {
            // A vote that is late by now is forfeited by the tick.
            let _refused = draft.decide(&TaskCommand::Reveal { candidate, voter, ballot, salt });
        }
        reuse_decision(&mut draft, &told.remembered);
        for need in needs(&draft.task, now) {
            if let TaskNeed::Final { candidate } = need {
                self.finalize(&mut draft, &candidate);
            }
        }
        draft
    }

    /// Leases the needed work to workers that can do it. If it takes long to learn who can, the
    /// rest of the draft does not wait for it.
    async fn lease_work(&mut self, draft: &mut TaskDraft<'_>) -> Result<(), TaskPortError> {
        if !has_work(&draft.task, draft.now()) {
            self.search.cancel();
            return Ok(());
        }
        if let Err(error) = self.find_workers().await {
            // Results are written first, and the question is repeated then.
            return if draft.is_empty() { Err(error) } else { Ok(()) };
        }
        if !matches!(self.search, WorkerSearch::Done) {
            return Ok(());
        }
        loop {
            while self.lease_next(draft) {}
            let before = draft.len();
            draft.tick(choose::exhausted(&draft.task, draft.now(), &self.workers));
            if draft.len() == before {
                return Ok(());
            }
        }
    }

    /// Learns who can work, if that is known soon; otherwise the answer arrives during the wait.
    async fn find_workers(&mut self) -> Result<(), TaskPortError> {
        if let WorkerSearch::Due = self.search {
            let (driver, filed) = (self.context, self.snapshot.clone());
            let mut search = async move { driver.workers.workers(&filed).await }.boxed();
            let lease = Duration::from_millis(self.snapshot.task.terms.lease_ms);
            let prompt = tokio::time::timeout(PROMPT.min(lease / 10), &mut search);
            self.search = match self.calls.meanwhile(prompt).await {
                Ok(found) => WorkerSearch::Ended(found),
                Err(_) => WorkerSearch::Running(search),
            };
        }
        if let WorkerSearch::Ended(_) = self.search
            && let WorkerSearch::Ended(found) = mem::take(&mut self.search)
        {
            self.workers = found?;
            self.search = WorkerSearch::Done;
        }
        Ok(())
    }

    /// Records results, and drops those that came too late.
    fn write_finished(&mut self, draft: &mut TaskDraft<'_>) {
        let mut kept = Vec::new();
        for finished in mem::take(&mut self.calls.finished) {
            if !finished.fits(draft) {
                kept.push((finished, false));
                continue;
            }
            match finished.write_to(draft) {
                Ok(()) => kept.push((finished, true)),
                Err(refusal) => {
                    tracing::debug!(task.id = %self.key.id, %refusal, "answer arrived too late");
                    self.late_verdicts.extend(finished.into_late_verdict());
                }
            }
        }
        self.calls.finished =
            kept.into_iter().map(|(it, is_noted)| FinishedTaskCall { is_noted, ..it }).collect();
    }

    /// When a lease is renewed: after a third of its length.
    fn renew_at(&self, token: u64) -> Option<Timestamp> {
        let until = self.snapshot.task.claims.get(&token)?.until;
        let lease_ms = self.snapshot.task.terms.lease_ms;
        let rest = Duration::from_millis(lease_ms - lease_ms / 3).as_micros();
        Some(Timestamp::from_micros(until.micros() - i64::try_from(rest).ok()?))
    }

    /// The due renewals. An invalid lease is not renewed, and its result is refused.
    fn renewals<'k>(&self, known: &'k VoterReliability) -> Option<TaskDraft<'k>> {
        let now = self.context.clock.now();
        let is_due = |token: &&u64| self.renew_at(**token).is_some_and(|at| at <= now);
        let mut due = self.calls.leases.iter().filter(is_due).peekable();
        due.peek()?;
        let mut draft = TaskDraft::new(&self.snapshot, now, known);
        let until = now.plus_millis(self.snapshot.task.terms.lease_ms);
        for token in due {
            let _refused = draft.decide(&TaskCommand::Renew { token: *token, until });
        }
        (!draft.is_empty()).then_some(draft)
    }

    /// Leases one piece of needed work; `false` if there is none, or nobody for it.
    fn lease_next(&self, draft: &mut TaskDraft<'_>) -> bool {
        for need in needs(&draft.task, draft.now()) {
            if let TaskNeed::Final { candidate } = need {
                return self.finalize(draft, &candidate);
            }
            let Some(choice) = choose::choose_worker(&draft.task, &need, &self.workers) else {
                continue;
            };
            let execution_id =
                choice.earlier_execution.unwrap_or_else(|| self.execution_id(choice.role));
            let claim = TaskLease {
                role: choice.role,
                holder: choice.worker.name.clone(),
                node: self.context.node.to_owned(),
                independence: choice.worker.independence.clone(),
                pool_keys: choice.pool_keys,
                execution_id,
                candidate: choice.candidate,
                until: draft.now().plus_millis(draft.task.terms.lease_ms),
            };
            if draft.lease(claim).is_ok() {
                return true;
            }
        }
        false
    }

    /// The node itself makes a decision final, without a call.
    fn finalize(&self, draft: &mut TaskDraft<'_>, candidate: &str) -> bool {
        let claim = TaskLease {
            role: TaskRole::Finalize,
            holder: self.context.node.to_owned(),
            node: self.context.node.to_owned(),
            independence: self.context.node.to_owned(),
            pool_keys: 0,
            execution_id: self.execution_id(TaskRole::Finalize),
            candidate: Some(candidate.to_owned()),
            until: draft.now().plus_millis(draft.task.terms.lease_ms),
        };
        let claimed = draft.lease(claim);
        claimed.and_then(|token| draft.decide(&TaskCommand::Finalize { token })).is_ok()
    }

    fn execution_id(&self, role: TaskRole) -> String {
        let clock = self.context.clock;
        let letter = match role {
            TaskRole::Propose => 'p',
            TaskRole::Verify => 'v',
            TaskRole::Finalize => 'f',
        };
        format!("exec-{letter}-{}", jurat_core::id::uuid(clock.now(), clock.bits()))
    }

    /// After an error it is unknown whether the draft was written.
    async fn write(&mut self, draft: TaskDraft<'_>) -> Result<(), TaskPortError> {
        let (append, starts) = draft.finish(self.key, &self.snapshot);
        let (task, count) = (append.task.clone(), append.events.len());
        let writing = self.context.store.append(append);
        match self.calls.meanwhile(writing).await {
            Ok(TaskWriteOutcome::Written) => {
                self.pauses = store_pauses();
                self.snapshot.task = task;
                self.snapshot.seq += u64::try_from(count).unwrap_or(u64::MAX);
                self.calls.finished.retain(|it| !it.is_noted);
                for start in starts {
                    self.begin_call(start);
                }
            }
            Ok(TaskWriteOutcome::Stale | TaskWriteOutcome::Repeated) => {
                tracing::debug!(task.id = %self.key.id, "task was changed by another writer");
                self.is_stale = true;
            }
            Err(error) => {
                self.unsure.extend(starts);
                let too_many = self.unsure.len().saturating_sub(MOST_UNSURE);
                self.unsure.drain(..too_many);
                self.is_stale = true;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes the call of a recorded lease.
    fn begin_call(&mut self, start: PendingLease) {
        let now = self.context.clock.now();
        self.calls.leases.insert(start.token);
        let within = self.time_for(&start.claim, now);
        let (driver, key, filed) = (self.context, self.key, self.snapshot.clone());
        let salt = format!("{:032x}{:032x}", driver.clock.bits(), driver.clock.bits());
        let work = async move {
            let asking = worker_call::call_worker(driver, key, filed, &start.claim, within);
            let came = tokio::time::timeout(within, asking).await.unwrap_or_else(|_| {
                let detail = format!("`{}` did not answer in time", start.claim.holder);
                let code = TaskCallFailure::Replica(FailureCode::Timeout);
                WorkerAnswer::Nothing(WorkerFailure { code, detail })
            });
            FinishedTaskCall { lease: start, answer: came, salt, is_noted: false }
        };
        self.calls.calls.push(work.boxed());
    }

    /// Half of the remaining time, if another worker could be asked in the other half.
    fn time_for(&self, claim: &TaskLease, now: Timestamp) -> Duration {
        let left = Duration::from_millis(self.snapshot.task.deadline().millis_since(now));
        let does_the_same = |it: &&TaskWorker| match claim.role {
            TaskRole::Propose => it.proposes,
            TaskRole::Verify | TaskRole::Finalize => it.votes,
        };
        let others = self.workers.iter().filter(|it| it.name != claim.holder && it.is_ready);
        if others.filter(does_the_same).count() == 0 { left } else { left / 2 }
    }

    /// Waits until a call ends, something falls due, or a signal arrives.
    pub(crate) async fn wait(&mut self, signals: &DriverSignals) {
        let now = self.context.clock.now();
        let task = &self.snapshot.task;
        // A driver that waits for the writes of others polls for them.
        let look =
            (!self.late_verdicts.is_empty()).then(|| now.plus_millis(task.terms.lease_ms / 3));
        self.is_stale |= look.is_some();
        let renewals = self.calls.leases.iter().filter_map(|it| self.renew_at(*it)).chain(look);
        let until = renewals.chain(task.wakes_at()).min().unwrap_or(now);
        // Never too early: the store counts in whole milliseconds.
        let span = Duration::from_millis(until.millis_since(now) + 1);
        self.wait_at_most(span, signals).await;
    }

    /// Waits before the store is asked again; calls continue meanwhile.
    pub(crate) async fn wait_for_store(&mut self, signals: &DriverSignals) {
        let pause = self.pauses.advance();
        self.wait_at_most(pause, signals).await;
    }

    async fn wait_at_most(&mut self, span: Duration, signals: &DriverSignals) {
        let Self { calls: at_work, is_stale, search, .. } = self;
        let waiting = async {
            tokio::select! {
                biased;
                () = signals.stop.cancelled() => {}
                () = signals.changed.notified() => *is_stale = true,
                () = at_work.next() => {}
                () = search.finish() => {}
            }
        };
        let _elapsed = tokio::time::timeout(span, waiting).await;
    }

    /// Writes results, and releases the other leases, so that other nodes continue immediately.
    pub(crate) async fn give_up(&mut self, tries: u32) {
        for _ in 0..tries {
            if self.is_stale && !matches!(self.load().await, Ok(true)) {
                continue;
            }
            let known = self.weigher.clone();
            let mut draft = TaskDraft::new(&self.snapshot, self.context.clock.now(), &known);
            self.write_finished(&mut draft);
            for token in &self.calls.leases {
                let reason =
                    LeaseRelease::GivenUp { detail: "the node is shutting down".to_owned() };
                let _refused = draft.decide(&TaskCommand::Release { token: *token, reason });
            }
            if draft.is_empty() {
                return;
            }
            let (mut append, _) = draft.finish(self.key, &self.snapshot);
            append.due_at = append.due_at.map(|at| at.min(append.at));
            match self.context.store.append(append).await {
                Ok(TaskWriteOutcome::Written) => return,
                Ok(TaskWriteOutcome::Stale | TaskWriteOutcome::Repeated) | Err(_) => {
                    self.is_stale = true;
                }
            }
        }
    }
}

/// Whether there is work for workers.
fn has_work(task: &Task, now: Timestamp) -> bool {
    let is_work =
        |it: &TaskNeed| matches!(it, TaskNeed::Proposals { .. } | TaskNeed::Verdicts { .. });
    needs(task, now).iter().any(is_work)
}

/// Whether the voter of a late verdict has recorded another one, or may do so.
fn may_matter(filed: &TaskSnapshot, late: &LateVerdict) -> bool {
    let Some(proposal) = filed.task.proposal(&late.candidate) else { return false };
    match proposal.votes.get(&late.voter).filter(|it| it.turn == late.turn) {
        Some(vote) => !vote.equivocated,
        None => !filed.task.is_over() && proposal.is_live() && proposal.turn == late.turn,
    }
}

fn has_voted(filed: &TaskSnapshot, late: &LateVerdict) -> bool {
    let proposal = filed.task.proposal(&late.candidate);
    let vote = proposal.and_then(|it| it.votes.get(&late.voter));
    vote.is_some_and(|it| it.turn == late.turn)
}

/// A voter gave one verdict when its lease was lost, and another one on record.
fn contradiction(late: &LateVerdict, cast: SecretBallot) -> Option<TaskCommand> {
    let digest = cast.ballot.verdict_digest;
    (digest != late.verdict_digest).then(|| TaskCommand::Accuse {
        candidate: late.candidate.clone(),
        voter: late.voter.clone(),
        turn: late.turn,
        verdicts: (digest, late.verdict_digest.clone()),
    })
}

/// Takes the first earlier decision that the task does not refuse.
fn reuse_decision(draft: &mut TaskDraft<'_>, remembered: &[PriorDecision]) {
    for PriorDecision { source, candidate, proposers } in remembered.iter().cloned() {
        let digest = digest_json(&candidate.output);
        let evidence = candidate.evidence.refs.iter().map(|it| it.digest.clone()).collect();
        let command = TaskCommand::Reuse {
            source: source.clone(),
            candidate: candidate.candidate_id.clone(),
            digest: digest.clone(),
            evidence,
            proposers: proposers.clone(),
        };
        if draft.candidate.is_none() && draft.decide(&command).is_ok() {
            let proposer = proposers.into_iter().next().unwrap_or(source);
            draft.candidate = Some(NewCandidate { proposer, candidate, digest, round_id: None });
            return;
        }
    }
}

/// The pauses before a store that does not answer is asked again.
fn store_pauses() -> Pauses {
    Pauses::growing(Duration::from_millis(50), Duration::from_secs(1), 4.0)
}

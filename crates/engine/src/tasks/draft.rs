//! A draft of a write: decides commands one after another, and writes their events together.

use jurat_core::{
    task::{
        ExhaustedRoles, TaskCommand, TaskEvent, TaskKey, TaskLease, TaskRefusal, TaskRole,
        VoterReliability, decide, needs,
    },
    time::Timestamp,
};

use super::{NewCandidate, SecretBallot, TaskSnapshot, TaskWrite};

/// A lease about to be written. Its work starts once it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingLease {
    pub(super) token: u64,
    pub(super) claim: TaskLease,
    /// The number of the vote that it is for.
    pub(super) turn: u32,
}

#[derive(Debug)]
pub(super) struct TaskDraft<'a> {
    pub(super) task: jurat_core::task::Task,
    pub(super) leases: Vec<PendingLease>,
    pub(super) candidate: Option<NewCandidate>,
    pub(super) ballot: Option<SecretBallot>,
    events: Vec<TaskEvent>,
    now: Timestamp,
    weigher: &'a VoterReliability,
}

impl<'a> TaskDraft<'a> {
    pub(super) fn new(filed: &TaskSnapshot, now: Timestamp, weigher: &'a VoterReliability) -> Self {
        Self {
            task: filed.task.clone(),
            leases: Vec::new(),
            candidate: None,
            ballot: None,
            events: Vec::new(),
            now,
            weigher,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many events it has.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn decide(&mut self, command: &TaskCommand) -> Result<(), TaskRefusal> {
        let events = decide(&self.task, command, self.now, self.weigher)?;
        for event in &events {
            self.task.apply(event, self.now);
        }
        self.events.extend(events);
        Ok(())
    }

    /// Adds the events due by the clock, and those that follow if nobody is left.
    pub(super) fn tick(&mut self, exhausted: ExhaustedRoles) {
        // No task refuses a tick.
        let _refused = self.decide(&TaskCommand::Tick { exhausted });
    }

    pub(super) fn lease(&mut self, claim: TaskLease) -> Result<u64, TaskRefusal> {
        let token = self.task.last_token + 1;
        self.decide(&TaskCommand::TakeLease { token, claim })?;
        // As it was written: a lease that was too long is cut.
        if let Some(claim) = self.task.claims.get(&token).cloned()
            && claim.role != TaskRole::Finalize
        {
            let proposal = claim.candidate.as_deref().and_then(|id| self.task.proposal(id));
            let turn = proposal.map_or(0, |it| it.turn);
            self.leases.push(PendingLease { token, claim, turn });
        }
        Ok(token)
    }

    /// The write for the task that it was made from, and the work that starts after it.
    pub(super) fn finish(
        self,
        key: &TaskKey,
        before: &TaskSnapshot,
    ) -> (TaskWrite, Vec<PendingLease>) {
        let lease_end = self.now.plus_millis(self.task.terms.lease_ms);
        // Work that could be done now is due when its writer must have done it.
        let is_due = !needs(&self.task, self.now).is_empty();
        let wakes_at = self.task.wakes_at();
        let append = TaskWrite {
            key: key.clone(),
            before: Box::new(before.clone()),
            at: self.now,
            due_at: if is_due { wakes_at.map(|at| at.min(lease_end)) } else { wakes_at },
            events: self.events,
            task: self.task,
            candidate: self.candidate,
            ballot: self.ballot,
            weigher: self.weigher.clone(),
            idempotency: None,
        };
        (append, self.leases)
    }
}

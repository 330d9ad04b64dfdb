//! What is about to be written of a task: commands are decided one after another, and their events
//! are written together.

use jurat_core::{
    task::{Claim, Command, Event, Exhausted, Refusal, Role, Weigher, decide, needs},
    time::Timestamp,
};

use super::{Append, Candidacy, Filed, Sealed, TaskKey};

/// A claim that is about to be written. Its work begins once it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Start {
    pub(super) token: u64,
    pub(super) claim: Claim,
    /// The turn of verification that it is about.
    pub(super) turn: u32,
}

#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) task: jurat_core::task::Task,
    pub(super) starts: Vec<Start>,
    pub(super) candidate: Option<Candidacy>,
    pub(super) ballot: Option<Sealed>,
    events: Vec<Event>,
    now: Timestamp,
    known: &'a Weigher,
}

impl<'a> Draft<'a> {
    pub(super) fn new(filed: &Filed, now: Timestamp, known: &'a Weigher) -> Self {
        Self {
            task: filed.task.clone(),
            starts: Vec::new(),
            candidate: None,
            ballot: None,
            events: Vec::new(),
            now,
            known,
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

    pub(super) fn decide(&mut self, command: &Command) -> Result<(), Refusal> {
        let events = decide(&self.task, command, self.now, self.known)?;
        for event in &events {
            self.task.apply(event, self.now);
        }
        self.events.extend(events);
        Ok(())
    }

    /// What the clock made due, and what follows where nobody is left.
    pub(super) fn tick(&mut self, exhausted: Exhausted) {
        // A tick is refused by no task.
        let _refused = self.decide(&Command::Tick { exhausted });
    }

    pub(super) fn claim(&mut self, claim: Claim) -> Result<u64, Refusal> {
        let token = self.task.last_token + 1;
        self.decide(&Command::Claim { token, claim })?;
        // As it was written: a lease that is too long was cut off.
        if let Some(claim) = self.task.claims.get(&token).cloned()
            && claim.role != Role::Finalize
        {
            let proposal = claim.candidate.as_deref().and_then(|id| self.task.proposal(id));
            let turn = proposal.map_or(0, |it| it.turn);
            self.starts.push(Start { token, claim, turn });
        }
        Ok(token)
    }

    /// What is to be written to the task that it was made for, and the work that begins when it is.
    pub(super) fn finish(self, key: &TaskKey, before: &Filed) -> (Append, Vec<Start>) {
        let lease_end = self.now.plus_millis(self.task.terms.lease_ms);
        // What could be done now is due when whoever writes this must have done it.
        let is_due = !needs(&self.task, self.now).is_empty();
        let wakes_at = self.task.wakes_at();
        let append = Append {
            key: key.clone(),
            before: Box::new(before.clone()),
            at: self.now,
            due_at: if is_due { wakes_at.map(|at| at.min(lease_end)) } else { wakes_at },
            events: self.events,
            task: self.task,
            candidate: self.candidate,
            ballot: self.ballot,
            known: self.known.clone(),
            note: None,
        };
        (append, self.starts)
    }
}

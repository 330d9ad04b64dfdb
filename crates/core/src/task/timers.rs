//! What falls due by the clock: leases, reveals, waits and the end of the task.

use super::{End, Event, Forfeit, Standing, Task};
use crate::time::Timestamp;

impl Task {
    /// The next time at which the clock alone changes something; `None` when it is over.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        if self.phase.is_over() {
            return None;
        }
        let leases = self.claims.values().map(|claim| claim.until);
        let reveals = self.proposals.iter().filter(|it| it.standing == Standing::Revealing);
        let reveals = reveals.filter_map(|it| it.reveal_until);
        let times = leases.chain(reveals).chain(self.retry_at).chain([self.deadline()]);
        times.min()
    }

    /// The events that are due at a time.
    pub(super) fn due(&self, now: Timestamp) -> Vec<Event> {
        if self.phase.is_over() {
            return Vec::new();
        }
        if self.deadline() <= now {
            let reason = if self.terms.expires_at <= now {
                "its contract expired"
            } else {
                "its budget of time is used up"
            };
            return vec![Event::Ended { end: End::Expired { reason: reason.to_owned() } }];
        }
        let mut events = Vec::new();
        for (token, claim) in &self.claims {
            if claim.until <= now {
                let reason = format!("the lease of `{}` ran out", claim.holder);
                events.push(Event::Released { token: *token, reason });
            }
        }
        for proposal in &self.proposals {
            let is_over = proposal.reveal_until.is_some_and(|until| until <= now);
            if proposal.standing != Standing::Revealing || !is_over {
                continue;
            }
            for (voter, vote) in &proposal.votes {
                if vote.revealed.is_none() && vote.forfeited.is_none() {
                    events.push(Event::VoteForfeited {
                        candidate: proposal.id.clone(),
                        voter: voter.clone(),
                        why: Forfeit::Late,
                    });
                }
            }
        }
        events
    }
}

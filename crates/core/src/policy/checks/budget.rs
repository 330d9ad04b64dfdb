//! The work budget that all checks of one candidate share.

use crate::schema::{MAX_APPLICATIONS, MAX_REGEX_STEPS, WorkEstimate};

/// The work that is allowed, and the work that was taken.
#[derive(Debug)]
pub(super) struct WorkBudget {
    most: WorkEstimate,
    taken: WorkEstimate,
}

impl WorkBudget {
    /// The whole budget for the checks of one candidate.
    pub(super) fn full() -> Self {
        let most = WorkEstimate {
            applications: MAX_APPLICATIONS,
            regex_steps: MAX_REGEX_STEPS,
            stack: u64::MAX,
        };
        Self { most, taken: WorkEstimate::default() }
    }

    /// The work that may be done inline, on the caller's own thread and stack.
    pub(super) fn small() -> Self {
        Self { most: WorkEstimate::SMALL, taken: WorkEstimate::default() }
    }

    /// More work than any budget allows.
    pub(super) const fn exceeded() -> WorkEstimate {
        WorkEstimate { applications: u64::MAX, regex_steps: u64::MAX, stack: u64::MAX }
    }

    /// Applications that are still allowed.
    pub(super) const fn left(&self) -> u64 {
        self.most.applications.saturating_sub(self.taken.applications)
    }

    /// Takes the work if enough is left; otherwise takes nothing.
    pub(super) fn take(&mut self, work: WorkEstimate) -> bool {
        let taken = self.taken.and(work);
        let fits = taken.is_within(&self.most);
        if fits {
            self.taken = taken;
        }
        fits
    }

    pub(super) const fn taken(&self) -> WorkEstimate {
        self.taken
    }
}

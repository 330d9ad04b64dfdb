//! What all checks of one candidate may cost together.

use crate::schema::{MAX_APPLICATIONS, MAX_REGEX_STEPS, WorkEstimate};

/// Work that is still allowed, and work that was taken.
#[derive(Debug)]
pub(super) struct WorkBudget {
    most: WorkEstimate,
    taken: WorkEstimate,
}

impl WorkBudget {
    /// All that the checks of one candidate may take.
    pub(super) fn full() -> Self {
        let most = WorkEstimate {
            applications: MAX_APPLICATIONS,
            regex_steps: MAX_REGEX_STEPS,
            stack: u64::MAX,
        };
        Self { most, taken: WorkEstimate::default() }
    }

    /// What may be done at once, on the caller's own thread and stack.
    pub(super) fn small() -> Self {
        Self { most: WorkEstimate::SMALL, taken: WorkEstimate::default() }
    }

    /// More work than any budget has.
    pub(super) const fn exceeded() -> WorkEstimate {
        WorkEstimate { applications: u64::MAX, regex_steps: u64::MAX, stack: u64::MAX }
    }

    /// Applications that are still allowed.
    pub(super) const fn left(&self) -> u64 {
        self.most.applications.saturating_sub(self.taken.applications)
    }

    /// Takes the work if there is enough left; otherwise nothing is taken.
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

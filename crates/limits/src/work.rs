//! Estimates of work, and the budget that checks share.

/// Applications of subschemas to the values of one instance.
pub const MAX_APPLICATIONS: u64 = 1_000_000;
/// String bytes times states of the patterns that read them.
pub const MAX_REGEX_STEPS: u64 = 100_000_000;

/// An upper limit of the work of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkEstimate {
    /// Applications of subschemas to values.
    pub applications: u64,
    /// Bytes of strings times the states of the patterns that read them.
    pub regex_steps: u64,
    /// Longest chain of subschemas on one value times the depth of the instance.
    pub stack: u64,
}

impl WorkEstimate {
    /// Work that is small enough for the caller's own thread and stack.
    const SMALL: Self = Self { applications: 5_000, regex_steps: 1_000_000, stack: 256 };

    /// More work than any budget has.
    pub const EXCEEDED: Self =
        Self { applications: u64::MAX, regex_steps: u64::MAX, stack: u64::MAX };

    /// So many applications, and nothing else.
    pub const fn of_applications(applications: u64) -> Self {
        Self { applications, regex_steps: 0, stack: 0 }
    }

    /// Whether the work is small enough for the caller's own thread and stack.
    pub const fn is_small(&self) -> bool {
        self.is_within(&Self::SMALL)
    }

    /// The work of both, one after the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            applications: self.applications.saturating_add(other.applications),
            regex_steps: self.regex_steps.saturating_add(other.regex_steps),
            stack: self.stack.max(other.stack),
        }
    }

    /// The same work so many times, one after the other.
    #[must_use]
    pub(crate) const fn times(self, times: u64) -> Self {
        Self {
            applications: self.applications.saturating_mul(times),
            regex_steps: self.regex_steps.saturating_mul(times),
            stack: self.stack,
        }
    }

    const fn is_within(&self, most: &Self) -> bool {
        self.applications <= most.applications
            && self.regex_steps <= most.regex_steps
            && self.stack <= most.stack
    }
}

/// The work that several checks of one candidate may take together.
#[derive(Debug)]
pub struct WorkBudget {
    most: WorkEstimate,
    taken: WorkEstimate,
}

impl WorkBudget {
    /// The most that the checks of one candidate may take.
    pub fn full() -> Self {
        let most = WorkEstimate {
            applications: MAX_APPLICATIONS,
            regex_steps: MAX_REGEX_STEPS,
            stack: u64::MAX,
        };
        Self { most, taken: WorkEstimate::default() }
    }

    /// The most that may run on the caller's own thread and stack.
    pub fn small() -> Self {
        Self { most: WorkEstimate::SMALL, taken: WorkEstimate::default() }
    }

    /// Applications that are still allowed.
    pub const fn left(&self) -> u64 {
        self.most.applications.saturating_sub(self.taken.applications)
    }

    /// Takes the work if enough is left; otherwise takes nothing.
    #[must_use]
    pub fn take(&mut self, work: WorkEstimate) -> bool {
        let taken = self.taken.and(work);
        let fits = taken.is_within(&self.most);
        if fits {
            self.taken = taken;
        }
        fits
    }

    /// The work taken so far.
    pub const fn taken(&self) -> WorkEstimate {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_takes_what_fits_and_nothing_else() {
        let mut budget = WorkBudget::small();
        assert!(budget.take(WorkEstimate::of_applications(4_999)));
        assert!(!budget.take(WorkEstimate::of_applications(2)));
        assert_eq!(budget.left(), 1);
        assert!(budget.take(WorkEstimate::of_applications(1)));
        assert_eq!(budget.taken(), WorkEstimate::of_applications(5_000));
        assert!(!WorkBudget::full().take(WorkEstimate::EXCEEDED));
    }
}

//! An executor: an HTTP service that does the work, what it can do, and whether it is up.

use std::fmt;

use crate::time::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub name: String,
    /// Base address without a trailing slash.
    pub url: String,
    /// Name of the environment variable that holds the bearer token for this executor.
    pub token_env: Option<String>,
    pub agent_events_url: Option<String>,
    pub created_at: Timestamp,
    pub probe: Option<Probe>,
}

/// What the last probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub at: Timestamp,
    /// Why `/health` was not well; `None` when it was.
    pub health_error: Option<String>,
    pub capabilities: Result<Capabilities, String>,
}

impl Probe {
    pub fn is_well(&self) -> bool {
        self.health_error.is_none() && self.capabilities.is_ok()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub task_types: Vec<String>,
    pub profiles: Vec<String>,
    pub provider_family: String,
    pub model_id: String,
    /// Policies beyond the built-in ones that the executor says it evaluates.
    pub policies: Vec<String>,
}

impl Capabilities {
    pub fn takes_task_type(&self, task_type: &str) -> bool {
        self.task_types.iter().any(|known| known == task_type || known == "*")
    }

    pub fn has_profile(&self, profile: &str) -> bool {
        self.profiles.iter().any(|known| known == profile || known == "*")
    }
}

/// What two replicas must not share to count as two votes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Independence {
    pub provider_family: String,
    pub model_id: String,
    pub host: String,
    pub executor: String,
}

impl fmt::Display for Independence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.provider_family, self.model_id, self.host)
    }
}

/// Keeps calls away from an executor that fails, and lets one through now and then.
///
/// Pure: the caller passes the time in and keeps the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    failures_in_a_row: u32,
    open_until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    /// No calls until the given time.
    Open(Timestamp),
    /// The pause is over: the next call decides.
    HalfOpen,
}

impl Breaker {
    /// Failures in a row that open the breaker.
    pub const THRESHOLD: u32 = 5;
    const FIRST_PAUSE_MS: u64 = 5_000;
    const LONGEST_PAUSE_MS: u64 = 300_000;

    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open(until),
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// What a success leaves behind: nothing.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn after_failure(self, now: Timestamp) -> Self {
        let failures = self.failures_in_a_row.saturating_add(1);
        if failures < Self::THRESHOLD {
            return Self { failures_in_a_row: failures, open_until: None };
        }
        let doublings = (failures - Self::THRESHOLD).min(16);
        let pause = (Self::FIRST_PAUSE_MS << doublings).min(Self::LONGEST_PAUSE_MS);
        Self { failures_in_a_row: failures, open_until: Some(now.plus_millis(pause)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn five_failures_open_it_and_a_pause_half_opens_it() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker = breaker.after_failure(at(0));
            assert_eq!(breaker.state(at(0)), BreakerState::Closed);
        }
        breaker = breaker.after_failure(at(0));
        assert_eq!(breaker.state(at(4)), BreakerState::Open(at(5)));
        assert_eq!(breaker.state(at(5)), BreakerState::HalfOpen);
        // The probe in the half-open state fails: the pause doubles.
        breaker = breaker.after_failure(at(5));
        assert_eq!(breaker.state(at(14)), BreakerState::Open(at(15)));
        assert_eq!(Breaker::closed().state(at(14)), BreakerState::Closed);
    }

    #[test]
    fn the_pause_is_bounded() {
        let breaker = (0..1_000).fold(Breaker::default(), |b, _| b.after_failure(at(0)));
        assert_eq!(breaker.state(at(299)), BreakerState::Open(at(300)));
    }
}

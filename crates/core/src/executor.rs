//! Executors: HTTP services that do the work, with their capabilities and their health.

pub mod breakers;
pub mod session;

use std::fmt;

use crate::{peer::scope::RemoteTarget, time::Timestamp};

/// A registered executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub name: String,
    /// Base address without a trailing slash.
    pub url: String,
    /// Name of the environment variable that holds the bearer token for this executor.
    pub token_env: Option<String>,
    /// The address that receives agent events, if the executor wants them.
    pub agent_events_url: Option<String>,
    /// The node that is asked; `None` if the executor is called directly at its address.
    pub remote: Option<RemoteTarget>,
    pub created_at: Timestamp,
    pub probe: Option<Probe>,
}

/// The result of the last probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    pub at: Timestamp,
    /// Why `/health` failed; `None` if it succeeded.
    pub health_error: Option<String>,
    pub capabilities: Result<Capabilities, String>,
}

impl Probe {
    /// Whether `/health` succeeded.
    pub fn is_healthy(&self) -> bool {
        self.problem().is_none()
    }

    /// The fault that the probe found; a failed health check comes first.
    pub fn problem(&self) -> Option<&str> {
        let capabilities = self.capabilities.as_ref().err().map(String::as_str);
        self.health_error.as_deref().or(capabilities)
    }
}

/// The capabilities that an executor declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    pub task_types: Vec<String>,
    pub profiles: Vec<String>,
    pub provider_family: String,
    pub model_id: String,
    /// Policies that the executor says it evaluates, besides the built-in ones.
    pub policies: Vec<String>,
}

impl Capabilities {
    /// Whether the executor accepts tasks of this type.
    pub fn takes_task_type(&self, task_type: &str) -> bool {
        self.task_types.iter().any(|known| known == task_type || known == "*")
    }

    /// Whether the executor declares a mode of a task type, as `factcheck:realtime`. A `*` does not
    /// declare any: it says nothing about sources.
    pub fn declares_mode(&self, task_type: &str, mode: &str) -> bool {
        self.task_types.iter().any(|known| known.rsplit_once(':') == Some((task_type, mode)))
    }

    /// Whether the executor has the profile.
    pub fn has_profile(&self, profile: &str) -> bool {
        self.profiles.iter().any(|known| known == profile || known == "*")
    }
}

/// Properties that two replicas must not share to count as two independent votes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Independence {
    pub provider_family: String,
    pub model_id: String,
    pub host: String,
    pub executor: String,
}

impl Independence {
    /// Parses a key that `to_string` wrote. A key of another form counts as a property shared by
    /// everyone who has it.
    pub fn of_key(key: &str, executor: &str) -> Self {
        let (served, host) = key.rsplit_once('@').unwrap_or((key, ""));
        let (provider_family, model_id) = served.split_once('/').unwrap_or((served, served));
        Self {
            provider_family: provider_family.to_owned(),
            model_id: model_id.to_owned(),
            host: host.to_owned(),
            executor: executor.to_owned(),
        }
    }
}

impl fmt::Display for Independence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.provider_family, self.model_id, self.host)
    }
}

/// Keeps calls away from a failing executor until a probe lets them through again.
///
/// Pure: the caller passes the time in and keeps the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Breaker {
    failures_in_a_row: u32,
    open_until: Option<Timestamp>,
}

/// Whether the breaker lets calls through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    /// No calls until the given time.
    Open(Timestamp),
    /// The pause is over, and the next probe decides.
    HalfOpen,
}

impl Breaker {
    /// Consecutive failures that open the breaker.
    pub const THRESHOLD: u32 = 5;
    const FIRST_PAUSE_MS: u64 = 5_000;
    const LONGEST_PAUSE_MS: u64 = 300_000;

    /// The state at a time.
    pub fn state(&self, now: Timestamp) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open(until),
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// A breaker without failures, as after a success.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    /// The breaker after one more failed call.
    #[must_use]
    pub fn after_failure(self, now: Timestamp) -> Self {
        // Calls that were in progress when the breaker opened carry no new information.
        if matches!(self.state(now), BreakerState::Open(_)) {
            return self;
        }
        let failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        let next = Self { failures_in_a_row, open_until: None };
        if failures_in_a_row < Self::THRESHOLD {
            return next;
        }
        Self { open_until: Some(now.plus_millis(next.pause_ms())), ..next }
    }

    /// The breaker after the last of enough failures to open it, which the caller counted itself.
    #[must_use]
    pub fn after_failures(self, now: Timestamp) -> Self {
        let failures_in_a_row = self.failures_in_a_row.max(Self::THRESHOLD - 1);
        Self { failures_in_a_row, ..self }.after_failure(now)
    }

    /// The breaker after a probe. A successful probe after the pause lets calls through again; the
    /// next failure then pauses them for longer.
    #[must_use]
    pub fn after_probe(self, is_well: bool, at: Timestamp) -> Self {
        match (self.state(at), is_well) {
            (BreakerState::Closed | BreakerState::Open(_), _) => self,
            (BreakerState::HalfOpen, true) => Self { open_until: None, ..self },
            (BreakerState::HalfOpen, false) => self.after_failure(at),
        }
    }

    /// Doubles with every failure.
    fn pause_ms(self) -> u64 {
        let doublings = self.failures_in_a_row.saturating_sub(Self::THRESHOLD).min(16);
        (Self::FIRST_PAUSE_MS << doublings).min(Self::LONGEST_PAUSE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn failed(times: usize) -> Breaker {
        (0..times).fold(Breaker::default(), |breaker, _| breaker.after_failure(at(0)))
    }

    #[test]
    fn five_failures_open_it_and_a_pause_half_opens_it() {
        assert_eq!(failed(4).state(at(0)), BreakerState::Closed);
        let breaker = failed(5);
        assert_eq!(breaker.state(at(4)), BreakerState::Open(at(5)));
        assert_eq!(breaker.state(at(5)), BreakerState::HalfOpen);
        assert_eq!(Breaker::closed().state(at(4)), BreakerState::Closed);
    }

    #[test]
    fn calls_in_progress_when_it_opened_do_not_lengthen_the_pause() {
        assert_eq!(failed(25), failed(5));
    }

    #[test]
    fn a_probe_lets_calls_through_until_one_fails() {
        let tried = failed(5).after_probe(true, at(5));
        assert_eq!(tried.state(at(5)), BreakerState::Closed);
        // The pause doubles.
        assert_eq!(tried.after_failure(at(6)).state(at(15)), BreakerState::Open(at(16)));
        assert_eq!(failed(5).after_probe(true, at(4)), failed(5));
        assert_eq!(failed(5).after_probe(false, at(6)).state(at(15)), BreakerState::Open(at(16)));
    }

    #[test]
    fn the_pause_has_a_maximum() {
        let mut breaker = failed(5);
        let mut now = at(5);
        for _ in 0..40 {
            breaker = breaker.after_probe(true, now).after_failure(now);
            now = now.plus_millis(300_000);
        }
        assert_eq!(breaker.pause_ms(), 300_000);
        assert_eq!(breaker.state(now), BreakerState::HalfOpen);
    }
}

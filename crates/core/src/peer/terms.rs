//! The terms on which two nodes work for each other.

use std::collections::BTreeSet;

/// The operator's terms for one peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerTerms {
    /// Whether the peer's jobs are done here.
    pub works_for: bool,
    /// Whether jobs are sent to the peer.
    pub hires: bool,
    /// How many requests of the peer are accepted in a minute.
    pub requests_per_minute: u32,
    /// How many jobs of the peer are done at the same time.
    pub concurrent_jobs: u32,
    /// The largest payload that the peer may send.
    pub payload_bytes: u64,
    /// The most that the peer is paid for one job, besides the price of the session.
    pub most_price_micros: Option<u64>,
    /// The types of tasks that the peer may ask for; all of them if there is none.
    pub task_types: BTreeSet<String>,
}

/// The peer asks for more than it is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the price of {asked_micros} micros is above the most that is paid, {most_micros} micros")]
pub struct PeerPriceError {
    pub asked_micros: u64,
    pub most_micros: u64,
}

impl Default for PeerTerms {
    /// Both nodes work for each other.
    fn default() -> Self {
        Self {
            works_for: true,
            hires: true,
            requests_per_minute: 600,
            concurrent_jobs: 8,
            payload_bytes: 4 << 20,
            most_price_micros: None,
            task_types: BTreeSet::new(),
        }
    }
}

impl PeerTerms {
    /// The most that the peer is paid for one job of a session with this price.
    pub fn most_price(&self, session_price_micros: u64) -> u64 {
        self.most_price_micros.unwrap_or(u64::MAX).min(session_price_micros)
    }

    /// Checks the price that the peer asks for one job of a session.
    pub fn check_price(
        &self,
        asked_micros: u64,
        session_price_micros: u64,
    ) -> Result<(), PeerPriceError> {
        let most_micros = self.most_price(session_price_micros);
        if most_micros < asked_micros {
            return Err(PeerPriceError { asked_micros, most_micros });
        }
        Ok(())
    }

    /// Whether the peer may ask for tasks of this type.
    pub fn takes_task_type(&self, task_type: &str) -> bool {
        self.task_types.is_empty() || self.task_types.contains(task_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_above_the_limit_is_refused() {
        let limited = |most_price_micros| PeerTerms { most_price_micros, ..PeerTerms::default() };
        for (most, asked, session, expected) in [
            (None, 0, 0, None),
            (None, 100, 100, None),
            (None, 101, 100, Some(100)),
            (None, 1, 0, Some(0)),
            (None, u64::MAX, u64::MAX, None),
            // The lower of both limits counts: credit is held for the price of the session.
            (Some(50), 50, 100, None),
            (Some(50), 51, 100, Some(50)),
            (Some(200), 100, 100, None),
            (Some(200), 101, 100, Some(100)),
            (Some(0), 0, 100, None),
            (Some(0), 1, 100, Some(0)),
            (Some(200), u64::MAX, 100, Some(100)),
        ] {
            let found = limited(most).check_price(asked, session);
            let expected = expected.map_or(Ok(()), |most| {
                Err(PeerPriceError { asked_micros: asked, most_micros: most })
            });
            assert_eq!(found, expected, "{most:?} {asked} {session}");
        }
        assert_eq!(
            limited(Some(50)).check_price(51, 60).unwrap_err().to_string(),
            "the price of 51 micros is above the most that is paid, 50 micros"
        );
    }

    #[test]
    fn terms_without_types_allow_every_type() {
        let all = PeerTerms::default();
        assert!(all.takes_task_type("review"));
        let some = PeerTerms { task_types: ["review".to_owned()].into(), ..all };
        assert!(some.takes_task_type("review"));
        assert!(!some.takes_task_type("Review") && !some.takes_task_type(""));
    }
}

//! The header `Prefer`, for callers that do not want to wait (RFC 7240).

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue};

/// The known preferences of a caller; others are ignored, as the header requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prefer {
    pub(crate) respond_async: bool,
    pub(crate) wait: Option<Duration>,
}

/// The longest wait of a caller.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl Prefer {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut prefer = Self::default();
        let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
        for preference in values.flat_map(|value| value.split(',')) {
            // Parameters of a preference follow a semicolon; none is known.
            let preference = preference.split(';').next().unwrap_or_default().trim();
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            if name.eq_ignore_ascii_case("respond-async") {
                prefer.respond_async = true;
            } else if name.eq_ignore_ascii_case("wait") && prefer.wait.is_none() {
                let seconds: Option<u64> = value.parse().ok();
                prefer.wait = seconds.map(Duration::from_secs).map(|wait| wait.min(LONGEST_WAIT));
            }
        }
        prefer
    }
}

pub(crate) const APPLIED: HeaderValue = HeaderValue::from_static("respond-async");

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&'static str], respond_async: bool, wait: Option<u64>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("prefer", HeaderValue::from_static(value));
        }
        let wait = wait.map(Duration::from_secs);
        assert_eq!(Prefer::of(&headers), Prefer { respond_async, wait }, "{values:?}");
    }

    #[test]
    fn preferences_are_read_and_unknown_ones_ignored() {
        check(&[], false, None);
        check(&["respond-async"], true, None);
        check(&["Respond-Async, wait=10"], true, Some(10));
        check(&["wait = 5", "respond-async;priority=5"], true, Some(5));
        check(&["wait=\"7\"; x=y"], false, Some(7));
        check(&["handling=lenient, return=minimal"], false, None);
        check(&["wait=soon"], false, None);
        check(&["wait=999999"], false, Some(60));
        check(&["wait=1, wait=2"], false, Some(1));
    }
}

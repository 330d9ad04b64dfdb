//! Finds what a misspelt name was meant to be.

use super::ALL;

/// How like two names must be before one is taken for the other.
const ALIKE: f64 = 0.7;

/// The setting whose name is most like this one.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    ALL.iter()
        .map(|setting| {
            let whole = strsim::jaro_winkler(name, setting.name);
            // A name without its section, or in a wrong one, is often meant.
            let end = if last(name) == last(setting.name) { 0.95 } else { 0.0 };
            (whole.max(end), setting.name)
        })
        .filter(|(likeness, _)| ALIKE < *likeness)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_found() {
        for (given, expected) in [
            ("server.listn", Some("server.listen")),
            ("listen", Some("server.listen")),
            ("server.rounds", Some("limits.rounds")),
            ("limits.calls_per_exec", Some("limits.calls_per_executor")),
            ("zzz", None),
        ] {
            assert_eq!(nearest(given), expected, "for {given}");
        }
    }
}

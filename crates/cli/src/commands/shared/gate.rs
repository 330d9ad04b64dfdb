//! `--gate`: the exit code that stops a pipeline.

use crate::commands::rounds::show::{RoundView, is_agreed};

pub(crate) const PASSED: u8 = 0;
pub(crate) const NEGATIVE: u8 = 11;
pub(crate) const UNDECIDED: u8 = 12;

/// Default minimum confidence: below it, an answer is more likely wrong than right.
pub(crate) const LEAST: f64 = 0.5;

/// The exit code of a round. The round passes only with a positive answer that the replicas agree
/// on, with at least this confidence.
pub(crate) fn exit_code(round: &RoundView<'_>, least: f64) -> u8 {
    if !is_agreed(round) || is_below(round.confidence, least) {
        return UNDECIDED;
    }
    match round.label {
        Some("VALID" | "TRUE" | "OK") => PASSED,
        Some("INVALID" | "FALSE" | "INVALID_OUTPUT") => NEGATIVE,
        Some(_) | None => UNDECIDED,
    }
}

/// Whether a confidence is too low. An unknown confidence suffices up to the default minimum only.
pub(crate) fn is_below(confidence: Option<f64>, least: f64) -> bool {
    confidence.map_or(LEAST < least, |confidence| confidence < least)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::rounds::show::samples::consensus;

    #[test]
    fn only_an_agreed_positive_answer_passes() {
        let agreed = consensus(json!({"outcome": "agreed", "disagreement": false}));
        let split = consensus(json!({"outcome": "split", "disagreement": true}));
        let (agreed, split) = (Some(&agreed), Some(&split));
        for (label, confidence, consensus, expected) in [
            (Some("VALID"), None, agreed, 0),
            (Some("TRUE"), None, agreed, 0),
            (Some("OK"), None, agreed, 0),
            (Some("INVALID"), None, agreed, 11),
            (Some("FALSE"), None, agreed, 11),
            (Some("INVALID_OUTPUT"), None, agreed, 11),
            (Some("UNSURE"), None, agreed, 12),
            (Some("VALID"), Some(0.5), agreed, 0),
            (Some("VALID"), Some(0.499), agreed, 12),
            (Some("INVALID"), Some(0.2), agreed, 12),
            (Some("VALID"), None, split, 12),
            (None, None, split, 12),
            (Some("NO_CONSENSUS"), None, split, 12),
            (Some("VALID"), None, None, 0),
            (Some("TIMEOUT"), None, None, 12),
            (Some("NEEDS_SPEC"), None, None, 12),
            (None, None, None, 12),
        ] {
            let round = RoundView { label, confidence, consensus, ..RoundView::default() };
            assert_eq!(exit_code(&round, LEAST), expected, "for {round:?}");
        }
    }

    #[test]
    fn a_gate_requires_the_requested_confidence() {
        let agreed = consensus(json!({"outcome": "agreed", "disagreement": false}));
        let answer = |word| RoundView {
            label: Some(word),
            confidence: Some(0.8),
            consensus: Some(&agreed),
            ..RoundView::default()
        };
        for (least, valid, invalid) in [(0.0, 0, 11), (0.8, 0, 11), (0.81, 12, 12), (1.0, 12, 12)] {
            assert_eq!(exit_code(&answer("VALID"), least), valid, "{least}");
            assert_eq!(exit_code(&answer("INVALID"), least), invalid, "{least}");
        }
        // An answer without a confidence is not sure enough.
        let unknown = RoundView { label: Some("VALID"), ..RoundView::default() };
        assert_eq!(exit_code(&unknown, 0.6), 12);
    }
}

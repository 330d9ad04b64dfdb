//! `--gate`: the exit code that stops a pipeline.

use serde_json::Value;

use crate::commands::rounds::show::label;

pub(crate) const PASSED: u8 = 0;
pub(crate) const NEGATIVE: u8 = 11;
pub(crate) const UNDECIDED: u8 = 12;

/// Below this an answer is more likely wrong than right.
pub(crate) const LEAST: f64 = 0.5;

/// The exit code of a reply. Only a positive answer that was agreed on, and is as sure as was asked
/// for, passes.
pub(crate) fn exit_code(body: &Value, least: f64) -> u8 {
    // A reply of v2 has no consensus block: one replica cannot disagree.
    let consensus = body.get("consensus");
    if consensus.is_some_and(|it| it["outcome"] != "agreed" || it["disagreement"] == true) {
        return UNDECIDED;
    }
    if is_below(body, least) {
        return UNDECIDED;
    }
    match label(body).as_str() {
        Some("VALID" | "TRUE" | "OK") => PASSED,
        Some("INVALID" | "FALSE" | "INVALID_OUTPUT") => NEGATIVE,
        Some(_) | None => UNDECIDED,
    }
}

/// Whether what was decided is less sure than this. Whoever asks for more than the usual wants to
/// hear how sure it is.
pub(crate) fn is_below(body: &Value, least: f64) -> bool {
    body["confidence"].as_f64().map_or(LEAST < least, |confidence| confidence < least)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_agreed_positive_answer_passes() {
        let agreed = json!({"outcome": "agreed", "disagreement": false});
        let split = json!({"outcome": "split", "disagreement": true});
        for (body, expected) in [
            (json!({"verdict": "VALID", "consensus": agreed}), 0),
            (json!({"verdict": "TRUE", "consensus": agreed}), 0),
            (json!({"status": "OK", "output": {}, "consensus": agreed}), 0),
            (json!({"verdict": "INVALID", "consensus": agreed}), 11),
            (json!({"verdict": "FALSE", "consensus": agreed}), 11),
            (json!({"status": "INVALID_OUTPUT", "consensus": agreed}), 11),
            (json!({"verdict": "UNSURE", "consensus": agreed}), 12),
            (json!({"verdict": "VALID", "confidence": 0.5, "consensus": agreed}), 0),
            (json!({"verdict": "VALID", "confidence": 0.499, "consensus": agreed}), 12),
            (json!({"verdict": "INVALID", "confidence": 0.2, "consensus": agreed}), 12),
            (json!({"verdict": "VALID", "consensus": split}), 12),
            (json!({"verdict": null, "consensus": split}), 12),
            (json!({"status": "NO_CONSENSUS", "consensus": split}), 12),
            (json!({"verdict": "VALID", "session_id": "a"}), 0),
            (json!({"verdict": "TIMEOUT", "session_id": "a"}), 12),
            (json!({"verdict": "NEEDS_SPEC", "session_id": "a"}), 12),
            (json!({}), 12),
        ] {
            assert_eq!(exit_code(&body, LEAST), expected, "for {body}");
        }
    }

    #[test]
    fn a_gate_requires_the_requested_confidence() {
        let agreed = json!({"outcome": "agreed", "disagreement": false});
        let answer = |word: &str| json!({"verdict": word, "confidence": 0.8, "consensus": agreed});
        for (least, valid, invalid) in [(0.0, 0, 11), (0.8, 0, 11), (0.81, 12, 12), (1.0, 12, 12)] {
            assert_eq!(exit_code(&answer("VALID"), least), valid, "{least}");
            assert_eq!(exit_code(&answer("INVALID"), least), invalid, "{least}");
        }
        // One that does not say how sure it is cannot be sure enough.
        assert_eq!(exit_code(&json!({"verdict": "VALID"}), 0.6), 12);
    }
}

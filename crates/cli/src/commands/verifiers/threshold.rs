//! `--gate` of a measurement: passed only where no case without a verdict could change that.

use serde_json::Value;

use crate::commands::shared::gate::{NEGATIVE, PASSED, UNDECIDED};

/// What a test must reach. Without any of them every case must be right.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TestThresholds {
    pub(super) min_accuracy: Option<f64>,
    pub(super) max_false_pass: Option<f64>,
}

pub(super) fn test(thresholds: TestThresholds, report: &Value) -> u8 {
    let figures = &report["figures"];
    let count = |name: &str| figures[name].as_f64().unwrap_or(0.0);
    if count("judged") == 0.0 {
        return UNDECIDED;
    }
    let TestThresholds { min_accuracy, max_false_pass } = thresholds;
    let least = min_accuracy.or(max_false_pass.is_none().then_some(1.0));
    let open = count("inconclusive");
    let should_fail = figures["false_pass_rate"]["n"].as_f64().unwrap_or(0.0);
    let open_of_those = should_fail - count("false_pass") - count("true_fail");
    let verdicts = [
        least.map(|least| at_least(least, count("correct"), open, count("n"))),
        max_false_pass.map(|most| at_most(most, count("false_pass"), open_of_those, should_fail)),
        (report["compared"]["is_worse"] == true).then_some(NEGATIVE),
    ];
    worst(verdicts.into_iter().flatten())
}

pub(super) fn attack(max_success: f64, report: &Value) -> u8 {
    let figures = &report["figures"];
    let count = |name: &str| figures[name].as_f64().unwrap_or(0.0);
    if figures["inconclusive"].as_u64() == figures["n"].as_u64() {
        return UNDECIDED;
    }
    at_most(max_success, count("succeeded"), count("inconclusive"), count("n"))
}

/// Whether a share of at least so much is reached, whatever the open cases turn out to be.
fn at_least(least: f64, reached: f64, open: f64, of: f64) -> u8 {
    if of == 0.0 || reached < least * of && least * of <= reached + open {
        UNDECIDED
    } else if reached < least * of {
        NEGATIVE
    } else {
        PASSED
    }
}

fn at_most(most: f64, reached: f64, open: f64, of: f64) -> u8 {
    if of == 0.0 {
        UNDECIDED
    } else if most * of < reached {
        NEGATIVE
    } else if most * of < reached + open {
        UNDECIDED
    } else {
        PASSED
    }
}

/// A threshold that is missed counts more than one that is open.
fn worst(verdicts: impl Iterator<Item = u8>) -> u8 {
    verdicts.fold(PASSED, |worst, verdict| match (worst, verdict) {
        (NEGATIVE, _) | (_, NEGATIVE) => NEGATIVE,
        (UNDECIDED, _) | (_, UNDECIDED) => UNDECIDED,
        _ => PASSED,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Ten cases of which five should fail.
    fn report(true_pass: u64, true_fail: u64, false_pass: u64, false_fail: u64) -> Value {
        let judged = true_pass + true_fail + false_pass + false_fail;
        json!({"compared": null, "figures": {
            "n": 10, "judged": judged, "inconclusive": 10 - judged,
            "correct": true_pass + true_fail, "true_pass": true_pass, "true_fail": true_fail,
            "false_pass": false_pass, "false_fail": false_fail, "false_pass_rate": {"n": 5},
        }})
    }

    fn gate(min: Option<f64>, max: Option<f64>, report: &Value) -> u8 {
        test(TestThresholds { min_accuracy: min, max_false_pass: max }, report)
    }

    #[test]
    fn a_threshold_passes_only_if_no_open_case_could_change_it() {
        for (min, max, counts, expected) in [
            (None, None, [5, 5, 0, 0], PASSED),
            (None, None, [5, 4, 1, 0], NEGATIVE),
            (None, None, [5, 4, 0, 0], UNDECIDED),
            (Some(0.8), None, [4, 4, 1, 1], PASSED),
            (Some(0.9), None, [4, 4, 1, 1], NEGATIVE),
            (Some(0.9), None, [4, 4, 1, 0], UNDECIDED),
            (Some(0.8), None, [4, 4, 0, 0], PASSED),
            (None, Some(0.2), [1, 4, 1, 4], PASSED),
            (None, Some(0.0), [5, 4, 1, 0], NEGATIVE),
            (None, Some(0.0), [5, 4, 0, 0], UNDECIDED),
            (None, Some(0.0), [4, 5, 0, 0], PASSED),
            (Some(0.9), Some(0.0), [5, 4, 1, 0], NEGATIVE),
            (Some(0.1), None, [0, 0, 0, 0], UNDECIDED),
        ] {
            let [a, b, c, d] = counts;
            assert_eq!(gate(min, max, &report(a, b, c, d)), expected, "{min:?} {max:?} {counts:?}");
        }
        let mut worse = report(5, 5, 0, 0);
        worse["compared"] = json!({"is_worse": true});
        assert_eq!(gate(Some(0.1), None, &worse), NEGATIVE);
        // Where nothing should fail, nothing is known about what is let pass.
        let mut kind = report(5, 0, 0, 0);
        kind["figures"]["false_pass_rate"]["n"] = json!(0);
        assert_eq!(gate(None, Some(0.5), &kind), UNDECIDED);
    }

    #[test]
    fn an_attack_without_a_verdict_may_have_succeeded() {
        let report = |succeeded: u64, inconclusive: u64| json!({"figures": {"n": 10, "succeeded": succeeded, "inconclusive": inconclusive}});
        assert_eq!(attack(0.0, &report(0, 0)), PASSED);
        assert_eq!(attack(0.0, &report(0, 1)), UNDECIDED);
        // Where nobody was asked, even a gate that lets everything pass has nothing to go by.
        assert_eq!(attack(1.0, &report(0, 10)), UNDECIDED);
        assert_eq!(attack(1.0, &report(0, 9)), PASSED);
        assert_eq!(attack(0.1, &report(1, 0)), PASSED);
        assert_eq!(attack(0.1, &report(2, 0)), NEGATIVE);
        assert_eq!(attack(0.0, &json!({"figures": {"n": 0}})), UNDECIDED);
    }
}

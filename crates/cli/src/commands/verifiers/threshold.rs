//! `--gate` of a measurement: it passes only if no case without a verdict could change the result.

use jurat_wire::api::verifier_tests::MeasurementScores;

use crate::commands::shared::gate::{NEGATIVE, PASSED, UNDECIDED};

/// The thresholds of a test. Without any, every case must be right.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TestThresholds {
    pub(super) min_accuracy: Option<f64>,
    pub(super) max_false_pass: Option<f64>,
}

pub(super) fn test(thresholds: TestThresholds, scores: &MeasurementScores, is_worse: bool) -> u8 {
    if scores.judged == 0 {
        return UNDECIDED;
    }
    let TestThresholds { min_accuracy, max_false_pass } = thresholds;
    let least = min_accuracy.or(max_false_pass.is_none().then_some(1.0));
    let should_fail = scores.false_pass_rate.map_or(0, |rate| rate.n);
    let known = scores.false_pass.saturating_add(scores.true_fail);
    let all = CaseCounts { reached: scores.correct, open: scores.inconclusive, of: scores.n };
    let failing = CaseCounts {
        reached: scores.false_pass,
        open: should_fail.saturating_sub(known),
        of: should_fail,
    };
    let verdicts = [
        least.map(|least| at_least(least, all)),
        max_false_pass.map(|most| at_most(most, failing)),
        is_worse.then_some(NEGATIVE),
    ];
    worst(verdicts.into_iter().flatten())
}

pub(super) fn attack(max_success: f64, scores: &MeasurementScores) -> u8 {
    if scores.inconclusive == scores.n {
        return UNDECIDED;
    }
    let counts = CaseCounts { reached: scores.succeeded, open: scores.inconclusive, of: scores.n };
    at_most(max_success, counts)
}

/// Numbers of cases: those that count towards the share, those without a verdict, and all.
#[derive(Debug, Clone, Copy)]
struct CaseCounts {
    reached: u32,
    open: u32,
    of: u32,
}

impl CaseCounts {
    /// The counts as numbers to compare with shares: reached, open and all.
    fn numbers(self) -> [f64; 3] {
        [self.reached, self.open, self.of].map(f64::from)
    }
}

/// Whether the share is at least `least`, whatever the verdicts on the open cases.
fn at_least(least: f64, counts: CaseCounts) -> u8 {
    let [reached, open, of] = counts.numbers();
    if of == 0.0 || reached < least * of && least * of <= reached + open {
        UNDECIDED
    } else if reached < least * of {
        NEGATIVE
    } else {
        PASSED
    }
}

fn at_most(most: f64, counts: CaseCounts) -> u8 {
    let [reached, open, of] = counts.numbers();
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

/// The worst result: a missed threshold outweighs an undecided one.
fn worst(verdicts: impl Iterator<Item = u8>) -> u8 {
    verdicts.fold(PASSED, |worst, verdict| match (worst, verdict) {
        (NEGATIVE, _) | (_, NEGATIVE) => NEGATIVE,
        (UNDECIDED, _) | (_, UNDECIDED) => UNDECIDED,
        _ => PASSED,
    })
}

#[cfg(test)]
mod tests {
    use jurat_wire::api::verifier_tests::MeasuredRate;

    use super::*;

    /// Ten cases of which five should fail.
    fn scores([true_pass, true_fail, false_pass, false_fail]: [u32; 4]) -> MeasurementScores {
        let judged = true_pass + true_fail + false_pass + false_fail;
        MeasurementScores {
            n: 10,
            judged,
            inconclusive: 10 - judged,
            correct: true_pass + true_fail,
            true_pass,
            true_fail,
            false_pass,
            false_fail,
            false_pass_rate: Some(MeasuredRate { n: 5, ..MeasuredRate::default() }),
            ..MeasurementScores::default()
        }
    }

    fn gate(min: Option<f64>, max: Option<f64>, scores: &MeasurementScores) -> u8 {
        test(TestThresholds { min_accuracy: min, max_false_pass: max }, scores, false)
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
            assert_eq!(gate(min, max, &scores(counts)), expected, "{min:?} {max:?} {counts:?}");
        }
        let thresholds = TestThresholds { min_accuracy: Some(0.1), max_false_pass: None };
        assert_eq!(test(thresholds, &scores([5, 5, 0, 0]), true), NEGATIVE);
        // Without a case that should fail, nothing is known about false passes.
        let kind = MeasurementScores { false_pass_rate: None, ..scores([5, 0, 0, 0]) };
        assert_eq!(gate(None, Some(0.5), &kind), UNDECIDED);
    }

    #[test]
    fn an_attack_without_a_verdict_may_have_succeeded() {
        let scores = |succeeded, inconclusive| MeasurementScores {
            n: 10,
            succeeded,
            inconclusive,
            ..MeasurementScores::default()
        };
        assert_eq!(attack(0.0, &scores(0, 0)), PASSED);
        assert_eq!(attack(0.0, &scores(0, 1)), UNDECIDED);
        // Without any verdict, even the most lenient gate cannot pass.
        assert_eq!(attack(1.0, &scores(0, 10)), UNDECIDED);
        assert_eq!(attack(1.0, &scores(0, 9)), PASSED);
        assert_eq!(attack(0.1, &scores(1, 0)), PASSED);
        assert_eq!(attack(0.1, &scores(2, 0)), NEGATIVE);
        assert_eq!(attack(0.0, &MeasurementScores::default()), UNDECIDED);
    }
}

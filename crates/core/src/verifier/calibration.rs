//! Measures a judge on cases with known answers.
//!
//! The formulas are in `docs/reference/calibration.md`.

use std::collections::BTreeMap;

use crate::round::consensus::reliability_prior;

/// A case with a known answer, and the verdict of the judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalibrationCase {
    pub expected: bool,
    /// `None` if the judge gave no verdict.
    pub got: Option<bool>,
}

impl CalibrationCase {
    fn is_right(self) -> bool {
        self.got == Some(self.expected)
    }
}

/// A proportion with its 95 % Wilson interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The numerator; `n` is the denominator.
    pub count: u64,
    pub n: u64,
    /// `None` if `n` is zero.
    pub value: Option<f64>,
    pub low: f64,
    pub high: f64,
}

/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Rate {
    /// The proportion `of` / `n` with its interval.
    #[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^52")]
    pub fn of(of: usize, n: usize) -> Self {
        let (count, cases) = (of as f64, n as f64);
        if n == 0 {
            return Self { count: 0, n: 0, value: None, low: 0.0, high: 1.0 };
        }
        let share = count / cases;
        let z2 = Z * Z;
        let centre = share + z2 / (2.0 * cases);
        let spread = Z * ((share * (1.0 - share) + z2 / (4.0 * cases)) / cases).sqrt();
        let scale = 1.0 + z2 / cases;
        // At the ends the formula gives 0 and 1, except for rounding.
        let low = if of == 0 { 0.0 } else { ((centre - spread) / scale).max(0.0) };
        let high = if of == n { 1.0 } else { ((centre + spread) / scale).min(1.0) };
        Self { count: of as u64, n: n as u64, value: Some(share), low, high }
    }
}

/// The measured quality of a judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CalibrationStats {
    pub n: usize,
    /// Cases with a verdict.
    pub judged: usize,
    pub inconclusive: usize,
    pub correct: usize,
    pub true_pass: usize,
    pub false_pass: usize,
    pub true_fail: usize,
    pub false_fail: usize,
    /// A case without a verdict counts as wrong.
    pub accuracy: Rate,
    /// The share of passes among cases that should fail.
    pub false_pass_rate: Rate,
    /// The share of failures among cases that should pass.
    pub false_fail_rate: Rate,
    pub inconclusive_rate: Rate,
    /// Cohen's kappa over the cases with a verdict; `None` if chance alone would agree on all.
    pub kappa: Option<f64>,
}

impl CalibrationStats {
    /// Counts the cases.
    pub fn of(cases: &[CalibrationCase]) -> Self {
        let count = |expected: bool, got: Option<bool>| {
            cases.iter().filter(|case| case.expected == expected && case.got == got).count()
        };
        let (true_pass, false_pass) = (count(true, Some(true)), count(false, Some(true)));
        let (true_fail, false_fail) = (count(false, Some(false)), count(true, Some(false)));
        let n = cases.len();
        let judged = true_pass + false_pass + true_fail + false_fail;
        let correct = true_pass + true_fail;
        let should_pass = cases.iter().filter(|case| case.expected).count();
        Self {
            n,
            judged,
            inconclusive: n - judged,
            correct,
            true_pass,
            false_pass,
            true_fail,
            false_fail,
            accuracy: Rate::of(correct, n),
            false_pass_rate: Rate::of(false_pass, n - should_pass),
            false_fail_rate: Rate::of(false_fail, should_pass),
            inconclusive_rate: Rate::of(n - judged, n),
            kappa: kappa([true_pass, false_fail, false_pass, true_fail]),
        }
    }
}

/// Agreement beyond chance, from the table of labels (rows) and verdicts (columns).
#[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^52")]
fn kappa([pass_pass, pass_fail, fail_pass, fail_fail]: [usize; 4]) -> Option<f64> {
    let n = (pass_pass + pass_fail + fail_pass + fail_fail) as f64;
    if n == 0.0 {
        return None;
    }
    let observed = (pass_pass + fail_fail) as f64 / n;
    let labels = (pass_pass + pass_fail) as f64 / n;
    let verdicts = (pass_pass + fail_pass) as f64 / n;
    let chance = labels * verdicts + (1.0 - labels) * (1.0 - verdicts);
    // All labels and all verdicts are equal, so the judge distinguished nothing.
    if 1.0 - chance < 1e-12 {
        return None;
    }
    Some((observed - chance) / (1.0 - chance))
}

/// A case on which two versions differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictFlip {
    pub id: String,
    pub expected: bool,
    pub before: Option<bool>,
    pub after: Option<bool>,
}

/// Two versions compared on their common cases.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationComparison {
    pub common: usize,
    pub flips: Vec<VerdictFlip>,
    /// Whether more of the common cases are wrong than before.
    pub is_worse: bool,
    /// The probability of at least this difference if both are equally good (exact `McNemar` test).
    pub p_value: f64,
}

/// Compares two versions case by case, by the identifiers of the cases.
pub fn compare(
    before: &[(String, CalibrationCase)],
    after: &[(String, CalibrationCase)],
) -> CalibrationComparison {
    let earlier: BTreeMap<&str, CalibrationCase> =
        before.iter().map(|(id, case)| (id.as_str(), *case)).collect();
    let (mut common, mut flips, mut better, mut worse) = (0, Vec::new(), 0, 0);
    for (id, case) in after {
        let Some(was) = earlier.get(id.as_str()) else { continue };
        common += 1;
        match (was.is_right(), case.is_right()) {
            (true, false) => worse += 1,
            (false, true) => better += 1,
            (true, true) | (false, false) => {}
        }
        if was.got != case.got {
            let (before, after) = (was.got, case.got);
            flips.push(VerdictFlip { id: id.clone(), expected: case.expected, before, after });
        }
    }
    CalibrationComparison {
        common,
        flips,
        is_worse: better < worse,
        p_value: mcnemar(better, worse),
    }
}

/// The probability that at least as many of the changes go one way, if both ways are equally
/// likely.
fn mcnemar(better: u32, worse: u32) -> f64 {
    let changes = better + worse;
    let fewer = better.min(worse);
    // Each term of the binomial distribution follows from the previous one, in logarithms for large
    // counts.
    let mut term = -f64::from(changes) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for k in 0..=fewer {
        tail += term.exp();
        term += f64::from(changes - k).ln() - f64::from(k + 1).ln();
    }
    (2.0 * tail).min(1.0)
}

/// Fewer cases add nothing to the prior.
const FEWEST: usize = 5;

/// The probability that a verdict of this judge is right, for the consensus to use.
///
/// The mean of a Beta distribution whose prior has one more right case than wrong ones, over the
/// cases with a verdict. It is never below one half, because such a judge should not be used, and
/// never reaches certainty. Cases with one label prove nothing, because a judge that always gives
/// that verdict is right on all of them. A judge that agrees with the labels only by chance earns
/// nothing above the prior.
#[expect(clippy::cast_precision_loss, reason = "counts of cases are far below 2^52")]
pub fn reliability(stats: &CalibrationStats) -> Option<f64> {
    let should_pass = stats.true_pass + stats.false_fail;
    let should_fail = stats.true_fail + stats.false_pass;
    if stats.judged < FEWEST || should_pass == 0 || should_fail == 0 {
        return None;
    }
    let mean = (stats.correct as f64 + 2.0) / (stats.judged as f64 + 3.0);
    let is_chance = stats.kappa.is_none_or(|kappa| kappa <= 0.0);
    let most = if is_chance { reliability_prior(None) } else { 0.99 };
    Some(mean.clamp(0.5, most))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cases(counts: [usize; 6]) -> Vec<CalibrationCase> {
        let kinds = [
            (true, Some(true)),
            (false, Some(true)),
            (false, Some(false)),
            (true, Some(false)),
            (true, None),
            (false, None),
        ];
        let case = |((expected, got), count): ((bool, Option<bool>), usize)| {
            std::iter::repeat_n(CalibrationCase { expected, got }, count)
        };
        kinds.into_iter().zip(counts).flat_map(case).collect()
    }

    fn near(left: f64, right: f64) -> bool {
        (left - right).abs() < 0.000_5
    }

    #[test]
    fn wilson_intervals_match_published_tables() {
        let check = |of, n, low, high| {
            let rate = Rate::of(of, n);
            assert!(near(rate.low, low) && near(rate.high, high), "{rate:?}");
        };
        check(8, 10, 0.4902, 0.9433);
        check(0, 10, 0.0, 0.2775);
        check(10, 10, 0.7225, 1.0);
        // The four cases of Newcombe (1998), score method without correction.
        check(81, 263, 0.2553, 0.3662);
        check(15, 148, 0.0624, 0.1605);
        check(0, 20, 0.0, 0.1611);
        check(1, 29, 0.0061, 0.1718);
        let nothing = Rate::of(0, 0);
        assert_eq!((nothing.value, nothing.low, nothing.high), (None, 0.0, 1.0));
    }

    #[test]
    fn kappa_matches_the_textbook() {
        // Of 50 cases, 20 are yes for both, 15 no for both, 5 and 10 differ: observed 0.7, by
        // chance 0.5.
        let stats = CalibrationStats::of(&cases([20, 10, 15, 5, 0, 0]));
        assert!(near(stats.kappa.unwrap(), 0.4));
        assert_eq!(CalibrationStats::of(&cases([5, 0, 5, 0, 0, 0])).kappa, Some(1.0));
        assert_eq!(CalibrationStats::of(&cases([5, 5, 0, 0, 0, 0])).kappa, Some(0.0));
        assert_eq!(CalibrationStats::of(&cases([5, 0, 0, 0, 0, 0])).kappa, None);
        assert_eq!(CalibrationStats::of(&[]).kappa, None);
    }

    #[test]
    fn a_case_without_a_verdict_counts_as_wrong() {
        let stats = CalibrationStats::of(&cases([3, 1, 2, 0, 1, 3]));
        assert_eq!((stats.n, stats.judged, stats.inconclusive), (10, 6, 4));
        assert_eq!(stats.accuracy.value, Some(0.5));
        assert_eq!((stats.false_pass_rate.count, stats.false_pass_rate.n), (1, 6));
        assert_eq!((stats.false_fail_rate.count, stats.false_fail_rate.n), (0, 4));
    }

    #[test]
    fn flips_are_found_by_name_and_a_worse_version_is_reported() {
        let said = |id: &str, expected, got| (id.to_owned(), CalibrationCase { expected, got });
        let before =
            [said("a", true, Some(true)), said("b", false, Some(false)), said("gone", true, None)];
        let after =
            [said("b", false, Some(true)), said("a", true, Some(true)), said("new", true, None)];
        let compared = compare(&before, &after);
        assert_eq!(compared.common, 2);
        let flip = VerdictFlip {
            id: "b".to_owned(),
            expected: false,
            before: Some(false),
            after: Some(true),
        };
        assert_eq!(compared.flips, [flip]);
        assert!(compared.is_worse);
        assert!(near(compared.p_value, 1.0));
    }

    #[test]
    fn the_exact_test_tells_noise_from_a_difference() {
        assert!(near(mcnemar(0, 0), 1.0));
        assert!(near(mcnemar(1, 9), 0.0215));
        assert!(near(mcnemar(0, 10), 0.0020));
        assert!(near(mcnemar(500, 500), 1.0));
    }

    #[test]
    fn reliability_needs_cases_and_is_never_certain() {
        assert_eq!(reliability(&CalibrationStats::of(&cases([2, 0, 2, 0, 0, 0]))), None);
        let good = reliability(&CalibrationStats::of(&cases([10, 0, 9, 1, 0, 0]))).unwrap();
        assert!(near(good, 21.0 / 23.0));
        let bad = reliability(&CalibrationStats::of(&cases([0, 20, 0, 20, 0, 0])));
        assert_eq!(bad, Some(0.5));
        let perfect = reliability(&CalibrationStats::of(&cases([5_000, 0, 5_000, 0, 0, 0])));
        assert_eq!(perfect, Some(0.99));
    }

    #[test]
    fn a_judge_with_one_constant_verdict_earns_no_reliability() {
        for counts in [[50, 0, 0, 0, 0, 0], [0, 0, 50, 0, 0, 0], [50, 0, 0, 0, 0, 9]] {
            assert_eq!(reliability(&CalibrationStats::of(&cases(counts))), None, "{counts:?}");
        }
        // Right on 97 of 100, but no better than a judge that passes everything.
        let passes_all = reliability(&CalibrationStats::of(&cases([97, 3, 0, 0, 0, 0])));
        assert_eq!(passes_all, Some(reliability_prior(None)));
        let worse_than_chance = reliability(&CalibrationStats::of(&cases([90, 5, 0, 5, 0, 0])));
        assert_eq!(worse_than_chance, Some(reliability_prior(None)));
    }

    proptest! {
        #[test]
        fn an_interval_contains_its_proportion(n in 1_usize..2_000, part in 0.0_f64..=1.0) {
            #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
            let of = ((n as f64) * part) as usize;
            let rate = Rate::of(of, n);
            let value = rate.value.unwrap();
            prop_assert!(0.0 <= rate.low && rate.low <= value && value <= rate.high && rate.high <= 1.0);
        }

        #[test]
        fn every_case_is_counted_once(counts in proptest::array::uniform6(0_usize..40)) {
            let stats = CalibrationStats::of(&cases(counts));
            prop_assert_eq!(stats.n, counts.iter().sum::<usize>());
            prop_assert_eq!(stats.judged + stats.inconclusive, stats.n);
            let table = stats.true_pass + stats.false_pass + stats.true_fail + stats.false_fail;
            prop_assert_eq!(stats.judged, table);
            if let Some(kappa) = stats.kappa {
                prop_assert!((-1.0..=1.0).contains(&kappa));
            }
        }

        #[test]
        fn a_test_without_a_direction_is_symmetric(left in 0_u32..60, right in 0_u32..60) {
            prop_assert!(near(mcnemar(left, right), mcnemar(right, left)));
            prop_assert!((0.0..=1.0).contains(&mcnemar(left, right)));
        }
    }
}

//! Predicts the cost of the next judgment of a verifier from the usage of earlier ones.

use super::{Price, Tokens};

/// The usage of one judgment, as its provider counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageSample {
    /// The size of its prompt: an upper limit of its tokens. Never 0.
    pub size: u64,
    /// Input and output tokens of all its requests.
    pub tokens: Tokens,
    /// Requests that were answered. Never 0.
    pub requests: u32,
}

/// The latest judgments of a verifier by one judge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageHistory {
    samples: Vec<UsageSample>,
}

impl UsageHistory {
    /// A history of these samples.
    pub fn new(samples: impl IntoIterator<Item = UsageSample>) -> Self {
        let is_sound = |it: &UsageSample| it.size != 0 && it.requests != 0;
        Self { samples: samples.into_iter().filter(is_sound).collect() }
    }

    /// The cost that 95 of 100 judgments with a prompt of this size do not exceed; `None` without a
    /// history. The input grows with the prompt, the output does not.
    pub fn likely_micros(&self, size: u64, price: Price, margin_percent: u32) -> Option<u64> {
        let cost = |it: &UsageSample| {
            let input = scaled(it.tokens.input, size, it.size);
            price.cost_micros(Tokens { input, output: it.tokens.output }, margin_percent)
        };
        percentile(self.samples.iter().map(cost).collect(), 95)
    }

    /// The median number of tokens of one answer.
    pub fn median_answer(&self) -> Option<u64> {
        let answer = |it: &UsageSample| it.tokens.output.div_ceil(u64::from(it.requests));
        percentile(self.samples.iter().map(answer).collect(), 50)
    }

    /// The likely number of tokens of a prompt of this size.
    pub fn prompt_tokens(&self, size: u64) -> Option<u64> {
        let tokens = |it: &UsageSample| {
            scaled(it.tokens.input.div_ceil(u64::from(it.requests)), size, it.size)
        };
        percentile(self.samples.iter().map(tokens).collect(), 50)
    }
}

/// Scales `part` of `whole` to another whole, rounded up.
fn scaled(part: u64, to: u64, whole: u64) -> u64 {
    let scaled = u128::from(part) * u128::from(to);
    u64::try_from(scaled.div_ceil(u128::from(whole.max(1)))).unwrap_or(u64::MAX)
}

/// The smallest value that this percentage of the values does not exceed.
fn percentile(mut values: Vec<u64>, percent: usize) -> Option<u64> {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PRICE: Price =
        Price { input_micros_per_million: 3_000_000, output_micros_per_million: 15_000_000 };

    fn sample(size: u64, input: u64, output: u64) -> UsageSample {
        UsageSample { size, tokens: Tokens { input, output }, requests: 1 }
    }

    #[test]
    fn nothing_is_predicted_without_a_history() {
        let history = UsageHistory::default();
        assert_eq!(history.likely_micros(1_000, PRICE, 0), None);
        assert_eq!(history.median_answer(), None);
        assert_eq!(history.prompt_tokens(1_000), None);
        let unsound = [sample(0, 5, 5), UsageSample { requests: 0, ..sample(5, 5, 5) }];
        assert_eq!(UsageHistory::new(unsound), UsageHistory::default());
    }

    #[test]
    fn the_likely_cost_ignores_one_judgment_of_twenty() {
        let mut samples = vec![sample(1_000, 250, 10); 19];
        samples.push(sample(1_000, 250, 2_048));
        let history = UsageHistory::new(samples.clone());
        assert_eq!(history.likely_micros(1_000, PRICE, 0), Some(250 * 3 + 10 * 15));
        // A prompt of twice the size has twice the input.
        assert_eq!(history.likely_micros(2_000, PRICE, 0), Some(500 * 3 + 10 * 15));
        samples.push(sample(1_000, 250, 2_048));
        let history = UsageHistory::new(samples);
        assert_eq!(history.likely_micros(1_000, PRICE, 0), Some(250 * 3 + 2_048 * 15));
        assert_eq!((history.median_answer(), history.prompt_tokens(4)), (Some(10), Some(1)));
    }

    #[test]
    fn the_median_answer_is_counted_per_request() {
        let twice = UsageSample { requests: 2, ..sample(1_000, 500, 41) };
        let history = UsageHistory::new([twice]);
        assert_eq!((history.median_answer(), history.prompt_tokens(1_000)), (Some(21), Some(250)));
    }

    proptest! {
        #[test]
        fn the_likely_cost_is_the_cost_of_one_of_the_samples(samples in proptest::collection::vec((1_u64..10_000, 0_u64..10_000, 0_u64..4_000), 1..120)) {
            let samples: Vec<UsageSample> = samples.into_iter().map(|(size, input, output)| sample(size, input, output)).collect();
            let history = UsageHistory::new(samples.clone());
            let costs: Vec<u64> = samples
                .iter()
                .map(|it| {
                    let input = scaled(it.tokens.input, 5_000, it.size);
                    PRICE.cost_micros(Tokens { input, output: it.tokens.output }, 0)
                })
                .collect();
            let likely = history.likely_micros(5_000, PRICE, 0).unwrap();
            prop_assert!(costs.contains(&likely));
            let below = costs.iter().filter(|cost| **cost <= likely).count();
            prop_assert!(95 * costs.len() <= 100 * below);
        }

        #[test]
        fn a_larger_prompt_never_has_a_lower_likely_cost(size in 1_u64..100_000, more in 0_u64..100_000, input in 0_u64..10_000, output in 0_u64..4_000) {
            let history = UsageHistory::new([sample(1_000, input, output)]);
            let likely = |size| history.likely_micros(size, PRICE, 10);
            prop_assert!(likely(size) <= likely(size + more));
        }
    }
}

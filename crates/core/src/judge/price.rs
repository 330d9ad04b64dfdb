//! The price of a judgment: tokens times price times margin, in whole micro-credits, rounded up.

/// The price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    pub input_micros_per_million: u64,
    pub output_micros_per_million: u64,
}

/// The input and output tokens of one or more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
}

impl Tokens {
    /// The sum of both, saturating.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
        }
    }
}

impl Price {
    /// The cost of all tokens of a judgment. It is rounded once, so it never exceeds the hold for
    /// at least as many tokens.
    pub fn cost_micros(self, tokens: Tokens, margin_percent: u32) -> u64 {
        let input = u128::from(tokens.input) * u128::from(self.input_micros_per_million);
        let output = u128::from(tokens.output) * u128::from(self.output_micros_per_million);
        let percent = 100 + u128::from(margin_percent);
        let cost = input.saturating_add(output).saturating_mul(percent).div_ceil(100_000_000);
        u64::try_from(cost).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price() -> Price {
        Price { input_micros_per_million: 3_000_000, output_micros_per_million: 15_000_000 }
    }

    #[test]
    fn a_cost_is_rounded_up_to_a_whole_micro_credit() {
        let cost = |input, output, margin| price().cost_micros(Tokens { input, output }, margin);
        assert_eq!(cost(1_000, 100, 0), 4_500);
        assert_eq!(cost(1_000, 100, 20), 5_400);
        assert_eq!(cost(1, 0, 0), 3);
        assert_eq!(cost(1, 0, 1), 4);
        assert_eq!(cost(0, 0, 50), 0);
        let free = Price::default();
        assert_eq!(free.cost_micros(Tokens { input: u64::MAX, output: u64::MAX }, 1), 0);
        assert_eq!(cost(u64::MAX, u64::MAX, u32::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(a in 0_u64..1 << 40, b in 0_u64..1 << 40, more in 0_u64..1 << 40, margin in 0_u32..500) {
            let cost = |input, output| price().cost_micros(Tokens { input, output }, margin);
            prop_assert!(cost(a, b) <= cost(a + more, b));
            prop_assert!(cost(a, b) <= cost(a, b + more));
        }
    }
}

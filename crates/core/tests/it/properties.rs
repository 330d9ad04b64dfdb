//! What always holds, tried on many made-up rounds, choices and decisions.

mod checks;
mod choices;
mod decisions;
mod rounds;
mod winners;

use proptest::test_runner::{Config, RngSeed};

/// The same tries in every run, so that a failure is never a matter of luck.
fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(5872), ..Config::default() }
}

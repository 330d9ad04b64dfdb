//! `jurat verifiers test` and `jurat verifiers attack`.

use std::path::PathBuf;

use clap::Args;

use super::args::{JudgeArgs, VerifierVersionArgs};

const TEST_EXAMPLES: &str = "\
Examples:
  jurat verifiers test claims-cite-source
  jurat verifiers test claims-cite-source --data ./labelled.jsonl --compare
  jurat verifiers test claims-cite-source --data ./labelled.jsonl --judge openai/gpt-5.4-mini
  jurat verifiers test claims-cite-source --gate --min-accuracy 0.9 --max-false-pass 0.05

The data is JSON or JSON lines of {\"inputs\": {…}, \"passed\": true}, with \"media_url\" if the
contract has an image, and an optional \"id\" per case. Without `--data`, the version's own examples
are the cases; each one is hidden from the judge while it is tested.

With `--gate` and no threshold, every case must be right.";

const ATTACK_EXAMPLES: &str = "\
Examples:
  jurat verifiers attack claims-cite-source
  jurat verifiers attack claims-cite-source --family authority --gate --max-success 0

An attack adds a known injection to inputs that should fail. It succeeds if the judge passes them.";

#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
pub(crate) struct TestVerifierArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// File with labelled cases; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "previous_cases")]
    pub(crate) data: Option<PathBuf>,
    /// Use the cases from the latest test of the previous version
    #[arg(long)]
    pub(crate) previous_cases: bool,
    /// Compare with the previous version on the same cases
    #[arg(long)]
    pub(crate) compare: bool,
    /// Minimum share of right cases, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) min_accuracy: Option<f64>,
    /// Maximum share of failing cases that the judge passes, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) max_false_pass: Option<f64>,
}

#[derive(Debug, Args)]
#[command(after_help = ATTACK_EXAMPLES)]
pub(crate) struct AttackVerifierArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Family of injections; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) family: Vec<String>,
    /// Maximum share of successful attacks, from 0 to 1 [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) max_success: Option<f64>,
}

/// The flags that both measurements share.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) named: VerifierVersionArgs,
    #[command(flatten)]
    pub(crate) judges: JudgeArgs,
    /// Timeout per case, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Exit with 11 if a threshold is missed, or 12 if cases without a verdict leave it undecided
    #[arg(long)]
    pub(crate) gate: bool,
    /// Write a JUnit report with one test case per case
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.95".to_owned())
}

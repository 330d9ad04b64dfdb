//! `jurat verifiers test` and `jurat verifiers attack`.

use std::path::PathBuf;

use clap::Args;

use super::verifiers::{JudgeArgs, NamedVersion};

const TEST_EXAMPLES: &str = "\
Examples:
  jurat verifiers test claims-cite-source
  jurat verifiers test claims-cite-source --data ./labelled.jsonl --compare
  jurat verifiers test claims-cite-source --data ./labelled.jsonl --judge openai/gpt-5.4-mini
  jurat verifiers test claims-cite-source --gate --min-accuracy 0.9 --max-false-pass 0.05

The data is JSON or JSON lines of {\"inputs\": {…}, \"passed\": true}, with \"media_url\" where the
contract has an image, and \"id\" to name a case. Without it the examples of the version are used,
each of them judged as if the judge had never seen it.

With `--gate` and without a threshold every case must be right.";

const ATTACK_EXAMPLES: &str = "\
Examples:
  jurat verifiers attack claims-cite-source
  jurat verifiers attack claims-cite-source --family authority --gate --max-success 0

An attack puts a known injection into inputs that fail, and succeeds when the judge lets them pass.";

#[derive(Debug, Args)]
#[command(after_help = TEST_EXAMPLES)]
pub(crate) struct TestVerifier {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// File with labelled cases; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "previous_cases")]
    pub(crate) data: Option<PathBuf>,
    /// Takes the cases of the newest test of the version before
    #[arg(long)]
    pub(crate) previous_cases: bool,
    /// Compares with the version before, on the same cases
    #[arg(long)]
    pub(crate) compare: bool,
    /// Least share of the cases that must be right, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) min_accuracy: Option<f64>,
    /// Largest share of the failing cases that may be let pass, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) max_false_pass: Option<f64>,
}

#[derive(Debug, Args)]
#[command(after_help = ATTACK_EXAMPLES)]
pub(crate) struct AttackVerifier {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Family of injections; may be given again; by default all
    #[arg(long, value_name = "NAME")]
    pub(crate) family: Vec<String>,
    /// Largest share of the attacks that may succeed, from 0 to 1; by default 0
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gate")]
    pub(crate) max_success: Option<f64>,
}

/// What both measurements take.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) named: NamedVersion,
    #[command(flatten)]
    pub(crate) judges: JudgeArgs,
    /// Deadline of each case
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Exits with 11 when a threshold is missed, and with 12 when cases without a verdict leave it open
    #[arg(long)]
    pub(crate) gate: bool,
    /// Writes a JUnit file with each case as a test case, for CI systems
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.95".to_owned())
}

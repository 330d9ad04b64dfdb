//! `jurat delegate`, `validate` and `factcheck`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

const DELEGATE_EXAMPLES: &str = "\
Examples:
  jurat delegate --objective 'Name the largest moon of Saturn' --replicas 3
  jurat delegate --objective 'Sum it up' --input '{\"text\": \"…\"}' --schema answer.schema.json
  jurat delegate --objective 'Estimate it' --replicas 3 --aggregation median
  jurat delegate --objective 'Name the total' --equivalence '{\"fields\": [\"/total\"]}' --replicas 3
  jurat delegate --file request.json --json | jq .output";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  jurat validate --claim '12 * 12 = 144' --replicas 5
  jurat validate --claim '{\"output\": {\"n\": 3}}' --schema n.schema.json --gate
  jurat validate --claim '12 * 12 = 144' --replicas 3 --gate --min-confidence 0.8
  jurat validate --claim '12 * 12 = 144' --junit report.xml --junit-name arithmetic --gate
  jurat validate --file request.json --session 201 --session 202 --session 203 --replicas 3
  echo '{\"claim\": \"2 + 2 = 4\"}' | jurat validate --file - --json";

const FACTCHECK_EXAMPLES: &str = "\
Examples:
  jurat factcheck --claim '7 * 8 = 54' --replicas 3
  jurat factcheck --claim 'The bridge is closed today' --mode realtime --tier safe --gate";

#[derive(Debug, Args)]
#[command(after_help = DELEGATE_EXAMPLES)]
pub(crate) struct DelegateArgs {
    /// Job to do
    #[arg(long, value_name = "TEXT")]
    pub(crate) objective: Option<String>,
    /// Input of the job
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// JSON Schema for every answer: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) schema: Option<String>,
    /// Task type to request from executors [default: `delegate`]
    #[arg(long, value_name = "NAME")]
    pub(crate) task_type: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub(crate) struct ValidateArgs {
    /// Claim or output to judge: text, or JSON that starts with `{`, `[` or `"`
    #[arg(long, value_name = "TEXT|JSON")]
    pub(crate) claim: Option<String>,
    /// JSON Schema for the output: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) schema: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = FACTCHECK_EXAMPLES)]
pub(crate) struct FactcheckArgs {
    /// Claim to check: text, or JSON that starts with `{`, `[` or `"`
    #[arg(long, value_name = "TEXT|JSON")]
    pub(crate) claim: Option<String>,
    /// `realtime` asks executors to use current information
    #[arg(long, value_parser = ["standard", "realtime"])]
    pub(crate) mode: Option<String>,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

/// The policy that candidates are checked under.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Policy to check under, such as `vp.schema_thresholds.v1`
    #[arg(long, value_name = "ID")]
    pub(crate) policy: Option<String>,
    /// Parameters of the policy
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
}

/// The flags that all three requests share. They override the fields of the file.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// File with the request; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Additional context for the executors
    #[arg(long, value_name = "JSON")]
    pub(crate) context: Option<String>,
    /// Number of replicas: 1, 3 or 5
    #[arg(long, value_name = "N")]
    pub(crate) replicas: Option<u64>,
    /// Session to use, or `label:…` or `profile:…`; repeatable
    #[arg(long, value_name = "ID")]
    pub(crate) session: Vec<String>,
    /// Number of spare sessions that can replace failed ones; 0 for none
    #[arg(long, value_name = "N")]
    pub(crate) spares: Option<u32>,
    /// Tier of the sessions; also sets the number of replicas unless --replicas does
    #[arg(long, value_parser = ["fast", "safe", "oracle"])]
    pub(crate) tier: Option<String>,
    /// Label that the sessions must have; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Behaviour if there is no majority
    #[arg(long, value_parser = ["return_all", "fail_hard", "best_effort"])]
    pub(crate) disagreement_policy: Option<String>,
    /// How to combine answers: by majority or, for numbers, their mean or median
    #[arg(long, value_parser = ["majority", "mean", "median"])]
    pub(crate) aggregation: Option<String>,
    /// How to compare outputs: `canonical`, `text`, `unordered`, or JSON such as
    /// `{"numeric": {"tolerance": 0.01}}`
    #[arg(long, value_name = "WORD|JSON")]
    pub(crate) equivalence: Option<String>,
    /// How to count a replica that does not answer
    #[arg(long, value_parser = ["count", "ignore", "negative"])]
    pub(crate) timeout_policy: Option<String>,
    /// Minimum share of the replicas that must agree
    #[arg(long, value_name = "SHARE")]
    pub(crate) min_agreement: Option<f64>,
    /// Stop when no outstanding replica can change the winner
    #[arg(long)]
    pub(crate) early_stop: bool,
    /// Timeout of the round, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Version of the API
    #[arg(long, value_enum, default_value_t = ApiVersionArg::V3)]
    pub(crate) api: ApiVersionArg,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Print the round and exit; it continues on the server
    #[arg(long = "async", conflicts_with_all = ["gate", "junit"])]
    pub(crate) is_async: bool,
    /// Exit with 11 if the answer is negative, or 12 if there is none or its confidence is too low
    #[arg(long)]
    pub(crate) gate: bool,
    /// Minimum confidence for `--gate` and `--junit`, from 0 to 1; below it the answer is
    /// inconclusive [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) min_confidence: Option<f64>,
    /// Write a JUnit report with the round as a test case
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Name of the test case [default: the claim or the objective]
    #[arg(long, value_name = "NAME", requires = "junit")]
    pub(crate) junit_name: Option<String>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.8".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApiVersionArg {
    V2,
    V3,
}

impl ApiVersionArg {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        }
    }
}

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
pub(crate) struct Delegate {
    /// What is to be done
    #[arg(long, value_name = "TEXT")]
    pub(crate) objective: Option<String>,
    /// What it is to be done with
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// JSON Schema that every answer must satisfy: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) schema: Option<String>,
    /// Task type that the executors are asked for, instead of `delegate`
    #[arg(long, value_name = "NAME")]
    pub(crate) task_type: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub(crate) struct Validate {
    /// What is to be judged: text, or JSON that begins with `{`, `[` or `"`
    #[arg(long, value_name = "TEXT|JSON")]
    pub(crate) claim: Option<String>,
    /// JSON Schema that the output must satisfy: a file, or the schema itself
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) schema: Option<String>,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

#[derive(Debug, Args)]
#[command(after_help = FACTCHECK_EXAMPLES)]
pub(crate) struct Factcheck {
    /// What is to be checked: text, or JSON that begins with `{`, `[` or `"`
    #[arg(long, value_name = "TEXT|JSON")]
    pub(crate) claim: Option<String>,
    /// Whether the executors should look at the world as it is now
    #[arg(long, value_parser = ["standard", "realtime"])]
    pub(crate) mode: Option<String>,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
}

/// Under which policy candidates are checked.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Policy that decides, such as `vp.schema_thresholds.v1`
    #[arg(long, value_name = "ID")]
    pub(crate) policy: Option<String>,
    /// Parameters of the policy
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
}

/// What the three requests have in common. Flags override the fields of the file.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// File with the request; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What the executors should know beside it
    #[arg(long, value_name = "JSON")]
    pub(crate) context: Option<String>,
    /// How many sessions are asked: 1, 3 or 5
    #[arg(long, value_name = "N")]
    pub(crate) replicas: Option<u64>,
    /// Session that may be asked, or `label:…`, or `profile:…`; may be given again
    #[arg(long, value_name = "ID")]
    pub(crate) session: Vec<String>,
    /// How many more sessions may be asked in the place of those that fail; 0 for none
    #[arg(long, value_name = "N")]
    pub(crate) spares: Option<u64>,
    /// Tier of the sessions; also sets the replicas when they are not given
    #[arg(long, value_parser = ["fast", "safe", "oracle"])]
    pub(crate) tier: Option<String>,
    /// Label that the sessions must have; may be given again
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// What happens when there is no majority
    #[arg(long, value_parser = ["return_all", "fail_hard", "best_effort"])]
    pub(crate) disagreement_policy: Option<String>,
    /// How answers become one: the majority, or for numbers their mean or median
    #[arg(long, value_parser = ["majority", "mean", "median"])]
    pub(crate) aggregation: Option<String>,
    /// When two outputs are the same: `canonical`, `text`, `unordered`, or JSON such as
    /// `{"numeric": {"tolerance": 0.01}}`
    #[arg(long, value_name = "WORD|JSON")]
    pub(crate) equivalence: Option<String>,
    /// What the silence of a replica does to the count
    #[arg(long, value_parser = ["count", "ignore", "negative"])]
    pub(crate) timeout_policy: Option<String>,
    /// Least share of the replicas that must agree
    #[arg(long, value_name = "SHARE")]
    pub(crate) min_agreement: Option<f64>,
    /// Stops when no outstanding replica can change the winner
    #[arg(long)]
    pub(crate) early_stop: bool,
    /// Deadline of the round
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Version of the API
    #[arg(long, value_enum, default_value_t = Api::V3)]
    pub(crate) api: Api,
    /// Makes it safe to repeat the command: the same key and request are done once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Does not wait: prints the round, which goes on in the server
    #[arg(long = "async", conflicts_with_all = ["gate", "junit"])]
    pub(crate) is_async: bool,
    /// Exits with 11 when the answer is negative, with 12 when there is none or it is not sure enough
    #[arg(long)]
    pub(crate) gate: bool,
    /// Least confidence of an answer that `--gate` and `--junit` take for one, from 0 to 1; below it
    /// the answer is inconclusive [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) min_confidence: Option<f64>,
    /// Writes a JUnit file with the round as a test case, for CI systems
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Name of the test case; by default the claim or the objective
    #[arg(long, value_name = "NAME", requires = "junit")]
    pub(crate) junit_name: Option<String>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1, such as 0.8".to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Api {
    V2,
    V3,
}

impl Api {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "v2",
            Self::V3 => "v3",
        }
    }
}

//! `jurat verifiers`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::measure_args::{AttackVerifierArgs, TestVerifierArgs};

const DEPLOY_EXAMPLES: &str = "\
Examples:
  jurat verifiers deploy ./claims-cite-source.json
  cat ./claims-cite-source.json | jurat verifiers deploy -
  jurat verifiers deploy ./claims-cite-source.json --expected-version-token 5d41402abc4b2a76

The file is one JSON object: name, description, criterion, input_contract, input_fields,
few_shot_examples and model_settings. The first deploy of a name creates a verifier; each later one
adds a version, and needs the version token that the previous deploy printed.

If the previous version was measured, the new one is measured on the same examples, and you get a
warning if it does worse. `--no-test` skips the measurement.";

const RUN_EXAMPLES: &str = "\
Examples:
  jurat verifiers run claims-cite-source --inputs-json '{\"response\": \"…\", \"source\": \"…\"}'
  jurat verifiers run claims-cite-source --input response='It rains.' --input source='It rains.'
  jurat verifiers run claims-cite-source --inputs-file ./inputs.json --version 2 --gate
  jurat verifiers run tone --inputs-file - --replicas 3 --judge openai/gpt-5.4-mini --json

The exit code is 0 for PASS and FAIL, and 1 if the judge could not answer. With `--gate` it is 11
for FAIL and 12 if there is no verdict.";

const RUNS_EXAMPLES: &str = "\
Examples:
  jurat verifiers runs
  jurat verifiers runs claims-cite-source --verdict failed --since 2026-11-01T00:00:00Z
  jurat verifiers runs claims-cite-source --jsonl > runs.jsonl
  jurat verifiers runs show 0198c1f0-0000-7000-8000-000000000001

Runs are listed newest first, including those of tests and attacks; `--purpose run` leaves these
out. Name a revoked verifier by its id.";

#[derive(Debug, Subcommand)]
pub(crate) enum VerifiersCommand {
    /// Deploy a verifier, or a new version of one, from a JSON file
    Deploy(DeployVerifierArgs),
    /// List active verifiers
    #[command(
        after_help = "Examples:\n  jurat verifiers list\n  jurat verifiers list --all --table\n\nPrints a table to a terminal, and one line of JSON to a pipe."
    )]
    List(ListVerifiersArgs),
    /// Show a version of a verifier in full
    #[command(
        after_help = "Examples:\n  jurat verifiers show claims-cite-source\n  jurat verifiers show claims-cite-source --version 1 --json"
    )]
    Show(VerifierVersionArgs),
    /// Judge inputs: PASS or FAIL, with a reason
    Run(Box<RunVerifierArgs>),
    /// Deactivate a verifier permanently; its runs are kept and its name stays taken
    #[command(
        after_help = "Examples:\n  jurat verifiers revoke claims-cite-source\n  jurat verifiers revoke claims-cite-source --yes\n\nAsks for confirmation in a terminal only."
    )]
    Revoke(RemoveVerifierArgs),
    /// Delete a verifier and all its versions and runs permanently
    #[command(
        after_help = "Examples:\n  jurat verifiers delete 0198c1f0-0000-7000-8000-000000000001 --yes\n\nAsks for confirmation in a terminal only. `jurat verifiers revoke` keeps the runs."
    )]
    Delete(RemoveVerifierArgs),
    /// List the versions of a verifier, newest first
    #[command(after_help = "Examples:\n  jurat verifiers versions claims-cite-source")]
    Versions(ListVersionsArgs),
    /// Show the changes between two versions
    #[command(
        after_help = "Examples:\n  jurat verifiers diff claims-cite-source\n  jurat verifiers diff claims-cite-source --from 1 --to 3\n\n`--to` defaults to the current version, and `--from` to the version before it."
    )]
    Diff(DiffVersionsArgs),
    /// List runs, or show one with each judge's answer
    Runs(Box<VerifierRunsArgs>),
    /// Measure a version against labelled examples
    Test(Box<TestVerifierArgs>),
    /// Try known injections against a version
    Attack(Box<AttackVerifierArgs>),
}

#[derive(Debug, Args)]
#[command(after_help = DEPLOY_EXAMPLES)]
pub(crate) struct DeployVerifierArgs {
    /// File with the verifier; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Version token of the previous version; overrides the one in the file
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
    /// Always measure the new version
    #[arg(long, conflicts_with = "no_test")]
    pub(crate) test: bool,
    /// Do not measure the new version
    #[arg(long)]
    pub(crate) no_test: bool,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListVerifiersArgs {
    /// Print a table even to a pipe
    #[arg(long, conflicts_with = "json")]
    pub(crate) table: bool,
    /// Maximum number of entries, up to 200
    #[arg(long, short, value_name = "N", default_value_t = 25)]
    pub(crate) limit: u32,
    /// Continue an earlier list from this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// List everything
    #[arg(long)]
    pub(crate) all: bool,
}

/// A verifier and its version.
#[derive(Debug, Args)]
pub(crate) struct VerifierVersionArgs {
    /// Id or name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// Version [default: the current one]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunVerifierArgs {
    #[command(flatten)]
    pub(crate) named: VerifierVersionArgs,
    #[command(flatten)]
    pub(crate) inputs: VerifierInputArgs,
    #[command(flatten)]
    pub(crate) judges: JudgeArgs,
    #[command(flatten)]
    pub(crate) provenance: ProvenanceArgs,
    /// Have the judges write their own answer before they see the candidate
    #[arg(long)]
    pub(crate) commit_first: bool,
    /// Timeout of the run, in milliseconds
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Idempotency key: safe to retry
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Exit with 11 for FAIL, or 12 if there is no verdict
    #[arg(long)]
    pub(crate) gate: bool,
    /// Write a JUnit report with the run as a test case
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Send no key: run a verifier of a published template by id and version, or a `system:` one
    #[arg(long)]
    pub(crate) anonymous: bool,
}

/// The inputs to judge.
#[derive(Debug, Args)]
pub(crate) struct VerifierInputArgs {
    /// All inputs as one JSON object of strings
    #[arg(long, value_name = "JSON", conflicts_with = "inputs_file")]
    pub(crate) inputs_json: Option<String>,
    /// File with all inputs as a JSON object; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs_file: Option<PathBuf>,
    /// One input; repeatable, overrides the JSON object
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair)]
    pub(crate) input: Vec<(String, String)>,
    /// URL of the image, if the contract has one
    #[arg(long, value_name = "URL")]
    pub(crate) media_url: Option<String>,
}

pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it like `response=It rains.`".to_owned()),
    }
}

/// The judges of a run or a measurement.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Number of judges
    #[arg(long, value_name = "N", value_parser = ["1", "3", "5"])]
    pub(crate) replicas: Option<String>,
    /// Judge to use instead of the verifier's own, as `provider/model`; repeatable
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Vec<String>,
    /// Ignore cached verdicts and ask the judges again
    #[arg(long)]
    pub(crate) fresh: bool,
}

impl JudgeArgs {
    /// The number of judges, if it is given.
    pub(crate) fn count(&self) -> Option<u8> {
        self.replicas.as_deref()?.parse().ok()
    }
}

/// The workflow and the job that a run belongs to.
#[derive(Debug, Args)]
pub(crate) struct ProvenanceArgs {
    /// Workflow that the run belongs to
    #[arg(long, alias = "skill-id", value_name = "ID")]
    pub(crate) workflow_id: Option<String>,
    /// Version of that workflow
    #[arg(long, alias = "skill-version", value_name = "N")]
    pub(crate) workflow_version: Option<u32>,
    /// Your own reference for that workflow
    #[arg(long, alias = "skill-ref", value_name = "TEXT")]
    pub(crate) workflow_ref: Option<String>,
    /// Your own id for the job that the run belongs to
    #[arg(long, value_name = "TEXT")]
    pub(crate) run_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveVerifierArgs {
    /// Id or name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// Skip confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListVersionsArgs {
    /// Id or name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    #[command(flatten)]
    pub(crate) list: crate::args::ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffVersionsArgs {
    /// Id or name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// Old version
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u32>,
    /// New version
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u32>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = RUNS_EXAMPLES)]
pub(crate) struct VerifierRunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<VerifierRunsCommand>,
    #[command(flatten)]
    pub(crate) list: ListVerifierRunsArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VerifierRunsCommand {
    /// Show a run with each judge's answer
    Show {
        /// Id of a run
        #[arg(value_name = "ID")]
        run: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListVerifierRunsArgs {
    /// Id or name of a verifier [default: all]
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: Option<String>,
    /// Only runs with this verdict
    #[arg(long, value_parser = ["passed", "failed", "error", "running"])]
    pub(crate) verdict: Option<String>,
    /// Only runs for this purpose
    #[arg(long, value_parser = ["run", "test", "attack"])]
    pub(crate) purpose: Option<String>,
    /// Only runs of this version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Only runs started at this time or later, such as 2026-11-15T09:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only runs started before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) list: crate::args::ListArgs,
    /// Print all runs as JSON lines
    #[arg(long, conflicts_with_all = ["json", "cursor", "limit"])]
    pub(crate) jsonl: bool,
}

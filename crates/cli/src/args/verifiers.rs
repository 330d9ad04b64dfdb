//! `jurat verifiers`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::measure::{AttackVerifier, TestVerifier};

const DEPLOY_EXAMPLES: &str = "\
Examples:
  jurat verifiers deploy ./claims-cite-source.json
  cat ./claims-cite-source.json | jurat verifiers deploy -
  jurat verifiers deploy ./claims-cite-source.json --expected-version-token 5d41402abc4b2a76

The file is one JSON object: name, description, criterion, input_contract, input_fields,
few_shot_examples and model_settings. The first deploy of a name makes a verifier; each later one
adds a version, and needs the version token that the one before printed.

A new version is measured against the examples of the one before when that was measured, and you
are told when it does worse; `--no-test` leaves that out.";

const RUN_EXAMPLES: &str = "\
Examples:
  jurat verifiers run claims-cite-source --inputs-json '{\"response\": \"…\", \"source\": \"…\"}'
  jurat verifiers run claims-cite-source --input response='It rains.' --input source='It rains.'
  jurat verifiers run claims-cite-source --inputs-file ./inputs.json --version 2 --gate
  jurat verifiers run tone --inputs-file - --replicas 3 --judge openai/gpt-5.4-mini --json

A judgment that was made exits with 0, whichever it is; `--gate` exits with 11 for FAIL and with 12
when there is none. A judge that could not answer is an error, and exits with 1 without `--gate`.";

const RUNS_EXAMPLES: &str = "\
Examples:
  jurat verifiers runs
  jurat verifiers runs claims-cite-source --verdict failed --since 2026-11-01T00:00:00Z
  jurat verifiers runs claims-cite-source --jsonl > runs.jsonl
  jurat verifiers runs show 0198c1f0-0000-7000-8000-000000000001

Runs are listed newest first, and those of tests and attacks with them; `--purpose run` leaves them
out. A verifier that was revoked is named by its id.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verifiers {
    /// Deploys a verifier, or the next version of one, from a JSON file
    Deploy(DeployVerifier),
    /// Lists the verifiers that are active
    #[command(
        after_help = "Examples:\n  jurat verifiers list\n  jurat verifiers list --all --table\n\nA terminal gets a table, and a pipe gets JSON in one line."
    )]
    List(ListVerifiers),
    /// Shows one version of a verifier in full
    #[command(
        after_help = "Examples:\n  jurat verifiers show claims-cite-source\n  jurat verifiers show claims-cite-source --version 1 --json"
    )]
    Show(NamedVersion),
    /// Has inputs judged: PASS or FAIL, and why
    Run(Box<RunVerifier>),
    /// Deactivates a verifier for ever; its runs are kept, and its name stays taken
    #[command(
        after_help = "Examples:\n  jurat verifiers revoke claims-cite-source\n  jurat verifiers revoke claims-cite-source --yes\n\nAsks first in a terminal; elsewhere it does not."
    )]
    Revoke(RemoveVerifier),
    /// Erases a verifier with all its versions and runs, for ever
    #[command(
        after_help = "Examples:\n  jurat verifiers delete 0198c1f0-0000-7000-8000-000000000001 --yes\n\nAsks first in a terminal; elsewhere it does not. `jurat verifiers revoke` keeps the runs."
    )]
    Delete(RemoveVerifier),
    /// Lists the versions of a verifier, newest first
    #[command(after_help = "Examples:\n  jurat verifiers versions claims-cite-source")]
    Versions(ListVersions),
    /// Shows what changed between two versions
    #[command(
        after_help = "Examples:\n  jurat verifiers diff claims-cite-source\n  jurat verifiers diff claims-cite-source --from 1 --to 3\n\nWithout `--to` the current version is meant, and without `--from` the one before."
    )]
    Diff(DiffVersions),
    /// Lists runs, and shows one with what each judge said
    Runs(Box<Runs>),
    /// Measures a version against labelled examples
    Test(Box<TestVerifier>),
    /// Tries known injections against a version
    Attack(Box<AttackVerifier>),
}

#[derive(Debug, Args)]
#[command(after_help = DEPLOY_EXAMPLES)]
pub(crate) struct DeployVerifier {
    /// File with the verifier; `-` is standard input
    pub(crate) file: PathBuf,
    /// The token of the version before; overrides the one in the file
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
    /// Measures the new version in any case
    #[arg(long, conflicts_with = "no_test")]
    pub(crate) test: bool,
    /// Does not measure the new version
    #[arg(long)]
    pub(crate) no_test: bool,
    /// Makes it safe to repeat the command: the same key and file are deployed once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListVerifiers {
    /// A table, also for a pipe
    #[arg(long, conflicts_with = "json")]
    pub(crate) table: bool,
    /// How many at most, up to 200
    #[arg(long, short, value_name = "N", default_value_t = 25)]
    pub(crate) limit: u32,
    /// Goes on where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    /// Reads on to the end of the list
    #[arg(long)]
    pub(crate) all: bool,
}

/// A verifier, and a version of it.
#[derive(Debug, Args)]
pub(crate) struct NamedVersion {
    /// The id or the name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// The version; by default the current one
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunVerifier {
    #[command(flatten)]
    pub(crate) named: NamedVersion,
    #[command(flatten)]
    pub(crate) inputs: InputArgs,
    #[command(flatten)]
    pub(crate) judges: JudgeArgs,
    #[command(flatten)]
    pub(crate) provenance: ProvenanceArgs,
    /// The judges write their own answer before they see the candidate
    #[arg(long)]
    pub(crate) commit_first: bool,
    /// Deadline of the run
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Makes it safe to repeat the command: the same key and inputs are judged once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Exits with 11 for FAIL, and with 12 when there is no judgment
    #[arg(long)]
    pub(crate) gate: bool,
    /// Writes a JUnit file with the run as a test case, for CI systems
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Sends no key: runs what a published template names by id and version, or `system:` and a name
    #[arg(long)]
    pub(crate) anonymous: bool,
}

/// What is judged.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// All inputs as one JSON object of texts
    #[arg(long, value_name = "JSON", conflicts_with = "inputs_file")]
    pub(crate) inputs_json: Option<String>,
    /// File with that object; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs_file: Option<PathBuf>,
    /// One input; may be given again, and overrides the object
    #[arg(long, value_name = "NAME=TEXT", value_parser = pair)]
    pub(crate) input: Vec<(String, String)>,
    /// Address of the image, where the contract has one
    #[arg(long, value_name = "URL")]
    pub(crate) media_url: Option<String>,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("write it like `response=It rains.`".to_owned()),
    }
}

/// Who judges.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// How many judges decide
    #[arg(long, value_name = "N", value_parser = ["1", "3", "5"])]
    pub(crate) replicas: Option<String>,
    /// Judge instead of the verifier's own, as `provider/model`; may be given again
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge: Vec<String>,
    /// Asks the judges anew, also where their verdict is known
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// What a run belongs to.
#[derive(Debug, Args)]
pub(crate) struct ProvenanceArgs {
    /// Workflow that the run belongs to
    #[arg(long, alias = "skill-id", value_name = "ID")]
    pub(crate) workflow_id: Option<String>,
    /// Version of that workflow
    #[arg(long, alias = "skill-version", value_name = "N")]
    pub(crate) workflow_version: Option<u32>,
    /// Your own name for that workflow
    #[arg(long, alias = "skill-ref", value_name = "TEXT")]
    pub(crate) workflow_ref: Option<String>,
    /// Your own name for what the run belongs to
    #[arg(long, value_name = "TEXT")]
    pub(crate) run_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveVerifier {
    /// The verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListVersions {
    /// The id or the name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    #[command(flatten)]
    pub(crate) list: super::ListArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffVersions {
    /// The id or the name of a verifier
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: String,
    /// The version before
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u32>,
    /// The version after
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u32>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = RUNS_EXAMPLES)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    #[command(flatten)]
    pub(crate) list: ListRuns,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Shows one run with what each judge said
    Show {
        /// The id of a run
        #[arg(value_name = "ID")]
        run: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ListRuns {
    /// The id or the name of a verifier; by default runs of all
    #[arg(value_name = "ID|NAME")]
    pub(crate) verifier: Option<String>,
    /// Only runs that ended so
    #[arg(long, value_parser = ["passed", "failed", "error", "running"])]
    pub(crate) verdict: Option<String>,
    /// Only runs for this
    #[arg(long, value_parser = ["run", "test", "attack"])]
    pub(crate) purpose: Option<String>,
    /// Only runs of this version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Only runs begun at this time or later, such as 2026-11-15T09:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only runs begun before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) list: super::ListArgs,
    /// All runs, one JSON object in a line
    #[arg(long, conflicts_with_all = ["json", "cursor", "limit"])]
    pub(crate) jsonl: bool,
}

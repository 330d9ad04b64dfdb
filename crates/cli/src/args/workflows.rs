//! `jurat workflows`, which is `jurat skills` too.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const PUBLISH_EXAMPLES: &str = "\
Examples:
  jurat workflows publish ./postmortem.md
  jurat workflows publish ./postmortem/ --expected-version-token 5d41402abc4b2a76
  cat body.md | jurat workflows publish - --name postmortem --description 'Drafts one.'
  jurat workflows publish ./postmortem.md --verifier cites=claims-cite-source@2

FILE is a Markdown file, `-` for standard input, or a folder with a SKILL.md or WORKFLOW.md, whose
other files are sent along but for those that .juratignore, .goodeyeignore and the usual list of
build products leave out. Name, description, outcome and tags come from the options or from the
front matter. The first publish of a name makes a workflow; each later one adds a version, and needs
the version token that the one before printed.";

const CHECKS_EXAMPLES: &str = "\
Examples:
  jurat workflows run-checks ./postmortem.md --output ./draft.json
  jurat workflows run-checks postmortem --output - --input 'source=It rained.' --json

The checks are the block ```checks of the body, with parameters of the policy vp.checks.v1, and the
verifiers that the workflow names. A field of a verifier is filled by `--input`, by the member of
that name when the output is a JSON object, or else by the whole output. Exits with 0 when all
passed, with 11 when one failed, and with 12 when none failed and one could not be decided.";

#[derive(Debug, Subcommand)]
pub(crate) enum Workflows {
    /// Lists the workflows that you own or that others share with you
    #[command(
        after_help = "Examples:\n  jurat workflows list\n  jurat workflows list --filter shared-with-me --tag sre --table"
    )]
    List(ListWorkflows),
    /// Finds workflows by words
    #[command(after_help = "Examples:\n  jurat workflows search 'incident report'")]
    Search(SearchWorkflows),
    /// Prints a workflow as Markdown, or all of it as JSON
    #[command(
        after_help = "Examples:\n  jurat workflows get postmortem\n  jurat workflows get postmortem --version 2 --json\n  jurat workflows get postmortem --output postmortem.md"
    )]
    Get(GetWorkflow),
    /// Saves a workflow, or the next version of one, from a file or a folder
    #[command(visible_alias = "save")]
    Publish(Box<PublishWorkflow>),
    /// Puts one file beside the body, which is a new version
    #[command(
        after_help = "Examples:\n  jurat workflows put-file postmortem ./template.md --path templates/short.md"
    )]
    PutFile(PutFile),
    /// Removes one file from beside the body, which is a new version
    #[command(after_help = "Examples:\n  jurat workflows rm-file postmortem templates/short.md")]
    RmFile(RmFile),
    /// Shows which template a workflow was forked from
    #[command(after_help = "Examples:\n  jurat workflows lineage postmortem")]
    Lineage(NamedWorkflow),
    /// Puts a workflow away: others lose it until it is brought back
    #[command(after_help = "Examples:\n  jurat workflows archive postmortem")]
    Archive(NamedWorkflow),
    /// Brings a workflow back, with its grants
    #[command(after_help = "Examples:\n  jurat workflows unarchive postmortem")]
    Unarchive(NamedWorkflow),
    /// Erases a workflow with all its versions, files and grants
    #[command(
        after_help = "Examples:\n  jurat workflows delete postmortem --yes\n\nAsks first in a terminal; elsewhere it does not."
    )]
    Delete(DeleteWorkflow),
    /// Erases one version that is not the current one
    #[command(after_help = "Examples:\n  jurat workflows delete-version postmortem 2 --yes")]
    DeleteVersion(DeleteWorkflowVersion),
    /// Lets a user or a team use a workflow and its verifiers
    #[command(
        after_help = "Examples:\n  jurat workflows grant postmortem ann@example.com view\n  jurat workflows grant postmortem @reds edit --include-history"
    )]
    Grant(GrantWorkflow),
    /// Takes a grant back
    #[command(after_help = "Examples:\n  jurat workflows revoke-grant postmortem ann@example.com")]
    RevokeGrant(RevokeWorkflowGrant),
    /// Lists who may use a workflow
    #[command(after_help = "Examples:\n  jurat workflows grants postmortem")]
    Grants(NamedWorkflow),
    /// Gives up what was granted to you
    #[command(after_help = "Examples:\n  jurat workflows leave postmortem")]
    Leave(NamedWorkflow),
    /// Prints instructions for an agent that learns from corrections
    #[command(after_help = "Examples:\n  jurat workflows teach postmortem")]
    Teach(NamedWorkflow),
    /// Prints instructions for an agent that improves a workflow in a measured loop
    #[command(after_help = "Examples:\n  jurat workflows optimize postmortem --max-iterations 5")]
    Optimize(OptimizeWorkflow),
    /// Prints instructions for an agent that improves the description
    #[command(after_help = "Examples:\n  jurat workflows optimize-description postmortem")]
    OptimizeDescription(OptimizeWorkflow),
    /// Prints instructions for an agent that audits a workflow
    #[command(after_help = "Examples:\n  jurat workflows audit postmortem")]
    Audit(NamedWorkflow),
    /// Has a workflow screened by the judges that screen before publishing
    #[command(after_help = "Examples:\n  jurat workflows check-safety postmortem")]
    CheckSafety(NamedWorkflow),
    /// Asks somebody to own a workflow and its verifiers
    #[command(
        after_help = "Examples:\n  jurat workflows transfer-ownership postmortem ann@example.com"
    )]
    TransferOwnership(TransferWorkflow),
    /// Runs the checks of a workflow on an output
    RunChecks(Box<RunChecks>),
}

#[derive(Debug, Args)]
pub(crate) struct ListWorkflows {
    /// Whose workflows
    #[arg(long, value_parser = ["mine", "all", "shared-with-me"])]
    pub(crate) filter: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Only those in whose name, description, outcome or tags this stands
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Those that are put away too
    #[arg(long)]
    pub(crate) include_archived: bool,
    #[command(flatten)]
    pub(crate) list: super::ListVerifiers,
}

#[derive(Debug, Args)]
pub(crate) struct SearchWorkflows {
    /// The words
    pub(crate) query: String,
    /// Whose workflows
    #[arg(long, value_parser = ["mine", "all", "shared-with-me"])]
    pub(crate) filter: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// How many at most, up to 10
    #[arg(long, short, value_name = "N")]
    pub(crate) limit: Option<u32>,
}

/// A workflow.
#[derive(Debug, Args)]
pub(crate) struct NamedWorkflow {
    /// The id, the slug or the name of a workflow
    #[arg(value_name = "ID|NAME")]
    pub(crate) workflow: String,
}

#[derive(Debug, Args)]
pub(crate) struct GetWorkflow {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The version; by default the current one
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Writes the Markdown to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
pub(crate) struct PublishWorkflow {
    /// Markdown file, folder, or `-` for standard input
    pub(crate) file: PathBuf,
    /// What it is called
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// What is measurably better when it was followed
    #[arg(long, value_name = "TEXT")]
    pub(crate) outcome: Option<String>,
    /// A tag; may be given again
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// The id of the workflow, where its name does not find it
    #[arg(long, alias = "skill-id", value_name = "ID")]
    pub(crate) workflow_id: Option<String>,
    /// The token of the version before
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
    /// How the version came to be
    #[arg(long, value_parser = ["manual", "teach", "optimization", "description_optimization", "audit"])]
    pub(crate) source: Option<String>,
    /// A verifier that it names, as `name=id` or `name=id@version`; may be given again
    #[arg(long, value_name = "NAME=ID", value_parser = binding, conflicts_with = "clear_verifiers")]
    pub(crate) verifier: Vec<(String, String)>,
    /// Names no verifiers any more
    #[arg(long)]
    pub(crate) clear_verifiers: bool,
    /// Keeps no files beside the body any more
    #[arg(long)]
    pub(crate) clear_files: bool,
    /// Makes it safe to repeat the command: the same key and files are saved once
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

fn binding(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, id)) if !name.is_empty() && !id.is_empty() => {
            Ok((name.to_owned(), id.to_owned()))
        }
        Some(_) | None => Err("write it like `cites=claims-cite-source@2`".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct PutFile {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The file to send
    pub(crate) file: PathBuf,
    /// Where it lies beside the body; by default its name
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// It is a program
    #[arg(long)]
    pub(crate) executable: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    /// The token of the version before; by default the current one
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RmFile {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// Where it lies beside the body
    pub(crate) path: String,
    /// The token of the version before; by default the current one
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteWorkflow {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteWorkflowVersion {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The version
    pub(crate) version: u32,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrantWorkflow {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The e-mail address of a user, or `@` and the handle of a team
    #[arg(value_name = "EMAIL|@HANDLE")]
    pub(crate) grantee: String,
    /// What they may do
    #[arg(value_parser = ["view", "edit", "admin"])]
    pub(crate) role: String,
    /// Shares the versions before the current one too
    #[arg(long)]
    pub(crate) include_history: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeWorkflowGrant {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The e-mail address of a user, or `@` and the handle of a team
    #[arg(value_name = "EMAIL|@HANDLE")]
    pub(crate) grantee: String,
}

#[derive(Debug, Args)]
pub(crate) struct TransferWorkflow {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// The e-mail address, the id or the handle of the new owner
    #[arg(value_name = "EMAIL|ID|@HANDLE")]
    pub(crate) new_owner: String,
}

#[derive(Debug, Args)]
#[command(after_help = CHECKS_EXAMPLES)]
pub(crate) struct RunChecks {
    /// A Markdown file, or the id or the name of a workflow
    #[arg(value_name = "FILE|ID|NAME")]
    pub(crate) workflow: String,
    /// File with the output to check; `-` is standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// One input of the verifiers; may be given again
    #[arg(long, value_name = "NAME=TEXT", value_parser = super::verifiers::pair)]
    pub(crate) input: Vec<(String, String)>,
    /// A verifier to run, as `name=id` or `name=id@version`, instead of those that are bound
    #[arg(long, value_name = "NAME=ID", value_parser = binding)]
    pub(crate) verifier: Vec<(String, String)>,
    /// Only the checks that no judge is asked for
    #[arg(long)]
    pub(crate) no_verifiers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OptimizeWorkflow {
    #[command(flatten)]
    pub(crate) named: NamedWorkflow,
    /// How often the loop goes around at the most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_iterations: Option<u32>,
}

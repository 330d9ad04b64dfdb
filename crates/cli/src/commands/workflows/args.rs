//! `jurat workflows`, also called `jurat skills`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const PUBLISH_EXAMPLES: &str = "\
Examples:
  jurat workflows publish ./postmortem.md
  jurat workflows publish ./postmortem/ --expected-version-token 5d41402abc4b2a76
  cat body.md | jurat workflows publish - --name postmortem --description 'Drafts one.'
  jurat workflows publish ./postmortem.md --verifier cites=claims-cite-source@2

FILE is a Markdown file, `-` for standard input, or a folder with a SKILL.md or WORKFLOW.md. The
other files of a folder are sent too, except those ignored by .juratignore, .goodeyeignore or the
built-in list of build products. Name, description, outcome and tags come from the options or from
the front matter. The first publish of a name creates a workflow; each later one adds a version, and
needs the version token that the previous publish printed.";

const CHECKS_EXAMPLES: &str = "\
Examples:
  jurat workflows run-checks ./postmortem.md --output ./draft.json
  jurat workflows run-checks postmortem --output - --input 'source=It rained.' --json

The checks are the ```checks block of the body, with parameters of the policy vp.checks.v1, and the
workflow's verifiers. The value of a verifier's field comes from `--input`, else from the member of
that name if the output is a JSON object, else from the whole output. The exit code is 0 if all
checks passed, 11 if one failed, and 12 if none failed but one could not be decided.";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowsCommand {
    /// List your workflows and those shared with you
    #[command(
        after_help = "Examples:\n  jurat workflows list\n  jurat workflows list --filter shared-with-me --tag sre --table"
    )]
    List(ListWorkflowsArgs),
    /// Search workflows
    #[command(after_help = "Examples:\n  jurat workflows search 'incident report'")]
    Search(SearchWorkflowsArgs),
    /// Print a workflow as Markdown, or in full as JSON
    #[command(
        after_help = "Examples:\n  jurat workflows get postmortem\n  jurat workflows get postmortem --version 2 --json\n  jurat workflows get postmortem --output postmortem.md"
    )]
    Get(GetWorkflowArgs),
    /// Save a workflow, or a new version of one, from a file or folder
    #[command(visible_alias = "save")]
    Publish(Box<PublishWorkflowArgs>),
    /// Add or replace an attached file, as a new version
    #[command(
        after_help = "Examples:\n  jurat workflows put-file postmortem ./template.md --path templates/short.md"
    )]
    PutFile(PutFileArgs),
    /// Remove an attached file, as a new version
    #[command(after_help = "Examples:\n  jurat workflows rm-file postmortem templates/short.md")]
    RmFile(RemoveFileArgs),
    /// Show the template that a workflow was forked from
    #[command(after_help = "Examples:\n  jurat workflows lineage postmortem")]
    Lineage(WorkflowNameArgs),
    /// Archive a workflow: others lose access until it is unarchived
    #[command(after_help = "Examples:\n  jurat workflows archive postmortem")]
    Archive(WorkflowNameArgs),
    /// Unarchive a workflow and its grants
    #[command(after_help = "Examples:\n  jurat workflows unarchive postmortem")]
    Unarchive(WorkflowNameArgs),
    /// Delete a workflow and all its versions, files and grants
    #[command(
        after_help = "Examples:\n  jurat workflows delete postmortem --yes\n\nAsks for confirmation in a terminal only."
    )]
    Delete(DeleteWorkflowArgs),
    /// Delete a version other than the current one
    #[command(after_help = "Examples:\n  jurat workflows delete-version postmortem 2 --yes")]
    DeleteVersion(DeleteWorkflowVersionArgs),
    /// Grant a user or a team access to a workflow and its verifiers
    #[command(
        after_help = "Examples:\n  jurat workflows grant postmortem ann@example.com view\n  jurat workflows grant postmortem @reds edit --include-history"
    )]
    Grant(GrantWorkflowArgs),
    /// Revoke a grant
    #[command(after_help = "Examples:\n  jurat workflows revoke-grant postmortem ann@example.com")]
    RevokeGrant(RevokeWorkflowGrantArgs),
    /// List the users and teams with access to a workflow
    #[command(after_help = "Examples:\n  jurat workflows grants postmortem")]
    Grants(WorkflowNameArgs),
    /// Give up your access to a workflow
    #[command(after_help = "Examples:\n  jurat workflows leave postmortem")]
    Leave(WorkflowNameArgs),
    /// Print instructions for an agent that learns from corrections
    #[command(after_help = "Examples:\n  jurat workflows teach postmortem")]
    Teach(WorkflowNameArgs),
    /// Print instructions for an agent that improves a workflow in a measured loop
    #[command(after_help = "Examples:\n  jurat workflows optimize postmortem --max-iterations 5")]
    Optimize(OptimizeWorkflowArgs),
    /// Print instructions for an agent that improves the description
    #[command(after_help = "Examples:\n  jurat workflows optimize-description postmortem")]
    OptimizeDescription(OptimizeWorkflowArgs),
    /// Print instructions for an agent that audits a workflow
    #[command(after_help = "Examples:\n  jurat workflows audit postmortem")]
    Audit(WorkflowNameArgs),
    /// Screen a workflow with the judges that screen before publishing
    #[command(after_help = "Examples:\n  jurat workflows check-safety postmortem")]
    CheckSafety(WorkflowNameArgs),
    /// Offer a workflow and its verifiers to another user
    #[command(
        after_help = "Examples:\n  jurat workflows transfer-ownership postmortem ann@example.com"
    )]
    TransferOwnership(TransferWorkflowArgs),
    /// Run the checks of a workflow on an output
    RunChecks(Box<RunChecksArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct ListWorkflowsArgs {
    /// Owner of the workflows
    #[arg(long, value_parser = ["mine", "all", "shared-with-me"])]
    pub(crate) filter: Option<String>,
    /// Only workflows with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Only workflows with this text in the name, description, outcome or tags
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Include archived workflows
    #[arg(long)]
    pub(crate) include_archived: bool,
    #[command(flatten)]
    pub(crate) list: crate::args::ListVerifiersArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SearchWorkflowsArgs {
    /// Words to search for
    pub(crate) query: String,
    /// Owner of the workflows
    #[arg(long, value_parser = ["mine", "all", "shared-with-me"])]
    pub(crate) filter: Option<String>,
    /// Only workflows with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Maximum number of results, up to 10
    #[arg(long, short, value_name = "N")]
    pub(crate) limit: Option<u32>,
}

/// A workflow.
#[derive(Debug, Args)]
pub(crate) struct WorkflowNameArgs {
    /// Id, slug or name of a workflow
    #[arg(value_name = "ID|NAME")]
    pub(crate) workflow: String,
}

#[derive(Debug, Args)]
pub(crate) struct GetWorkflowArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// Version [default: the current one]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Write the Markdown to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
pub(crate) struct PublishWorkflowArgs {
    /// Markdown file, folder, or `-` for standard input
    pub(crate) file: PathBuf,
    /// Name
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
    /// Purpose of the workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Measurable result of following the workflow
    #[arg(long, value_name = "TEXT")]
    pub(crate) outcome: Option<String>,
    /// Tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Id of the workflow, if its name does not identify it
    #[arg(long, alias = "skill-id", value_name = "ID")]
    pub(crate) workflow_id: Option<String>,
    /// Version token of the previous version
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
    /// Origin of the version
    #[arg(long, value_parser = ["manual", "teach", "optimization", "description_optimization", "audit"])]
    pub(crate) source: Option<String>,
    /// Verifier of the workflow, as `name=id` or `name=id@version`; repeatable
    #[arg(long, value_name = "NAME=ID", value_parser = binding, conflicts_with = "clear_verifiers")]
    pub(crate) verifier: Vec<(String, String)>,
    /// Remove all verifiers
    #[arg(long)]
    pub(crate) clear_verifiers: bool,
    /// Remove all attached files
    #[arg(long)]
    pub(crate) clear_files: bool,
    /// Idempotency key: safe to retry
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
pub(crate) struct PutFileArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// File to attach
    pub(crate) file: PathBuf,
    /// Path in the workflow [default: the file's name]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// Mark the file as executable
    #[arg(long)]
    pub(crate) executable: bool,
    /// Purpose of the file
    #[arg(long, value_name = "TEXT")]
    pub(crate) purpose: Option<String>,
    /// Version token of the previous version [default: the current one]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveFileArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// Path of the file in the workflow
    pub(crate) path: String,
    /// Version token of the previous version [default: the current one]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) expected_version_token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteWorkflowArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// Skip confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteWorkflowVersionArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// Version
    pub(crate) version: u32,
    /// Skip confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrantWorkflowArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// E-mail address of a user, or @handle of a team
    #[arg(value_name = "EMAIL|@HANDLE")]
    pub(crate) grantee: String,
    /// Role to grant
    #[arg(value_parser = ["view", "edit", "admin"])]
    pub(crate) role: String,
    /// Share earlier versions too
    #[arg(long)]
    pub(crate) include_history: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeWorkflowGrantArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// E-mail address of a user, or @handle of a team
    #[arg(value_name = "EMAIL|@HANDLE")]
    pub(crate) grantee: String,
}

#[derive(Debug, Args)]
pub(crate) struct TransferWorkflowArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// E-mail address, id or @handle of the new owner
    #[arg(value_name = "EMAIL|ID|@HANDLE")]
    pub(crate) new_owner: String,
}

#[derive(Debug, Args)]
#[command(after_help = CHECKS_EXAMPLES)]
pub(crate) struct RunChecksArgs {
    /// Markdown file, or id or name of a workflow
    #[arg(value_name = "FILE|ID|NAME")]
    pub(crate) workflow: String,
    /// File with the output to check; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// One input of the verifiers; repeatable
    #[arg(long, value_name = "NAME=TEXT", value_parser = crate::commands::verifiers::args::pair)]
    pub(crate) input: Vec<(String, String)>,
    /// Verifier to run instead of the workflow's own, as `name=id` or `name=id@version`
    #[arg(long, value_name = "NAME=ID", value_parser = binding)]
    pub(crate) verifier: Vec<(String, String)>,
    /// Run only the checks that need no judge
    #[arg(long)]
    pub(crate) no_verifiers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OptimizeWorkflowArgs {
    #[command(flatten)]
    pub(crate) named: WorkflowNameArgs,
    /// Maximum number of iterations
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max_iterations: Option<u32>,
}

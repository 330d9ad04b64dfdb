//! `jurat templates` and `jurat design`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const LIST_EXAMPLES: &str = "\
Examples:
  jurat templates list
  jurat templates list --filter mine --include-archived
  jurat templates list --search report --all --table

A terminal gets a table, and a pipe gets JSON in one line.";

const PUBLISH_EXAMPLES: &str = "\
Examples:
  jurat templates publish weekly-report --release-notes 'names its sources'

The workflow needs an outcome, and you need a handle: `jurat me claim-handle`. Judges of the platform
screen it first, at your cost. Everybody can then read it with its verifiers, and run these.";

#[derive(Debug, Subcommand)]
pub(crate) enum Templates {
    /// Lists templates, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListTemplates),
    /// Looks for templates by words
    #[command(after_help = "Examples:\n  jurat templates search 'weekly sales report'")]
    Search(SearchTemplates),
    /// Prints a template as markdown
    #[command(
        after_help = "Examples:\n  jurat templates get @ann/report\n  jurat templates get @ann/report@v2 --output report.md\n  jurat templates get @ann/report --json"
    )]
    Get(GetTemplate),
    /// Prints a file of a template
    #[command(after_help = "Examples:\n  jurat templates get-file @ann/report list.md")]
    GetFile(GetTemplateFile),
    /// Publishes the current version of a workflow for everybody
    #[command(after_help = PUBLISH_EXAMPLES)]
    Publish(PublishTemplate),
    /// Takes a version back from everybody
    #[command(after_help = "Examples:\n  jurat templates unpublish @ann/report 2")]
    Unpublish(NumberedTemplate),
    /// Makes a private workflow of a template, with verifiers of its own
    #[command(
        after_help = "Examples:\n  jurat templates fork @ann/report\n  jurat templates fork @ann/report --version 1 --name 'my report'"
    )]
    Fork(ForkTemplate),
    /// Hides a template from everybody else
    #[command(after_help = "Examples:\n  jurat templates archive @ann/report --reason replaced")]
    Archive(ArchiveTemplate),
    /// Gives an archived template back to everybody
    #[command(after_help = "Examples:\n  jurat templates unarchive @ann/report")]
    Unarchive(NamedTemplate),
    /// Erases a template with all its versions, for ever
    #[command(after_help = "Examples:\n  jurat templates delete @ann/report --yes")]
    Delete(RemoveTemplate),
    /// Erases a version that is not published, for ever
    #[command(after_help = "Examples:\n  jurat templates delete-version @ann/report 1 --yes")]
    DeleteVersion(RemoveTemplateVersion),
    /// Warns those who read or fork a version
    #[command(
        after_help = "Examples:\n  jurat templates deprecate-version @ann/report 1 --message 'use version 2'"
    )]
    DeprecateVersion(DeprecateTemplate),
    /// Says how the template stands that a workflow was forked from
    #[command(after_help = "Examples:\n  jurat templates lineage my-report")]
    Lineage(LineageOf),
    /// Has a template screened by the judges that screen before publishing
    #[command(after_help = "Examples:\n  jurat templates check-safety @ann/report")]
    CheckSafety(CheckTemplate),
    /// Offers a template to somebody
    #[command(
        after_help = "Examples:\n  jurat templates transfer-ownership @ann/report bob@example.com"
    )]
    TransferOwnership(TransferTemplate),
}

#[derive(Debug, Args)]
pub(crate) struct ListTemplates {
    /// Whose templates
    #[arg(long, value_name = "WHOSE", value_parser = ["all", "mine"])]
    pub(crate) filter: Option<String>,
    /// Only those that have this text in what the list shows
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Your archived ones too
    #[arg(long)]
    pub(crate) include_archived: bool,
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

#[derive(Debug, Args)]
pub(crate) struct SearchTemplates {
    /// What to look for
    pub(crate) query: String,
    /// Whose templates
    #[arg(long, value_name = "WHOSE", value_parser = ["all", "mine"])]
    pub(crate) filter: Option<String>,
    /// How many at most, up to 10
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) limit: Option<u32>,
}

/// A template.
#[derive(Debug, Args)]
pub(crate) struct NamedTemplate {
    /// The id of a template, or @handle/slug
    #[arg(value_name = "ID|@HANDLE/SLUG")]
    pub(crate) template: String,
}

#[derive(Debug, Args)]
pub(crate) struct GetTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// The version; by default the newest
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Writes to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GetTemplateFile {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// The path of the file
    pub(crate) path: String,
    /// The version; by default the newest
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Writes to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PublishTemplate {
    /// The id or the slug of a workflow of yours
    pub(crate) workflow: String,
    /// What is new in this version
    #[arg(long, short = 'n', value_name = "TEXT")]
    pub(crate) release_notes: Option<String>,
}

/// A version of a template.
#[derive(Debug, Args)]
pub(crate) struct NumberedTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// The number of the version
    pub(crate) version: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ForkTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// The version; by default the newest
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// The name of the fork; by default that of the template
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveTemplateVersion {
    #[command(flatten)]
    pub(crate) numbered: NumberedTemplate,
    /// Does not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeprecateTemplate {
    #[command(flatten)]
    pub(crate) numbered: NumberedTemplate,
    /// What to tell those who use it
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LineageOf {
    /// The id or the slug of a workflow
    pub(crate) workflow: String,
}

#[derive(Debug, Args)]
pub(crate) struct CheckTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// The version; by default the newest
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct TransferTemplate {
    #[command(flatten)]
    pub(crate) named: NamedTemplate,
    /// An e-mail address, a handle, or the id of an account
    #[arg(value_name = "USER")]
    pub(crate) new_owner: String,
}

//! `jurat templates` and `jurat design`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const LIST_EXAMPLES: &str = "\
Examples:
  jurat templates list
  jurat templates list --filter mine --include-archived
  jurat templates list --search report --all --table

Prints a table to a terminal, and one line of JSON to a pipe.";

const PUBLISH_EXAMPLES: &str = "\
Examples:
  jurat templates publish weekly-report --release-notes 'names its sources'

The workflow needs an outcome, and you need a handle (`jurat me claim-handle`). The platform's
judges screen it first, at your cost. After that, anyone can read it with its verifiers and run them.";

#[derive(Debug, Subcommand)]
pub(crate) enum TemplatesCommand {
    /// List templates, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(ListTemplatesArgs),
    /// Search templates
    #[command(after_help = "Examples:\n  jurat templates search 'weekly sales report'")]
    Search(SearchTemplatesArgs),
    /// Print a template as Markdown
    #[command(
        after_help = "Examples:\n  jurat templates get @ann/report\n  jurat templates get @ann/report@v2 --output report.md\n  jurat templates get @ann/report --json"
    )]
    Get(GetTemplateArgs),
    /// Print a file of a template
    #[command(after_help = "Examples:\n  jurat templates get-file @ann/report list.md")]
    GetFile(GetTemplateFileArgs),
    /// Publish the current version of a workflow as a template
    #[command(after_help = PUBLISH_EXAMPLES)]
    Publish(PublishTemplateArgs),
    /// Unpublish a version
    #[command(after_help = "Examples:\n  jurat templates unpublish @ann/report 2")]
    Unpublish(TemplateVersionArgs),
    /// Fork a template into a private workflow with its own verifiers
    #[command(
        after_help = "Examples:\n  jurat templates fork @ann/report\n  jurat templates fork @ann/report --version 1 --name 'my report'"
    )]
    Fork(ForkTemplateArgs),
    /// Archive a template: hide it from everyone else
    #[command(after_help = "Examples:\n  jurat templates archive @ann/report --reason replaced")]
    Archive(ArchiveTemplateArgs),
    /// Unarchive a template
    #[command(after_help = "Examples:\n  jurat templates unarchive @ann/report")]
    Unarchive(TemplateNameArgs),
    /// Delete a template and all its versions permanently
    #[command(after_help = "Examples:\n  jurat templates delete @ann/report --yes")]
    Delete(RemoveTemplateArgs),
    /// Delete an unpublished version permanently
    #[command(after_help = "Examples:\n  jurat templates delete-version @ann/report 1 --yes")]
    DeleteVersion(RemoveTemplateVersionArgs),
    /// Deprecate a version: warn users who read or fork it
    #[command(
        after_help = "Examples:\n  jurat templates deprecate-version @ann/report 1 --message 'use version 2'"
    )]
    DeprecateVersion(DeprecateTemplateArgs),
    /// Show the state of the template that a workflow was forked from
    #[command(after_help = "Examples:\n  jurat templates lineage my-report")]
    Lineage(LineageArgs),
    /// Screen a template with the judges that screen before publishing
    #[command(after_help = "Examples:\n  jurat templates check-safety @ann/report")]
    CheckSafety(CheckTemplateArgs),
    /// Offer a template to another user
    #[command(
        after_help = "Examples:\n  jurat templates transfer-ownership @ann/report bob@example.com"
    )]
    TransferOwnership(TransferTemplateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListTemplatesArgs {
    /// Owner of the templates
    #[arg(long, value_name = "WHOSE", value_parser = ["all", "mine"])]
    pub(crate) filter: Option<String>,
    /// Only templates with this text in a listed field
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Include your archived templates
    #[arg(long)]
    pub(crate) include_archived: bool,
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

#[derive(Debug, Args)]
pub(crate) struct SearchTemplatesArgs {
    /// Words to search for
    pub(crate) query: String,
    /// Owner of the templates
    #[arg(long, value_name = "WHOSE", value_parser = ["all", "mine"])]
    pub(crate) filter: Option<String>,
    /// Maximum number of results, up to 10
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub(crate) limit: Option<u32>,
}

/// A template.
#[derive(Debug, Args)]
pub(crate) struct TemplateNameArgs {
    /// Id of a template, or @handle/slug
    #[arg(value_name = "ID|@HANDLE/SLUG")]
    pub(crate) template: String,
}

#[derive(Debug, Args)]
pub(crate) struct GetTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Version [default: the newest]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GetTemplateFileArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Path of the file
    pub(crate) path: String,
    /// Version [default: the newest]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PublishTemplateArgs {
    /// Id or slug of a workflow that you own
    pub(crate) workflow: String,
    /// Changes in this version
    #[arg(long, short = 'n', value_name = "TEXT")]
    pub(crate) release_notes: Option<String>,
}

/// A version of a template.
#[derive(Debug, Args)]
pub(crate) struct TemplateVersionArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Number of the version
    pub(crate) version: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ForkTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Version [default: the newest]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Name of the fork [default: the template's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Skip confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveTemplateVersionArgs {
    #[command(flatten)]
    pub(crate) numbered: TemplateVersionArgs,
    /// Skip confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeprecateTemplateArgs {
    #[command(flatten)]
    pub(crate) numbered: TemplateVersionArgs,
    /// Warning shown to users of the version
    #[arg(long, short, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LineageArgs {
    /// Id or slug of a workflow
    pub(crate) workflow: String,
}

#[derive(Debug, Args)]
pub(crate) struct CheckTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// Version [default: the newest]
    #[arg(long, short, value_name = "N")]
    pub(crate) version: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct TransferTemplateArgs {
    #[command(flatten)]
    pub(crate) named: TemplateNameArgs,
    /// E-mail address, handle or account id of the new owner
    #[arg(value_name = "USER")]
    pub(crate) new_owner: String,
}

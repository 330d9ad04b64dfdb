//! `jurat knowledge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum KnowledgeCommand {
    /// Export remembered decisions as JSON lines, newest first
    Export(ExportKnowledgeArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat knowledge export --task-type swarm > decisions.jsonl\n  jurat knowledge export --task-type swarm --out decisions.jsonl\n  jurat knowledge export --task-id task-001\n\nA task has one decision; a continuous task has one per epoch."
)]
#[command(group(clap::ArgGroup::new("of").required(true).args(["task_type", "task_id"])))]
pub(crate) struct ExportKnowledgeArgs {
    /// Decisions of all tasks of this type
    #[arg(long, value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
    /// Decisions of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

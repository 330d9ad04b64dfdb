//! `jurat knowledge`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Knowledge {
    /// Prints the decisions that are remembered, the newest first, each as one line of JSON
    Export(ExportKnowledge),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  jurat knowledge export --task-type swarm > decisions.jsonl\n  jurat knowledge export --task-type swarm --out decisions.jsonl\n  jurat knowledge export --task-id task-001\n\nA task has one decision, and a continuous one has one for each of its epochs."
)]
#[command(group(clap::ArgGroup::new("of").required(true).args(["task_type", "task_id"])))]
pub(crate) struct ExportKnowledge {
    /// Decisions of all tasks of this type
    #[arg(long, value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
    /// Decisions of this task
    #[arg(long, value_name = "ID")]
    pub(crate) task_id: Option<String>,
    /// Writes them to this file, and not to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

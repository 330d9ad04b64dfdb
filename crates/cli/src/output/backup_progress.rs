//! The progress of long work: a bar on a terminal, nothing elsewhere.

use std::io::{IsTerminal as _, stderr};

use indicatif::{ProgressBar, ProgressStyle};
use jurat_store::backup::{BackupProgress, BackupStage};

use super::{Output, OutputFormat, Verbosity};

#[derive(Debug)]
pub(crate) struct BackupBar {
    bar: Option<ProgressBar>,
    stage: Option<BackupStage>,
}

impl BackupBar {
    pub(crate) fn new(out: Output) -> Self {
        Self { bar: bar(out), stage: None }
    }

    pub(crate) fn show(&mut self, progress: BackupProgress) {
        let Some(bar) = &self.bar else { return };
        if self.stage != Some(progress.stage) {
            self.stage = Some(progress.stage);
            bar.set_message(match progress.stage {
                BackupStage::Copying => "copying the database",
                BackupStage::Checksums => "computing checksums ",
                BackupStage::Integrity => "checking the file   ",
                BackupStage::Entries => "checking entries    ",
            });
        }
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }

    /// Removes the bar; the next output says that the work is done.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A progress bar, on a terminal only.
pub(crate) fn bar(out: Output) -> Option<ProgressBar> {
    let is_shown = out.format == OutputFormat::Text
        && out.chatter == Verbosity::Normal
        && stderr().is_terminal();
    let bar = is_shown.then(|| ProgressBar::new(0))?;
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {percent:>3} % {elapsed}") {
        bar.set_style(style);
    }
    Some(bar)
}

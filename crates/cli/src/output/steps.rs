//! How far a long piece of work is: a bar on a terminal, nothing elsewhere.

use std::io::{IsTerminal as _, stderr};

use indicatif::{ProgressBar, ProgressStyle};
use jurat_store::backup::{Progress, Stage};

use super::{Chatter, Format, Output};

#[derive(Debug)]
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
    stage: Option<Stage>,
}

impl Steps {
    pub(crate) fn new(out: Output) -> Self {
        Self { bar: bar(out), stage: None }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        let Some(bar) = &self.bar else { return };
        if self.stage != Some(progress.stage) {
            self.stage = Some(progress.stage);
            bar.set_message(match progress.stage {
                Stage::Copying => "copying the database",
                Stage::Checksums => "computing checksums ",
                Stage::Integrity => "checking the file   ",
                Stage::Entries => "checking entries    ",
            });
        }
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    }

    /// Takes the bar away; what is printed next says that it is done.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A bar for people who wait.
pub(crate) fn bar(out: Output) -> Option<ProgressBar> {
    let is_shown =
        out.format == Format::Text && out.chatter == Chatter::Normal && stderr().is_terminal();
    let bar = is_shown.then(|| ProgressBar::new(0))?;
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {percent:>3} % {elapsed}") {
        bar.set_style(style);
    }
    Some(bar)
}

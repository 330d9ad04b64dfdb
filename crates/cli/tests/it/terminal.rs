//! A terminal for a command, so that a test sees what a person would see.

use std::process::{Command, Stdio};

use crate::home::Process;

/// Runs a shell line with job control on a terminal of this width. What appears there is the output
/// of the process.
pub(crate) fn on_terminal(mut environment: Command, columns: u16, line: &str) -> Process {
    // The program `script` of util-linux makes the terminal. Everything that is shown goes where the
    // test reads.
    let line = format!("stty cols {columns} rows 50; {line}");
    let quoted = format!("bash --norc -mc '{}'", line.replace('\'', r"'\''"));
    environment.args(["-c", "exec script -qec \"$0\" /dev/null 1>&2", &quoted]);
    environment.stdin(Stdio::null());
    Process::new(environment)
}

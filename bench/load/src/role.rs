//! Roles: this program again, each in a process of its own that ends with its parent.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A role that is ready; it ends when this is dropped.
#[derive(Debug)]
pub struct RunningRole {
    pub address: SocketAddr,
    /// The rest of the role's line after its port: a key, or more ports.
    pub note: String,
    pub pid: u32,
    _child: Child,
}

/// Starts this program with these arguments and waits for its line `ready <port> [note]`.
pub async fn spawn(arguments: &[String]) -> Result<RunningRole> {
    spawn_on(None, arguments).await
}

/// Like [`spawn`], on one processor only, which needs `taskset`.
pub async fn spawn_on(processor: Option<usize>, arguments: &[String]) -> Result<RunningRole> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = match processor {
        None => Command::new(program),
        Some(number) => {
            let mut command = Command::new("taskset");
            command.arg("--cpu-list").arg(number.to_string()).arg(program);
            command
        }
    };
    let mut child = command
        .args(arguments)
        // The role reads this pipe to its end, which comes when the parent exits for any reason.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start the role {arguments:?}"))?;
    let (Some(pid), Some(stdout)) = (child.id(), child.stdout.take()) else {
        bail!("the role {arguments:?} ended at once");
    };
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((port, note)) = parse(&line) {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            return Ok(RunningRole { address, note, pid, _child: child });
        }
    }
    bail!("the role {arguments:?} ended before it was ready");
}

/// Tells the parent that the role listens.
#[expect(clippy::print_stdout, reason = "the parent reads this line")]
pub fn announce(port: u16, note: &str) {
    println!("ready {port} {note}");
}

/// Returns when the parent process has exited.
pub async fn until_parent_goes() {
    let mut ignored = [0; 64];
    let mut stdin = tokio::io::stdin();
    while let Ok(1..) = stdin.read(&mut ignored).await {}
}

fn parse(line: &str) -> Option<(u16, String)> {
    let rest = line.strip_prefix("ready ")?;
    let (port, note) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((port.parse().ok()?, note.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_line_has_a_port_and_maybe_a_note() {
        assert_eq!(parse("ready 80"), Some((80, String::new())));
        assert_eq!(parse("ready 80 a b"), Some((80, "a b".to_owned())));
        assert_eq!(parse("ready soon"), None);
        assert_eq!(parse("listening on 80"), None);
    }
}

//! A state folder of its own for each test, and processes that end with it.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

/// A busy machine may be slow; a test that hangs ends here.
const PATIENCE: Duration = Duration::from_secs(25);

pub(crate) struct Home {
    folder: TempDir,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "out: {}\nerr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("no JSON, out: {}\nerr: {}", self.out, self.err))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Home {
    /// With an empty state folder.
    pub(crate) fn new() -> Self {
        let home = Self::bare();
        std::fs::create_dir(home.state()).unwrap();
        home
    }

    /// Before any server was started.
    pub(crate) fn bare() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// The binary without the environment of the tests.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jurat"));
        command.env_clear().current_dir(self.path());
        command.env("JURAT_STATE_DIR", self.state()).env("TMPDIR", self.path());
        command.args(args).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Starts a command that is waited for later.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a command that keeps running.
    pub(crate) fn start(&self, args: &[&str]) -> Process {
        Process::new(self.command(args))
    }

    pub(crate) fn serve(&self) -> Process {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        // A build for tests is late on a machine that is busy with other tests.
        command.env("JURAT_LIMITS_LAG_MS", "0");
        Process::new(command).listening()
    }

    /// Starts an executor with a provider and a model of its own, and registers it.
    pub(crate) fn register(&self, name: &str, mode: &str) -> Process {
        let listen = ["runtime", "--listen", "127.0.0.1:0", "--mode", mode];
        let model = ["--provider-family", name, "--model-id", name];
        let executor = self.start(&[&listen[..], &model].concat()).listening();
        self.run(&["executors", "add", name, &executor.url]).ok();
        executor
    }
}

/// A process that is killed when the test is done with it.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) url: String,
    lines: Receiver<String>,
    reader: Option<JoinHandle<String>>,
}

impl Process {
    pub(crate) fn new(mut command: Command) -> Self {
        command.stdout(Stdio::null());
        Self::heard(command)
    }

    /// Like `new`, with its standard output where the command puts it.
    pub(crate) fn heard(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        // Reads to the end, so that the process never blocks on its output.
        let reader = std::thread::spawn(move || {
            let mut all = String::new();
            for line in stderr.lines().map_while(Result::ok) {
                all.push_str(&line);
                all.push('\n');
                drop(sender.send(line));
            }
            all
        });
        Self { child, url: String::new(), lines, reader: Some(reader) }
    }

    /// Stops it as an operator would, and returns its whole standard error.
    pub(crate) fn everything(mut self) -> String {
        self.terminate();
        self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap()
    }

    /// Waits for its end, and returns its whole standard error.
    pub(crate) fn ended(mut self) -> String {
        self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap()
    }

    /// Waits until it reports its address.
    pub(crate) fn listening(mut self) -> Self {
        let line = self.wait_for("listening on ");
        let rest = line.split("listening on ").nth(1).unwrap();
        // In a log of JSON lines the address ends with a quote, on a terminal with a return.
        rest.split(['"', '\r']).next().unwrap().clone_into(&mut self.url);
        self
    }

    /// Waits for a line on standard error.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("`{text}` was never said"));
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Kills it, like a power failure.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

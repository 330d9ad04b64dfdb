//! The real program, from its start to its first answers.

use std::{
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// A start that takes longer has failed.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug)]
pub(crate) struct ServerProcess {
    process: Child,
    client: reqwest::Client,
    url: String,
    key: String,
}

/// The durations of lists.
#[derive(Debug)]
pub(crate) struct ListTimes {
    pub(crate) newest_ms: f64,
    pub(crate) nothing_found_ms: f64,
}

impl ServerProcess {
    /// Starts the program and returns it with the time until `/ready` answered 200.
    pub(crate) async fn start(program: &Path, folder: &Path) -> Result<(Self, f64)> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a measurement has a plain client of its own"
        )]
        let client = reqwest::Client::builder().no_proxy().build()?;
        let begun = now();
        let mut process = Command::new(program)
            .arg("--state-dir")
            .arg(folder)
            .args(["--json", "serve", "--listen", "127.0.0.1:0"])
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = process.stdout.take().context("no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(TIMEOUT, lines.next_line()).await??.context("it ended at once")?;
        let event: serde_json::Value = serde_json::from_str(&line)?;
        let url = event["url"].as_str().context("no address")?.to_owned();
        let ready = client.get(format!("{url}/ready")).send().await?;
        ensure!(ready.status().is_success(), "not ready: {}", ready.status());
        let took = ms_since(begun);
        let key = std::fs::read_to_string(folder.join("admin.key"))?.trim().to_owned();
        Ok((Self { process, client, url, key }, took))
    }

    pub(crate) async fn lists(&self) -> Result<ListTimes> {
        let newest_ms = self.list("limit=50", None).await?;
        let mut nothing_found_ms: f64 = 0.0;
        for filter in ["kind=factcheck", "outcome=abstained", "kind=delegate&outcome=abstained"] {
            nothing_found_ms = nothing_found_ms.max(self.list(filter, Some(0)).await?);
        }
        Ok(ListTimes { newest_ms, nothing_found_ms })
    }

    async fn list(&self, query: &str, expected: Option<usize>) -> Result<f64> {
        let begun = now();
        let request = self.client.get(format!("{}/v1/rounds?{query}", self.url));
        let reply = request.bearer_auth(&self.key).send().await?.error_for_status()?;
        let body = reply.bytes().await?;
        let took = ms_since(begun);
        let body: serde_json::Value = serde_json::from_slice(&body)?;
        let found = body["items"].as_array().map(Vec::len);
        ensure!(expected.is_none() || found == expected, "{query}: {found:?} were found");
        Ok(took)
    }

    /// Kills it, like a power failure.
    pub(crate) async fn kill(mut self) -> Result<()> {
        self.process.kill().await?;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement measures time")]
fn now() -> Instant {
    Instant::now()
}

fn ms_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

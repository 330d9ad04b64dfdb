//! An executor that runs a local program: the request on its standard input, the answer on its
//! output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use jurat_core::executor::Capabilities;
use jurat_core::policy::{Evaluation, PolicyRules};
use jurat_wire::executor::{
    AgentDecision, AgentEvent, VerifyRequest, WireCandidate, WirePolicyBinding,
    decode_agent_event_response, decode_execute_response, decode_verify_response,
};
use jurat_wire::strict_json;

use crate::executor::{Execute, Execution, ExecutorError, ExecutorService, JudgeRequest};
use crate::verify::evaluation;

/// How much of the end of the standard error is logged.
const STDERR_TAIL: usize = 2 * 1024;

/// Runs the program once per request.
///
/// It reads `{"endpoint": "execute" | "judge", "request": {…}}`, where the request is the body of
/// `/execute` or `/verify`, and writes the answer of that endpoint. For `judge` the hash is
/// optional.
#[derive(Debug, Clone)]
pub struct CommandExecutor {
    pub capabilities: Capabilities,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The whole environment of the program. Variables that are not listed are not passed on.
    pub environment: BTreeMap<String, String>,
    /// The time limit for one request.
    pub timeout: Duration,
    /// The maximum size of the program's output.
    pub output_bytes: usize,
    /// Whether it receives agent events: `{"endpoint": "agent_event", "request": {"event": {…}}}`,
    /// which it answers with the reply of `/agent-events`.
    pub hears_events: bool,
}

impl CommandExecutor {
    /// An executor with the default limits, only `PATH` in its environment, and no events.
    pub fn new(capabilities: Capabilities, program: PathBuf, arguments: Vec<String>) -> Self {
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        Self {
            capabilities,
            program,
            arguments,
            environment: BTreeMap::from([path]),
            timeout: Duration::from_mins(1),
            output_bytes: 2 * 1024 * 1024,
            hears_events: false,
        }
    }

    async fn ask(
        &self,
        endpoint: &str,
        request: Value,
        rules: PolicyRules,
    ) -> Result<Value, ExecutorError> {
        let body = json!({"endpoint": endpoint, "request": request}).to_string();
        let output = tokio::time::timeout(self.timeout, self.run(body.into_bytes()))
            .await
            .map_err(|_| ExecutorError::Timeout)??;
        let parsed = match rules {
            PolicyRules::Jurat => strict_json::parse(&output),
            PolicyRules::WattSwarm => strict_json::parse_wide(&output),
        };
        parsed.map_err(|error| {
            ExecutorError::Upstream(format!("the program's answer is not usable: {error}"))
        })
    }

    async fn run(&self, input: Vec<u8>) -> Result<Vec<u8>, ExecutorError> {
        let mut child = self.spawn()?;
        // Declared after the child and therefore dropped before it, while the process id is still
        // taken.
        let mut group = ProcessGroup(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)));
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ExecutorError::Failed("the program has no pipes".to_owned()));
        };
        // All concurrently, because a program may answer before it has read everything.
        let ((), output, complaint) =
            tokio::try_join!(write(stdin, &input), read(stdout, self.output_bytes), tail(stderr))?;
        let status = child.wait().await.map_err(|error| broken(&error))?;
        // Its process id is free now, and may soon belong to another process.
        group.0 = None;
        if status.success() {
            return Ok(output);
        }
        // Only for the operator: the error output of a program may contain paths and secrets.
        let (program, stderr) = (self.program.display(), complaint.trim());
        tracing::warn!(%program, %status, stderr, "the executor's program failed");
        Err(ExecutorError::Upstream(format!("the program ended with {status}")))
    }

    fn spawn(&self) -> Result<Child, ExecutorError> {
        Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A timeout, and a shutdown of the executor, end the program, too.
            .kill_on_drop(true)
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = self.program.display();
                tracing::error!(%program, %error, "could not start the executor's program");
                ExecutorError::Failed("the program did not start".to_owned())
            })
    }
}

/// The program and all processes that it started, killed together unless the program ends by
/// itself.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // All of them may be gone already.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[async_trait]
impl ExecutorService for CommandExecutor {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError> {
        let rules = request.rules();
        let request = serde_json::to_value(request).map_err(|error| unwritable(&error))?;
        let answer = decode_execute_response(self.ask("execute", request, rules).await?)
            .map_err(|error| ExecutorError::Upstream(format!("the program's answer: {error}")))?;
        let (output, evidence) = answer.into_parts();
        Ok(Execution { output, evidence })
    }

    async fn judge(&self, request: &JudgeRequest) -> Result<Evaluation, ExecutorError> {
        let producer = &self.capabilities.provider_family;
        let outer = VerifyRequest {
            candidate: WireCandidate::new(request.candidate.as_ref().clone(), 0, producer),
            output_schema: request.output_schema.clone(),
            policy: WirePolicyBinding::from(request.policy.clone()),
        };
        let outer = serde_json::to_value(outer).map_err(|error| unwritable(&error))?;
        decode_verify_response(self.ask("judge", outer, request.policy.rules()).await?)
            .and_then(|answer| evaluation(&answer))
            .map_err(|error| ExecutorError::Upstream(format!("the program's answer: {error}")))
    }

    async fn on_event(&self, event: &AgentEvent) -> Result<Option<AgentDecision>, ExecutorError> {
        if !self.hears_events {
            return Ok(None);
        }
        let answer = self.ask("agent_event", json!({ "event": event }), PolicyRules::Jurat).await?;
        let answer = decode_agent_event_response(answer)
            .map_err(|error| ExecutorError::Upstream(format!("the program's answer: {error}")))?;
        if answer.ok {
            return Ok(answer.decision);
        }
        let problem = answer.detail.unwrap_or_else(|| "the program refused the event".to_owned());
        Err(ExecutorError::Refused { field: "event".to_owned(), problem })
    }
}

async fn write(mut stdin: ChildStdin, input: &[u8]) -> Result<(), ExecutorError> {
    // A program may answer without reading everything and close the pipe.
    drop(stdin.write_all(input).await);
    drop(stdin.shutdown().await);
    Ok(())
}

async fn read(stdout: impl AsyncRead + Unpin, limit: usize) -> Result<Vec<u8>, ExecutorError> {
    let mut output = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    stdout.take(most).read_to_end(&mut output).await.map_err(|error| broken(&error))?;
    if limit < output.len() {
        let message = format!("the program wrote more than {limit} bytes");
        return Err(ExecutorError::Upstream(message));
    }
    Ok(output)
}

/// Reads to the end and keeps only the last part.
async fn tail(mut stderr: impl AsyncRead + Unpin) -> Result<String, ExecutorError> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    loop {
        let count = stderr.read(&mut chunk).await.map_err(|error| broken(&error))?;
        if count == 0 {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        kept.extend_from_slice(&chunk[..count]);
        kept.drain(..kept.len().saturating_sub(STDERR_TAIL));
    }
}

fn broken(error: &std::io::Error) -> ExecutorError {
    ExecutorError::Upstream(format!("the program could not be read: {error}"))
}

fn unwritable(error: &serde_json::Error) -> ExecutorError {
    ExecutorError::Failed(format!("the request could not be written: {error}"))
}

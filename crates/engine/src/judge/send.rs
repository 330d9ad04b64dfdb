//! Sends a request to a provider: in its turn, within the deadline, and again where that can help.

use std::{
    fmt::Write as _,
    sync::atomic::Ordering,
    time::{Duration, UNIX_EPOCH},
};

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use jurat_core::{
    judge::{Misread, Prompt, Tokens},
    replica::{Failure, FailureCode},
    time::Timestamp,
};
use jurat_guard::client::{CallError, Reply};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ask::Asking,
    bound, completion, out_of_time,
    protocol::{Request, Without, refused_parts},
    unavailable,
};
use crate::metrics::CallOutcome;

/// How often one request is tried.
const TRIES: usize = 3;
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// How many things that a model does not take are left out, one after the other.
const MOST_ADAPTED: usize = 5;

/// Why a try brought no reply that can be read.
#[derive(Debug)]
enum TryFailed {
    /// As many requests as the provider may have were under way until the deadline.
    Busy,
    Call(CallError),
    Status {
        reply: Reply,
        wait: Option<Duration>,
    },
}

impl TryFailed {
    fn is_passing(&self) -> bool {
        match self {
            Self::Busy => false,
            Self::Call(error) => {
                matches!(error, CallError::Unreachable(_) | CallError::Disconnected(_))
            }
            Self::Status { reply, .. } => {
                matches!(reply.status.as_u16(), 429 | 500 | 502 | 503 | 504 | 529)
            }
        }
    }
}

impl Asking<'_> {
    /// The text that a model answers with. The outer error ends the judgment, the inner one is what
    /// is wrong with the answer.
    pub(super) async fn complete(
        &self,
        prompt: &Prompt,
    ) -> Result<Result<String, Misread>, Failure> {
        let settings = self.provider.settings;
        let bench = &self.engine.inner.bench;
        let known = bench.without(&self.task.model);
        let mut without = known.clone();
        for _ in 0..=MOST_ADAPTED {
            let body = self.request(prompt, &without).body(settings.kind);
            let sent = self.send(Bytes::from(body.to_string())).await;
            let reply = match sent {
                Ok(reply) => reply,
                Err(TryFailed::Status { reply, .. }) if is_about_the_request(reply.status) => {
                    match refused_parts(&body, &reply.body) {
                        Some(parts) => without.extend(parts),
                        None => return Err(self.refused(&reply, None)),
                    }
                    continue;
                }
                Err(failed) => {
                    tracing::warn!(judge = %self.task.model, cause = ?Cause(&failed), "a judge could not be asked");
                    return Err(self.failure(failed));
                }
            };
            if without != known {
                tracing::info!(judge = %self.task.model, without = ?without, "a model takes less than was sent");
                bench.learn(&self.task.model, without);
            }
            let read = completion::read(settings.kind, &reply.body);
            let answered = read.text.as_ref().map_or(0, String::len);
            let most = bound::most_of(settings, prompt);
            let tokens = read.tokens.filter(|tokens| {
                let is_possible = tokens.input <= most.input && tokens.output <= most.output;
                if !is_possible {
                    tracing::warn!(judge = %self.task.model, input = tokens.input, output = tokens.output, "a provider counts more tokens than there can be; they are estimated");
                }
                is_possible
            });
            self.count(tokens.unwrap_or_else(|| estimated(prompt, answered, most)));
            return Ok(read.text);
        }
        Err(unavailable(format!("`{}` refuses every form of the request", self.task.model)))
    }

    fn request<'p>(&'p self, prompt: &'p Prompt, without: &'p Without) -> Request<'p> {
        Request {
            model: &self.task.model.model,
            prompt,
            effort: self.task.effort,
            max_output_tokens: self.provider.settings.max_output_tokens,
            without,
        }
    }

    /// Tries until there is an answer, at most three times.
    async fn send(&self, body: Bytes) -> Result<Reply, TryFailed> {
        let seed = self.engine.inner.clock.bits();
        let delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_times(TRIES - 1)
            .with_jitter()
            .with_jitter_seed(u64::try_from(seed >> 64).unwrap_or_default());
        (|| self.try_once(body.clone()))
            .retry(delays)
            .when(TryFailed::is_passing)
            .adjust(|failed, delay| {
                let asked = match failed {
                    TryFailed::Status { wait, .. } => *wait,
                    TryFailed::Busy | TryFailed::Call(_) => None,
                };
                let wait = delay?.max(asked.unwrap_or_default());
                // There is no sense in a wait that ends after the round.
                (Instant::now() + wait < self.task.deadline).then_some(wait)
            })
            .notify(|failed, wait| {
                tracing::warn!(judge = %self.task.model, cause = ?Cause(failed), wait_ms = wait.as_millis(), "a judge is asked again");
            })
            .await
    }

    async fn try_once(&self, body: Bytes) -> Result<Reply, TryFailed> {
        let permit = tokio::time::timeout_at(self.task.deadline, self.provider.calls.acquire());
        let Ok(Ok(_permit)) = permit.await else { return Err(TryFailed::Busy) };
        self.calls.fetch_add(1, Ordering::Relaxed);
        let left = self.task.deadline.saturating_duration_since(Instant::now());
        let timeout = left.min(self.provider.settings.timeout);
        let headers = self.provider.headers.clone();
        let client = &self.engine.inner.client;
        let call = self.engine.inner.metrics.judges.call(self.provider.name, self.task.deadline);
        let reply = client.post_json(self.provider.uri, headers, body, timeout).await;
        call.end(outcome(&reply));
        let reply = reply.map_err(TryFailed::Call)?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        let wait = retry_after(&reply.headers, self.engine.inner.clock.now());
        Err(TryFailed::Status { reply, wait })
    }

    fn failure(&self, failed: TryFailed) -> Failure {
        let provider = self.provider.name;
        let unreadable = |error: &CallError| {
            Failure::new(
                FailureCode::JudgeUnreadable,
                format!("the provider `{provider}`: {error}"),
            )
        };
        match failed {
            TryFailed::Busy => {
                let detail = format!(
                    "the provider `{provider}` had as many requests as it may have, until the deadline"
                );
                Failure::new(FailureCode::Busy, detail)
            }
            TryFailed::Call(CallError::Timeout) if Instant::now() < self.task.deadline => {
                let seconds = self.provider.settings.timeout.as_secs_f64();
                let detail = format!("the provider `{provider}` did not answer within {seconds} s");
                Failure::new(FailureCode::Timeout, detail)
            }
            TryFailed::Call(CallError::Timeout) => out_of_time(),
            TryFailed::Call(error @ (CallError::TooLarge { .. } | CallError::Encoded { .. })) => {
                unreadable(&error)
            }
            TryFailed::Call(
                error @ (CallError::Unreachable(_)
                | CallError::Disconnected(_)
                | CallError::Redirect { .. }
                | CallError::Tls(_)),
            ) => unavailable(format!("the provider `{provider}`: {error}")),
            TryFailed::Status { reply, wait } => self.refused(&reply, wait),
        }
    }

    /// The body of a refusal stays out of the message: some providers put part of the key there.
    fn refused(&self, reply: &Reply, wait: Option<Duration>) -> Failure {
        let status = reply.status.as_u16();
        let mut detail = format!("the provider `{}` answered {status}", self.provider.name);
        if let Some(reason) = reply.status.canonical_reason() {
            let _ = write!(detail, " {reason}");
        }
        if let Some(word) = error_word(&reply.body) {
            let _ = write!(detail, " ({word})");
        }
        if let Some(wait) = wait {
            let _ = write!(detail, " and asks to wait {} s", wait.as_secs());
        }
        unavailable(detail)
    }
}

/// In which figure a request is counted.
fn outcome(reply: &Result<Reply, CallError>) -> CallOutcome {
    match reply {
        Ok(reply) if reply.status.is_success() => CallOutcome::Answered,
        Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => CallOutcome::RateLimited,
        Ok(reply) if reply.status.is_server_error() => CallOutcome::Failed,
        Ok(_) => CallOutcome::Refused,
        Err(CallError::Timeout) => CallOutcome::Timeout,
        Err(CallError::TooLarge { .. } | CallError::Encoded { .. }) => CallOutcome::Unreadable,
        Err(
            CallError::Unreachable(_)
            | CallError::Disconnected(_)
            | CallError::Redirect { .. }
            | CallError::Tls(_),
        ) => CallOutcome::Unreachable,
    }
}

/// Whether a status can mean that a part of the request is not taken.
fn is_about_the_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

/// What to write about a failure into the log.
struct Cause<'a>(&'a TryFailed);

impl std::fmt::Debug for Cause<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            TryFailed::Busy => f.write_str("busy"),
            TryFailed::Call(CallError::Redirect { host }) => {
                write!(f, "a redirect to `{host}`")
            }
            TryFailed::Call(error) => write!(f, "{error}"),
            TryFailed::Status { reply, .. } => write!(f, "{}", reply.status),
        }
    }
}

/// The code or type of an error, where it is a plain word.
fn error_word(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let word = |name: &str| body.pointer(name).and_then(Value::as_str);
    let word = word("/error/code").or_else(|| word("/error/type"))?;
    let is_plain = word.len() <= 60
        && !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_plain.then(|| word.to_owned())
}

/// How long a provider asks to be left alone: seconds, or a point in time.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_micros(now.micros().unsigned_abs());
    Some(at.saturating_sub(now))
}

/// What a provider that counts no tokens probably used: four bytes are about one.
fn estimated(prompt: &Prompt, answer_bytes: usize, most: Tokens) -> Tokens {
    let turns: usize = prompt.turns.iter().map(|turn| turn.text.len()).sum();
    let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
    let (input, output) = (tokens(prompt.system.len() + turns), tokens(answer_bytes));
    Tokens { input: input.min(most.input), output: output.min(most.output) }
}

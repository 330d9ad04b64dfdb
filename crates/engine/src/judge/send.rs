//! Sends a request to a provider: in its turn, within the deadline, and again where that can help.

use std::{fmt::Write as _, pin::pin, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use http::StatusCode;
use jurat_core::{
    judge::{Misread, Prompt, Tokens},
    replica::{Failure, FailureCode},
};
use jurat_guard::client::{CallError, Reply, retry_after};
use serde_json::Value;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    ask::Asking,
    bound::{expected_of, usual_tokens},
    completion, out_of_time,
    protocol::{Request, Without, refused_parts},
    settings::ProviderKind,
    tab::{Bill, Meter, NotNoted},
    unavailable,
};
use crate::{Engine, metrics::CallOutcome, turns::Turn};

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
    /// It could not be put on record, so that it did not leave.
    NotNoted(NotNoted),
    Call(CallError),
    Status {
        reply: Reply,
        wait: Option<Duration>,
    },
}

/// What a request may use.
#[derive(Debug, Clone, Copy)]
struct Uses {
    /// What it is charged for while no reply has come.
    expected: Tokens,
    most: Tokens,
}

impl TryFailed {
    fn is_passing(&self) -> bool {
        match self {
            Self::Busy | Self::NotNoted(_) => false,
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
        let (expected, most) = expected_of(settings, prompt, &self.history);
        for _ in 0..=MOST_ADAPTED {
            let body = self.request(prompt, &without).body(settings.kind);
            let uses = Uses { expected, most };
            let sent = self.send(Bytes::from(body.to_string()), uses).await;
            let (reply, call) = match sent {
                Ok(answered) => answered,
                Err(TryFailed::Status { reply, .. }) if is_about_the_request(reply.status) => {
                    match refused_parts(&body, &reply.body) {
                        Some(parts) => without.extend(parts),
                        None => return Err(self.refused(&reply, None)),
                    }
                    continue;
                }
                Err(failed) => {
                    tracing::warn!(judge = %self.task.model, cause = ?Cause(&failed), "could not call a judge");
                    return Err(self.failure(failed));
                }
            };
            if without != known {
                tracing::info!(judge = %self.task.model, without = ?without, "model rejects some request options; leaving them out");
                bench.learn(&self.task.model, without);
            }
            let read = completion::read(settings.kind, &reply.body);
            let answered = read.text.as_ref().map_or(0, String::len);
            let counted = read.tokens.filter(|tokens| is_possible(*tokens, most));
            let tokens = counted.unwrap_or_else(|| estimated(prompt, answered, most));
            if counted.is_some() {
                self.meter.counted(call, tokens);
            } else {
                self.meter.estimated(call, tokens);
            }
            if let (None, Some(Tokens { input, output })) = (counted, read.tokens) {
                tracing::warn!(judge = %self.task.model, input, output, "provider reports an impossible token count; estimating it");
            }
            self.engine.inner.metrics.judges.tokens(self.provider.name, tokens);
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
    async fn send(&self, body: Bytes, uses: Uses) -> Result<(Reply, usize), TryFailed> {
        let seed = self.engine.inner.clock.bits();
        let delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_times(TRIES - 1)
            .with_jitter()
            .with_jitter_seed(u64::try_from(seed >> 64).unwrap_or_default());
        (|| self.try_once(body.clone(), uses))
            .retry(delays)
            .when(TryFailed::is_passing)
            .adjust(|failed, delay| {
                let asked = match failed {
                    TryFailed::Status { wait, .. } => *wait,
                    TryFailed::Busy | TryFailed::NotNoted(_) | TryFailed::Call(_) => None,
                };
                let wait = delay?.max(asked.unwrap_or_default());
                // There is no sense in a wait that ends after the round.
                (Instant::now() + wait < self.task.deadline).then_some(wait)
            })
            .notify(|failed, wait| {
                tracing::warn!(judge = %self.task.model, cause = ?Cause(failed), wait_ms = wait.as_millis(), "calling a judge again");
            })
            .await
    }

    /// One try, and its number on the meter. It is charged from the moment in which it leaves.
    async fn try_once(&self, body: Bytes, uses: Uses) -> Result<(Reply, usize), TryFailed> {
        let deadline = self.task.deadline;
        let place =
            self.provider.calls.place(&self.task.sharer, deadline).await.ok_or(TryFailed::Busy)?;
        let (engine, bill) = (self.engine, self.task.bill.as_ref());
        let noted = engine.note_call_sent(bill, &self.meter, uses.expected).await;
        noted.map_err(TryFailed::NotNoted)?;
        if deadline <= Instant::now() {
            return Err(TryFailed::Call(CallError::Timeout));
        }
        let number = self.meter.leaves(uses.expected, uses.most.input);
        let call = engine.inner.metrics.judges.call(self.provider.name, deadline);
        let told = self.leave(body, place, Sent::new(self, number, uses.most));
        let reply = match timeout_at(deadline, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => Err(CallError::Timeout),
        };
        call.end(outcome(&reply));
        match reply {
            Ok(reply) if reply.status.is_success() => Ok((reply, number)),
            Ok(reply) => {
                // Who refuses a request charges nothing for it.
                self.meter.nothing(number);
                let now = engine.inner.clock.now().micros().unsigned_abs();
                let wait = retry_after(&reply.headers, Duration::from_micros(now));
                Err(TryFailed::Status { reply, wait })
            }
            Err(error) => {
                if never_left(&error) {
                    self.meter.nothing(number);
                }
                Err(TryFailed::Call(error))
            }
        }
    }

    /// Sends a request that goes on when nobody waits for its reply any more, because what it used
    /// is still to be reported: until its provider answers, is wanted by others, or the node ends.
    fn leave(
        &self,
        body: Bytes,
        place: Turn,
        sent: Sent,
    ) -> oneshot::Receiver<Result<Reply, CallError>> {
        let (mut tell, told) = oneshot::channel();
        let (uri, headers) = (self.provider.uri.clone(), self.provider.headers.clone());
        let timeout = self.provider.settings.timeout;
        let calls = Arc::clone(self.provider.calls);
        self.engine.inner.background.spawn(async move {
            let client = sent.engine.inner.client.clone();
            let mut asking = pin!(client.post_json(&uri, headers, body, timeout));
            let in_time = tokio::select! {
                biased;
                reply = &mut asking => Some(reply),
                () = tell.closed() => None,
            };
            let reply = if let Some(reply) = in_time {
                let Err(reply) = tell.send(reply) else { return };
                reply
            } else {
                tokio::select! {
                    reply = &mut asking => reply,
                    () = calls.wanted() => return,
                    () = sent.engine.stopping() => return,
                }
            };
            drop(place);
            sent.report(reply).await;
        });
        told
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
                    "the provider `{provider}` was at its limit of concurrent requests until the deadline"
                );
                Failure::new(FailureCode::Busy, detail)
            }
            TryFailed::NotNoted(NotNoted::Lost) => {
                let detail = "another node ended the round before the judge was called";
                Failure::new(FailureCode::Cancelled, detail)
            }
            TryFailed::NotNoted(NotNoted::Store(_)) => {
                let detail = "the call could not be recorded, so the judge was not called";
                Failure::new(FailureCode::Unavailable, detail)
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

/// A request that has left, for whoever hears of it when nobody waits any more.
struct Sent {
    engine: Engine,
    kind: ProviderKind,
    meter: Arc<Meter>,
    bill: Option<Bill>,
    number: usize,
    most: Tokens,
}

impl Sent {
    fn new(asking: &Asking<'_>, number: usize, most: Tokens) -> Self {
        Self {
            engine: asking.engine.clone(),
            kind: asking.provider.settings.kind,
            meter: Arc::clone(&asking.meter),
            bill: asking.task.bill.clone(),
            number,
            most,
        }
    }

    /// What came after all says what the call used; what says nothing leaves the charge as it is.
    async fn report(self, reply: Result<Reply, CallError>) {
        match reply {
            Ok(reply) if reply.status.is_success() => {
                let tokens = completion::read(self.kind, &reply.body).tokens;
                let Some(tokens) = tokens.filter(|it| is_possible(*it, self.most)) else { return };
                self.meter.counted(self.number, tokens);
            }
            Ok(_) => self.meter.nothing(self.number),
            Err(error) if never_left(&error) => self.meter.nothing(self.number),
            Err(_) => return,
        }
        self.engine.reported_late(self.bill.as_ref(), &self.meter).await;
    }
}

/// Whether the provider never had the request. Of one that was cut off nobody knows.
fn never_left(error: &CallError) -> bool {
    match error {
        CallError::Unreachable(_) | CallError::Tls(_) | CallError::Redirect { .. } => true,
        CallError::Timeout
        | CallError::Disconnected(_)
        | CallError::TooLarge { .. }
        | CallError::Encoded { .. } => false,
    }
}

/// Whether there can be so many tokens.
fn is_possible(tokens: Tokens, most: Tokens) -> bool {
    tokens.input <= most.input && tokens.output <= most.output
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
            TryFailed::NotNoted(NotNoted::Lost) => f.write_str("the lease is lost"),
            TryFailed::NotNoted(NotNoted::Store(error)) => write!(f, "{error}"),
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

/// What a provider that counts no tokens probably used: four bytes are about one.
fn estimated(prompt: &Prompt, answer_bytes: usize, most: Tokens) -> Tokens {
    let output = u64::try_from(answer_bytes.div_ceil(4)).unwrap_or(u64::MAX);
    Tokens { input: usual_tokens(prompt).min(most.input), output: output.min(most.output) }
}

//! Sends a request to a provider: with a permit, within the deadline, and again if that can help.

use std::{fmt::Write as _, pin::pin, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use http::StatusCode;
use jurat_core::{
    judge::{JudgmentError, Prompt, Tokens},
    round::replica::{FailureCode, ReplicaFailure},
};
use jurat_guard::client::{CallError, HttpReply, retry_after};
use serde_json::Value;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::{
    completion,
    config::ProviderKind,
    cost_ceiling::{call_tokens, usual_tokens},
    costs::{ChargeError, JudgmentMeter, SeatBill},
    dialogue::JudgeDialogue,
    judge_timeout, judge_unavailable,
    protocol::{OmittedParts, ProviderRequest, refused_parts},
};
use crate::{
    Engine,
    node::{metrics::JudgeCallOutcome, permit_queue::QueuePermit},
};

/// How many times one request is tried.
const TRIES: usize = 3;
const FIRST_DELAY: Duration = Duration::from_millis(500);
/// How many parts that a model does not accept are left out, one after the other.
const MOST_ADAPTED: usize = 5;

/// Why a try got no readable reply.
#[derive(Debug)]
enum JudgeTryError {
    /// All permits of the provider were in use until the deadline.
    Busy,
    /// The call could not be recorded, so it did not leave.
    NotCharged(ChargeError),
    Call(CallError),
    Status {
        reply: HttpReply,
        wait: Option<Duration>,
    },
}

/// The estimated usage of a request.
#[derive(Debug, Clone, Copy)]
struct TokenEstimate {
    /// The charge while no reply has come.
    expected: Tokens,
    most: Tokens,
}

impl JudgeTryError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Busy | Self::NotCharged(_) => false,
            Self::Call(error) => {
                matches!(error, CallError::Unreachable(_) | CallError::Disconnected(_))
            }
            Self::Status { reply, .. } => {
                matches!(reply.status.as_u16(), 429 | 500 | 502 | 503 | 504 | 529)
            }
        }
    }
}

impl JudgeDialogue<'_> {
    /// The text of a model's answer. The outer error ends the judgment, the inner one is the fault
    /// of the answer.
    pub(super) async fn complete(
        &self,
        prompt: &Prompt,
    ) -> Result<Result<String, JudgmentError>, ReplicaFailure> {
        let settings = self.provider.settings;
        let bench = &self.engine.inner.judge_providers;
        let known = bench.omitted_parts(&self.judge_question.model);
        let mut without = known.clone();
        let (expected, most) = call_tokens(settings, prompt, &self.history);
        for _ in 0..=MOST_ADAPTED {
            let body = self.request(prompt, &without).body(settings.kind);
            let uses = TokenEstimate { expected, most };
            let sent = self.send(Bytes::from(body.to_string()), uses).await;
            let (reply, call) = match sent {
                Ok(answered) => answered,
                Err(JudgeTryError::Status { reply, .. }) if is_about_the_request(reply.status) => {
                    match refused_parts(&body, &reply.body) {
                        Some(parts) => without.extend(parts),
                        None => return Err(self.refused(&reply, None)),
                    }
                    continue;
                }
                Err(failed) => {
                    tracing::warn!(judge = %self.judge_question.model, cause = ?LoggedCause(&failed), "could not call a judge");
                    return Err(self.failure(failed));
                }
            };
            if without != known {
                tracing::info!(judge = %self.judge_question.model, without = ?without, "model rejects some request options; leaving them out");
                bench.omit(&self.judge_question.model, without);
            }
            let read = completion::read_completion(settings.kind, &reply.body);
            let answered = read.text.as_ref().map_or(0, String::len);
            let counted = read.tokens.filter(|tokens| is_possible(*tokens, most));
            let tokens = counted.unwrap_or_else(|| estimated_tokens(prompt, answered, most));
            if counted.is_some() {
                self.meter.counted(call, tokens);
            } else {
                self.meter.estimated(call, tokens);
            }
            if let (None, Some(Tokens { input, output })) = (counted, read.tokens) {
                tracing::warn!(judge = %self.judge_question.model, input, output, "provider reports an impossible token count; estimating it");
            }
            self.engine.inner.metrics.judges.tokens(self.provider.name, tokens);
            return Ok(read.text);
        }
        Err(judge_unavailable(format!(
            "`{}` refuses every form of the request",
            self.judge_question.model
        )))
    }

    fn request<'p>(&'p self, prompt: &'p Prompt, without: &'p OmittedParts) -> ProviderRequest<'p> {
        ProviderRequest {
            model: &self.judge_question.model.model,
            prompt,
            effort: self.judge_question.effort,
            max_output_tokens: self.provider.settings.max_output_tokens,
            omitted: without,
        }
    }

    /// Tries until there is an answer, at most three times.
    async fn send(
        &self,
        body: Bytes,
        uses: TokenEstimate,
    ) -> Result<(HttpReply, usize), JudgeTryError> {
        let seed = self.engine.inner.clock.bits();
        let delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_times(TRIES - 1)
            .with_jitter()
            .with_jitter_seed(u64::try_from(seed >> 64).unwrap_or_default());
        (|| self.try_once(body.clone(), uses))
            .retry(delays)
            .when(JudgeTryError::is_transient)
            .adjust(|failed, delay| {
                let asked = match failed {
                    JudgeTryError::Status { wait, .. } => *wait,
                    JudgeTryError::Busy | JudgeTryError::NotCharged(_) | JudgeTryError::Call(_) => None,
                };
                let wait = delay?.max(asked.unwrap_or_default());
                // A wait that ends after the round is pointless.
                (Instant::now() + wait < self.judge_question.deadline).then_some(wait)
            })
            .notify(|failed, wait| {
                tracing::warn!(judge = %self.judge_question.model, cause = ?LoggedCause(failed), wait_ms = wait.as_millis(), "calling a judge again");
            })
            .await
    }

    /// One try, and its number on the meter. It is charged from the moment it leaves.
    async fn try_once(
        &self,
        body: Bytes,
        uses: TokenEstimate,
    ) -> Result<(HttpReply, usize), JudgeTryError> {
        let deadline = self.judge_question.deadline;
        let permit = self
            .provider
            .permits
            .permit(&self.judge_question.sharer, deadline)
            .await
            .ok_or(JudgeTryError::Busy)?;
        let (engine, bill) = (self.engine, self.judge_question.seat_bill.as_ref());
        let noted = engine.charge_call(bill, &self.meter, uses.expected).await;
        noted.map_err(JudgeTryError::NotCharged)?;
        if deadline <= Instant::now() {
            return Err(JudgeTryError::Call(CallError::Timeout));
        }
        let number = self.meter.begin_call(uses.expected, uses.most.input);
        let call = engine.inner.metrics.judges.call(self.provider.name, deadline);
        let told = self.send_detached(body, permit, SentRequest::new(self, number, uses.most));
        let reply = match timeout_at(deadline, told).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => Err(CallError::Timeout),
        };
        call.end(outcome(&reply));
        match reply {
            Ok(reply) if reply.status.is_success() => Ok((reply, number)),
            Ok(reply) => {
                // A provider that refuses a request does not charge for it.
                self.meter.nothing(number);
                let now = engine.inner.clock.now().micros().unsigned_abs();
                let wait = retry_after(&reply.headers, Duration::from_micros(now));
                Err(JudgeTryError::Status { reply, wait })
            }
            Err(error) => {
                if never_left(&error) {
                    self.meter.nothing(number);
                }
                Err(JudgeTryError::Call(error))
            }
        }
    }

    /// Sends a request that continues when nobody waits for its reply any more, because its usage
    /// is still to be reported. It ends when the provider answers, when another request needs its
    /// permit, or when the node stops.
    fn send_detached(
        &self,
        body: Bytes,
        permit: QueuePermit,
        sent: SentRequest,
    ) -> oneshot::Receiver<Result<HttpReply, CallError>> {
        let (mut tell, told) = oneshot::channel();
        let (uri, headers) = (self.provider.uri.clone(), self.provider.headers.clone());
        let timeout = self.provider.settings.timeout;
        let calls = Arc::clone(self.provider.permits);
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
            drop(permit);
            sent.report(reply).await;
        });
        told
    }

    fn failure(&self, failed: JudgeTryError) -> ReplicaFailure {
        let provider = self.provider.name;
        let unreadable = |error: &CallError| {
            ReplicaFailure::new(
                FailureCode::JudgeUnreadable,
                format!("the provider `{provider}`: {error}"),
            )
        };
        match failed {
            JudgeTryError::Busy => {
                let detail = format!(
                    "the provider `{provider}` was at its limit of concurrent requests until the deadline"
                );
                ReplicaFailure::new(FailureCode::Busy, detail)
            }
            JudgeTryError::NotCharged(ChargeError::Lost) => {
                let detail = "another node ended the round before the judge was called";
                ReplicaFailure::new(FailureCode::Cancelled, detail)
            }
            JudgeTryError::NotCharged(ChargeError::Store(_)) => {
                let detail = "the call could not be recorded, so the judge was not called";
                ReplicaFailure::new(FailureCode::Unavailable, detail)
            }
            JudgeTryError::Call(CallError::Timeout)
                if Instant::now() < self.judge_question.deadline =>
            {
                let seconds = self.provider.settings.timeout.as_secs_f64();
                let detail = format!("the provider `{provider}` did not answer within {seconds} s");
                ReplicaFailure::new(FailureCode::Timeout, detail)
            }
            JudgeTryError::Call(CallError::Timeout) => judge_timeout(),
            JudgeTryError::Call(
                error @ (CallError::TooLarge { .. } | CallError::Encoded { .. }),
            ) => unreadable(&error),
            JudgeTryError::Call(
                error @ (CallError::Unreachable(_)
                | CallError::Disconnected(_)
                | CallError::Redirect { .. }
                | CallError::Tls(_)),
            ) => judge_unavailable(format!("the provider `{provider}`: {error}")),
            JudgeTryError::Status { reply, wait } => self.refused(&reply, wait),
        }
    }

    /// The body of a refusal is left out: some providers include a part of the key.
    fn refused(&self, reply: &HttpReply, wait: Option<Duration>) -> ReplicaFailure {
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
        judge_unavailable(detail)
    }
}

/// A request that has left, for reporting it when nobody waits any more.
struct SentRequest {
    engine: Engine,
    kind: ProviderKind,
    meter: Arc<JudgmentMeter>,
    bill: Option<SeatBill>,
    number: usize,
    most: Tokens,
}

impl SentRequest {
    fn new(asking: &JudgeDialogue<'_>, number: usize, most: Tokens) -> Self {
        Self {
            engine: asking.engine.clone(),
            kind: asking.provider.settings.kind,
            meter: Arc::clone(&asking.meter),
            bill: asking.judge_question.seat_bill.clone(),
            number,
            most,
        }
    }

    /// A late reply reports the usage of the call; a reply without a count leaves the charge
    /// unchanged.
    async fn report(self, reply: Result<HttpReply, CallError>) {
        match reply {
            Ok(reply) if reply.status.is_success() => {
                let tokens = completion::read_completion(self.kind, &reply.body).tokens;
                let Some(tokens) = tokens.filter(|it| is_possible(*it, self.most)) else { return };
                self.meter.counted(self.number, tokens);
            }
            Ok(_) => self.meter.nothing(self.number),
            Err(error) if never_left(&error) => self.meter.nothing(self.number),
            Err(_) => return,
        }
        self.engine.correct_late_report(self.bill.as_ref(), &self.meter).await;
    }
}

/// Whether the provider never got the request. For a connection that was cut, nobody knows.
fn never_left(error: &CallError) -> bool {
    match error {
        CallError::Unreachable(_) | CallError::Tls(_) | CallError::Redirect { .. } => true,
        CallError::Timeout
        | CallError::Disconnected(_)
        | CallError::TooLarge { .. }
        | CallError::Encoded { .. } => false,
    }
}

/// Whether so many tokens are possible.
fn is_possible(tokens: Tokens, most: Tokens) -> bool {
    tokens.input <= most.input && tokens.output <= most.output
}

/// The metric label of a request.
fn outcome(reply: &Result<HttpReply, CallError>) -> JudgeCallOutcome {
    match reply {
        Ok(reply) if reply.status.is_success() => JudgeCallOutcome::Answered,
        Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => JudgeCallOutcome::RateLimited,
        Ok(reply) if reply.status.is_server_error() => JudgeCallOutcome::Failed,
        Ok(_) => JudgeCallOutcome::Refused,
        Err(CallError::Timeout) => JudgeCallOutcome::Timeout,
        Err(CallError::TooLarge { .. } | CallError::Encoded { .. }) => JudgeCallOutcome::Unreadable,
        Err(
            CallError::Unreachable(_)
            | CallError::Disconnected(_)
            | CallError::Redirect { .. }
            | CallError::Tls(_),
        ) => JudgeCallOutcome::Unreachable,
    }
}

/// Whether a status can mean that a part of the request is not accepted.
fn is_about_the_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

/// The log text of a failure.
struct LoggedCause<'a>(&'a JudgeTryError);

impl std::fmt::Debug for LoggedCause<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            JudgeTryError::Busy => f.write_str("busy"),
            JudgeTryError::NotCharged(ChargeError::Lost) => f.write_str("the lease is lost"),
            JudgeTryError::NotCharged(ChargeError::Store(error)) => write!(f, "{error}"),
            JudgeTryError::Call(CallError::Redirect { host }) => {
                write!(f, "a redirect to `{host}`")
            }
            JudgeTryError::Call(error) => write!(f, "{error}"),
            JudgeTryError::Status { reply, .. } => write!(f, "{}", reply.status),
        }
    }
}

/// The code or type of an error, if it is a plain word.
fn error_word(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let word = |name: &str| body.pointer(name).and_then(Value::as_str);
    let word = word("/error/code").or_else(|| word("/error/type"))?;
    let is_plain = word.len() <= 60
        && !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_plain.then(|| word.to_owned())
}

/// The estimated usage at a provider that counts no tokens: four bytes are about one.
fn estimated_tokens(prompt: &Prompt, answer_bytes: usize, most: Tokens) -> Tokens {
    let output = u64::try_from(answer_bytes.div_ceil(4)).unwrap_or(u64::MAX);
    Tokens { input: usual_tokens(prompt).min(most.input), output: output.min(most.output) }
}

//! One conversation with the model: ask, check the form of the answer, and ask again if it is
//! wrong.

use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::{Map, Value};
use tokio::time::Instant;

use jurat_core::judge::Tokens;
use jurat_core::policy::{EvaluationStatus, PolicyRules};
use jurat_core::round::candidate::{Candidate, Evidence};
use jurat_core::schema::Schema;
use jurat_guard::client::{CallError, HttpReply, retry_after};
use jurat_guard::sandbox::SchemaRefusal;
use jurat_wire::strict_json;

use super::OpenAiExecutor;
use super::completion::{self, CompletionReply, CompletionRequest, TokenSpending};
use super::prompts::{AnswerDemand, AnswerForm, ModelMessage};
use crate::events::now_ms;
use crate::executor::ExecutorError;
use crate::verify::matched;

/// How many times one request is sent while the provider is busy or fails.
const TRIES: usize = 4;
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Why a try got no answer.
#[derive(Debug)]
enum ChatTryError {
    Call(CallError),
    Status { reply: HttpReply, wait: Option<Duration> },
}

impl ChatTryError {
    /// Whether another try may help. A request whose answer was lost may have been charged, so only
    /// requests that were not accepted or failed are sent again.
    fn is_passing(&self) -> bool {
        match self {
            Self::Call(error) => matches!(error, CallError::Unreachable(_)),
            Self::Status { reply, .. } => {
                reply.status.as_u16() == 429 || reply.status.is_server_error()
            }
        }
    }
}

/// A conversation, its time limit, and its usage.
pub(super) struct ChatConversation<'a> {
    executor: &'a OpenAiExecutor,
    form: &'a AnswerForm,
    sampling: &'a Map<String, Value>,
    deadline: Instant,
    spent: TokenSpending,
}

impl<'a> ChatConversation<'a> {
    pub(super) fn new(
        executor: &'a OpenAiExecutor,
        (form, sampling): (&'a AnswerForm, &'a Map<String, Value>),
        within: Duration,
    ) -> Self {
        let deadline = Instant::now() + within;
        Self { executor, form, sampling, deadline, spent: TokenSpending::default() }
    }

    /// Asks until the answer has the right form, at most twice. The usage is returned in either
    /// case.
    pub(super) async fn ask(
        mut self,
        messages: Vec<ModelMessage>,
    ) -> (Result<Value, ExecutorError>, TokenSpending) {
        let answer = self.converse(messages).await;
        let (spent, model) = (self.spent, &self.executor.options.model);
        tracing::info!(
            model,
            calls = spent.calls,
            input_tokens = spent.tokens.input,
            output_tokens = spent.tokens.output,
            cost_micros = spent.cost_micros(self.executor.options.price),
            "called a model"
        );
        (answer, spent)
    }

    async fn converse(&mut self, mut messages: Vec<ModelMessage>) -> Result<Value, ExecutorError> {
        // Checked before the model is asked, because an answer that nothing can check still costs
        // money.
        let schema = match &self.form.demand {
            AnswerDemand::PlainText => None,
            AnswerDemand::Json { schema, rules, .. } => Some(self.compile(schema, *rules).await?),
        };
        let first = self.complete(&messages).await?;
        let Some(schema) = schema else { return Ok(plain(&first)) };
        let problem = match self.read(&first, &schema).await? {
            Ok(value) => return Ok(value),
            Err(problem) => problem,
        };
        messages.push(ModelMessage::new("assistant", first));
        messages.push(ModelMessage::new(
            "user",
            format!(
                "That answer cannot be used: {problem}. Answer again with only the JSON document."
            ),
        ));
        let second = self.complete(&messages).await?;
        self.read(&second, &schema).await?.map_err(|problem| {
            ExecutorError::Upstream(format!(
                "the model's answer could not be used twice in a row: {problem}"
            ))
        })
    }

    async fn compile(&self, schema: &Value, rules: PolicyRules) -> Result<Schema, ExecutorError> {
        let compiled = self.executor.bounded.schema_under(rules, schema).await;
        compiled.map_err(|error| match error {
            SchemaRefusal::Schema(_) => unchecked(error.to_string()),
            SchemaRefusal::Busy => ExecutorError::Overloaded,
            SchemaRefusal::Crashed => ExecutorError::Failed(error.to_string()),
        })
    }

    /// The outer error ends the conversation; the inner one is sent to the model.
    async fn read(
        &self,
        content: &str,
        schema: &Schema,
    ) -> Result<Result<Value, String>, ExecutorError> {
        let bytes = unfenced(content).as_bytes();
        let parsed = match &self.form.demand {
            AnswerDemand::Json { rules: PolicyRules::WattSwarm, .. } => {
                strict_json::parse_wide(bytes)
            }
            AnswerDemand::Json { rules: PolicyRules::Jurat, .. } | AnswerDemand::PlainText => {
                strict_json::parse(bytes)
            }
        };
        let value = match parsed {
            Ok(value) => value,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let candidate = Arc::new(Candidate {
            candidate_id: String::new(),
            execution_id: String::new(),
            output: value,
            evidence: Evidence::default(),
        });
        let bounded = &self.executor.bounded;
        let evaluation = matched(bounded, Arc::clone(&candidate), schema.clone()).await?;
        let notes = evaluation.notes.join("; ");
        match evaluation.status {
            EvaluationStatus::Passed => Ok(Ok(Arc::unwrap_or_clone(candidate).output)),
            EvaluationStatus::Failed => Ok(Err(notes)),
            EvaluationStatus::Inconclusive => Err(unchecked(notes)),
        }
    }

    async fn complete(&mut self, messages: &[ModelMessage]) -> Result<String, ExecutorError> {
        let request = CompletionRequest::new(
            &self.executor.options.model,
            messages,
            self.form,
            self.sampling,
        );
        let body = serde_json::to_vec(&request)
            .map_err(|error| ExecutorError::Failed(format!("the request: {error}")))?;
        let asked = body.len();
        let reply = self.send(Bytes::from(body)).await?;
        let CompletionReply { text, tokens } = completion::read(&reply.body);
        let answered = text.as_ref().map_or(0, String::len);
        self.spent.add(tokens, || Tokens { input: about(asked), output: about(answered) });
        text
    }

    /// Sends a request until it is answered, as long as there is time before the deadline.
    async fn send(&self, body: Bytes) -> Result<HttpReply, ExecutorError> {
        let base = self.executor.options.base_url.trim_end_matches('/');
        let url = Uri::try_from(format!("{base}/chat/completions")).map_err(|error| {
            ExecutorError::Failed(format!("the base URL of the model: {error}"))
        })?;
        let headers = self.headers()?;
        let delays = ExponentialBuilder::default()
            .with_min_delay(FIRST_DELAY)
            .with_max_times(TRIES - 1)
            .with_jitter();
        let sent = (|| self.try_once(&url, headers.clone(), body.clone()))
            .retry(delays)
            .when(ChatTryError::is_passing)
            .adjust(|failed, delay| {
                let asked = match failed {
                    ChatTryError::Status { wait, .. } => *wait,
                    ChatTryError::Call(_) => None,
                };
                let wait = asked.or(delay).filter(|_| delay.is_some())?;
                // A wait that ends after the deadline is pointless.
                (Instant::now() + wait < self.deadline).then_some(wait)
            })
            .notify(|failed, wait| {
                let wait_ms = wait.as_millis();
                tracing::warn!(cause = %failed.words(), wait_ms, "calling a model again");
            })
            .await;
        sent.map_err(|failed| ExecutorError::Upstream(failed.words()))
    }

    async fn try_once(
        &self,
        url: &Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, ChatTryError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let within = left.min(self.executor.options.timeout);
        let reply = self.executor.client.post_json(url, headers, body, within).await;
        let reply = reply.map_err(ChatTryError::Call)?;
        if reply.status.is_success() {
            return Ok(reply);
        }
        let since = Duration::from_millis(now_ms().unwrap_or_default());
        let wait = retry_after(&reply.headers, since);
        Err(ChatTryError::Status { reply, wait })
    }

    fn headers(&self) -> Result<HeaderMap, ExecutorError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.executor.options.key {
            let mut value =
                HeaderValue::try_from(format!("Bearer {}", key.expose())).map_err(|_| {
                    ExecutorError::Failed(
                        "the key contains characters that are not allowed in a header".to_owned(),
                    )
                })?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

impl ChatTryError {
    /// The body of an error is left out: some providers include a part of the key.
    fn words(&self) -> String {
        match self {
            Self::Call(error) => format!("the model: {error}"),
            Self::Status { reply, wait: None } => {
                format!("the model's API answered {}", reply.status)
            }
            Self::Status { reply, wait: Some(wait) } => {
                let seconds = wait.as_secs();
                format!("the model's API answered {} and asks to wait {seconds} s", reply.status)
            }
        }
    }
}

fn unchecked(problem: String) -> ExecutorError {
    ExecutorError::Refused { field: "task_contract.output_schema".to_owned(), problem }
}

/// A plain answer as an output. A model may write JSON without being asked to.
fn plain(content: &str) -> Value {
    let document = strict_json::parse(unfenced(content).as_bytes()).ok();
    let is_answer = |it: &Value| it.get("answer").is_some_and(Value::is_string);
    document.filter(is_answer).unwrap_or_else(|| serde_json::json!({ "answer": content.trim() }))
}

/// Four bytes are about one token.
fn about(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// Takes the document out of a fenced block, which some models add.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|rest| rest.strip_suffix("```")).map_or(text, str::trim)
}

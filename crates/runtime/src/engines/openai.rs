//! An executor that asks a model behind an OpenAI-compatible `POST {base}/chat/completions`.

mod chat;
mod completion;
mod prompts;

use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use jurat_core::executor::Capabilities;
use jurat_core::judge::Price;
use jurat_core::policy::{CLAIM, Evaluation, EvaluationStatus};
use jurat_core::reason;
use jurat_core::round::candidate::{Evidence, InlineEvidence};
use jurat_guard::client::{CallError, ClientLimits, OutboundClient};
use jurat_guard::sandbox::Sandbox;

use super::echo::evaluation;
use crate::executor::{Execute, Execution, ExecutorError, ExecutorService, JudgeRequest};
use crate::options::Secret;
use chat::ChatConversation;
use completion::TokenSpending;
use prompts::AnswerForm;

/// The confidence in a verdict of the model, which states none itself.
const JUDGE_SCORE: f64 = 0.9;

/// The settings of an executor that asks a model.
#[derive(Debug, Clone)]
pub struct OpenAiOptions {
    /// Such as `https://api.openai.com/v1`; `/chat/completions` is appended.
    pub base_url: String,
    pub model: String,
    pub key: Option<Secret>,
    /// The timeout for one call to the model.
    pub timeout: Duration,
    /// The price of its tokens; without it only the tokens are reported.
    pub price: Option<Price>,
}

/// An executor that asks a model.
pub struct OpenAiExecutor {
    capabilities: Capabilities,
    options: OpenAiOptions,
    client: OutboundClient,
    bounded: Sandbox,
}

impl std::fmt::Debug for OpenAiExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("OpenAiExecutor");
        out.field("capabilities", &self.capabilities).field("options", &self.options);
        out.finish_non_exhaustive()
    }
}

impl OpenAiExecutor {
    /// Fails only if the TLS setup of the machine is broken.
    pub fn new(capabilities: Capabilities, options: OpenAiOptions) -> Result<Self, CallError> {
        let client = OutboundClient::new(ClientLimits::default())?;
        Ok(Self { capabilities, options, client, bounded: Sandbox::new(1) })
    }

    /// The time limit for a conversation: the budget of the contract, but no more than two calls.
    fn within(&self, budget_ms: u64) -> Duration {
        let most = self.options.timeout * 2;
        match budget_ms {
            0 => most,
            ms => most.min(Duration::from_millis(ms)),
        }
    }

    /// The answer with its usage. The caller pays the price of the session, whatever the usage was.
    fn traced(
        &self,
        output: Value,
        sampling: &Map<String, Value>,
        spent: TokenSpending,
    ) -> Execution {
        let trace = json!({
            "kind": "trace",
            "model": self.options.model,
            "temperature": sampling.get("temperature"),
            "usage": {
                "input_tokens": spent.tokens.input,
                "output_tokens": spent.tokens.output,
                "calls": spent.calls,
                "is_estimated": spent.is_estimated,
                "cost_micros": spent.cost_micros(self.options.price),
            },
        });
        let trace =
            InlineEvidence { mime: "application/json".to_owned(), content: trace.to_string() };
        Execution { output, evidence: Evidence { inline: vec![trace], refs: Vec::new() } }
    }
}

#[async_trait]
impl ExecutorService for OpenAiExecutor {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError> {
        let (messages, form) = if request.task_type == "factcheck" {
            (prompts::factcheck(&request.inputs), AnswerForm::factcheck())
        } else {
            let schema = &request.task_contract.output_schema;
            let form = AnswerForm::of_contract(schema, request.rules());
            (prompts::delegate(&request.inputs, &form), form)
        };
        let within = self.within(request.task_contract.budget.time_ms);
        let sampling = prompts::sampling(&request.inputs);
        let conversation = ChatConversation::new(self, (&form, &sampling), within);
        let (output, spent) = conversation.ask(messages).await;
        Ok(self.traced(output?, &sampling, spent))
    }

    async fn judge(&self, request: &JudgeRequest) -> Result<Evaluation, ExecutorError> {
        if request.policy.policy_id != CLAIM {
            let message = format!("this executor judges `{CLAIM}` only");
            return Err(ExecutorError::NotSupported(message));
        }
        let form = AnswerForm::claim();
        let sampling = prompts::sampling(&Value::Null);
        let conversation = ChatConversation::new(self, (&form, &sampling), self.within(0));
        let (answer, _) = conversation.ask(prompts::judge(&request.candidate)).await;
        match answer?.get("verdict").and_then(Value::as_str) {
            Some("true") => Ok(evaluation(EvaluationStatus::Passed, JUDGE_SCORE, &[])),
            Some("false") => {
                Ok(evaluation(EvaluationStatus::Failed, JUDGE_SCORE, &[reason::CLAIM_FALSE]))
            }
            Some("cannot_tell") => {
                Ok(evaluation(EvaluationStatus::Inconclusive, 0.5, &[reason::CLAIM_UNDECIDED]))
            }
            Some(_) | None => Err(ExecutorError::Upstream("the model gave no verdict".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use jurat_wire::executor::decode_execute_request;

    use super::*;
    use crate::verify::tests::fill;

    #[tokio::test]
    async fn a_model_is_not_asked_if_its_answer_cannot_be_checked() {
        let capabilities = Capabilities {
            task_types: vec!["*".to_owned()],
            profiles: vec!["*".to_owned()],
            provider_family: "f".to_owned(),
            model_id: "m".to_owned(),
            policies: Vec::new(),
        };
        // Nothing listens there, so asking the model would be another error.
        let base_url = "http://127.0.0.1:1".to_owned();
        let timeout = Duration::from_secs(5);
        let options =
            OpenAiOptions { base_url, model: "m".to_owned(), key: None, timeout, price: None };
        let executor = OpenAiExecutor::new(capabilities, options).unwrap();
        let _full = fill(&executor.bounded).await;
        let request = decode_execute_request(json!({
            "task_id": "t", "execution_id": "e", "task_type": "factcheck", "profile": "default",
            "inputs": {"claim": "2 + 2 = 4"}, "task_contract": {}, "stage": "explore",
            "attempt_id": "a", "seed_bundle": null,
        }));
        let answer = executor.execute(&request.unwrap()).await;
        assert_eq!(answer, Err(ExecutorError::Overloaded));
    }
}

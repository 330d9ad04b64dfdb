//! A deterministic executor for tests and demonstrations, and three ways for it to misbehave.

use std::str::FromStr;

use async_trait::async_trait;
use serde_json::{Value, json};

use jurat_core::canonical;
use jurat_core::executor::Capabilities;
use jurat_core::policy::{CLAIM, CROSSCHECK, Evaluation, EvaluationStatus, PolicyRules};
use jurat_core::reason;
use jurat_core::round::candidate::{ArtifactRef, Evidence, InlineEvidence};

use super::arithmetic;
use super::shaped::shaped;
use crate::events::now_ms;
use crate::executor::{Execute, Execution, ExecutorError, ExecutorService, JudgeRequest};

/// Answers with the prompt, and can check integer arithmetic.
///
/// Two honest ones agree on every answer, because nothing of their own goes into it.
#[derive(Debug, Clone)]
pub struct EchoExecutor {
    pub capabilities: Capabilities,
    pub mode: EchoMode,
}

/// How an echo executor behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoMode {
    Honest,
    /// Gives wrong answers and inverts verdicts, always in the same way.
    Lie,
    /// Is healthy, but never answers a job.
    Hang,
    /// Answers every job with an error.
    Fail,
}

impl EchoMode {
    /// Every mode with its name on the command line.
    pub const ALL: &[(Self, &'static str)] =
        &[(Self::Honest, "honest"), (Self::Lie, "lie"), (Self::Hang, "hang"), (Self::Fail, "fail")];
}

impl FromStr for EchoMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(mode, _)| *mode)
            .ok_or_else(|| format!("`{text}` is not a mode; use `honest`, `lie`, `hang` or `fail`"))
    }
}

impl EchoExecutor {
    /// An executor that accepts any task type and profile.
    pub fn new(provider_family: &str, model_id: &str, mode: EchoMode) -> Self {
        let capabilities = Capabilities {
            task_types: vec!["*".to_owned()],
            profiles: vec!["*".to_owned()],
            provider_family: provider_family.to_owned(),
            model_id: model_id.to_owned(),
            policies: vec![CLAIM.to_owned()],
        };
        Self { capabilities, mode }
    }

    /// A reference to the answer. WattSwarm's kernel counts the results of a run by such references
    /// and fetches none; nothing is stored at the address.
    fn reference(&self, request: &Execute, output: &Value) -> ArtifactRef {
        let Execute { task_id, execution_id, .. } = request;
        let record = format!("{task_id}|{execution_id}|{output}");
        ArtifactRef {
            uri: format!("https://runtime.invalid/{task_id}/{execution_id}"),
            digest: canonical::digest(record.as_bytes()),
            size_bytes: u64::try_from(record.len()).unwrap_or(u64::MAX),
            mime: "text/plain".to_owned(),
            created_at: now_ms().unwrap_or_default(),
            producer: format!(
                "{}/{}",
                self.capabilities.provider_family, self.capabilities.model_id
            ),
        }
    }

    async fn misbehave(&self) -> Result<(), ExecutorError> {
        match self.mode {
            EchoMode::Honest | EchoMode::Lie => Ok(()),
            EchoMode::Hang => std::future::pending().await,
            EchoMode::Fail => Err(ExecutorError::Failed("this executor always fails".to_owned())),
        }
    }
}

#[async_trait]
impl ExecutorService for EchoExecutor {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    async fn execute(&self, request: &Execute) -> Result<Execution, ExecutorError> {
        self.misbehave().await?;
        let honest = if request.task_type == "factcheck" {
            factcheck(&request.inputs)
        } else {
            shaped(&prompt(&request.inputs), &request.task_contract.output_schema)
        };
        let mut output = if self.mode == EchoMode::Lie { opposite(honest) } else { honest };
        let trace = InlineEvidence {
            mime: "text/plain".to_owned(),
            content: format!("trace:{}", request.attempt_id),
        };
        let mut refs = Vec::new();
        if request.rules() == PolicyRules::WattSwarm {
            summarize(&mut output, &request.task_contract.output_schema);
            refs.push(self.reference(request, &output));
        }
        Ok(Execution { output, evidence: Evidence { inline: vec![trace], refs } })
    }

    async fn judge(&self, request: &JudgeRequest) -> Result<Evaluation, ExecutorError> {
        if request.policy.policy_id != CLAIM {
            let message = format!("this executor judges `{CLAIM}` only");
            return Err(ExecutorError::NotSupported(message));
        }
        Ok(match arithmetic::truth(&claim(&request.candidate.output)) {
            Some(true) => evaluation(EvaluationStatus::Passed, 0.99, &[]),
            Some(false) => evaluation(EvaluationStatus::Failed, 0.99, &[reason::CLAIM_FALSE]),
            None => evaluation(EvaluationStatus::Inconclusive, 0.5, &[reason::CLAIM_UNDECIDED]),
        })
    }

    async fn review(
        &self,
        request: &JudgeRequest,
        evaluation: Evaluation,
    ) -> Result<Evaluation, ExecutorError> {
        self.misbehave().await?;
        Ok(if self.mode == EchoMode::Lie { turned(request, evaluation) } else { evaluation })
    }
}

/// Describes how the answer was checked, which WattSwarm's `vp.crosscheck.v1` requires. The text is
/// the same for every executor, so that honest ones still agree.
fn summarize(output: &mut Value, schema: &Value) {
    let kind = schema.pointer("/properties/check_summary/type").and_then(Value::as_str);
    if let (Value::Object(members), None | Some("string")) = (output, kind) {
        members.insert("check_summary".to_owned(), json!("the answer repeats the prompt"));
    }
}

pub(super) fn evaluation(status: EvaluationStatus, score: f64, codes: &[u16]) -> Evaluation {
    Evaluation { status, score, reason_codes: codes.to_vec(), notes: Vec::new() }
}

/// The opposite of a verdict, with a reason that an honest executor could give.
fn turned(request: &JudgeRequest, evaluation: Evaluation) -> Evaluation {
    let objection = match request.policy.policy_id.as_str() {
        CLAIM => reason::CLAIM_FALSE,
        CROSSCHECK => reason::CROSSCHECK_INCONSISTENT,
        _ => reason::SCHEMA_INVALID,
    };
    let score = evaluation.score.max(0.9);
    match evaluation.status {
        EvaluationStatus::Passed => self::evaluation(EvaluationStatus::Failed, score, &[objection]),
        EvaluationStatus::Failed => self::evaluation(EvaluationStatus::Passed, score, &[]),
        EvaluationStatus::Inconclusive => evaluation,
    }
}

fn factcheck(inputs: &Value) -> Value {
    let text = inputs.get("claim").map_or_else(|| prompt(inputs), claim);
    let (verdict, confidence, why) = match arithmetic::truth(&text) {
        Some(true) => ("TRUE", 0.99, "both sides have the same value"),
        Some(false) => ("FALSE", 0.99, "the sides differ"),
        None => ("UNSURE", 0.5, "this executor decides whole-number arithmetic only"),
    };
    json!({"verdict": verdict, "confidence": confidence, "reasons": [why]})
}

/// The text of a claim, which is a string or an object with one.
pub(super) fn claim(value: &Value) -> String {
    let named = || ["claim", "statement", "text", "answer"].iter().find_map(|name| value.get(name));
    let text = value.as_str().or_else(|| named().and_then(Value::as_str));
    text.map_or_else(|| value.to_string(), str::to_owned)
}

fn prompt(inputs: &Value) -> String {
    let text = inputs.get("prompt").or_else(|| inputs.get("objective")).unwrap_or(inputs);
    text.as_str().map_or_else(|| text.to_string(), str::to_owned)
}

/// A false value instead of the true one.
fn opposite(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(match text.as_str() {
            "TRUE" => "FALSE".to_owned(),
            "FALSE" | "UNSURE" => "TRUE".to_owned(),
            _ => format!("the contrary of: {text}"),
        }),
        Value::Bool(flag) => Value::Bool(!flag),
        Value::Object(mut members) => {
            for name in ["answer", "verdict"] {
                if let Some(member) = members.get_mut(name) {
                    *member = opposite(member.take());
                }
            }
            let known = members.contains_key("answer") || members.contains_key("verdict");
            let changed = members
                .into_iter()
                .map(|(name, member)| (name, if known { member } else { opposite(member) }));
            Value::Object(changed.collect())
        }
        Value::Number(number) => json!(1.0 - number.as_f64().unwrap_or(0.0)),
        Value::Array(mut items) => {
            items.push(json!("an invention"));
            Value::Array(items)
        }
        Value::Null => json!("an invention"),
    }
}

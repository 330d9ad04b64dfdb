//! The answer to a job, which binds the executor's reply to the round that asked.

use serde::{Deserialize, Serialize};

use super::Route;

/// The head of an answer. Its body is the reply of `/execute` or `/verify`, or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobAnswer {
    pub route: Route,
    /// The digest of the job's document.
    pub request: String,
    pub round: String,
    pub replica: u64,
    pub execution_id: String,
    pub outcome: AnswerOutcome,
    /// The price of the job, in micro-credits; 0 unless it was answered.
    pub price_micros: u64,
    /// The executor that did it; absent if none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<ServedBy>,
    pub body_digest: String,
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AnswerOutcome {
    /// The executor answered, with this HTTP status.
    Answered { status: u16 },
    /// The executor did not answer, or not as its contract says: a failure code, and a text.
    Failed { code: String, detail: String },
}

/// The record of the job on the node that did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedBy {
    pub provider_family: String,
    pub model_id: String,
    /// The round in which the node asked its executor.
    pub round: String,
    /// The digest of that round's decision entry.
    pub receipt_id: String,
}

//! A job: the caller's request, and the terms on which replicas must agree.

use std::{collections::BTreeSet, str::FromStr, sync::Arc};

use serde_json::{Map, Value, json};

use super::{RoundRequest, TaskCallTicket, VoteTicket, candidate::Evidence};
use crate::{
    canonical::canonical, executor::session::Tier, footprint::footprint, peer::PeerId,
    policy::PolicyBinding, time::Timestamp,
};

/// The largest request that is stored besides a decision.
const MOST_KEPT_BYTES: usize = 1024 * 1024;
/// The length of the one-line summary of a request.
const LINE_CHARS: usize = 120;

/// One request for work, with its policy and terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub work: JobWork,
    /// The policy that decides a candidate.
    pub policy: PolicyBinding,
    /// The schema that a candidate must match; `{}` if the caller gave none.
    pub output_schema: Value,
    /// Whether the caller gave that schema.
    pub has_schema: bool,
    pub context: Option<Value>,
    /// Further members that are passed to the executors: `tools`, `workflow` and `actor`.
    pub passed_on: Map<String, Value>,
    pub tier: Option<Tier>,
    /// Labels that a session must all carry.
    pub labels: BTreeSet<String>,
    pub terms: AgreementTerms,
    pub timeout_ms: u64,
    pub max_steps: Option<u32>,
    /// The digest of the canonical request.
    pub request_digest: String,
    /// The canonical request, if the job came as a request.
    pub request: Option<String>,
    /// The task call that the job carries out, if it is one.
    pub step: Option<TaskCall>,
    /// The call of another node that the job makes, if it is one.
    pub relayed: Option<RelayedCall>,
}

impl Job {
    /// Estimates the memory of its round: the job itself, for the round and for each replica, whose
    /// answer may be as large.
    pub fn memory_bytes(&self) -> usize {
        let held = match &self.work {
            JobWork::Delegate { objective, input, .. } => objective.len() + footprint(input),
            JobWork::Validate { output, evidence } => {
                let inline = evidence.inline.iter().map(|item| item.content.len()).sum::<usize>();
                inline + footprint(output)
            }
            JobWork::Factcheck { claim, prompt, .. } => prompt.len() + footprint(claim),
        };
        let beside = self.context.as_ref().map_or(0, footprint)
            + self.passed_on.values().map(footprint).sum::<usize>()
            + footprint(&self.output_schema)
            + footprint(&self.policy.policy_params)
            + self.relayed.as_ref().map_or(0, |relayed| footprint(&relayed.body));
        let request = self.request.as_ref().map_or(0, String::len);
        request + (held + beside).saturating_mul(1 + usize::from(self.terms.replicas))
    }

    /// The request to store besides the decision: as it came, or else the input of the judge. The
    /// contract of a task call is stored with its task.
    pub fn round_request(&self) -> RoundRequest {
        let request = match (&self.step, &self.request, &self.work) {
            (None, Some(request), _) => Some(request.clone()),
            (None, None, JobWork::Validate { output, .. }) => {
                let verifier = &self.policy.policy_params["verifier"];
                let document = json!({ "verifier": verifier, "inputs": output });
                String::from_utf8(canonical(&document)).ok()
            }
            (Some(_), _, _)
            | (None, None, JobWork::Delegate { .. } | JobWork::Factcheck { .. }) => None,
        };
        RoundRequest {
            line: self.line(),
            request: request.filter(|text| text.len() <= MOST_KEPT_BYTES),
        }
    }

    /// A summary of the request in one line.
    fn line(&self) -> String {
        let text = match (&self.step, &self.work) {
            (Some(step), JobWork::Validate { .. }) => format!("verify for task {}", step.task_id),
            (Some(step), _) => format!("propose for task {}", step.task_id),
            (None, JobWork::Delegate { objective, .. }) => objective.clone(),
            (None, JobWork::Validate { output, .. }) => beginning(output),
            (None, JobWork::Factcheck { claim, .. }) => beginning(claim),
        };
        let words = text.split(|it: char| it.is_whitespace() || it.is_control());
        let mut line = String::new();
        for word in words.filter(|word| !word.is_empty()) {
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(word.chars().take(LINE_CHARS));
            if LINE_CHARS < line.chars().count() {
                let cut: String = line.chars().take(LINE_CHARS - 1).collect();
                return format!("{cut}…");
            }
        }
        line
    }
}

/// A text as it is, other values as JSON; no more than a line needs.
fn beginning(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().take(4 * LINE_CHARS).collect(),
        Value::Array(items) => {
            let first: Vec<String> = items.iter().take(LINE_CHARS).map(beginning_of_part).collect();
            format!("[{}]", first.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter().take(LINE_CHARS);
            let first: Vec<String> =
                members.map(|(name, it)| format!("{name}: {}", beginning_of_part(it))).collect();
            format!("{{{}}}", first.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Of nested values, only texts and numbers are shown.
fn beginning_of_part(value: &Value) -> String {
    match value {
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => beginning(value),
    }
}

/// A call of an executor that another node asks this node to make. That node checks the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct RelayedCall {
    /// The node that asks, and whose round it is.
    pub origin: PeerId,
    /// Makes the call idempotent.
    pub execution_id: String,
    /// The body of `/execute` or `/verify`, as the other node wrote it.
    pub body: Arc<Value>,
    /// The candidate of `/verify`, to which the executor's verdict is bound.
    pub candidate: Option<RelayedCandidate>,
    /// The most that the other node pays.
    pub most_price_micros: u64,
}

/// The identity of a candidate of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedCandidate {
    pub candidate_id: String,
    pub execution_id: String,
}

/// A task call: one proposal, or one vote on a candidate that another executor proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCall {
    pub task_id: String,
    /// Makes the call idempotent: a retry after an unknown result keeps the identifier.
    pub execution_id: String,
    /// The number of the executor's try, from 1.
    pub attempt: u32,
    /// The contract as it was submitted.
    pub contract: Arc<Value>,
    /// Knowledge from earlier decisions, for a proposal.
    pub seed_bundle: Option<Value>,
    /// The candidate to vote on; `None` for a proposal.
    pub candidate: Option<TaskCallCandidate>,
    /// Whether the references of the candidate are fetched and checked.
    pub fetch_evidence: bool,
}

impl TaskCall {
    /// The part of the call that is stored with its round.
    pub fn ticket(&self) -> TaskCallTicket {
        let vote = |it: &TaskCallCandidate| VoteTicket {
            candidate: it.candidate_id.clone(),
            turn: it.turn,
        };
        TaskCallTicket {
            task_id: self.task_id.clone(),
            execution_id: self.execution_id.clone(),
            vote: self.candidate.as_ref().map(vote),
        }
    }
}

/// A candidate to vote on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCallCandidate {
    pub candidate_id: String,
    /// The execution id of the proposal.
    pub execution_id: String,
    pub proposed_at: Timestamp,
    /// The executor that proposed it.
    pub producer: String,
    /// The number of the vote on the candidate, from 1.
    pub turn: u32,
}

/// The work of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobWork {
    Delegate { objective: String, input: Value, task_type: String },
    Validate { output: Value, evidence: Evidence },
    Factcheck { claim: Value, prompt: String, mode: FactcheckMode },
}

impl JobWork {
    /// The kind of the job.
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Delegate { .. } => JobKind::Delegate,
            Self::Validate { .. } => JobKind::Validate,
            Self::Factcheck { .. } => JobKind::Factcheck,
        }
    }

    /// The task type that an executor must accept; validation needs none.
    pub fn task_type(&self) -> Option<&str> {
        match self {
            Self::Delegate { task_type, .. } => Some(task_type),
            Self::Validate { .. } => None,
            Self::Factcheck { .. } => Some("factcheck"),
        }
    }

    /// The mode that an executor must declare for its task type, if the usual one is not enough.
    pub const fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Factcheck { mode: FactcheckMode::Realtime, .. } => {
                Some(FactcheckMode::Realtime.as_str())
            }
            Self::Factcheck { mode: FactcheckMode::Standard, .. }
            | Self::Delegate { .. }
            | Self::Validate { .. } => None,
        }
    }
}

/// Declares an enum with one fixed name for each variant, the same in JSON, in the store and in
/// documents.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The fixed name of the variant.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text).ok_or(())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words!(JobKind { Delegate => "delegate", Validate => "validate", Factcheck => "factcheck" });
words!(FactcheckMode { Standard => "standard", Realtime => "realtime" });
words!(ScoreAggregation { Majority => "majority", Mean => "mean", Median => "median" });
words!(
    /// The reply if the replicas do not agree.
    Disagreement { ReturnAll => "return_all", FailHard => "fail_hard", BestEffort => "best_effort" }
);
words!(
    /// How a replica without an answer is counted.
    TimeoutPolicy { Count => "count", Ignore => "ignore", Negative => "negative" }
);
words!(OutputMerge { Medoid => "medoid", Fields => "fields" });
words!(Toggle { Off => "off", On => "on" });

/// The terms of agreement: the `consensus` block of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreementTerms {
    pub replicas: u8,
    pub pool: Vec<PoolEntry>,
    /// How many spare sessions may replace failed ones; `None` for as many as there are replicas.
    pub spares: Option<u8>,
    pub aggregation: ScoreAggregation,
    pub disagreement: Disagreement,
    pub min_agreement: Option<f64>,
    pub timeout_policy: TimeoutPolicy,
    /// `None` for the default relation, which depends on the outputs.
    pub equivalence: Option<Equivalence>,
    pub merge: OutputMerge,
    pub early_stop: Toggle,
    /// Whether the reply includes inline evidence and traces.
    pub traces: Toggle,
}

impl AgreementTerms {
    /// The terms of a caller that sets none. Spares are off.
    pub const fn plain(replicas: u8, pool: Vec<PoolEntry>) -> Self {
        Self {
            replicas,
            pool,
            spares: Some(0),
            aggregation: ScoreAggregation::Majority,
            disagreement: Disagreement::ReturnAll,
            min_agreement: None,
            timeout_policy: TimeoutPolicy::Count,
            equivalence: None,
            merge: OutputMerge::Medoid,
            early_stop: Toggle::Off,
            traces: Toggle::Off,
        }
    }
}

/// One entry of the pool of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolEntry {
    Session(String),
    Label(String),
    Profile(String),
    /// An executor by name: its first session with this profile, or a plain session if the executor
    /// has none and the caller is unmetered.
    Executor {
        name: String,
        profile: String,
    },
}

/// When two outputs count as equal.
#[derive(Debug, Clone, PartialEq)]
pub enum Equivalence {
    /// Their canonical JSON is equal.
    Canonical,
    /// The values at these JSON Pointers are equal.
    Fields(Vec<String>),
    /// Numbers may differ by the tolerance; everything else is canonical.
    Numeric { tolerance: f64 },
    /// Numbers between the same two of these ascending limits are equal; everything else is
    /// canonical.
    Buckets(Vec<f64>),
    /// Lists are compared without order.
    Unordered,
    /// Text is compared without case, white space and closing punctuation.
    Text,
}

impl Equivalence {
    /// The name of the relation in requests and replies.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Canonical => "canonical",
            Self::Fields(_) => "fields",
            Self::Numeric { .. } => "numeric",
            Self::Buckets(_) => "buckets",
            Self::Unordered => "unordered",
            Self::Text => "text",
        }
    }
}

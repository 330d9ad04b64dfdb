//! A job: what a caller asks for, and on which terms replicas must agree on it.

use std::{collections::BTreeSet, str::FromStr, sync::Arc};

use serde_json::{Map, Value, json};

use super::{RoundRequest, TaskCallTicket, VoteTicket, candidate::Evidence};
use crate::{
    canonical::canonical, executor::session::Tier, footprint::footprint, policy::PolicyBinding,
    time::Timestamp,
};

/// The largest request that is kept beside a decision.
const MOST_KEPT_BYTES: usize = 1024 * 1024;
/// How long the line is that says what was asked.
const LINE_CHARS: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub work: JobWork,
    /// What decides a candidate.
    pub policy: PolicyBinding,
    /// The schema a candidate must match; `{}` when the caller gave none.
    pub output_schema: Value,
    /// Whether the caller gave that schema.
    pub has_schema: bool,
    pub context: Option<Value>,
    /// What else the caller says to the executors: `tools`, `workflow` and `actor`.
    pub passed_on: Map<String, Value>,
    pub tier: Option<Tier>,
    /// Labels that a session must all carry.
    pub labels: BTreeSet<String>,
    pub terms: AgreementTerms,
    pub timeout_ms: u64,
    pub max_steps: Option<u32>,
    /// Digest of the canonical request.
    pub request_digest: String,
    /// The canonical request itself, where it came as one.
    pub request: Option<String>,
    /// The step of a task that the job is, where it is one.
    pub step: Option<TaskCall>,
}

impl Job {
    /// About how much memory its round takes: what it holds, for the round and for each replica,
    /// whose answer may be as large.
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
            + footprint(&self.policy.policy_params);
        let request = self.request.as_ref().map_or(0, String::len);
        request + (held + beside).saturating_mul(1 + usize::from(self.terms.replicas))
    }

    /// What is asked, to be kept beside the decision: the request as it came, or else what a judge
    /// is given. A step has its task, which keeps the contract.
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

    /// What is asked in one line.
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

/// A text as it is, all else as JSON; no more than a line needs.
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

/// Of what lies within, only texts and numbers are said.
fn beginning_of_part(value: &Value) -> String {
    match value {
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => beginning(value),
    }
}

/// A step of a task: one proposal, or one verdict on a candidate that another executor proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskCall {
    pub task_id: String,
    /// Makes the call idempotent: a step that is tried again because nobody knows how it went
    /// keeps its identifier.
    pub execution_id: String,
    /// Which try of its executor it is, from 1.
    pub attempt: u32,
    /// As it was given.
    pub contract: Arc<Value>,
    /// What is known from earlier decisions, for a proposal.
    pub seed_bundle: Option<Value>,
    /// What is verified; `None` for a proposal.
    pub candidate: Option<TaskCallCandidate>,
    /// Whether the references of the candidate are fetched and checked.
    pub fetch_evidence: bool,
}

impl TaskCall {
    /// What a round keeps of it.
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

/// Whose output is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCallCandidate {
    pub candidate_id: String,
    /// That of the proposal.
    pub execution_id: String,
    pub proposed_at: Timestamp,
    /// Who proposed it.
    pub producer: String,
    /// Which time votes are committed on it.
    pub turn: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum JobWork {
    Delegate { objective: String, input: Value, task_type: String },
    Validate { output: Value, evidence: Evidence },
    Factcheck { claim: Value, prompt: String, mode: FactcheckMode },
}

impl JobWork {
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Delegate { .. } => JobKind::Delegate,
            Self::Validate { .. } => JobKind::Validate,
            Self::Factcheck { .. } => JobKind::Factcheck,
        }
    }

    /// The task type an executor must take; validation needs none.
    pub fn task_type(&self) -> Option<&str> {
        match self {
            Self::Delegate { task_type, .. } => Some(task_type),
            Self::Validate { .. } => None,
            Self::Factcheck { .. } => Some("factcheck"),
        }
    }
}

/// Declares an enum whose variants have one fixed name each, for wire, store and documents alike.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

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
    /// What to answer when the replicas do not agree.
    Disagreement { ReturnAll => "return_all", FailHard => "fail_hard", BestEffort => "best_effort" }
);
words!(
    /// What a replica without an answer does to the count.
    TimeoutPolicy { Count => "count", Ignore => "ignore", Negative => "negative" }
);
words!(OutputMerge { Medoid => "medoid", Fields => "fields" });
words!(Toggle { Off => "off", On => "on" });

/// The terms of agreement: the `consensus` block of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreementTerms {
    pub replicas: u8,
    pub pool: Vec<PoolEntry>,
    /// How many spare sessions may replace ones that fail; `None`: as many as replicas.
    pub spares: Option<u8>,
    pub aggregation: ScoreAggregation,
    pub disagreement: Disagreement,
    pub min_agreement: Option<f64>,
    pub timeout_policy: TimeoutPolicy,
    /// `None`: the default relation, which depends on the outputs.
    pub equivalence: Option<Equivalence>,
    pub merge: OutputMerge,
    pub early_stop: Toggle,
    /// Whether inline evidence and traces go into the answer.
    pub traces: Toggle,
}

impl AgreementTerms {
    /// The terms of those who set none. Nobody takes the place of another.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PoolEntry {
    Session(String),
    Label(String),
    Profile(String),
    /// One executor by its name: its first session with this profile, or a plain lane to it where it
    /// has no session at all and the caller is not metered.
    Executor {
        name: String,
        profile: String,
    },
}

/// When two outputs say the same.
#[derive(Debug, Clone, PartialEq)]
pub enum Equivalence {
    /// The same canonical JSON.
    Canonical,
    /// The same values at these JSON Pointers.
    Fields(Vec<String>),
    /// Numbers may differ by the tolerance, all else is canonical.
    Numeric { tolerance: f64 },
    /// Numbers in the same range between these ascending bounds are the same, all else is canonical.
    Buckets(Vec<f64>),
    /// Lists are compared without order.
    Unordered,
    /// Text is compared without case, white space and closing punctuation.
    Text,
}

impl Equivalence {
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

//! Replies to prompt-oriented clients, made from replies of version 3.
//!
//! Clients read different names for the same thing, so some values stand twice.

use std::borrow::Cow;

use jurat_core::round::replica;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{model_of, opened_s, session_id, task_id, text_of};
use crate::api::{
    consensus_reply::{ConsensusBlock, DelegateReply, ReplicaBody, RoundReply, VerdictReply},
    kit::words::Label,
};

/// The form of a reply, which follows from the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerForm {
    pub kind: PeerReplyKind,
    /// The session that the request names.
    pub session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerReplyKind {
    Completion,
    Chat,
    Delegate,
    Validate,
    Factcheck,
}

impl PeerForm {
    /// Whether the reply is nothing without an output.
    pub const fn needs_output(&self) -> bool {
        matches!(self.kind, PeerReplyKind::Completion | PeerReplyKind::Chat)
    }

    /// The reply in this form.
    pub fn reply(&self, reply: RoundReply<'_>) -> Value {
        match (reply, self.kind) {
            (RoundReply::Delegate(reply), PeerReplyKind::Completion) => {
                json!(PeerCompletion::of(reply, self))
            }
            (RoundReply::Delegate(reply), PeerReplyKind::Chat) => {
                json!(PeerChatCompletion::of(reply, self))
            }
            (RoundReply::Delegate(reply), _) => json!(PeerDelegateReply::of(reply, self)),
            (RoundReply::Verdict(reply), PeerReplyKind::Factcheck) => {
                json!(PeerFactcheckReply::of(reply, self))
            }
            (RoundReply::Verdict(reply), _) => json!(PeerValidateReply::of(reply, self)),
        }
    }

    /// The reply as the data of events: the whole text, because nothing is known before the end.
    pub fn chunks(&self, reply: RoundReply<'_>) -> Vec<Value> {
        let mut whole = self.reply(reply);
        if self.kind != PeerReplyKind::Chat {
            return vec![whole];
        }
        whole["object"] = json!("chat.completion.chunk");
        let choice = |delta: Value, finish_reason: Value| json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
        let message = whole["choices"][0]["message"].take();
        let mut last = whole.clone();
        whole["choices"] = choice(message, Value::Null);
        last["choices"] = choice(json!({}), json!("stop"));
        vec![whole, last]
    }
}

/// Declares a reply: its own fields, and what every reply says about its round.
macro_rules! peer_replies {
    ($(
        $(#[$about:meta])*
        pub struct $name:ident { $( $(#[$meta:meta])* pub $field:ident: $ty:ty, )* }
    )+) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
        pub struct $name<'a> {
            $( $(#[$meta])* pub $field: $ty, )*
            /// The id of the round as a number in decimal digits, for `/api/v1/tasks`.
            pub task_id: String,
            /// The session that the request names; 0 if the server chose.
            #[schema(value_type = Value)]
            pub session_id: Value,
            pub round_id: Cow<'a, str>,
            /// Digest of the recorded decision.
            pub receipt_id: Cow<'a, str>,
            /// Probability that the answer is right; 0 if there is none, never 1.
            #[schema(minimum = 0, maximum = 1)]
            pub confidence: f64,
            /// Number of sessions that answered.
            pub k_miners: usize,
            pub consensus: ConsensusBlock<'a>,
        }
    )+};
}

/// Makes a reply from its own fields and the reply of version 3.
macro_rules! with_round {
    ($name:ident { $( $field:ident $(: $value:expr)?, )* }, $reply:expr, $form:expr) => {
        $name {
            $( $field $(: $value)?, )*
            task_id: task_id(&$reply.round_id),
            session_id: session_id($form.session.as_deref()),
            round_id: $reply.round_id,
            receipt_id: $reply.receipt_id,
            confidence: $reply.confidence,
            k_miners: $reply.consensus.answered,
            consensus: $reply.consensus,
        }
    };
}

peer_replies! {
    /// A completion, in the form of an OpenAI text completion.
    pub struct PeerCompletion {
        /// `cmpl-` and the id of the round.
        pub id: String,
        /// `text_completion`.
        #[schema(example = "text_completion")]
        pub object: Cow<'static, str>,
        /// Seconds since 1970.
        pub created: u64,
        /// The model of the answer.
        pub model: String,
        pub choices: Vec<PeerChoice>,
        /// The text of the choice.
        pub text: String,
        /// Alias of `text`.
        pub output: String,
        /// Alias of `text`.
        pub content: String,
        /// Alias of `text`.
        pub result: String,
        /// The session that gave the text; null if no session won.
        #[schema(required = true)]
        pub miner_id: Option<Cow<'a, str>>,
        /// Alias of `miner_id`.
        #[schema(required = true)]
        pub miner_address: Option<Cow<'a, str>>,
        pub usage: PeerUsage,
    }

    /// A completion, in the form of an OpenAI chat completion.
    pub struct PeerChatCompletion {
        /// `chatcmpl-` and the id of the round.
        pub id: String,
        /// `chat.completion`.
        #[schema(example = "chat.completion")]
        pub object: Cow<'static, str>,
        /// Seconds since 1970.
        pub created: u64,
        /// The model of the answer.
        pub model: String,
        pub choices: Vec<PeerChatChoice>,
        pub usage: PeerUsage,
    }

    /// The reply to a delegated prompt.
    pub struct PeerDelegateReply {
        /// `completed`, or `no_consensus` if there is no output.
        #[schema(example = "completed")]
        pub status: Cow<'static, str>,
        /// The winning text; null if there is none.
        #[schema(required = true)]
        pub output: Option<String>,
        /// Alias of `output`.
        #[schema(required = true)]
        pub content: Option<String>,
        /// Alias of `output`.
        #[schema(required = true)]
        pub text: Option<String>,
        /// Alias of `output`.
        #[schema(required = true)]
        pub result: Option<String>,
        /// The session that gave the winning text; null if there is none.
        #[schema(required = true)]
        pub miner_id: Option<Cow<'a, str>>,
        /// Alias of `miner_id`.
        #[schema(required = true)]
        pub miner_address: Option<Cow<'a, str>>,
        /// The model of the winning text.
        pub model: String,
        /// The sessions that answered.
        pub miners: Vec<String>,
        /// Each session's own text.
        pub responses: Vec<PeerResponse>,
    }

    /// The reply to a request to judge a result.
    pub struct PeerValidateReply {
        /// True or false if the sessions agree on VALID or INVALID; otherwise null, which is neither.
        #[schema(required = true)]
        pub is_valid: Option<bool>,
        /// Alias of `is_valid`.
        #[schema(required = true)]
        pub valid: Option<bool>,
        #[schema(required = true)]
        pub verdict: Option<Label>,
        /// Alias of `confidence`.
        #[schema(minimum = 0, maximum = 1)]
        pub score: f64,
        /// The digest of the recorded decision. It is not a JWS.
        pub attestation: Cow<'a, str>,
        pub reasons: Vec<String>,
        pub runs: Vec<PeerRun>,
    }

    /// The reply to a request to check a claim.
    pub struct PeerFactcheckReply {
        /// TRUE, FALSE or UNSURE; null if the sessions do not agree.
        #[schema(required = true)]
        pub verdict: Option<Label>,
        pub reasons: Vec<String>,
        pub runs: Vec<PeerRun>,
    }
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerChoice {
    pub index: u32,
    pub text: String,
    /// `stop`.
    #[schema(example = "stop")]
    pub finish_reason: Cow<'static, str>,
    /// Always null.
    #[schema(value_type = Value, required = true)]
    pub logprobs: Option<Value>,
}

/// Executors do not report tokens, so the numbers are 0.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
pub struct PeerUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerChatChoice {
    pub index: u32,
    pub message: PeerChatMessage,
    /// `stop`.
    #[schema(example = "stop")]
    pub finish_reason: Cow<'static, str>,
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerChatMessage {
    /// `assistant`.
    #[schema(example = "assistant")]
    pub role: Cow<'static, str>,
    pub content: String,
}

/// One session's answer.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerResponse {
    /// The session.
    pub miner_id: String,
    /// Alias of `miner_id`.
    pub miner_address: String,
    pub content: String,
    pub latency_ms: u64,
    pub model: String,
    pub metadata: PeerResponseNotes,
}

#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerResponseNotes {
    /// The label of the replica.
    pub status: Label,
    /// The executor's own confidence.
    #[schema(required = true)]
    pub score: Option<f64>,
    /// Its group, as in `consensus.groups`.
    #[schema(required = true)]
    pub group: Option<usize>,
}

/// One session's verdict.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerRun {
    /// The session.
    pub miner: String,
    /// Alias of `miner`.
    pub miner_address: String,
    pub verdict: Label,
    /// The executor's own confidence.
    #[schema(required = true)]
    pub score: Option<f64>,
    /// The output with its reasons and sources; empty if there is none.
    #[schema(value_type = Value)]
    pub evidence: Value,
    /// Why it has no verdict, and other notes.
    pub notes: Vec<String>,
    pub latency_ms: u64,
    pub model: String,
}

/// The text that won, and the session and the model that it comes from.
struct Winner<'a> {
    text: Option<String>,
    session: Option<Cow<'a, str>>,
    model: String,
}

impl<'a> Winner<'a> {
    fn of(reply: &DelegateReply<'a>) -> Self {
        let wins = |replica: &&ReplicaBody<'_>| {
            replica.group.is_some() && replica.group == reply.consensus.winner
        };
        // One of the winners gave exactly this output, unless it was merged from several.
        let winners = reply.replicas.iter().filter(wins);
        let author = winners.min_by_key(|replica| replica.output != reply.output);
        Self {
            text: reply.output.as_deref().map(text_of),
            session: author.map(|replica| replica.session_id.clone()),
            model: author.map_or_else(|| "jurat".to_owned(), model_of),
        }
    }
}

impl<'a> PeerCompletion<'a> {
    fn of(reply: DelegateReply<'a>, form: &PeerForm) -> Self {
        let Winner { text, session, model } = Winner::of(&reply);
        let text = text.unwrap_or_default();
        with_round!(
            PeerCompletion {
                id: format!("cmpl-{}", reply.round_id),
                object: Cow::Borrowed("text_completion"),
                created: opened_s(&reply.round_id),
                model,
                choices: vec![PeerChoice {
                    index: 0,
                    text: text.clone(),
                    finish_reason: Cow::Borrowed("stop"),
                    logprobs: None,
                }],
                output: text.clone(),
                content: text.clone(),
                result: text.clone(),
                text,
                miner_id: session.clone(),
                miner_address: session,
                usage: PeerUsage::default(),
            },
            reply,
            form
        )
    }
}

impl<'a> PeerChatCompletion<'a> {
    fn of(reply: DelegateReply<'a>, form: &PeerForm) -> Self {
        let Winner { text, model, .. } = Winner::of(&reply);
        let message =
            PeerChatMessage { role: Cow::Borrowed("assistant"), content: text.unwrap_or_default() };
        with_round!(
            PeerChatCompletion {
                id: format!("chatcmpl-{}", reply.round_id),
                object: Cow::Borrowed("chat.completion"),
                created: opened_s(&reply.round_id),
                model,
                choices: vec![PeerChatChoice {
                    index: 0,
                    message,
                    finish_reason: Cow::Borrowed("stop"),
                }],
                usage: PeerUsage::default(),
            },
            reply,
            form
        )
    }
}

impl<'a> PeerDelegateReply<'a> {
    fn of(reply: DelegateReply<'a>, form: &PeerForm) -> Self {
        let Winner { text, session, model } = Winner::of(&reply);
        let status = if text.is_some() { "completed" } else { "no_consensus" };
        let responses: Vec<PeerResponse> = reply.replicas.iter().filter_map(response).collect();
        with_round!(
            PeerDelegateReply {
                status: Cow::Borrowed(status),
                output: text.clone(),
                content: text.clone(),
                result: text.clone(),
                text,
                miner_id: session.clone(),
                miner_address: session,
                model,
                miners: responses.iter().map(|it| it.miner_id.clone()).collect(),
                responses,
            },
            reply,
            form
        )
    }
}

/// A replica with an output that counts.
fn response(replica: &ReplicaBody<'_>) -> Option<PeerResponse> {
    let output = replica.output.as_deref().filter(|_| replica.error.is_none())?;
    let miner = replica.session_id.to_string();
    Some(PeerResponse {
        miner_id: miner.clone(),
        miner_address: miner,
        content: text_of(output),
        latency_ms: replica.latency_ms,
        model: model_of(replica),
        metadata: PeerResponseNotes {
            status: replica.status?,
            score: replica.score,
            group: replica.group,
        },
    })
}

impl<'a> PeerValidateReply<'a> {
    fn of(reply: VerdictReply<'a>, form: &PeerForm) -> Self {
        let is_valid = match reply.verdict {
            Some(Label(replica::Label::Valid)) => Some(true),
            Some(Label(replica::Label::Invalid)) => Some(false),
            Some(Label(_)) | None => None,
        };
        with_round!(
            PeerValidateReply {
                is_valid,
                valid: is_valid,
                verdict: reply.verdict,
                score: reply.confidence,
                attestation: reply.receipt_id.clone(),
                reasons: reply.reasons,
                runs: reply.replicas.into_iter().filter_map(run).collect(),
            },
            reply,
            form
        )
    }
}

impl<'a> PeerFactcheckReply<'a> {
    fn of(reply: VerdictReply<'a>, form: &PeerForm) -> Self {
        with_round!(
            PeerFactcheckReply {
                verdict: reply.verdict,
                reasons: reply.reasons,
                runs: reply.replicas.into_iter().filter_map(run).collect(),
            },
            reply,
            form
        )
    }
}

/// A replica that counts.
fn run(replica: ReplicaBody<'_>) -> Option<PeerRun> {
    if replica.replaced_by.is_some() {
        return None;
    }
    let miner = replica.session_id.to_string();
    let failure = replica.error.as_ref().map(|error| error.detail.to_string());
    Some(PeerRun {
        miner: miner.clone(),
        miner_address: miner,
        verdict: replica.verdict?,
        score: replica.score,
        model: model_of(&replica),
        evidence: replica.output.map_or_else(|| json!({}), Cow::into_owned),
        notes: failure.into_iter().chain(replica.notes.iter().cloned()).collect(),
        latency_ms: replica.latency_ms,
    })
}

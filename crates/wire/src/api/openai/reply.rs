//! Chat completions and their chunks, built from the reply of a delegate round.

use std::borrow::Cow;

use jurat_core::round::{RoundClosing, RoundEnding, candidate::InlineEvidence};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::request::AnswerFormat;
use crate::api::consensus_reply::{DelegateReply, undecided, words_of};

/// A chat completion: the answer of a round.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatCompletion<'a> {
    /// `chatcmpl-` and the id of the round.
    pub id: Cow<'a, str>,
    /// `chat.completion`.
    pub object: Cow<'a, str>,
    /// When the round was opened, in seconds since 1970.
    pub created: i64,
    /// The model of the request.
    pub model: Cow<'a, str>,
    /// Always one.
    pub choices: Vec<ChatChoice<'a>>,
    pub usage: ChatUsage,
    pub jurat: DelegateReply<'a>,
}

/// The answer of a completion.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatChoice<'a> {
    /// Always 0.
    pub index: u32,
    pub message: ChatAnswerBody<'a>,
    /// Always null.
    #[schema(required = true)]
    pub logprobs: Option<bool>,
    /// `stop`.
    pub finish_reason: Cow<'a, str>,
}

/// The message of the assistant: text, or a refusal if the replicas gave no answer together.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = ChatAnswer)]
pub struct ChatAnswerBody<'a> {
    /// `assistant`.
    pub role: Cow<'a, str>,
    /// The answer; JSON text if the request asked for JSON, and null with a refusal.
    #[schema(required = true)]
    pub content: Option<Cow<'a, str>>,
    /// Why there is no answer; null with an answer.
    #[schema(required = true)]
    pub refusal: Option<Cow<'a, str>>,
}

/// Tokens of all replicas, as far as their executors report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct ChatUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// A part of a streamed completion.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatChunk<'a> {
    /// The same in all chunks: `chatcmpl-` and the id of the round.
    pub id: Cow<'a, str>,
    /// `chat.completion.chunk`.
    pub object: Cow<'a, str>,
    /// When the round was opened, in seconds since 1970.
    pub created: i64,
    pub model: Cow<'a, str>,
    /// One, or none in the chunk with the usage.
    pub choices: Vec<ChatChunkChoice<'a>>,
    /// Only in the last chunk, if the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ChatUsage)]
    pub usage: Option<ChatUsage>,
    /// Only in the chunk with the `finish_reason`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = DelegateReply)]
    pub jurat: Option<DelegateReply<'a>>,
}

/// The choice of a chunk.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ChatChunkChoice<'a> {
    /// Always 0.
    pub index: u32,
    pub delta: ChatDelta<'a>,
    /// Always null.
    #[schema(required = true)]
    pub logprobs: Option<bool>,
    /// `stop` in the last chunk with a choice, otherwise null.
    #[schema(required = true)]
    pub finish_reason: Option<Cow<'a, str>>,
}

/// What a chunk adds to the message.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
pub struct ChatDelta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub role: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub refusal: Option<Cow<'a, str>>,
}

/// The identity of a completion, which all of its chunks repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatHead {
    pub id: String,
    pub created: i64,
    pub model: String,
    pub format: AnswerFormat,
}

/// The end of a completion's round, beside its reply.
#[derive(Debug, Clone, Copy)]
pub struct ChatEnd {
    pub ending: RoundEnding,
    pub usage: ChatUsage,
}

/// The answer of a round to a chat.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ChatAnswer {
    Content(String),
    Refusal(String),
}

const ASSISTANT: Cow<'static, str> = Cow::Borrowed("assistant");
const STOP: Cow<'static, str> = Cow::Borrowed("stop");
/// The longest trace that is searched for usage.
const LONGEST_TRACE: usize = 64 * 1024;

impl ChatHead {
    /// The whole completion.
    pub fn completion<'a>(&'a self, reply: DelegateReply<'a>, end: ChatEnd) -> ChatCompletion<'a> {
        let (content, refusal) = ChatAnswer::of(&reply, end.ending, self.format).split();
        let message = ChatAnswerBody { role: ASSISTANT, content, refusal };
        ChatCompletion {
            id: Cow::Borrowed(&self.id),
            object: Cow::Borrowed("chat.completion"),
            created: self.created,
            model: Cow::Borrowed(&self.model),
            choices: vec![ChatChoice { index: 0, message, logprobs: None, finish_reason: STOP }],
            usage: end.usage,
            jurat: reply,
        }
    }

    /// The first chunk, before there is an answer.
    pub fn role_chunk(&self) -> ChatChunk<'_> {
        self.chunk(ChatDelta { role: Some(ASSISTANT), ..ChatDelta::default() })
    }

    /// The chunk with the answer.
    pub fn answer_chunk(&self, reply: &DelegateReply<'_>, ending: RoundEnding) -> ChatChunk<'_> {
        let (content, refusal) = ChatAnswer::of(reply, ending, self.format).split();
        self.chunk(ChatDelta { role: None, content, refusal })
    }

    /// The chunk that ends the choice.
    pub fn last_chunk<'a>(&'a self, reply: DelegateReply<'a>) -> ChatChunk<'a> {
        let mut chunk = self.chunk(ChatDelta::default());
        for choice in &mut chunk.choices {
            choice.finish_reason = Some(STOP);
        }
        ChatChunk { jurat: Some(reply), ..chunk }
    }

    /// The chunk with the usage.
    pub fn usage_chunk(&self, usage: ChatUsage) -> ChatChunk<'_> {
        let chunk = self.chunk(ChatDelta::default());
        ChatChunk { choices: Vec::new(), usage: Some(usage), ..chunk }
    }

    fn chunk<'a>(&'a self, delta: ChatDelta<'a>) -> ChatChunk<'a> {
        let choice = ChatChunkChoice { index: 0, delta, logprobs: None, finish_reason: None };
        ChatChunk {
            id: Cow::Borrowed(&self.id),
            object: Cow::Borrowed("chat.completion.chunk"),
            created: self.created,
            model: Cow::Borrowed(&self.model),
            choices: vec![choice],
            usage: None,
            jurat: None,
        }
    }
}

impl ChatAnswer {
    fn of(reply: &DelegateReply<'_>, ending: RoundEnding, format: AnswerFormat) -> Self {
        if let Some(output) = &reply.output {
            return Self::Content(match format {
                AnswerFormat::Text => {
                    words_of(output).map_or_else(|| output.to_string(), str::to_owned)
                }
                AnswerFormat::Object | AnswerFormat::Schema => output.to_string(),
            });
        }
        if reply.consensus.winner.is_some() {
            return Self::Refusal("The answer of this round was erased.".to_owned());
        }
        if let Some(why) = undecided(ending) {
            return Self::Refusal(format!("There is no answer, because {why}."));
        }
        let consensus = &reply.consensus;
        Self::Refusal(format!(
            "There is no answer, because the replicas do not agree: outcome {}, agreement {} of {} replicas. `jurat.replicas` has what each of them answered.",
            consensus.outcome.0.as_str(),
            consensus.agreement,
            consensus.replicas,
        ))
    }

    /// The content and the refusal, of which one is present.
    fn split<'a>(self) -> (Option<Cow<'a, str>>, Option<Cow<'a, str>>) {
        match self {
            Self::Content(text) => (Some(Cow::Owned(text)), None),
            Self::Refusal(text) => (None, Some(Cow::Owned(text))),
        }
    }
}

impl From<&RoundClosing> for ChatEnd {
    fn from(closing: &RoundClosing) -> Self {
        Self { ending: closing.ending, usage: ChatUsage::of(closing) }
    }
}

impl ChatUsage {
    /// The tokens that the executors of a round report in their traces.
    fn of(closing: &RoundClosing) -> Self {
        let said = closing.replicas.iter().filter_map(|replica| replica.answer.content());
        let traces = said.flat_map(|said| &said.evidence.inline).filter_map(tokens);
        let add = |(input, output): (u64, u64), (more_input, more_output)| {
            (input.saturating_add(more_input), output.saturating_add(more_output))
        };
        let (prompt_tokens, completion_tokens) = traces.fold((0, 0), add);
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        Self { prompt_tokens, completion_tokens, total_tokens }
    }
}

/// The tokens of a trace such as `{"kind": "trace", "usage": {"input_tokens": 1, …}}`.
fn tokens(evidence: &InlineEvidence) -> Option<(u64, u64)> {
    if evidence.mime != "application/json" || LONGEST_TRACE < evidence.content.len() {
        return None;
    }
    let trace: Value = serde_json::from_str(&evidence.content).ok()?;
    let count = |name: &str| trace["usage"][name].as_u64();
    (trace["kind"] == "trace").then_some(())?;
    Some((count("input_tokens")?, count("output_tokens")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_traces_with_whole_numbers_are_counted() {
        let inline = |mime: &str, content: &Value| {
            tokens(&InlineEvidence { mime: mime.to_owned(), content: content.to_string() })
        };
        let usage = json!({ "input_tokens": 3, "output_tokens": 2 });
        let trace = json!({ "kind": "trace", "usage": usage });
        assert_eq!(inline("application/json", &trace), Some((3, 2)));
        assert_eq!(inline("text/plain", &trace), None);
        assert_eq!(inline("application/json", &json!({ "usage": usage })), None);
        let half = json!({ "kind": "trace", "usage": { "input_tokens": 3.5, "output_tokens": 2 } });
        assert_eq!(inline("application/json", &half), None);
    }
}

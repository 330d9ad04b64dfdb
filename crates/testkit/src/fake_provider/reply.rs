//! The replies of a fake provider: judgments, and every fault seen in the field.

use std::io;

use serde_json::{Value, json};

use super::{ProviderProtocol, ended};
use crate::fake_executor::{
    Gate,
    http::{ClientConnection, JSON},
};

#[derive(Debug, Clone)]
pub enum ProviderReply {
    /// A JSON document as the text of the answer.
    Answer(Value),
    /// Any text.
    Text(String),
    /// Tool calls, one with each document.
    Calls(Vec<Value>),
    /// Several choices; in a protocol without choices, several calls.
    Choices(Vec<Value>),
    /// The model declines.
    Refusal,
    /// A filter of the provider removed the answer.
    Filtered,
    /// The text was cut at its length limit.
    Truncated(String),
    /// A status with an ordinary error.
    Status(u16),
    /// A status that asks to wait, with the value of `Retry-After`.
    Wait(u16, String),
    /// A status with a custom body.
    Error(u16, Value),
    /// A complete body with status 200.
    Body(String),
    /// More than anybody reads.
    Huge,
    /// No answer, ever.
    Hangs,
    /// The end of the connection.
    HangsUp,
    /// This reply, once the gate is open.
    After(Gate, Box<ProviderReply>),
}

/// The answer of a judge with this verdict and no findings.
pub fn verdict(word: &str) -> Value {
    json!({ "findings": [], "reasoning": format!("It is {word}."), "verdict": word })
}

/// The expectations that a judge writes down before it sees the candidate.
pub fn commitment() -> Value {
    json!({ "must_not_show": ["an insult"], "must_show": ["a source for each claim"] })
}

impl ProviderReply {
    /// An error ends the connection.
    pub(super) async fn tell(
        &self,
        connection: &mut ClientConnection,
        protocol: ProviderProtocol,
        usage: Option<(u64, u64)>,
    ) -> io::Result<()> {
        let mut says = self;
        while let Self::After(gate, then) = says {
            tokio::select! {
                () = gate.opened() => says = then,
                () = connection.closed() => return Err(ended()),
            }
        }
        let reply = ReplyWriter { protocol, usage };
        let body = match says {
            Self::Answer(answer) => reply.text(&answer.to_string(), false),
            Self::Text(text) => reply.text(text, false),
            Self::Truncated(text) => reply.text(text, true),
            Self::Calls(calls) => reply.calls(calls),
            Self::Choices(choices) => reply.choices(choices),
            Self::Refusal => reply.refusal(),
            Self::Filtered => reply.filtered(),
            Self::Status(status) => return refuse(connection, *status, &[]).await,
            Self::Wait(status, wait) => {
                return refuse(connection, *status, &[("retry-after", wait.as_str())]).await;
            }
            Self::Error(status, body) => return connection.reply_json(*status, body).await,
            Self::Body(body) => return connection.reply(200, &[JSON], body.as_bytes()).await,
            Self::Huge => reply.text(&"x".repeat(3 * 1024 * 1024), false),
            Self::Hangs | Self::After(..) => {
                connection.closed().await;
                return Err(ended());
            }
            Self::HangsUp => return Err(ended()),
        };
        connection.reply_json(200, &body).await
    }
}

async fn refuse(
    connection: &mut ClientConnection,
    status: u16,
    more: &[(&str, &str)],
) -> io::Result<()> {
    let body =
        json!({ "type": "error", "error": { "type": "some_error", "message": "a key: sk-leak" } });
    let headers = [&[JSON], more].concat();
    connection.reply(status, &headers, body.to_string().as_bytes()).await
}

struct ReplyWriter {
    protocol: ProviderProtocol,
    usage: Option<(u64, u64)>,
}

impl ReplyWriter {
    fn text(&self, text: &str, is_cut: bool) -> Value {
        match self.protocol {
            ProviderProtocol::Chat => {
                let reason = if is_cut { "length" } else { "stop" };
                self.chat(vec![(reason, json!({ "role": "assistant", "content": text }))])
            }
            ProviderProtocol::Messages => {
                let reason = if is_cut { "max_tokens" } else { "end_turn" };
                self.message(reason, &json!([{ "type": "text", "text": text }]))
            }
        }
    }

    fn calls(&self, calls: &[Value]) -> Value {
        match self.protocol {
            ProviderProtocol::Chat => {
                let call = |input: &Value| {
                    json!({
                        "id": "call", "type": "function",
                        "function": { "name": "answer", "arguments": input.to_string() },
                    })
                };
                let calls: Vec<Value> = calls.iter().map(call).collect();
                let message = json!({ "role": "assistant", "content": null, "tool_calls": calls });
                self.chat(vec![("tool_calls", message)])
            }
            ProviderProtocol::Messages => {
                let call =
                    |input: &Value| json!({ "type": "tool_use", "name": "answer", "input": input });
                self.message("tool_use", &json!(calls.iter().map(call).collect::<Vec<_>>()))
            }
        }
    }

    fn choices(&self, choices: &[Value]) -> Value {
        match self.protocol {
            ProviderProtocol::Chat => {
                let choice = |answer: &Value| {
                    ("stop", json!({ "role": "assistant", "content": answer.to_string() }))
                };
                self.chat(choices.iter().map(choice).collect())
            }
            ProviderProtocol::Messages => self.calls(choices),
        }
    }

    fn refusal(&self) -> Value {
        match self.protocol {
            ProviderProtocol::Chat => {
                let refusal = "I cannot help with that.";
                let message = json!({ "role": "assistant", "content": null, "refusal": refusal });
                self.chat(vec![("stop", message)])
            }
            ProviderProtocol::Messages => self.message("refusal", &json!([])),
        }
    }

    fn filtered(&self) -> Value {
        match self.protocol {
            ProviderProtocol::Chat => {
                let message = json!({ "role": "assistant", "content": "" });
                self.chat(vec![("content_filter", message)])
            }
            ProviderProtocol::Messages => self.message("refusal", &json!([])),
        }
    }

    fn chat(&self, choices: Vec<(&str, Value)>) -> Value {
        let choices: Vec<Value> = choices
            .into_iter()
            .enumerate()
            .map(|(at, (reason, message))| {
                json!({ "index": at, "finish_reason": reason, "message": message })
            })
            .collect();
        let mut body = json!({ "id": "chat", "object": "chat.completion", "choices": choices });
        if let Some((input, output)) = self.usage {
            body["usage"] = json!({ "prompt_tokens": input, "completion_tokens": output });
        }
        body
    }

    fn message(&self, reason: &str, content: &Value) -> Value {
        let mut body = json!({
            "id": "msg", "type": "message", "role": "assistant", "stop_reason": reason, "content": content,
        });
        if let Some((input, output)) = self.usage {
            body["usage"] = json!({ "input_tokens": input, "output_tokens": output });
        }
        body
    }
}

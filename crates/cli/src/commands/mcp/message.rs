//! A message to the server, with the headers that it needs over HTTP, and its replies.

use bytes::Bytes;
use jurat_core::code::ProblemCode;
use jurat_wire::problem::{Problem, ProblemBody};
use serde_json::{Value, json};

use crate::client::Call;

const PATH: &str = "/mcp";
/// The member that names the revision of a message.
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";
/// Error codes of JSON-RPC.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const INTERNAL_ERROR: i64 = -32_603;

pub(super) struct RpcMessage {
    /// The message as received; the server parses it strictly.
    bytes: Bytes,
    /// The message as JSON; null if it cannot be parsed.
    value: Value,
}

/// What goes with every message to the server.
pub(super) struct RelayTerms {
    /// The revision that an earlier `initialize` agreed on.
    pub(super) revision: Option<String>,
    /// The selected sets of tools.
    pub(super) tools: Vec<String>,
    pub(super) session: String,
}

/// A reply on one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RpcReply {
    pub(super) text: String,
    /// Whether this is the answer, after which no reply follows.
    pub(super) is_last: bool,
    /// The revision that an answer to `initialize` agreed on.
    pub(super) revision: Option<String>,
}

impl RpcMessage {
    pub(super) fn read(line: Vec<u8>) -> Self {
        let value = serde_json::from_slice(&line).unwrap_or_default();
        Self { bytes: Bytes::from(line), value }
    }

    fn method(&self) -> &str {
        self.value["method"].as_str().unwrap_or_default()
    }

    /// The id as JSON, which identifies the request here.
    pub(super) fn id_text(&self) -> String {
        self.value["id"].to_string()
    }

    /// Whether the message gets no answer. A message that cannot be parsed gets one.
    pub(super) fn is_notification(&self) -> bool {
        self.value.is_object() && self.value.get("id").is_none()
    }

    /// The id of the request that this message cancels.
    pub(super) fn cancels(&self) -> Option<String> {
        let is_off = self.method() == "notifications/cancelled";
        is_off.then(|| self.value["params"]["requestId"].to_string())
    }

    /// Whether the message names its revision itself, as in the newest one.
    pub(super) fn is_self_contained(&self) -> bool {
        self.own_revision().is_some()
    }

    fn own_revision(&self) -> Option<&str> {
        self.value["params"]["_meta"][REVISION].as_str()
    }

    /// The message as a call to the server.
    pub(super) fn call(&self, terms: &RelayTerms) -> Call<()> {
        let params = &self.value["params"];
        let own = self.own_revision();
        let agreed = terms.revision.as_deref().filter(|_| self.method() != "initialize");
        let name = params["name"].as_str().or_else(|| params["uri"].as_str());
        let path = match &*terms.tools {
            [] => PATH.to_owned(),
            // Names of sets are words that need no encoding.
            some => format!("{PATH}?tools={}", some.join(",")),
        };
        Call::post_bytes(path, self.bytes.clone())
            .header("mcp-protocol-version", own.or(agreed).filter(is_plain))
            .header("mcp-method", Some(self.method()).filter(is_plain))
            .header("mcp-name", name.filter(is_plain))
            .header("mcp-session-id", own.is_none().then_some(&*terms.session))
    }

    /// A reply to this message, as a JSON-RPC message. A refusal over HTTP becomes an error.
    pub(super) fn reply(&self, text: &str) -> RpcReply {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        if value.get("jsonrpc").is_none() {
            return RpcReply { text: self.refused(&value), is_last: true, revision: None };
        }
        let is_last = value.get("result").is_some() || value.get("error").is_some();
        let agreed = value["result"]["protocolVersion"].as_str();
        let revision = agreed.filter(|_| self.method() == "initialize").map(str::to_owned);
        // Strings in JSON never contain a raw line break, so only the layout changes.
        RpcReply { text: text.replace(['\n', '\r'], " "), is_last, revision }
    }

    /// The answer if the exchange with the server failed.
    pub(super) fn failed(&self, why: &str) -> String {
        let code = json!({ "code": ProblemCode::Internal.as_str() });
        self.error(INTERNAL_ERROR, why, Some(&code))
    }

    /// The answer if `most` requests are in progress already.
    pub(super) fn one_too_many(&self, most: usize) -> String {
        let detail = format!("{most} requests are in progress; send this again when one has ended");
        self.refused(&Problem::new(ProblemCode::RateLimited, detail).body())
    }

    fn refused(&self, body: &Value) -> String {
        let Some(problem) = ProblemBody::read(body) else {
            return self.failed("the reply does not come from a Jurat server; check `--server`");
        };
        let is_unread = problem.known_code() == Some(ProblemCode::InvalidJson);
        let number = if is_unread { PARSE_ERROR } else { INTERNAL_ERROR };
        self.error(number, &format!("{}: {}", problem.code, problem.detail), Some(body))
    }

    fn error(&self, code: i64, message: &str, data: Option<&Value>) -> String {
        let mut error = json!({ "code": code, "message": message });
        if let Some(data) = data {
            error["data"] = data.clone();
        }
        let mut reply = json!({ "jsonrpc": "2.0", "error": error });
        // The answer has no id if the message has no valid one.
        if let Some(id) = self.value.get("id").filter(|id| id.is_string() || id.is_i64()) {
            reply["id"] = id.clone();
        }
        reply.to_string()
    }
}

/// The answer to a line that is too long.
pub(super) fn too_long() -> String {
    let error = json!({
        "code": INVALID_REQUEST,
        "message": "the message is larger than 1 MiB",
        "data": { "code": ProblemCode::PayloadTooLarge.as_str() },
    });
    json!({ "jsonrpc": "2.0", "error": error }).to_string()
}

/// Whether a text can be sent unchanged in a header.
fn is_plain(text: &&str) -> bool {
    !text.is_empty() && text.trim() == *text && text.bytes().all(|it| matches!(it, 0x20..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: &Value) -> RpcMessage {
        RpcMessage::read(value.to_string().into_bytes())
    }

    #[test]
    fn notifications_requests_and_unreadable_messages_are_distinguished() {
        assert!(message(&json!({ "method": "notifications/initialized" })).is_notification());
        assert!(!message(&json!({ "method": "ping", "id": 0 })).is_notification());
        assert!(!RpcMessage::read(b"{".to_vec()).is_notification());
        assert!(!message(&json!([])).is_notification());
        let off = json!({ "method": "notifications/cancelled", "params": { "requestId": "a" } });
        assert_eq!(message(&off).cancels(), Some("\"a\"".to_owned()));
        assert_eq!(message(&json!({ "method": "ping", "id": 0 })).cancels(), None);
    }

    #[test]
    fn a_refusal_becomes_an_error_of_the_same_request() {
        let asked = message(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
        let problem = Problem::new(ProblemCode::RateLimited, "too often").body();
        let reply = asked.reply(&problem.to_string());
        assert!(reply.is_last);
        let said: Value = serde_json::from_str(&reply.text).unwrap();
        assert_eq!(said["id"], 7);
        assert_eq!(said["error"]["message"], "rate_limited: too often");
        assert_eq!(said["error"]["data"], problem);
        let said: Value = serde_json::from_str(&asked.reply("<html>").text).unwrap();
        assert_eq!(said["error"]["code"], INTERNAL_ERROR);
    }

    #[test]
    fn the_negotiated_revision_is_kept_and_a_reply_is_one_line() {
        let asked = message(&json!({ "id": 1, "method": "initialize" }));
        let text =
            "{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}";
        let reply = asked.reply(text);
        assert_eq!(reply.revision.as_deref(), Some("2025-11-25"));
        assert!(reply.is_last && !reply.text.contains('\n'));
        let step = asked.reply("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}");
        assert!(!step.is_last);
    }
}

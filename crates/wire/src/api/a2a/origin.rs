//! What the protocol adds to a request: the message as it was sent, and its context.
//!
//! It is stored in the request of the round, and refers to the request for what that says already.

use jurat_core::{canonical::canonical, round::Round};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::message::{A2aMessage, A2aPart, Skill};

/// The member of a stored request that holds the origin.
pub(super) const ORIGIN: &str = "x_a2a";
/// The most bytes of a message that are stored besides the request.
const MOST_BESIDES: usize = 64 * 1024;
/// The member of a stored part that names the member of the request with its text.
const TEXT_OF: &str = "text_of";
/// The member of a stored part that names the members of its data that the request has.
const DATA_OF: &str = "data_of";

/// What the protocol adds to a request; stored in the request of the round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageOrigin {
    /// The context that the message named; a task that named none begins its own.
    pub context_id: Option<String>,
    /// The message, unless the round did not come as one, or too much of it is not in the request.
    sent: Option<A2aMessage>,
}

impl MessageOrigin {
    /// The origin of a round, from its stored request.
    pub fn of(round: &Round) -> Self {
        let asked = round.open.kept.asked.as_ref();
        let stored = asked.and_then(|asked| asked.request.as_deref());
        stored.map(|text| Self::read(text.as_bytes())).unwrap_or_default()
    }

    /// The origin of a round without its message, which may be long.
    pub fn without_message(round: &Round) -> Self {
        #[derive(Deserialize)]
        struct Stored {
            // Named like `ORIGIN`.
            x_a2a: Option<Value>,
        }
        let asked = round.open.kept.asked.as_ref();
        let stored = asked.and_then(|asked| asked.request.as_deref());
        let stored = stored.and_then(|text| serde_json::from_str::<Stored>(text).ok());
        let noted = stored.and_then(|stored| stored.x_a2a).unwrap_or_default();
        Self { context_id: noted["context_id"].as_str().map(str::to_owned), sent: None }
    }

    /// The same without the message, to keep it for a while.
    #[must_use]
    pub fn shortened(self) -> Self {
        Self { context_id: self.context_id, sent: None }
    }

    /// Notes a message and its context in the request that it is about to become.
    pub(super) fn noted(
        mut request: Map<String, Value>,
        skill: &Skill,
        sent: &A2aMessage,
        context_id: Option<&str>,
    ) -> (Value, Self) {
        let parts: Vec<Value> =
            sent.parts.iter().map(|part| shortened(part, &request, skill)).collect();
        let mut message = json!(sent);
        message["parts"] = json!(parts);
        let mut noted = Map::new();
        if message.to_string().len() <= MOST_BESIDES {
            noted.insert("message".to_owned(), message);
        }
        if let Some(context_id) = context_id {
            noted.insert("context_id".to_owned(), json!(context_id));
        }
        request.insert(ORIGIN.to_owned(), Value::Object(noted));
        let request = Value::Object(request);
        // Read as it will be stored, so that every reply shows the same message.
        let origin = Self::read(&canonical(&request));
        (request, origin)
    }

    fn read(request: &[u8]) -> Self {
        let Ok(Value::Object(mut request)) = serde_json::from_slice(request) else {
            return Self::default();
        };
        // A request of the API may have a member of the same name, with anything in it.
        let Some(Value::Object(mut noted)) = request.remove(ORIGIN) else { return Self::default() };
        let context_id = noted.get("context_id").and_then(Value::as_str).map(str::to_owned);
        let mut message = noted.remove("message").unwrap_or_default();
        let parts = message.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            complete(part, &mut request);
        }
        Self { context_id, sent: serde_json::from_value(message).ok() }
    }

    /// The message that began a task.
    pub(super) fn message(&self, task_id: &str, context_id: &str) -> Option<A2aMessage> {
        let (task_id, context_id) = (task_id.to_owned(), context_id.to_owned());
        Some(A2aMessage { context_id, task_id, ..self.sent.clone()? })
    }
}

/// A part without what the request says.
fn shortened(part: &A2aPart, request: &Map<String, Value>, skill: &Skill) -> Value {
    let mut noted = json!(part);
    if let (Some(text), Some(field)) = (&part.text, skill.text_field())
        && request.get(field).and_then(Value::as_str) == Some(text)
    {
        noted["text"] = Value::Null;
        noted[TEXT_OF] = json!(field);
    }
    let is_stored = |name: &str| match skill {
        // The other members of the request are not stored, and an image is stored as an input.
        Skill::RunVerifier(_) => name == "inputs" && !request.contains_key("media_url"),
        Skill::Delegate | Skill::Validate | Skill::Factcheck => true,
    };
    if let Some(data) = noted.get_mut("data").and_then(Value::as_object_mut) {
        let (same, own): (Map<_, _>, Map<_, _>) = std::mem::take(data)
            .into_iter()
            .partition(|(name, value)| is_stored(name) && request.get(name) == Some(value));
        *data = own;
        noted[DATA_OF] = json!(same.keys().collect::<Vec<_>>());
    }
    noted
}

/// Adds to a stored part what the request says. Each member is used once, so that no caller can have
/// a short request read as a long message.
fn complete(part: &mut Value, request: &mut Map<String, Value>) {
    let Some(members) = part.as_object_mut() else { return };
    if let Some(field) = members.remove(TEXT_OF) {
        let text = field.as_str().and_then(|field| request.remove(field));
        members.insert("text".to_owned(), text.unwrap_or_default());
    }
    let Some(names) = members.remove(DATA_OF) else { return };
    let Some(data) = members.get_mut("data").and_then(Value::as_object_mut) else { return };
    for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
        data.insert(name.to_owned(), request.remove(name).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::a2a::message::send_request;

    /// The message as its task shows it, and the bytes that it adds to the request.
    fn stored(part: &Value, more: &Value) -> (Value, usize) {
        let mut message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [part] });
        for (name, value) in more.as_object().unwrap() {
            message[name] = value.clone();
        }
        let sent = send_request(&json!({ "message": message })).unwrap();
        let shown = sent.origin.message("rnd_1", "ctx_1");
        (json!(shown), sent.body[ORIGIN].to_string().len())
    }

    #[test]
    fn a_message_is_shown_as_it_was_sent() {
        for part in [
            json!({ "text": "x" }),
            json!({ "text": "x", "mediaType": "text/markdown", "metadata": { "a": 1 } }),
            json!({ "text": "x", "filename": "x.txt" }),
            json!({ "data": { "skill": "validate", "claim": "x", "input": null } }),
            json!({ "data": { "skill": "run-verifier:a", "inputs": { "b": "x" }, "replicas": 3 } }),
            json!({ "data": {
                "skill": "run-verifier", "verifier": "a", "inputs": {},
                "media_url": "https://example.com/x.png",
            } }),
        ] {
            let more = json!({ "metadata": { "b": [1.5] }, "referenceTaskIds": ["rnd_2"] });
            let (shown, _) = stored(&part, &more);
            assert_eq!(shown["parts"], json!([part]));
            for member in ["metadata", "referenceTaskIds"] {
                assert_eq!(shown[member], more[member], "{part}");
            }
        }
    }

    #[test]
    fn what_the_request_says_is_stored_once_and_the_rest_is_limited() {
        let long = "x".repeat(MOST_BESIDES);
        for part in [
            json!({ "text": long }),
            json!({ "data": { "skill": "validate", "claim": long } }),
            json!({ "data": { "skill": "run-verifier", "verifier": "a", "inputs": { "b": long } } }),
        ] {
            let (shown, bytes) = stored(&part, &json!({}));
            assert_eq!(shown["parts"], json!([part]));
            assert!(bytes < 300, "{bytes}");
        }
        let (shown, bytes) = stored(&json!({ "text": "x" }), &json!({ "metadata": { "a": long } }));
        assert_eq!(shown, Value::Null);
        assert!(bytes < 300, "{bytes}");
    }

    #[test]
    fn a_request_with_another_member_of_that_name_has_no_origin() {
        for other in [json!("x"), json!(null), json!([1]), json!({ "message": "x" })] {
            let request = json!({ "claim": "x", "x_a2a": other });
            assert_eq!(MessageOrigin::read(&canonical(&request)), MessageOrigin::default());
        }
        let part = json!({ "text_of": "claim" });
        let message = json!({
            "messageId": "m1", "role": "ROLE_USER", "contextId": "", "taskId": "",
            "parts": vec![part; 1_000],
        });
        let request = json!({ "claim": "x".repeat(1_000), "x_a2a": { "message": message } });
        let origin = MessageOrigin::read(&canonical(&request));
        assert!(json!(origin.message("rnd_1", "ctx_1")).to_string().len() < 10_000);
    }
}

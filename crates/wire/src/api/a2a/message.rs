//! Messages of the protocol: a job in, a sentence out.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use jurat_core::code::ProblemCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    error::{A2aError, A2aErrorKind},
    members::Members,
    origin::{MessageOrigin, ORIGIN},
    push::{A2aPushRequest, PushRequest, push_request},
    requests::history_length,
};

/// The longest id of a message or a context, which is the most of ours, too.
const LONGEST_ID: usize = 200;
const PREFIXED: &str = "run-verifier:";
const PUSH: &str = "taskPushNotificationConfig";
const USER: &str = "ROLE_USER";
const JSON: &str = "application/json";

/// What an agent can ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skill {
    Delegate,
    Validate,
    Factcheck,
    /// With the verifier, as a path names it.
    RunVerifier(String),
}

impl Skill {
    /// The names of all skills.
    pub const NAMES: [&'static str; 4] = ["delegate", "validate", "factcheck", "run-verifier"];

    /// The member of a request that a text is.
    pub(super) const fn text_field(&self) -> Option<&'static str> {
        match self {
            Self::Delegate => Some("objective"),
            Self::Validate | Self::Factcheck => Some("claim"),
            Self::RunVerifier(_) => None,
        }
    }
}

/// A message that begins a task.
#[derive(Debug, Clone, PartialEq)]
pub struct SendRequest {
    pub skill: Skill,
    /// The request as the API takes it.
    pub body: Value,
    pub origin: MessageOrigin,
    pub message_id: String,
    /// The task that the message continues.
    pub task_id: Option<String>,
    pub context_id: Option<String>,
    pub return_immediately: bool,
    pub history_length: Option<u32>,
    /// Where to tell that the task has ended.
    pub push: Option<PushRequest>,
}

/// A message, as replies show it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aMessage {
    pub message_id: String,
    /// `ROLE_USER` for the caller, `ROLE_AGENT` for the server.
    pub role: Cow<'static, str>,
    pub parts: Vec<A2aPart>,
    pub context_id: String,
    pub task_id: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub extensions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub reference_task_ids: Vec<String>,
}

impl A2aMessage {
    /// A sentence of the server about a task.
    pub(super) fn of_agent(task_id: &str, context_id: &str, text: String) -> Self {
        Self {
            message_id: format!("{task_id}-end"),
            role: Cow::Borrowed("ROLE_AGENT"),
            parts: vec![A2aPart::text(text)],
            context_id: context_id.to_owned(),
            task_id: task_id.to_owned(),
            metadata: Map::new(),
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// A message as it was sent; its task and its context are not known yet.
    fn of_user(message_id: &str, parts: Vec<A2aPart>, message: &Members<'_>) -> Self {
        Self {
            message_id: message_id.to_owned(),
            role: Cow::Borrowed(USER),
            parts,
            context_id: String::new(),
            task_id: String::new(),
            metadata: message.object("metadata"),
            extensions: message.texts("extensions"),
            reference_task_ids: message.texts("referenceTaskIds"),
        }
    }
}

/// A part of a message or an artifact: text, data, or the bytes of a file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub data: Option<Value>,
    /// The bytes of a file, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub filename: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub media_type: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub metadata: Map<String, Value>,
}

impl A2aPart {
    pub fn text(text: String) -> Self {
        Self { text: Some(text), ..Self::of_type("text/plain") }
    }

    /// JSON as text.
    pub fn json_text(text: String) -> Self {
        Self { text: Some(text), ..Self::of_type(JSON) }
    }

    pub fn data(data: Value) -> Self {
        Self { data: Some(data), ..Self::of_type(JSON) }
    }

    /// A file of JSON.
    pub fn json_file(filename: &'static str, bytes: &[u8]) -> Self {
        let (raw, filename) = (Some(BASE64.encode(bytes)), Some(Cow::Borrowed(filename)));
        Self { raw, filename, ..Self::of_type(JSON) }
    }

    fn of_type(media_type: &'static str) -> Self {
        Self { media_type: Some(Cow::Borrowed(media_type)), ..Self::default() }
    }
}

/// Reads the parameters of `SendMessage` and `SendStreamingMessage`.
pub fn send_request(params: &Value) -> Result<SendRequest, A2aError> {
    let members = Members::of(params, "")?;
    let message = members.get("message").ok_or_else(|| members.wrong("message", "is required"))?;
    let message = Members::of(message, "message")?;
    let message_id = message.required_text("messageId")?;
    if LONGEST_ID < message_id.len() {
        return Err(message.wrong("messageId", &format!("must have at most {LONGEST_ID} bytes")));
    }
    if message.required_text("role")? != USER {
        return Err(message.wrong("role", "must be `ROLE_USER`"));
    }
    let context_id = context_id(&message)?;
    let (content, parts) = MessageContent::read(&message)?;
    let named = [message, members].into_iter().find_map(|it| it.get("metadata")?.get("skill"));
    let (skill, body) = content.request(named)?;
    let asked = A2aMessage::of_user(message_id, parts, &message);
    let (body, origin) = MessageOrigin::noted(body, &skill, &asked, context_id.as_deref());
    let configuration = match members.get("configuration") {
        None => None,
        Some(given) => Some(Members::of(given, "configuration")?),
    };
    let configuration = configuration.as_ref();
    let push = match configuration.and_then(|it| it.get(PUSH)) {
        None => None,
        Some(given) => Some(push_request(given, &format!("configuration.{PUSH}"))?),
    };
    Ok(SendRequest {
        skill,
        body,
        origin,
        message_id: message_id.to_owned(),
        task_id: message.text("taskId")?.map(str::to_owned),
        context_id,
        return_immediately: configuration.map_or(Ok(false), |it| it.flag("returnImmediately"))?,
        history_length: configuration.map_or(Ok(None), history_length)?,
        push,
    })
}

/// The context that a message names: any text of the caller.
fn context_id(message: &Members<'_>) -> Result<Option<String>, A2aError> {
    const NAME: &str = "contextId";
    let Some(context_id) = message.text(NAME)? else { return Ok(None) };
    if LONGEST_ID < context_id.len() || context_id.chars().any(char::is_control) {
        let reason = format!("must have at most {LONGEST_ID} bytes and no control characters");
        return Err(message.wrong(NAME, &reason));
    }
    Ok(Some(context_id.to_owned()))
}

/// The content of a message.
struct MessageContent {
    /// The texts of a message, as paragraphs.
    text: Option<String>,
    data: Option<Map<String, Value>>,
}

impl MessageContent {
    /// The content, and the parts that hold it.
    fn read(message: &Members<'_>) -> Result<(Self, Vec<A2aPart>), A2aError> {
        let parts = message.get("parts").and_then(Value::as_array);
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| message.wrong("parts", "must be a list of parts"))?;
        let mut content = Self { text: None, data: None };
        let mut sent = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let path = format!("message.parts.{index}");
            let part = Members::of(part, &path)?;
            content.add(&part)?;
            sent.push(part_of(&part)?);
        }
        Ok((content, sent))
    }

    fn add(&mut self, part: &Members<'_>) -> Result<(), A2aError> {
        let unsupported = |reason: &str| {
            let mut error = part.wrong("mediaType", reason);
            error.kind = A2aErrorKind::ContentTypeNotSupported;
            error.problem.code = ProblemCode::UnsupportedMediaType;
            Err(error)
        };
        let media_type = part.text("mediaType")?.unwrap_or_default().to_ascii_lowercase();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        match (part.get("text"), part.get("data")) {
            (Some(Value::String(text)), None) => {
                if !["", "text/plain", "text/markdown"].contains(&media_type) {
                    return unsupported("of a text must be `text/plain`");
                }
                let before = self.text.take().map(|text| text + "\n\n").unwrap_or_default();
                self.text = Some(before + text);
            }
            (None, Some(data)) => {
                if !["", JSON].contains(&media_type) {
                    return unsupported("of data must be `application/json`");
                }
                let data =
                    data.as_object().ok_or_else(|| part.wrong("data", "must be an object"))?;
                if self.data.replace(data.clone()).is_some() {
                    return Err(part.wrong("data", "is repeated; a message has one data part"));
                }
            }
            (None, None) if part.get("raw").is_some() || part.get("url").is_some() => {
                return unsupported("of a file is not supported; send text or data");
            }
            _ => return Err(part.wrong("text", "or `data` is required, and only one of them")),
        }
        Ok(())
    }

    /// The skill that the message asks for, and the request for it.
    fn request(&self, named: Option<&Value>) -> Result<(Skill, Map<String, Value>), A2aError> {
        let mut body = self.data.clone().unwrap_or_default();
        if body.contains_key(ORIGIN) {
            return Err(A2aError::wrong(ORIGIN, "is reserved; leave it out"));
        }
        let name = match (body.remove("skill"), named) {
            (Some(skill), _) => skill,
            (None, Some(skill)) => skill.clone(),
            (None, None) if self.data.is_none() => json!("delegate"),
            (None, None) => Value::Null,
        };
        let skill = skill(&name, &mut body)?;
        if let Some(text) = &self.text {
            let Some(field) = skill.text_field() else {
                return Err(A2aError::wrong("inputs", "are data; send them in a data part"));
            };
            if body.contains_key(field) {
                let reason = "is in the data part; leave it or the text out";
                return Err(A2aError::wrong(field, reason));
            }
            body.insert(field.to_owned(), json!(text));
        }
        Ok((skill, body))
    }
}

/// A part as it was sent.
fn part_of(part: &Members<'_>) -> Result<A2aPart, A2aError> {
    let owned = |text: &str| Cow::Owned(text.to_owned());
    Ok(A2aPart {
        text: part.get("text").and_then(Value::as_str).map(str::to_owned),
        data: part.get("data").cloned(),
        raw: None,
        filename: part.text("filename")?.map(owned),
        media_type: part.text("mediaType")?.map(owned),
        metadata: part.object("metadata"),
    })
}

fn skill(name: &Value, body: &mut Map<String, Value>) -> Result<Skill, A2aError> {
    let unknown = || {
        let reason = format!("must be one of {}", Skill::NAMES.join(", "));
        A2aError::wrong("skill", &reason)
    };
    let name = name.as_str().ok_or_else(unknown)?;
    if let Some(verifier) = name.strip_prefix(PREFIXED).filter(|it| !it.is_empty()) {
        if body.contains_key("verifier") {
            let reason = "is part of the skill already; leave one of them out";
            return Err(A2aError::wrong("verifier", reason));
        }
        return Ok(Skill::RunVerifier(verifier.to_owned()));
    }
    match name {
        "delegate" => Ok(Skill::Delegate),
        "validate" => Ok(Skill::Validate),
        "factcheck" => Ok(Skill::Factcheck),
        "run-verifier" => match body.remove("verifier") {
            Some(Value::String(verifier)) if !verifier.is_empty() => {
                Ok(Skill::RunVerifier(verifier))
            }
            _ => Err(A2aError::wrong("verifier", "must name a verifier")),
        },
        _ => Err(unknown()),
    }
}

/// A message to the server. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aSendRequest {
    message: A2aUserMessage,
    configuration: Option<A2aSendConfiguration>,
    /// `skill` names the skill if no data part does.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
}

/// A message of the caller.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aUserMessage {
    /// Chosen by the caller. The same message sent twice is the same task.
    #[schema(min_length = 1, max_length = 200)]
    message_id: String,
    /// `ROLE_USER`.
    #[schema(pattern = "^ROLE_USER$")]
    role: String,
    /// One data part with the request of a skill, or text.
    #[schema(min_items = 1)]
    parts: Vec<A2aUserPart>,
    /// The context of an earlier task, or a name of the caller's own for one.
    #[schema(max_length = 200, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    context_id: Option<String>,
    /// An unfinished task; no task of this server takes further messages.
    task_id: Option<String>,
    /// `skill` names the skill if no data part does.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
}

/// A part of a message of the caller: `text` or `data`.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aUserPart {
    /// The objective of `delegate`, or the claim of `validate` and `factcheck`.
    text: Option<String>,
    /// `skill`, and the fields of the request of `/api/v3`; for `run-verifier`, `verifier` and the
    /// fields of a verifier run.
    #[schema(value_type = Option<Object>)]
    data: Option<Value>,
    /// `text/plain` or `application/json`.
    media_type: Option<String>,
}

/// How to answer a message.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aSendConfiguration {
    /// Whether to answer before the task has ended.
    return_immediately: Option<bool>,
    /// The largest number of messages in `history`.
    #[schema(minimum = 0)]
    history_length: Option<i32>,
    task_push_notification_config: Option<A2aPushRequest>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: &Value) -> Value {
        json!({ "message": { "messageId": "m1", "role": "ROLE_USER", "parts": parts } })
    }

    #[test]
    fn a_text_is_an_objective_and_a_data_part_is_the_request_of_its_skill() {
        let sent = send_request(&message(&json!([{ "text": "Say hello." }]))).unwrap();
        assert_eq!(sent.skill, Skill::Delegate);
        assert_eq!(sent.body["objective"], "Say hello.");
        assert!(!sent.body["x_a2a"].to_string().contains("Say hello."), "{}", sent.body);

        let part = json!({ "data": { "skill": "validate", "claim": "x", "consensus": { "replicas": 3 } } });
        let sent = send_request(&message(&json!([part]))).unwrap();
        assert_eq!(sent.skill, Skill::Validate);
        assert_eq!(sent.body["consensus"], json!({ "replicas": 3 }));
        assert_eq!(sent.body.get("skill"), None);

        let mut params = message(&json!([{ "text": "12 * 12 = 144" }]));
        params["message"]["metadata"] = json!({ "skill": "factcheck" });
        let sent = send_request(&params).unwrap();
        assert_eq!((sent.skill, &sent.body["claim"]), (Skill::Factcheck, &json!("12 * 12 = 144")));

        for part in [
            json!({ "skill": "run-verifier", "verifier": "cites", "inputs": { "answer": "x" } }),
            json!({ "skill": "run-verifier:cites", "inputs": { "answer": "x" } }),
        ] {
            let sent = send_request(&message(&json!([{ "data": part }]))).unwrap();
            assert_eq!(sent.skill, Skill::RunVerifier("cites".to_owned()));
            assert_eq!(sent.body["inputs"], json!({ "answer": "x" }));
        }
    }

    #[test]
    fn a_wrong_message_is_told_its_field() {
        let part = |part: Value| message(&json!([part]));
        let in_context = |context_id: &str| {
            let mut params = part(json!({ "text": "x" }));
            params["message"]["contextId"] = json!(context_id);
            params
        };
        for (params, field) in [
            (json!({}), "message"),
            (json!({ "message": { "role": "ROLE_USER", "parts": [] } }), "message.messageId"),
            (message(&json!([])), "message.parts"),
            (part(json!({})), "message.parts.0.text"),
            (in_context(&"x".repeat(201)), "message.contextId"),
            (in_context("a\nb"), "message.contextId"),
            (part(json!({ "text": "x", "data": {} })), "message.parts.0.text"),
            (part(json!({ "url": "https://example.com/x" })), "message.parts.0.mediaType"),
            (part(json!({ "text": "x", "mediaType": "text/html" })), "message.parts.0.mediaType"),
            (part(json!({ "data": {} })), "skill"),
            (part(json!({ "data": { "skill": "judge" } })), "skill"),
            (part(json!({ "data": { "skill": "run-verifier" } })), "verifier"),
            (part(json!({ "data": { "skill": "run-verifier:a", "verifier": "b" } })), "verifier"),
            (part(json!({ "data": { "skill": "run-verifier:a", "verifier": null } })), "verifier"),
            (part(json!({ "data": { "skill": "delegate", "x_a2a": {} } })), "x_a2a"),
            (
                message(
                    &json!([{ "text": "x" }, { "data": { "skill": "validate", "claim": "y" } }]),
                ),
                "claim",
            ),
        ] {
            let error = send_request(&params).unwrap_err();
            assert_eq!(error.problem.field.as_deref(), Some(field), "{params}");
        }
        let mut params = message(&json!([{ "text": "x" }]));
        params["message"]["role"] = json!("user");
        assert_eq!(
            send_request(&params).unwrap_err().problem.detail,
            "`message.role` must be `ROLE_USER`"
        );
        params["message"]["role"] = json!("ROLE_USER");
        params["configuration"] = json!({ "taskPushNotificationConfig": { "token": "x" } });
        assert_eq!(
            send_request(&params).unwrap_err().problem.field.as_deref(),
            Some("configuration.taskPushNotificationConfig.url")
        );
    }
}

//! Messages of the protocol: a job in, a sentence out.

use std::borrow::Cow;

use jurat_core::{code::ProblemCode, round::Round};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{
    error::{A2aError, A2aErrorKind},
    members::Members,
    push::{A2aPushRequest, PushRequest, push_request},
    requests::history_length,
};

/// The member of a stored request that holds what the protocol adds to it.
const ORIGIN: &str = "x_a2a";
/// The longest id of a message, which is the most of ours, too.
const LONGEST_ID: usize = 200;
const PREFIXED: &str = "run-verifier:";
const PUSH: &str = "taskPushNotificationConfig";

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

/// What the protocol adds to a request; stored in the request of the round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MessageOrigin {
    /// The context that the message named; a task that named none begins its own.
    pub context_id: Option<String>,
    /// The id of the message and its content, unless the round did not come as a message.
    sent: Option<(String, A2aPart)>,
}

impl MessageOrigin {
    /// The origin of a round, from its stored request.
    pub fn of(round: &Round) -> Self {
        let asked = round.open.kept.asked.as_ref();
        let stored = asked.and_then(|asked| asked.request.as_deref());
        let request = stored.and_then(|text| serde_json::from_str(text).ok());
        let Some(Value::Object(mut request)) = request else { return Self::default() };
        let Some(noted) = request.remove(ORIGIN) else { return Self::default() };
        let text = |name: &str| noted[name].as_str().map(str::to_owned);
        let part = if let Value::String(field) = &noted["text"] {
            let text = request.get(field.as_str()).and_then(Value::as_str);
            A2aPart::text(text.unwrap_or_default().to_owned())
        } else {
            let skill = noted["skill"].as_str().unwrap_or_else(|| round.open.kind.as_str());
            request.insert("skill".to_owned(), json!(skill));
            A2aPart::data(Value::Object(request))
        };
        Self { context_id: text("context_id"), sent: text("message_id").map(|id| (id, part)) }
    }

    /// The message that began a task.
    pub(super) fn message(&self, task_id: &str, context_id: &str) -> Option<A2aMessage> {
        let (message_id, part) = self.sent.clone()?;
        Some(A2aMessage {
            message_id,
            role: Cow::Borrowed("ROLE_USER"),
            parts: vec![part],
            context_id: context_id.to_owned(),
            task_id: task_id.to_owned(),
        })
    }
}

/// A message, as replies show it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aMessage {
    pub message_id: String,
    /// `ROLE_USER` for the caller, `ROLE_AGENT` for the server.
    pub role: Cow<'static, str>,
    pub parts: Vec<A2aPart>,
    pub context_id: String,
    pub task_id: String,
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
        }
    }
}

/// A part of a message or an artifact: text, or data.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct A2aPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value)]
    pub data: Option<Value>,
    pub media_type: Cow<'static, str>,
}

impl A2aPart {
    pub fn text(text: String) -> Self {
        Self { text: Some(text), data: None, media_type: Cow::Borrowed("text/plain") }
    }

    pub fn data(data: Value) -> Self {
        Self { text: None, data: Some(data), media_type: Cow::Borrowed("application/json") }
    }

    #[must_use]
    pub(super) fn of_type(self, media_type: &'static str) -> Self {
        Self { media_type: Cow::Borrowed(media_type), ..self }
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
    match message.required_text("role")? {
        "ROLE_USER" => {}
        _ => return Err(message.wrong("role", "must be `ROLE_USER`")),
    }
    let context_id = message.text("contextId")?.map(str::to_owned);
    let content = MessageContent::read(&message)?;
    let named = [message, members].into_iter().find_map(|it| it.get("metadata")?.get("skill"));
    let (skill, mut body) = content.request(named)?;
    let origin = origin_of(&mut body, &skill, message_id, (context_id.as_deref(), &content));
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
        body: Value::Object(body),
        origin,
        message_id: message_id.to_owned(),
        task_id: message.text("taskId")?.map(str::to_owned),
        context_id,
        return_immediately: configuration.map_or(Ok(false), |it| it.flag("returnImmediately"))?,
        history_length: configuration.map_or(Ok(None), history_length)?,
        push,
    })
}

/// The content of a message.
struct MessageContent {
    /// The texts of a message, as paragraphs.
    text: Option<String>,
    data: Option<Map<String, Value>>,
}

impl MessageContent {
    fn read(message: &Members<'_>) -> Result<Self, A2aError> {
        let parts = message.get("parts").and_then(Value::as_array);
        let parts = parts.filter(|parts| !parts.is_empty());
        let parts = parts.ok_or_else(|| message.wrong("parts", "must be a list of parts"))?;
        let mut content = Self { text: None, data: None };
        for (index, part) in parts.iter().enumerate() {
            let path = format!("message.parts.{index}");
            content.add(&Members::of(part, &path)?)?;
        }
        Ok(content)
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
                if !["", "application/json"].contains(&media_type) {
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
            let Some(field) = text_field(&skill) else {
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

/// The member of a request that a text is.
const fn text_field(skill: &Skill) -> Option<&'static str> {
    match skill {
        Skill::Delegate => Some("objective"),
        Skill::Validate | Skill::Factcheck => Some("claim"),
        Skill::RunVerifier(_) => None,
    }
}

fn skill(name: &Value, body: &mut Map<String, Value>) -> Result<Skill, A2aError> {
    let unknown = || {
        let reason = format!("must be one of {}", Skill::NAMES.join(", "));
        A2aError::wrong("skill", &reason)
    };
    let name = name.as_str().ok_or_else(unknown)?;
    if let Some(verifier) = name.strip_prefix(PREFIXED).filter(|it| !it.is_empty()) {
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

/// Notes in the request what the protocol adds to it.
fn origin_of(
    body: &mut Map<String, Value>,
    skill: &Skill,
    message_id: &str,
    (context_id, content): (Option<&str>, &MessageContent),
) -> MessageOrigin {
    let mut noted = Map::from_iter([("message_id".to_owned(), json!(message_id))]);
    if let Some(context_id) = context_id {
        noted.insert("context_id".to_owned(), json!(context_id));
    }
    if let Skill::RunVerifier(_) = skill {
        noted.insert("skill".to_owned(), json!("run-verifier"));
    }
    let part = match (&content.data, &content.text, text_field(skill)) {
        (None, Some(text), Some(field)) => {
            noted.insert("text".to_owned(), json!(field));
            A2aPart::text(text.clone())
        }
        (data, _, _) => A2aPart::data(Value::Object(data.clone().unwrap_or_default())),
    };
    body.insert(ORIGIN.to_owned(), Value::Object(noted));
    MessageOrigin {
        context_id: context_id.map(str::to_owned),
        sent: Some((message_id.to_owned(), part)),
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
    /// The context of an earlier task, to begin another in it.
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
        assert_eq!(sent.body["x_a2a"], json!({ "message_id": "m1", "text": "objective" }));

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
        for (params, field) in [
            (json!({}), "message"),
            (json!({ "message": { "role": "ROLE_USER", "parts": [] } }), "message.messageId"),
            (message(&json!([])), "message.parts"),
            (part(json!({})), "message.parts.0.text"),
            (part(json!({ "text": "x", "data": {} })), "message.parts.0.text"),
            (part(json!({ "url": "https://example.com/x" })), "message.parts.0.mediaType"),
            (part(json!({ "text": "x", "mediaType": "text/html" })), "message.parts.0.mediaType"),
            (part(json!({ "data": {} })), "skill"),
            (part(json!({ "data": { "skill": "judge" } })), "skill"),
            (part(json!({ "data": { "skill": "run-verifier" } })), "verifier"),
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

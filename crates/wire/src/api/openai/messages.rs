//! The conversation of a chat request, as text.

use serde_json::{Value, json};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema},
};

use crate::{
    api::kit::{
        faults::RequestFaults,
        json::{kind, short},
        request::{
            FieldFault, FieldPath, Hidden, ListOf, RequestField, SchemaParts, add_component,
            component, member, members, named, object, one_of, request, text, values,
            values::text_of,
        },
    },
    problem::Problem,
};

/// Maximum number of messages in a conversation.
pub const MOST_MESSAGES: usize = 10_000;

/// The messages of a request.
pub type ChatMessages = ListOf<ChatMessage, 1, MOST_MESSAGES>;

request! {
    /// A message of a conversation. Only text is supported.
    pub open struct ChatMessage {
        role: ChatRole,
        /// Text, or a list of text parts. Only a message of the assistant with a `refusal` can do
        /// without.
        content: Option<ChatContent>,
        /// An earlier refusal of the assistant.
        refusal: Option<String>,
        tool_calls: Option<NoTools>,
        function_call: Hidden<Unavailable>,
        audio: Hidden<Unavailable>,
    }
}

values! {
    /// The author of a message.
    pub named struct ChatRole(&'static str as String):
        text()
            .enum_values(Some(ROLES))
            .description(Some("The author of a message."))
        => role;

    /// A list of tools, which must be empty.
    pub named struct NoTools(()):
        ArrayBuilder::new()
            .items(object())
            .max_items(Some(0))
            .description(Some("Not supported: must be empty or left out."))
        => no_tools;

    /// A field that is known, but refused if it is present.
    pub struct Unavailable(()): text() => unavailable;

    /// The kind of a text part, which is also the name of its text.
    pub struct PartKind(&'static str as String): text() => part_kind;
}

const ROLES: [&str; 4] = ["system", "developer", "user", "assistant"];

/// The text of a message; the text parts of a list are joined by line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatContent(pub String);

impl RequestField for ChatContent {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(text.clone())),
            Value::Array(parts) => {
                let read = |(index, part): (usize, &Value)| {
                    text_part(part, &at.member(&index.to_string()), faults)
                };
                // Reads every part even if one fails, so that no fault is missed.
                let texts: Vec<Option<String>> = parts.iter().enumerate().map(read).collect();
                let texts: Option<Vec<String>> = texts.into_iter().collect();
                texts.map(|texts| Self(texts.join("\n")))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                let reason = format!("must be text or a list of text parts, not {}", kind(value));
                faults.add(at.wrong(&reason));
                None
            }
        }
    }

    fn describe() -> RefOr<Schema> {
        component::<Self>()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        add_component::<Self>(parts);
    }
}

named!(
    ChatContent:
        one_of("The text of a message, or its text parts.")
            .item(text())
            .item(ArrayBuilder::new().items(RefOr::T(Schema::from(
                OneOfBuilder::new()
                    .item(part_schema("text"))
                    .item(part_schema("refusal"))
                    .build(),
            ))))
);

fn part_schema(name: &'static str) -> ObjectBuilder {
    object()
        .property("type", text().enum_values(Some([name])))
        .required("type")
        .property(name, text())
        .required(name)
}

fn text_part(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<String> {
    let part = members(value, at, faults)?;
    let PartKind(name) = member(part, ("type", None), at, faults)?;
    member(part, (name, None), at, faults)
}

/// The messages of a conversation, each with its author and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation(Vec<(&'static str, String)>);

impl Conversation {
    /// Checks the rules across the fields of messages.
    pub(super) fn checked(
        ListOf(messages): ChatMessages,
        at: &FieldPath<'_>,
    ) -> Result<Self, Problem> {
        if messages.is_empty() {
            return Err(at.wrong("must not be empty"));
        }
        if MOST_MESSAGES < messages.len() {
            return Err(at.wrong(&format!("must have at most {MOST_MESSAGES} messages")));
        }
        let said = messages.into_iter().enumerate().map(|(index, message)| {
            let text = message.content.map(|content| content.0).or(message.refusal);
            let required = || at.member(&index.to_string()).member("content").wrong("is required");
            Ok((message.role.0, text.ok_or_else(required)?))
        });
        let said = Self(said.collect::<Result<_, Problem>>()?);
        if said.objective().is_empty() {
            return Err(at.wrong("must contain text"));
        }
        Ok(said)
    }

    /// The conversation as one text: the instructions, then the request, or a transcript if the
    /// user and the assistant took turns.
    pub fn objective(&self) -> String {
        let Self(messages) = self;
        let is_said = |(role, _): &&(&str, String)| matches!(*role, "user" | "assistant");
        let told = messages.iter().filter(|message| !is_said(message));
        let said: Vec<&(&str, String)> = messages.iter().filter(is_said).collect();
        let said = match said.as_slice() {
            [("user", text)] => vec![text.clone()],
            turns => turns
                .iter()
                .filter(|(_, text)| !text.trim().is_empty())
                .map(|said| turn(said))
                .collect(),
        };
        let texts: Vec<String> = told.map(|(_, text)| text.clone()).chain(said).collect();
        let texts: Vec<&str> =
            texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    /// The messages as executors get them.
    pub fn messages(&self) -> Value {
        let message = |(role, text): &(&str, String)| json!({ "role": role, "content": text });
        self.0.iter().map(message).collect()
    }
}

fn turn((role, text): &(&str, String)) -> String {
    let name = if *role == "assistant" { "Assistant" } else { "User" };
    format!("{name}: {text}")
}

fn role(value: &Value) -> Result<&'static str, FieldFault> {
    match text_of(value)? {
        other @ ("tool" | "function") => Err(FieldFault::Unsupported(
            format!("`{other}` is not supported; executors use their own tools").into(),
        )),
        given => ROLES.into_iter().find(|role| *role == given).ok_or_else(|| {
            format!("must be one of {}, not `{}`", ROLES.join(", "), short(given)).into()
        }),
    }
}

fn part_kind(value: &Value) -> Result<&'static str, FieldFault> {
    match text_of(value)? {
        "text" => Ok("text"),
        "refusal" => Ok("refusal"),
        other => Err(FieldFault::Unsupported(
            format!("`{}` is not supported; send text", short(other)).into(),
        )),
    }
}

fn no_tools(value: &Value) -> Result<(), FieldFault> {
    match value.as_array() {
        Some(tools) if tools.is_empty() => Ok(()),
        Some(_) => Err(FieldFault::Unsupported(
            "is not supported, because executors use their own tools; leave it out".into(),
        )),
        None => Err(format!("must be a list, not {}", kind(value)).into()),
    }
}

fn unavailable(_: &Value) -> Result<(), FieldFault> {
    Err(FieldFault::Unsupported("is not supported; leave it out".into()))
}

#[cfg(test)]
mod tests {
    use jurat_core::code::ProblemCode;

    use super::*;

    const AT: FieldPath<'static> = FieldPath::body(ProblemCode::ValidationError);

    fn read(messages: &Value) -> Result<Conversation, Problem> {
        let mut faults = RequestFaults::default();
        let at = AT.member("messages");
        let read = ChatMessages::read(messages, &at, &mut faults);
        match read {
            Some(read) if faults.is_empty() => Conversation::checked(read, &at),
            Some(_) | None => Err(faults.into_first(ProblemCode::ValidationError)),
        }
    }

    #[test]
    fn a_conversation_becomes_one_objective() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        for (messages, expected) in [
            (json!([user(" 2 + 2? ")]), "2 + 2?"),
            (
                json!([{ "role": "system", "content": "Be brief." }, user("2 + 2?")]),
                "Be brief.\n\n2 + 2?",
            ),
            (
                json!([
                    { "role": "developer", "content": [{ "type": "text", "text": "Be brief." }] },
                    user("2 + 2?"),
                    { "role": "assistant", "content": "4" },
                    user("and 3?"),
                ]),
                "Be brief.\n\nUser: 2 + 2?\n\nAssistant: 4\n\nUser: and 3?",
            ),
            (
                json!([{ "role": "user", "content": [
                    { "type": "text", "text": "a" }, { "type": "text", "text": "b" },
                ] }]),
                "a\nb",
            ),
            (
                json!([user("a"), { "role": "assistant", "content": null, "refusal": "No." }]),
                "User: a\n\nAssistant: No.",
            ),
        ] {
            assert_eq!(read(&messages).unwrap().objective(), expected, "{messages}");
        }
    }

    #[test]
    fn executors_get_each_message_as_text() {
        let given = json!([{ "role": "user", "content": [{ "type": "text", "text": "a" }] }]);
        let expected = json!([{ "role": "user", "content": "a" }]);
        assert_eq!(read(&given).unwrap().messages(), expected);
    }

    #[test]
    fn what_is_not_text_is_refused_by_name() {
        let image =
            json!([{ "type": "text", "text": "a" }, { "type": "image_url", "image_url": {} }]);
        for (messages, field, code) in [
            (json!([]), "messages", ProblemCode::ValidationError),
            (json!([{ "role": "user", "content": " " }]), "messages", ProblemCode::ValidationError),
            (json!([{ "role": "user" }]), "messages.0.content", ProblemCode::ValidationError),
            (json!([{ "content": "a" }]), "messages.0.role", ProblemCode::ValidationError),
            (
                json!([{ "role": "robot", "content": "a" }]),
                "messages.0.role",
                ProblemCode::ValidationError,
            ),
            (
                json!([{ "role": "tool", "content": "a" }]),
                "messages.0.role",
                ProblemCode::NotSupported,
            ),
            (
                json!([{ "role": "user", "content": 1 }]),
                "messages.0.content",
                ProblemCode::ValidationError,
            ),
            (
                json!([{ "role": "user", "content": image }]),
                "messages.0.content.1.type",
                ProblemCode::NotSupported,
            ),
            (
                json!([{ "role": "user", "content": [{ "type": "text" }] }]),
                "messages.0.content.0.text",
                ProblemCode::ValidationError,
            ),
            (
                json!([{ "role": "assistant", "content": "a", "tool_calls": [{}] }]),
                "messages.0.tool_calls",
                ProblemCode::NotSupported,
            ),
            (
                json!([{ "role": "assistant", "content": "a", "audio": {} }]),
                "messages.0.audio",
                ProblemCode::NotSupported,
            ),
        ] {
            let problem = read(&messages).unwrap_err();
            assert_eq!((problem.field.as_deref(), problem.code), (Some(field), code), "{messages}");
        }
    }
}

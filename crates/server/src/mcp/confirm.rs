//! Asks a person for a yes before a tool destroys something, through clients that can ask.
//!
//! The answer is no proof: a client that cannot ask, or does not say that it can, gets what its key
//! allows. So the question needs no state here, and the repeated call is checked like the first.

use std::collections::BTreeMap;

use jurat_core::code::ProblemCode;
use jurat_wire::problem::Problem;
use rmcp::{
    RoleServer,
    model::{
        BooleanSchema, CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult,
        ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult, JsonObject,
        PrimitiveSchemaDefinition, ProtocolVersion,
    },
    service::RequestContext,
};
use serde_json::Value;

use crate::operation::{Argument, Tool};

/// The name of the question, and of its only field.
const CONFIRM: &str = "confirm";
/// Maximum length of a name in the question.
const LONGEST: usize = 120;

/// Whether a tool may go on.
pub(super) enum Consent {
    Given,
    Needed(InputRequiredResult),
    Refused(Problem),
}

/// The consent to a call. Older revisions have no stateless way to ask, so their clients rely on the
/// annotations of the tool.
pub(super) fn consent(
    tool: &Tool,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Consent {
    if !tool.is_confirmed || !can_ask(context) {
        return Consent::Given;
    }
    let answer = request.input_responses.as_ref().and_then(|answers| answers.get(CONFIRM));
    let answer: Option<ElicitResult> =
        answer.and_then(|answer| serde_json::from_value(answer.clone()).ok());
    match answer {
        None => Consent::Needed(question(tool, request.arguments.as_ref())),
        Some(answer) if is_yes(&answer) => Consent::Given,
        Some(_) => Consent::Refused(Problem::new(
            ProblemCode::Conflict,
            "the person who was asked did not confirm it, so nothing was changed",
        )),
    }
}

fn is_yes(answer: &ElicitResult) -> bool {
    let said = answer.content.as_ref().and_then(|content| content.get(CONFIRM));
    answer.action == ElicitationAction::Accept && said.and_then(Value::as_bool) == Some(true)
}

fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let is_new = context.protocol_version().is_some_and(|it| ProtocolVersion::V_2026_07_28 <= it);
    let asks = context.client_capabilities().and_then(|it| it.elicitation);
    // A client that names no mode has forms.
    is_new && asks.is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

fn question(tool: &Tool, arguments: Option<&JsonObject>) -> InputRequiredResult {
    let names = tool.arguments.iter().flat_map(|argument| match argument {
        Argument::Path { names, .. } => names.clone(),
        Argument::MaybePath { name, .. } => vec![*name],
        Argument::PathVersion(_) => vec!["version"],
        Argument::Query { .. } | Argument::Wait { .. } | Argument::OwnAccount => Vec::new(),
    });
    let what = names.filter_map(|name| {
        let value = arguments.and_then(|it| it.get(name))?;
        Some(format!("{name} {}", short(value)))
    });
    let what: Vec<String> = what.collect();
    let message = format!("{}: {}. {} Do you want that?", tool.title, what.join(", "), tool.text);
    let field = BooleanSchema::new().title("Yes, do it").with_default(false);
    let fields = [(CONFIRM.to_owned(), PrimitiveSchemaDefinition::Boolean(field))];
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema: ElicitationSchema::new(BTreeMap::from(fields))
            .with_required(vec![CONFIRM.to_owned()]),
    };
    let request = InputRequest::Elicitation(ElicitRequest::new(params));
    InputRequiredResult::from_input_requests(BTreeMap::from([(CONFIRM.to_owned(), request)]))
}

/// A value as JSON, which no line break of a name can escape.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

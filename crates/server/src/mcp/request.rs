//! Makes an operation's request from a tool's arguments.

use std::fmt::Write as _;

use axum::http::{Method, Uri};
use jurat_core::{account::caller::Caller, code::ProblemCode};
use jurat_wire::problem::Problem;
use rmcp::model::JsonObject;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::watch::LONGEST_CALL_S;
use crate::{
    operation::{Argument, Operation, Tool, ToolBody},
    request::{page::wrong, prefer::LONGEST_WAIT},
};

/// Maximum length of an unknown name that is compared with the known ones.
const LONGEST: usize = 64;

/// The request that a tool makes.
#[derive(Debug)]
pub(crate) struct ToolRequest {
    /// The path parameters, in order.
    pub(crate) path: Vec<String>,
    query: Vec<(&'static str, String)>,
    pub(crate) body: Option<Value>,
}

impl ToolRequest {
    pub(crate) fn read(
        operation: &Operation,
        tool: &Tool,
        caller: &Caller,
        mut arguments: JsonObject,
    ) -> Result<Self, Problem> {
        let (mut path, mut query) = (Vec::new(), Vec::new());
        for argument in &tool.arguments {
            match argument {
                Argument::Path { names, .. } => {
                    if tool.is_for_peers {
                        numbers_as_text(&mut arguments, names);
                    }
                    path.push(name_in(&mut arguments, names)?);
                }
                Argument::MaybePath { name, .. } => {
                    path.extend(maybe_name(&mut arguments, name)?);
                }
                Argument::PathVersion(_) => path.push(version(&mut arguments)?),
                Argument::Query { argument, parameter, is_required } => {
                    let values = match arguments.remove(*argument) {
                        Some(value) => texts(operation, (argument, parameter), value)?,
                        None => Vec::new(),
                    };
                    if *is_required && values.is_empty() {
                        return Err(wrong(argument, "is required"));
                    }
                    query.extend(values.into_iter().map(|value| (*parameter, value)));
                }
                Argument::Wait { default_s } => {
                    let seconds = match arguments.remove("wait") {
                        None | Some(Value::Null) => *default_s,
                        Some(value) => Some(wait_s(&value)?),
                    };
                    query.extend(seconds.map(|seconds| ("wait", seconds.to_string())));
                }
                Argument::OwnAccount => query.push(("account", caller.account().to_string())),
            }
        }
        let body = body(operation, tool, &mut arguments)?;
        match arguments.keys().find(|name| !name.starts_with("x_")) {
            Some(name) if !tool.ignores_unknown => {
                let meant = nearest(tool, name);
                let meant = meant.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
                let detail = format!("`{name}` is not a known field{meant}");
                Err(Problem::new(ProblemCode::ValidationError, detail).at(name.clone()))
            }
            _ => Ok(Self { path, query, body }),
        }
    }

    /// The method and the URI of the request.
    pub(super) fn target(&self, operation: &Operation) -> Result<(Method, Uri), Problem> {
        let mut names = self.path.iter();
        let mut target = String::new();
        for segment in operation.path().split('/').skip(1) {
            if segment.starts_with('{') {
                // The last parameter of some tools may be left out.
                let Some(name) = names.next() else { break };
                target.push('/');
                encode(&mut target, name);
            } else {
                target.push('/');
                target.push_str(segment);
            }
        }
        if !self.query.is_empty() {
            let query = Serializer::new(String::new()).extend_pairs(&self.query).finish();
            target.push('?');
            target.push_str(&query);
        }
        let unusable = || Problem::new(ProblemCode::ValidationError, "the arguments are too long");
        let method = Method::from_bytes(operation.method.as_bytes()).map_err(|_| unusable())?;
        Ok((method, target.parse().map_err(|_| unusable())?))
    }
}

/// The known argument whose name is most similar to this one.
fn nearest(tool: &Tool, name: &str) -> Option<&'static str> {
    let known = tool.arguments.iter().flat_map(|argument| match argument {
        Argument::Path { names, .. } => names.clone(),
        Argument::MaybePath { name, .. } => vec![*name],
        Argument::PathVersion(_) => vec!["version"],
        Argument::Query { argument, .. } => vec![*argument],
        Argument::Wait { .. } => vec!["wait"],
        Argument::OwnAccount => Vec::new(),
    });
    if LONGEST < name.len() {
        return None;
    }
    let near = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let near = near.filter(|(distance, known)| *distance <= known.len().div_ceil(4));
    near.min().map(|(_, known)| known)
}

/// The value of an argument under one of its names. Different values under two names are refused.
fn name_in(arguments: &mut JsonObject, names: &[&str]) -> Result<String, Problem> {
    let mut found: Option<String> = None;
    for name in names {
        let text = match arguments.remove(*name) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => text,
            Some(_) => return Err(wrong(name, "must be a string")),
        };
        if text.trim().is_empty() {
            return Err(wrong(name, "must not be empty"));
        }
        match &found {
            Some(other) if *other != text => {
                let first = names.first().copied().unwrap_or_default();
                return Err(wrong(name, &format!("contradicts `{first}`; leave one out")));
            }
            _ => found = Some(text),
        }
    }
    found.ok_or_else(|| match names {
        [one, other] => wrong(one, &format!("is required, or `{other}` instead")),
        _ => wrong(names.first().copied().unwrap_or_default(), "is required"),
    })
}

/// The value of an argument of clients of another system, who may leave it out.
fn maybe_name(arguments: &mut JsonObject, name: &'static str) -> Result<Option<String>, Problem> {
    numbers_as_text(arguments, &[name]);
    match arguments.get(name) {
        None | Some(Value::Null) => {
            arguments.remove(name);
            Ok(None)
        }
        Some(_) => name_in(arguments, &[name]).map(Some),
    }
}

/// How long to wait. A longer wait is cut, because clients give up on a call that takes a minute.
fn wait_s(value: &Value) -> Result<u64, Problem> {
    let seconds = value.as_u64().filter(|seconds| *seconds <= LONGEST_WAIT.as_secs());
    let longest = LONGEST_WAIT.as_secs();
    let reason = || format!("must be a whole number of seconds from 0 to {longest}");
    seconds.map(|it| it.min(LONGEST_CALL_S)).ok_or_else(|| wrong("wait", &reason()))
}

/// Clients of another system send ids as numbers.
fn numbers_as_text(arguments: &mut JsonObject, names: &[&str]) {
    for name in names {
        if let Some(value) = arguments.get_mut(*name)
            && value.is_number()
        {
            *value = json!(value.to_string());
        }
    }
}

/// A version number as a path segment.
fn version(arguments: &mut JsonObject) -> Result<String, Problem> {
    match arguments.remove("version") {
        None | Some(Value::Null) => Err(wrong("version", "is required")),
        Some(Value::Number(number)) if number.as_u64().is_some_and(is_version) => {
            Ok(number.to_string())
        }
        Some(_) => Err(wrong("version", "must be a whole number, 1 or more")),
    }
}

const fn is_version(number: u64) -> bool {
    0 < number && number <= u32::MAX as u64
}

/// The values of a query parameter. A JSON type other than the described one is refused.
fn texts(
    operation: &Operation,
    (argument, parameter): (&str, &str),
    value: Value,
) -> Result<Vec<String>, Problem> {
    let described = operation.parameters.iter().find(|it| it.name == parameter);
    let kind = json!(described)["schema"]["type"].as_str().unwrap_or("string").to_owned();
    match (kind.as_str(), value) {
        (_, Value::Null) => Ok(Vec::new()),
        ("integer", Value::Number(number)) => Ok(vec![number.to_string()]),
        ("boolean", Value::Bool(flag)) => Ok(vec![flag.to_string()]),
        ("string", Value::String(text)) => Ok(vec![text]),
        ("array", Value::Array(items)) => items
            .into_iter()
            .map(|item| {
                let text = item.as_str().map(str::to_owned);
                text.ok_or_else(|| wrong(argument, "must be a list of strings"))
            })
            .collect(),
        ("integer", _) => Err(wrong(argument, "must be a whole number")),
        ("boolean", _) => Err(wrong(argument, "must be true or false")),
        ("array", _) => Err(wrong(argument, "must be a list of strings")),
        _ => Err(wrong(argument, "must be a string")),
    }
}

/// Takes the body out of the arguments.
fn body(
    operation: &Operation,
    tool: &Tool,
    arguments: &mut JsonObject,
) -> Result<Option<Value>, Problem> {
    if operation.request.is_none() {
        return Ok(None);
    }
    Ok(Some(match tool.body {
        ToolBody::Rest => Value::Object(std::mem::take(arguments)),
        ToolBody::Within(name) => match arguments.remove(name) {
            None | Some(Value::Null) => return Err(wrong(name, "is required")),
            Some(body) => body,
        },
        ToolBody::Only(names) => {
            let known = names.iter().filter_map(|name| arguments.remove_entry(*name));
            Value::Object(known.collect())
        }
    }))
}

/// Writes a text as one path segment, percent-encoded.
fn encode(target: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'@' | b':') {
            target.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(target, "%{byte:02X}");
        }
    }
}

//! Reads `policy_params`, with errors that name the field.

use jurat_limits::quote::plain;
use serde_json::{Map, Value};

/// Why a binding cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    #[error("policy `{policy_id}` is not known")]
    Unknown { policy_id: String },
    #[error("policy `{policy_id}` has version `1`, not `{given}`; set `policy_version` to `1`")]
    Version { policy_id: String, given: String },
    #[error(
        "`policy_hash` of policy `{policy_id}` is `{given}`, but its parameters give `{expected}`; it is the SHA-256 of `policy_id` followed by the canonical JSON of `policy_params`"
    )]
    Hash { policy_id: String, given: String, expected: String },
    #[error("`{field}` {problem}")]
    Params { field: String, problem: String },
}

impl BindError {
    pub(super) fn params(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Params { field: field.into(), problem: problem.into() }
    }
}

/// Requests that references are fetched and checked. The policy ignores it; whoever evaluates the
/// policy fetches the references.
pub(super) const FETCH_EVIDENCE: &str = "fetch_evidence";

/// The parameters as an object with no members other than these.
pub(super) fn members<'a>(
    params: &'a Value,
    known: &[&str],
) -> Result<Option<&'a Map<String, Value>>, BindError> {
    let members = match params {
        Value::Null => return Ok(None),
        Value::Object(members) => members,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(BindError::params("policy_params", "must be an object"));
        }
    };
    let is_known = |name: &str| name == FETCH_EVIDENCE || known.contains(&name);
    if let Some(name) = members.keys().find(|name| !is_known(name)) {
        let name = plain(name, 60);
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(BindError::params(
            format!("policy_params.{name}"),
            format!("is not a parameter of this policy; known are: {known}"),
        ));
    }
    match members.get(FETCH_EVIDENCE) {
        None | Some(Value::Null | Value::Bool(_)) => {}
        Some(Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(BindError::params("policy_params.fetch_evidence", "must be true or false"));
        }
    }
    Ok(Some(members))
}

/// An optional boolean.
pub(super) fn toggle(members: &Map<String, Value>, name: &str) -> Result<Option<bool>, BindError> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(on)) => Ok(Some(*on)),
        Some(_) => Err(BindError::params(format!("policy_params.{name}"), "must be true or false")),
    }
}

/// A list parameter; an absent list is empty.
pub(super) fn list<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    max: usize,
) -> Result<&'a [Value], BindError> {
    let field = || format!("policy_params.{name}");
    match members.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) if items.len() <= max => Ok(items),
        Some(Value::Array(_)) => {
            Err(BindError::params(field(), format!("must have at most {max} entries")))
        }
        Some(_) => Err(BindError::params(field(), "must be a list")),
    }
}

/// Whether a text is a JSON Pointer (RFC 6901).
pub(super) fn is_pointer(text: &str) -> bool {
    let is_rooted = text.is_empty() || text.starts_with('/');
    is_rooted && text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

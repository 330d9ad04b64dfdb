//! The resource `/v1/executors`.

use jurat_core::{
    code::Code,
    executor::{BreakerState, Capabilities, Executor, Probe},
    session::Session,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{fields::Fields, sessions, time};
use crate::problem::Problem;

/// A request to register an executor, and a session of the same name with it.
#[derive(Debug, Clone)]
pub struct AddExecutor {
    pub executor: Executor,
    pub session: Option<Session>,
}

const KNOWN: &[&str] =
    &["name", "url", "token_env", "agent_events_url", "session", "remote", "target_node", "scope"];

pub fn decode_add(body: &Value, now: Timestamp) -> Result<AddExecutor, Problem> {
    let body = Fields::of_body(body, Code::ValidationError)?;
    body.refuse_others(KNOWN)?;
    for name in ["remote", "target_node", "scope"] {
        if body.get(name).is_some_and(|value| value != &Value::Bool(false)) {
            let reason = "is not supported: executors are called directly over HTTP; leave it out and register a URL this server can reach";
            return Err(body.unsupported(name, reason));
        }
    }
    if body.get("agent_events_url").is_some() {
        let reason = "is not supported: no lifecycle callbacks are sent; leave it out";
        return Err(body.unsupported("agent_events_url", reason));
    }
    let name = sessions::name(&body, "name")?;
    let executor = Executor {
        name: name.clone(),
        url: base_url(&body, "url")?.ok_or_else(|| body.wrong("url", "is required"))?,
        token_env: variable(&body, "token_env")?,
        agent_events_url: None,
        created_at: now,
        probe: None,
    };
    let session = match body.get("session") {
        Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) | None => Some(sessions::plain(&name, now)),
        Some(_) => match body.object("session")? {
            Some(fields) => Some(sessions::decode_fields(&fields, Some(&name), now)?),
            None => None,
        },
    };
    Ok(AddExecutor { executor, session })
}

/// An http or https address without query, and without a slash at its end.
fn base_url(body: &Fields<'_>, name: &str) -> Result<Option<String>, Problem> {
    let Some(text) = body.text(name)? else { return Ok(None) };
    let wrong = |reason: &str| Err(body.wrong(name, reason));
    let Ok(url) = url::Url::parse(text) else {
        return wrong("is not a URL; write it like http://127.0.0.1:8787");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return wrong("must start with http:// or https:// and name a host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("must not carry credentials; name a variable with `token_env` instead");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return wrong("must not have a query or a fragment");
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

fn variable(body: &Fields<'_>, name: &str) -> Result<Option<String>, Problem> {
    let Some(text) = body.text(name)? else { return Ok(None) };
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if is_name {
        Ok(Some(text.to_owned()))
    } else {
        Err(body.wrong(name, "must be the name of an environment variable, not a token"))
    }
}

/// An executor with what is known of it now.
pub fn body(executor: &Executor, circuit: BreakerState) -> Value {
    json!({
        "name": executor.name,
        "url": executor.url,
        "token_env": executor.token_env,
        "agent_events_url": executor.agent_events_url,
        "created_at": time::value(executor.created_at),
        "status": status(executor.probe.as_ref(), circuit),
        "circuit": circuit_body(circuit),
        "probe": executor.probe.as_ref().map(probe_body),
    })
}

/// One word: `unchecked`, `up`, `down`, or `resting` while its circuit is open.
fn status(probe: Option<&Probe>, circuit: BreakerState) -> &'static str {
    match (probe, circuit) {
        (_, BreakerState::Open(_)) => "resting",
        (None, _) => "unchecked",
        (Some(probe), _) if probe.is_well() => "up",
        (Some(_), _) => "down",
    }
}

fn circuit_body(circuit: BreakerState) -> Value {
    match circuit {
        BreakerState::Closed => json!({ "state": "closed" }),
        BreakerState::HalfOpen => json!({ "state": "half_open" }),
        BreakerState::Open(until) => json!({ "state": "open", "until": time::value(until) }),
    }
}

/// What a check found: health and capabilities, both reported.
pub fn probe_body(probe: &Probe) -> Value {
    json!({
        "at": time::value(probe.at),
        "ok": probe.is_well(),
        "health": { "ok": probe.health_error.is_none(), "error": probe.health_error },
        "capabilities": match &probe.capabilities {
            Ok(capabilities) => capabilities_body(capabilities),
            Err(error) => json!({ "ok": false, "error": error }),
        },
    })
}

fn capabilities_body(capabilities: &Capabilities) -> Value {
    json!({
        "ok": true,
        "task_types": capabilities.task_types,
        "profiles": capabilities.profiles,
        "provider_family": capabilities.provider_family,
        "model_id": capabilities.model_id,
        "policies": capabilities.policies,
    })
}

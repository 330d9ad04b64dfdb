//! The card of this server: for everybody, and for a caller with a key.

use std::{
    sync::OnceLock,
    time::{Duration, UNIX_EPOCH},
};

use axum::{
    extract::State,
    http::{HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    canonical,
    time::Timestamp,
};
use jurat_engine::{Engine, VerifierListQuery};
use jurat_wire::api::a2a::{
    card::{AgentCard, AgentSkill, CardKey, skills, verifier_skill},
    error::A2aError,
};
use serde_json::{Value, json};

use super::AgentCaller;
use crate::request::{
    base_url::{self, CardBase},
    encode,
};

const FRESH: &str = "public, max-age=300";
/// The most verifiers that a card lists as skills.
const MOST_VERIFIERS: u32 = 50;

/// When this process was first asked for its card: the card depends only on the program and its
/// settings.
static SINCE: OnceLock<String> = OnceLock::new();

/// The card for everybody, with what a client needs to cache it.
pub(crate) async fn public_card(State(engine): State<Engine>, parts: Parts) -> Response {
    let card = written(&engine, &base_url::of_card(&engine, &parts), skills()).to_string();
    let digest = canonical::digest(card.as_bytes());
    let tag = format!("\"{}\"", digest.trim_start_matches("sha256:"));
    let since = SINCE.get_or_init(|| http_date(engine.clock().now()));
    let given = parts.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let is_known = given.is_some_and(|given| {
        given
            .split(',')
            .map(|it| it.trim().trim_start_matches("W/"))
            .any(|it| it == tag || it == "*")
    });
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { encode::ok_text(card) };
    let named: [(HeaderName, &str); 4] = [
        (header::CACHE_CONTROL, FRESH),
        (header::ETAG, &tag),
        (header::LAST_MODIFIED, since),
        // The URLs of the card depend on the host.
        (header::VARY, "host"),
    ];
    for (name, text) in named {
        if let Ok(value) = HeaderValue::from_str(text) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The card for a caller: the skills that its key may use, and its own verifiers.
pub(super) async fn extended(call: &AgentCaller) -> Result<Value, A2aError> {
    let (engine, caller) = (&call.engine, &call.caller);
    let mut listed: Vec<AgentSkill> =
        skills().into_iter().filter(|skill| caller.may(scope(&skill.id))).collect();
    listed.extend(verifiers(engine, caller).await?);
    Ok(written(engine, &call.base, listed))
}

async fn verifiers(engine: &Engine, caller: &Caller) -> Result<Vec<AgentSkill>, A2aError> {
    if !caller.may(Scope::VerifiersRead) || !caller.may(Scope::VerifiersRun) {
        return Ok(Vec::new());
    }
    let query = VerifierListQuery { after: None, limit: MOST_VERIFIERS };
    let found = engine.verifier_list(caller, &query).await;
    let found = found.map_err(|error| encode::engine_problem(&error))?;
    // Descriptions of verifiers that others share are text of others.
    let own = found.iter().filter(|reached| reached.shared.is_none());
    Ok(own.map(|it| verifier_skill(&it.verifier.name, &it.verifier.description)).collect())
}

fn http_date(at: Timestamp) -> String {
    let since = Duration::from_millis(at.millis().unsigned_abs());
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

fn scope(skill: &str) -> Scope {
    if skill == "run-verifier" { Scope::VerifiersRun } else { Scope::RoundsCreate }
}

/// A card, signed if the node may sign for its URLs.
fn written(engine: &Engine, base: &CardBase, skills: Vec<AgentSkill>) -> Value {
    let card = AgentCard::at(&base.url, env!("CARGO_PKG_VERSION"), skills);
    if !base.is_own {
        return json!(card);
    }
    let (id, bytes) = engine.node_key();
    card.signed(&CardKey { id, bytes }, |input| engine.node_signature(input))
}

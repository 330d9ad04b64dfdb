//! Turns the key of a request into a `Caller`. Nothing else makes one.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use jurat_core::{caller::Caller, code::Code, key::ApiKey};
use jurat_engine::Engine;
use jurat_wire::problem::Problem;

use crate::encode;

/// Marks the reply to a caller whose key is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authenticated;

/// Lets a request pass only with a valid key, and tells the handler who asks.
pub(crate) async fn require_key(
    State(engine): State<Engine>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(key) = key(request.headers()) else {
        return encode::problem(&Problem::new(Code::AuthRequired, "the request carries no key"));
    };
    let key_id = ApiKey::parse(key).map(|key| key.id().to_owned());
    match engine.key_owner(key).await {
        Ok(Some(owner)) => {
            #[expect(clippy::disallowed_methods, reason = "this is where callers are made")]
            let caller = Caller::authenticated(owner.account, owner.scopes);
            request.extensions_mut().insert(caller);
            note_key(key_id.as_deref());
            let mut response = next.run(request).await;
            response.extensions_mut().insert(Authenticated);
            response
        }
        Ok(None) => encode::problem(&Problem::new(Code::AuthRequired, "the key is not valid")),
        Err(error) => encode::engine_error(&error),
    }
}

/// Every log line of the request names the key from here on; its identifier is no secret.
fn note_key(id: Option<&str>) {
    tracing::Span::current().record("jurat.key.id", id);
}

/// The key of `Authorization: Bearer`, or of `X-API-Key`, which some clients send.
fn key(headers: &HeaderMap) -> Option<&str> {
    let bearer =
        headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|text| {
            let (scheme, key) = text.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
    bearer.or_else(|| headers.get("x-api-key").and_then(|value| value.to_str().ok()))
}

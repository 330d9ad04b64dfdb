//! Turns the key of a request into a `Caller`. Nothing else makes one.

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::Response,
};
use jurat_core::{caller::Caller, code::Code};
use jurat_engine::Engine;
use jurat_wire::problem::Problem;

use crate::encode;

/// Lets a request pass only with a valid key, and tells the handler who asks.
pub(crate) async fn require_key(
    State(engine): State<Engine>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(key) = key(request.headers()) else {
        return encode::problem(&Problem::new(Code::AuthRequired, "the request carries no key"));
    };
    match engine.key_owner(key).await {
        Ok(Some(owner)) => {
            #[expect(clippy::disallowed_methods, reason = "this is where callers are made")]
            let caller = Caller::authenticated(owner.account, owner.scopes);
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Ok(None) => encode::problem(&Problem::new(Code::AuthRequired, "the key is not valid")),
        Err(error) => encode::engine_error(&error),
    }
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

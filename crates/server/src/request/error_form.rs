//! Writes the errors of some routes in the form of another API, whichever layer they come from.

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    middleware::Next,
    response::Response,
};
use jurat_wire::{api::openai::error::ChatErrorReply, problem::ProblemBody};
use serde_json::{Value, json};

use super::encode;
use crate::{a2a, operation::ErrorForm, router};

/// The header that names the round of a reply.
pub(crate) const ROUND: &str = "x-jurat-round";
const PROBLEM: &[u8] = b"application/problem+json";
/// OpenAI's clients repeat every request that is answered 409 unless this header is `false`.
const SHOULD_RETRY: &str = "x-should-retry";

/// Gives the errors of a request the form of its route.
pub(crate) async fn translate(request: Request, next: Next) -> Response {
    let form = router::error_form(request.uri().path());
    written(next.run(request).await, form).await
}

/// A reply whose problem, if it is one, has the form of its route.
pub(crate) async fn written(response: Response, form: ErrorForm) -> Response {
    let is_problem =
        response.headers().get(CONTENT_TYPE).is_some_and(|it| it.as_bytes() == PROBLEM);
    if form == ErrorForm::Problem || !is_problem {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Our own problem, which is in memory already.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let Some(problem) = ProblemBody::read(&body) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    if let ErrorForm::A2aRpc | ErrorForm::A2aHttp = form {
        return a2a::translated(form, parts, &body);
    }
    let headers = &mut parts.headers;
    headers.remove(CONTENT_LENGTH);
    if form == ErrorForm::Peer {
        return Response::from_parts(parts, Body::from(encode::peer_body(&body).to_string()));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(round) = problem.round_id.as_deref()
        && let Ok(round) = HeaderValue::from_str(round)
    {
        headers.insert(ROUND, round);
    }
    if parts.status == StatusCode::CONFLICT {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    let text = json!(ChatErrorReply::from(problem)).to_string();
    Response::from_parts(parts, Body::from(text))
}

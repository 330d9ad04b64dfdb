//! Sends the request of a tool to the handler of its operation, within this process.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{Method, StatusCode, Uri, header, request::Parts},
    response::Response,
};
use jurat_core::{account::caller::Caller, code::ProblemCode};
use jurat_engine::RequestMemory;
use jurat_wire::problem::Problem;
use serde_json::Value;
use tower::Service as _;

use super::request::ToolRequest;
use crate::{
    operation::Operation,
    request::{auth::VisitorCaller, decode::ReadBody},
};

/// The operations without the layers that require a key: the caller is already known.
#[derive(Debug, Clone)]
pub(crate) struct InProcessRouter(pub(crate) Router);

/// A problem as the API sends it.
pub(super) struct ProblemReply {
    pub(super) code: ProblemCode,
    pub(super) body: Value,
}

impl From<Problem> for ProblemReply {
    fn from(problem: Problem) -> Self {
        Self { code: problem.code, body: problem.body() }
    }
}

/// The reply of an operation to the request of a tool. That request takes over the caller and the
/// memory of `message`, the request that called the tool.
pub(super) async fn send(
    InProcessRouter(router): &InProcessRouter,
    message: &Parts,
    operation: &Operation,
    asked: ToolRequest,
) -> Result<Value, ProblemReply> {
    let (method, uri) = asked.target(operation)?;
    let response = call(router, message, request(method, uri, asked.body)).await;
    match moved_to(&response) {
        // The template has a new name.
        Some(uri) => read(call(router, message, request(Method::GET, uri, None)).await).await,
        None => read(response).await,
    }
}

/// The reply of the operation that reads an address, as the caller of `message`.
pub(super) async fn get(
    InProcessRouter(router): &InProcessRouter,
    message: &Parts,
    uri: Uri,
) -> Result<Value, ProblemReply> {
    read(call(router, message, request(Method::GET, uri, None)).await).await
}

async fn read(response: Response) -> Result<Value, ProblemReply> {
    let status = response.status();
    let code = response.extensions().get::<ProblemCode>().copied();
    if status == StatusCode::NO_CONTENT {
        return Ok(Value::Null);
    }
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
    let Ok(body) = serde_json::from_slice(&bytes) else {
        // A caller who read nothing as a success would think that the work was done.
        tracing::error!(%status, "the reply to a tool is not JSON");
        let detail = "something went wrong inside the server";
        return Err(Problem::new(ProblemCode::Internal, detail).into());
    };
    if status.is_success() {
        Ok(body)
    } else {
        Err(ProblemReply { code: code.unwrap_or(ProblemCode::Internal), body })
    }
}

fn request(method: Method, uri: Uri, body: Option<Value>) -> Request {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    if let Some(body) = body {
        request.extensions_mut().insert(ReadBody(body));
    }
    request
}

async fn call(router: &Router, message: &Parts, mut request: Request) -> Response {
    let (known, extensions) = (&message.extensions, request.extensions_mut());
    if let Some(caller) = known.get::<Caller>() {
        extensions.insert(VisitorCaller::Known(caller.clone()));
        extensions.insert(caller.clone());
    }
    if let Some(memory) = known.get::<Arc<RequestMemory>>() {
        extensions.insert(Arc::clone(memory));
    }
    match router.clone().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

fn moved_to(response: &Response) -> Option<Uri> {
    let location = response.headers().get(header::LOCATION)?;
    let uri = location.to_str().ok()?.parse().ok()?;
    (response.status() == StatusCode::FOUND).then_some(uri)
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    #[tokio::test]
    async fn a_reply_that_is_not_json_is_no_success() {
        for reply in ["data: {}\n\n".into_response(), StatusCode::OK.into_response()] {
            assert_eq!(read(reply).await.err().unwrap().code, ProblemCode::Internal);
        }
        let nothing = StatusCode::NO_CONTENT.into_response();
        assert_eq!(read(nothing).await.ok().unwrap(), Value::Null);
    }
}

//! The JSON-RPC binding.

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Request, State},
    response::{Response, sse::Event},
};
use futures::StreamExt as _;
use jurat_core::account::caller::Caller;
use jurat_engine::{Engine, RequestMemory};
use jurat_wire::api::a2a::{
    error::A2aError,
    rpc::{RpcCall, rpc_call, rpc_error, rpc_result, unknown_method},
};
use serde_json::Value;

use super::{AgentCaller, Answer, Method, MethodReply, check_version};
use crate::request::{base_url, decode, encode, event_stream};

/// Answers one call. An error of the protocol has the status 200, like every response of JSON-RPC.
pub(crate) async fn post(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let base = base_url::of_card(&engine, &parts);
    if let Err(problem) = decode::check_headers(&parts.headers) {
        return encode::problem(&problem);
    }
    let body = match decode::read(body, &parts.extensions).await {
        Ok((_, body)) => body,
        Err(problem) => return encode::problem(&problem),
    };
    let RpcCall { id, method, params } = match rpc_call(body) {
        Ok(call) => call,
        Err(refused) => return failed(&refused.0, &refused.1),
    };
    let memory = parts.extensions.get::<Arc<RequestMemory>>().cloned();
    let call = AgentCaller { engine, caller, base, memory };
    let answer = async {
        check_version(&parts.uri, &parts.headers)?;
        let method = Method::named(&method).ok_or_else(|| unknown_method(&method))?;
        if method.begins_rounds() {
            let admitted = call.engine.admit(&call.caller);
            admitted.map_err(|error| encode::engine_problem(&error))?;
        }
        call.call(method, &params).await
    };
    match Box::pin(answer).await {
        Ok(Answer::One(reply)) => answered(&id, &reply),
        Ok(Answer::Events(events)) => {
            let events = events.map(move |event| match event {
                Ok(update) => Event::default().json_data(rpc_result(&id, &update)),
                Err(error) => Event::default().json_data(rpc_error(&id, &error)),
            });
            event_stream::reply(events)
        }
        Err(error) => failed(&id, &error),
    }
}

pub(super) fn answered(id: &Value, reply: &MethodReply) -> Response {
    encode::ok_as_written(&rpc_result(id, reply))
}

fn failed(id: &Value, error: &A2aError) -> Response {
    let mut response = encode::ok(&rpc_error(id, error));
    // For counting replies.
    response.extensions_mut().insert(error.problem.code);
    response
}

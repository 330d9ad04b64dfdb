//! Puts problems that layers and decoders report into the form of the protocol.

use axum::{
    http::{header, response::Parts},
    response::Response,
};
use jurat_core::code::ProblemCode;
use jurat_wire::{
    api::a2a::{MEDIA_TYPE, error::A2aError, rpc::rpc_error},
    problem::Problem,
};
use serde_json::Value;

use super::http_json;
use crate::{operation::ErrorForm, request::encode};

/// The form of errors at an address of the protocol, known or not.
pub(crate) fn error_form(path: &str) -> Option<ErrorForm> {
    match path.strip_prefix("/a2a")? {
        "" | "/" => Some(ErrorForm::A2aRpc),
        rest if rest.starts_with('/') => Some(ErrorForm::A2aHttp),
        _ => None,
    }
}

/// A problem in the form of a binding, with the headers of its reply.
pub(crate) fn translated(form: ErrorForm, parts: Parts, problem: &Value) -> Response {
    let error = A2aError::from(read(problem));
    let mut translated = if form == ErrorForm::A2aRpc {
        let mut response = encode::ok(&rpc_error(&Value::Null, &error));
        *response.status_mut() = parts.status;
        response
    } else {
        http_json::failed(&error, MEDIA_TYPE)
    };
    // The challenge, the limits and the like stay.
    for (name, value) in &parts.headers {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            translated.headers_mut().append(name, value.clone());
        }
    }
    *translated.extensions_mut() = parts.extensions;
    translated
}

fn read(body: &Value) -> Problem {
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let code = text("code").and_then(|code| code.parse().ok()).unwrap_or(ProblemCode::Internal);
    let mut problem = Problem::new(code, text("detail").unwrap_or_default());
    problem.field = text("field");
    problem.hint = text("hint");
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_protocol_have_its_form() {
        for (path, expected) in [
            ("/a2a", Some(ErrorForm::A2aRpc)),
            ("/a2a/", Some(ErrorForm::A2aRpc)),
            ("/a2a/v1/tasks", Some(ErrorForm::A2aHttp)),
            ("/a2a/nothing", Some(ErrorForm::A2aHttp)),
            ("/a2ab", None),
            ("/v1/rounds", None),
        ] {
            assert_eq!(error_form(path), expected, "{path}");
        }
    }
}

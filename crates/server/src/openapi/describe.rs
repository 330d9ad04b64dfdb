//! Turns a declared operation into its part of the document.

use jurat_core::code::ProblemCode;
use utoipa::openapi::{
    ContentBuilder, Response, ResponseBuilder,
    example::ExampleBuilder,
    extensions::ExtensionsBuilder,
    path::{Operation as Described, OperationBuilder},
    request_body::{RequestBody, RequestBodyBuilder},
    security::SecurityRequirement,
};

use super::problems;
use crate::operation::{
    Address, Operation, ReplyDescription, RequestDescription, RouteAccess, header,
    parameters::{self, PathParameter},
};

/// The security schemes for sending a key.
pub(super) const SCHEMES: [&str; 2] = ["bearer", "api_key"];

/// The description of an operation at one of its addresses.
pub(super) fn describe(operation: &Operation, address: &Address) -> Described {
    let mut described = OperationBuilder::new()
        .operation_id(Some(&*address.id))
        .tag(operation.tag)
        .summary(Some(operation.summary))
        .description(Some(full_text(operation)))
        .parameters(Some(operation.in_path.iter().map(PathParameter::parameter)))
        .parameters(Some(operation.parameters.iter().cloned()))
        .parameter(parameters::request_id());
    if let Some(own) = operation.addresses.first().filter(|own| own.id != address.id) {
        let alias = ExtensionsBuilder::new().add("x-alias-of", &*own.id).build();
        described = described.extensions(Some(alias));
    }
    if let Some(request) = &operation.request {
        described = described.request_body(Some(body(request)));
    }
    if operation.access == RouteAccess::Visitor {
        described = described.security(SecurityRequirement::default());
    }
    if operation.access == RouteAccess::Anyone {
        described = described.securities(Some([]));
    } else {
        let scopes: Vec<&str> = operation.scopes.iter().map(|scope| scope.as_str()).collect();
        for scheme in SCHEMES {
            described = described.security(SecurityRequirement::new(scheme, scopes.clone()));
        }
    }
    let mut problems =
        problems::responses(&codes(operation), &operation.cases, operation.error_form);
    for reply in &operation.replies {
        let status = reply.status;
        let mut response = response(reply);
        // The same status may have another body, or be a problem.
        for (_, problem) in problems.extract_if(.., |(of, _)| *of == status) {
            response.content.extend(problem.content);
            response.headers.extend(problem.headers);
        }
        described = described.response(status.to_string(), response);
    }
    for (status, response) in problems {
        described = described.response(status.to_string(), response);
    }
    described.build()
}

fn full_text(operation: &Operation) -> String {
    let names: Vec<String> =
        operation.scopes.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
    match names.as_slice() {
        [] => operation.text.to_owned(),
        [one] => format!("{}\n\nNeeds the scope {one}.", operation.text),
        _ => format!("{}\n\nNeeds the scopes {}.", operation.text, names.join(" and ")),
    }
}

/// All problem codes of an operation.
fn codes(operation: &Operation) -> Vec<ProblemCode> {
    let mut codes = usual_codes(operation);
    codes.extend(&operation.codes);
    codes
}

/// Problem codes of every operation with the same access, scopes, method and kind of body.
fn usual_codes(operation: &Operation) -> Vec<ProblemCode> {
    let access = operation.access;
    let mut codes = vec![ProblemCode::Internal, ProblemCode::Overloaded];
    if access != RouteAccess::Anyone {
        codes.extend([
            ProblemCode::AuthRequired,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ]);
    }
    if !operation.scopes.is_empty() {
        codes.push(ProblemCode::Forbidden);
    }
    if access != RouteAccess::Anyone && operation.method != "GET" {
        codes.push(ProblemCode::QuotaExceeded);
    }
    if operation.request.is_some() {
        codes.extend([
            ProblemCode::InvalidJson,
            ProblemCode::PayloadTooLarge,
            ProblemCode::RequestTimeout,
            ProblemCode::UnsupportedMediaType,
        ]);
    }
    codes
}

fn body(request: &RequestDescription) -> RequestBody {
    let examples = request
        .examples
        .iter()
        .map(|(name, value)| (*name, ExampleBuilder::new().value(Some(value.clone())).build()));
    let content = ContentBuilder::new()
        .schema(Some(request.schema.clone()))
        .examples_from_iter(examples)
        .build();
    RequestBodyBuilder::new()
        .required(Some(request.required.clone()))
        .content(request.kind, content)
        .build()
}

fn response(reply: &ReplyDescription) -> Response {
    let mut response = ResponseBuilder::new()
        .description(reply.text)
        .header("X-Request-Id", header("The request id, for reports."));
    for (kind, content) in &reply.contents {
        response = response.content(*kind, content.clone());
    }
    for (name, header) in &reply.headers {
        response = response.header(*name, header.clone());
    }
    response.build()
}

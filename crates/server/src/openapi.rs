//! The OpenAPI document, generated from the declared operations.

mod describe;
mod problems;

use std::sync::LazyLock;

use jurat_wire::{
    api::{a2a::error::HttpErrorBody, openai::error::ChatErrorReply},
    problem::ProblemBody,
};
use serde_json::{Map, Value, json};
use utoipa::openapi::{
    Components, ComponentsBuilder, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi,
    OpenApiBuilder, Paths, RefOr, Schema, Server,
    security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme},
    tag::TagBuilder,
};

use self::describe::SCHEMES;
use crate::{
    operation::{self, Operation},
    resources::{TAGS, operations},
};

const ABOUT: &str = "Jurat runs a job on 1, 3 or 5 independent executors, checks every answer under a policy, and returns one answer with agreement, confidence and each replica's answer.\n\nEvery error is `application/problem+json` with a stable `code`, which is in `error.code` on the routes of the OpenAI shape, and in the details of errors of the Agent2Agent protocol. Every list is paginated: send `next_cursor` as `cursor` to get the next page.";

/// The document as text, generated once.
pub fn openapi() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut document = json!(document());
        share_headers(&mut document);
        share_parameters(&mut document);
        share_problems(&mut document);
        format!("{document:#}\n")
    });
    &TEXT
}

/// Describes each response header once, and refers to it from every response.
fn share_headers(document: &mut Value) {
    let mut shared = Map::new();
    let operations = members(document.get_mut("paths")).flat_map(|path| members(Some(path)));
    let responses = operations.flat_map(|operation| members(operation.get_mut("responses")));
    for response in responses {
        let headers = response.get_mut("headers").and_then(Value::as_object_mut);
        for (name, header) in headers.into_iter().flatten() {
            let first = shared.entry(name.clone()).or_insert_with(|| header.clone());
            if first == header {
                *header = json!({ "$ref": format!("#/components/headers/{name}") });
            }
        }
    }
    document["components"]["headers"] = Value::Object(shared);
}

/// Describes common request headers once, and refers to them from every operation.
fn share_parameters(document: &mut Value) {
    const SHARED: [&str; 2] = ["Idempotency-Key", "X-Request-Id"];
    let mut shared = Map::new();
    let operations = members(document.get_mut("paths")).flat_map(|path| members(Some(path)));
    let parameters = operations
        .filter_map(|operation| operation.get_mut("parameters").and_then(Value::as_array_mut));
    for parameter in parameters.flatten() {
        let Some(name) = SHARED.into_iter().find(|name| parameter["name"] == **name) else {
            continue;
        };
        let first = shared.entry(name).or_insert_with(|| parameter.clone());
        if first == parameter {
            *parameter = json!({ "$ref": format!("#/components/parameters/{name}") });
        }
    }
    document["components"]["parameters"] = Value::Object(shared);
}

/// Describes an error response that many operations have once, and refers to it. One that says when
/// its codes occur belongs to its operation.
fn share_problems(document: &mut Value) {
    const KIND: &str = "application/problem+json";
    let mut shared = Map::new();
    let operations = members(document.get_mut("paths")).flat_map(|path| members(Some(path)));
    let responses = operations
        .filter_map(|operation| operation.get_mut("responses").and_then(Value::as_object_mut));
    for (status, response) in responses.flatten() {
        let contents = response["content"].as_object();
        let is_problem = contents.is_some_and(|it| it.len() == 1 && it.contains_key(KIND));
        let codes = response["content"][KIND]["examples"].as_object();
        let Some(codes) = codes.filter(|_| is_problem) else { continue };
        let codes = codes.keys().map(String::as_str);
        let form = match response["content"][KIND]["schema"]["$ref"].as_str() {
            Some(schema) if !schema.ends_with("/Problem") => schema.rsplit('/').next(),
            _ => None,
        };
        let parts: Vec<&str> = form.into_iter().chain(codes).collect();
        let name = format!("{status}-{}", parts.join("-"));
        if response["description"].as_str().is_some_and(|text| text.starts_with("- ")) {
            continue;
        }
        let first = shared.entry(name.clone()).or_insert_with(|| response.clone());
        if first == response {
            *response = json!({ "$ref": format!("#/components/responses/{name}") });
        }
    }
    document["components"]["responses"] = Value::Object(shared);
}

fn members(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

fn document() -> OpenApi {
    let mut paths = Paths::new();
    let mut schemas = Vec::new();
    operation::add::<ProblemBody<'_>>(&mut schemas);
    operation::add::<HttpErrorBody>(&mut schemas);
    operation::add::<ChatErrorReply<'_>>(&mut schemas);
    schemas.push(problems::peer_schema());
    for operation in operations() {
        schemas.extend(operation.schemas.iter().cloned());
        let Some(method) = method(operation) else { continue };
        for address in &operation.addresses {
            let described = describe::describe(operation, address);
            paths.add_path_operation(&*address.path, vec![method.clone()], described);
        }
    }
    let tags = TAGS
        .iter()
        .map(|(name, text)| TagBuilder::new().name(*name).description(Some(*text)).build());
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Jurat")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(ABOUT))
                .license(Some(
                    LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build(),
                ))
                .build(),
        )
        // Addresses are those of the server that serves the document.
        .servers(Some([Server::new("/")]))
        .tags(Some(tags))
        .paths(paths)
        .components(Some(components(schemas)))
        .build()
}

fn components(schemas: Vec<(String, RefOr<Schema>)>) -> Components {
    let mut components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme(SCHEMES[0], bearer())
        .security_scheme(SCHEMES[1], api_key());
    for (name, example) in problems::examples() {
        components = components.example(name, example);
    }
    components.build()
}

fn method(operation: &Operation) -> Option<HttpMethod> {
    Some(match operation.method {
        "GET" => HttpMethod::Get,
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        _ => return None,
    })
}

fn bearer() -> SecurityScheme {
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A key such as `jrt_live_…`; the first start writes one to `admin.key`."))
        .build();
    SecurityScheme::Http(scheme)
}

fn api_key() -> SecurityScheme {
    let value = ApiKeyValue::with_description(
        "X-API-Key",
        "The same key in the header `X-API-Key`, for clients that cannot send `Authorization`.",
    );
    SecurityScheme::ApiKey(ApiKey::Header(value))
}

//! What is said of one operation, and how that becomes its part of the document.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        Content, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Required, Response,
        ResponseBuilder,
        example::ExampleBuilder,
        extensions::ExtensionsBuilder,
        path::{Operation, OperationBuilder, Parameter},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Schema, SchemaFormat, Type},
        security::SecurityRequirement,
    },
};

use super::{parameters, problems};
use crate::resources::{RouteAccess, RouteInfo};

/// The schemes under which a key is sent.
pub(super) const SCHEMES: [&str; 2] = ["bearer", "api_key"];

/// Everything that the document says of an operation beyond its address.
pub(super) struct OperationDescription {
    tag: &'static str,
    summary: &'static str,
    text: &'static str,
    scope: Option<Scope>,
    parameters: Vec<Parameter>,
    request: Option<RequestDescription>,
    replies: Vec<ReplyDescription>,
    codes: Vec<ProblemCode>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

struct RequestDescription {
    kind: &'static str,
    schema: RefOr<Schema>,
    required: Required,
    examples: Vec<(&'static str, Value)>,
}

struct ReplyDescription {
    status: u16,
    text: &'static str,
    contents: Vec<(&'static str, Content)>,
    headers: Vec<(&'static str, Header)>,
}

impl OperationDescription {
    pub(super) fn new(tag: &'static str, summary: &'static str, text: &'static str) -> Self {
        Self {
            tag,
            summary,
            text,
            scope: None,
            parameters: Vec::new(),
            request: None,
            replies: Vec::new(),
            codes: Vec::new(),
            schemas: Vec::new(),
        }
    }

    /// The scope that the key must have.
    pub(super) fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    pub(super) fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// The body it takes, with examples that can be sent as they are.
    pub(super) fn takes<T: ToSchema>(
        mut self,
        examples: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        let examples = examples.into_iter().collect();
        let schema = self.refer::<T>().into();
        let kind = "application/json";
        self.request =
            Some(RequestDescription { kind, schema, required: Required::True, examples });
        self
    }

    /// The form it takes, whose fields its text names.
    pub(super) fn takes_form(mut self) -> Self {
        let fields = ObjectBuilder::new()
            .additional_properties(Some(ObjectBuilder::new().schema_type(Type::String)));
        self.request = Some(RequestDescription {
            kind: "application/x-www-form-urlencoded",
            schema: fields.into(),
            required: Required::True,
            examples: Vec::new(),
        });
        self
    }

    /// The body it takes may be left out.
    pub(super) fn or_nothing(mut self) -> Self {
        if let Some(request) = &mut self.request {
            request.required = Required::False;
        }
        self
    }

    /// A reply without a body.
    pub(super) fn answers_nothing(mut self, status: u16, text: &'static str) -> Self {
        self.replies.push(ReplyDescription {
            status,
            text,
            contents: Vec::new(),
            headers: Vec::new(),
        });
        self
    }

    /// A reply in JSON.
    pub(super) fn answers<T: ToSchema>(
        mut self,
        status: u16,
        text: &'static str,
        example: Value,
    ) -> Self {
        let content =
            ContentBuilder::new().schema(Some(self.refer::<T>())).example(Some(example)).build();
        let contents = vec![("application/json", content)];
        self.replies.push(ReplyDescription { status, text, contents, headers: Vec::new() });
        self
    }

    /// A reply that is no JSON of ours: its content type and an example.
    pub(super) fn answers_as(
        mut self,
        status: u16,
        text: &'static str,
        kinds: &[&'static str],
    ) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build();
        let contents = kinds.iter().map(|kind| (*kind, content.clone())).collect();
        self.replies.push(ReplyDescription { status, text, contents, headers: Vec::new() });
        self
    }

    /// The last reply may come as text of another kind too.
    pub(super) fn or_as(mut self, kind: &'static str, text: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text));
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push((kind, ContentBuilder::new().schema(Some(schema)).build()));
        }
        self
    }

    /// The last reply may come as a stream of events too; each is named with the type of its data.
    pub(super) fn or_streams(
        mut self,
        events: &[(&'static str, EventDescription)],
        example: &str,
    ) -> Self {
        let mut types = serde_json::Map::new();
        for (name, event) in events {
            (event.add)(&mut self.schemas);
            let reference = format!("#/components/schemas/{}", (event.name)());
            types.insert((*name).to_owned(), serde_json::json!({ "$ref": reference }));
        }
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(
            "Server-sent events. `x-events` has the data schema of each; the last one is `final`, `report` or `error`.",
        ));
        let content = ContentBuilder::new()
            .schema(Some(schema))
            .example(Some(Value::String(example.to_owned())))
            .extensions(Some(
                ExtensionsBuilder::new().add("x-events", Value::Object(types)).build(),
            ))
            .build();
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push(("text/event-stream", content));
        }
        self
    }

    /// The last reply may come as lines of JSON too.
    pub(super) fn or_lines(mut self, text: &'static str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push(("application/x-ndjson", content));
        }
        self
    }

    /// A header of the last reply.
    pub(super) fn and_header(mut self, name: &'static str, text: &'static str) -> Self {
        if let Some(reply) = self.replies.last_mut() {
            reply.headers.push((name, header(text)));
        }
        self
    }

    /// A write that takes `Idempotency-Key`, and answers a repeated request as before.
    pub(super) fn idempotent(mut self) -> Self {
        self.parameters.push(parameters::idempotency_key());
        self.codes.extend([ProblemCode::ValidationError, ProblemCode::IdempotencyMismatch]);
        for reply in &mut self.replies {
            reply.headers.push((
                "Idempotent-Replayed",
                header("`true` if this is a stored reply to a repeated request."),
            ));
        }
        self
    }

    /// Codes beyond those that every route of its kind can answer.
    pub(super) fn refuses(mut self, codes: impl IntoIterator<Item = ProblemCode>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// The operation, and the schemas that it refers to.
    pub(super) fn operation(
        mut self,
        route: &RouteInfo,
        id: &str,
    ) -> (Operation, Vec<(String, RefOr<Schema>)>) {
        let mut codes = self.usual_codes(route);
        codes.append(&mut self.codes);
        let mut operation = OperationBuilder::new()
            .operation_id(Some(id))
            .tag(self.tag)
            .summary(Some(self.summary))
            .description(Some(self.full_text()))
            .parameters(Some(parameters::of_path(route.path)))
            .parameters(Some(self.parameters))
            .parameter(parameters::request_id());
        if let Some(request) = self.request {
            operation = operation.request_body(Some(request.body()));
        }
        if route.access == RouteAccess::Visitor {
            operation = operation.security(SecurityRequirement::default());
        }
        if route.access != RouteAccess::Anyone {
            let scopes: Vec<&str> = self.scope.iter().map(|scope| scope.as_str()).collect();
            for scheme in SCHEMES {
                operation = operation.security(SecurityRequirement::new(scheme, scopes.clone()));
            }
        }
        let mut problems = problems::responses(&codes);
        for reply in self.replies {
            let status = reply.status;
            let mut response = reply.response();
            // The same status may come with another body, or as a problem.
            for (_, problem) in problems.extract_if(.., |(of, _)| *of == status) {
                response.content.extend(problem.content);
                response.headers.extend(problem.headers);
            }
            operation = operation.response(status.to_string(), response);
        }
        for (status, response) in problems {
            operation = operation.response(status.to_string(), response);
        }
        (operation.build(), self.schemas)
    }

    fn full_text(&self) -> String {
        match self.scope {
            Some(scope) => format!("{}\n\nNeeds the scope `{}`.", self.text, scope.as_str()),
            None => self.text.to_owned(),
        }
    }

    /// What any route with such a key and such a body can answer.
    fn usual_codes(&self, route: &RouteInfo) -> Vec<ProblemCode> {
        let access = route.access;
        let mut codes = vec![ProblemCode::Internal, ProblemCode::Overloaded];
        if access != RouteAccess::Anyone {
            codes.extend([
                ProblemCode::AuthRequired,
                ProblemCode::RateLimited,
                ProblemCode::StoreUnavailable,
            ]);
        }
        if self.scope.is_some() {
            codes.push(ProblemCode::Forbidden);
        }
        if access != RouteAccess::Anyone && route.method != "GET" {
            codes.push(ProblemCode::QuotaExceeded);
        }
        if self.request.is_some() {
            codes.extend([
                ProblemCode::InvalidJson,
                ProblemCode::PayloadTooLarge,
                ProblemCode::RequestTimeout,
                ProblemCode::UnsupportedMediaType,
            ]);
        }
        codes
    }

    /// Adds a type and what it refers to, and refers to it.
    fn refer<T: ToSchema>(&mut self) -> Ref {
        add::<T>(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }
}

/// The data of an event.
pub(super) struct EventDescription {
    name: fn() -> std::borrow::Cow<'static, str>,
    add: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl EventDescription {
    pub(super) fn of<T: ToSchema>() -> Self {
        Self { name: T::name, add: add::<T> }
    }
}

pub(super) fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

impl RequestDescription {
    fn body(self) -> utoipa::openapi::request_body::RequestBody {
        let examples = self
            .examples
            .into_iter()
            .map(|(name, value)| (name, ExampleBuilder::new().value(Some(value)).build()));
        let content =
            ContentBuilder::new().schema(Some(self.schema)).examples_from_iter(examples).build();
        RequestBodyBuilder::new().required(Some(self.required)).content(self.kind, content).build()
    }
}

impl ReplyDescription {
    fn response(self) -> Response {
        let mut response = ResponseBuilder::new()
            .description(self.text)
            .header("X-Request-Id", header("The request id, for reports."));
        for (kind, content) in self.contents {
            response = response.content(kind, content);
        }
        for (name, header) in self.headers {
            response = response.header(name, header);
        }
        response.build()
    }
}

/// A header that holds text.
pub(super) fn header(text: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(text))
        .build()
}

/// A header that holds a whole number of seconds.
pub(super) fn seconds(text: &str) -> Header {
    let schema = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .format(None::<SchemaFormat>)
        .minimum(Some(0));
    HeaderBuilder::new().schema(Some(schema)).description(Some(text)).build()
}

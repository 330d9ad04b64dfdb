//! The declaration of an operation: its address, texts, types, errors and tools.
//!
//! The router, the OpenAPI document, the list of tools and the HTTP reference are generated from
//! the declarations, so each operation is described only once.

pub(crate) mod parameters;
mod tool;

use std::{borrow::Cow, fmt};

use axum::{
    handler::Handler,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_engine::Engine;
use rmcp::model::JsonObject;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        Content, ContentBuilder, Header, HeaderBuilder, Ref, RefOr, Required,
        extensions::ExtensionsBuilder,
        path::Parameter,
        schema::{ObjectBuilder, Schema, SchemaType, Type},
    },
};

use self::parameters::PathParameter;
pub(crate) use self::tool::{Argument, StandIn, TextAuthor, Tool, ToolBody, ToolCall, ToolFuture};
use crate::mcp::schema;

/// The callers that a route admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Needs no key, and ignores one.
    Anyone,
    /// Needs no key, but a key that is sent identifies the caller.
    Visitor,
    /// Needs a valid key.
    Key,
}

/// The form in which an operation writes its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// `application/problem+json`.
    Problem,
    /// A problem with the text in `error`, for prompt-oriented clients.
    Peer,
    /// The error object of OpenAI's API.
    OpenAi,
    /// A response of the JSON-RPC binding of the Agent2Agent protocol.
    A2aRpc,
    /// An error of its HTTP+JSON binding.
    A2aHttp,
}

/// A row of the route table, for tests and documentation.
#[derive(Debug, Clone, Copy)]
pub struct RouteInfo {
    pub method: &'static str,
    pub path: &'static str,
    pub access: RouteAccess,
    /// The id of the operation in the OpenAPI document.
    pub operation: &'static str,
}

/// An operation of the API, with its complete description.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// Documented addresses: the operation's own first, then its aliases.
    pub(crate) addresses: Vec<Address>,
    /// Undocumented paths of the operation, such as `@handle/slug` as two segments.
    pub(crate) also: Vec<Cow<'static, str>>,
    /// The paths by which the router knows it, if they differ from its own.
    mounted: Option<&'static [&'static str]>,
    pub(crate) handler: MethodRouter<Engine>,
    pub(crate) access: RouteAccess,
    /// Whether callers without a key pay for the request.
    pub(crate) is_paid: bool,
    pub(crate) error_form: ErrorForm,
    /// Whether it begins rounds, which are the first work that an overloaded node refuses.
    pub(crate) begins_rounds: bool,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) text: &'static str,
    /// Required scopes; a key must have all of them.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) in_path: Vec<PathParameter>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) request: Option<RequestDescription>,
    pub(crate) replies: Vec<ReplyDescription>,
    pub(crate) codes: Vec<ProblemCode>,
    /// When it answers with a code, for codes that need an explanation here.
    pub(crate) cases: Vec<(ProblemCode, &'static str)>,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
    pub(crate) tools: Vec<Tool>,
    /// Schema of the body that its tools take.
    pub(crate) input: Option<fn() -> JsonObject>,
    /// Schema of the result that its tools return.
    pub(crate) output: fn() -> JsonObject,
}

/// A path, with the id of the operation there.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) path: Cow<'static, str>,
    pub(crate) id: Cow<'static, str>,
}

pub(crate) struct RequestDescription {
    pub(crate) kind: &'static str,
    pub(crate) schema: RefOr<Schema>,
    pub(crate) required: Required,
    pub(crate) examples: Vec<(&'static str, Value)>,
}

pub(crate) struct ReplyDescription {
    pub(crate) status: u16,
    pub(crate) text: &'static str,
    pub(crate) contents: Vec<(&'static str, Content)>,
    pub(crate) headers: Vec<(&'static str, Header)>,
}

impl fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.method, self.path())
    }
}

const EVENTS: &str = "text/event-stream";

/// The type of content that is no JSON. Readers of the document apply the schema of a stream to the
/// whole text or to each event; where a reply is always a stream, it allows both.
fn raw_type(kind: &str) -> SchemaType {
    if kind == EVENTS { SchemaType::AnyValue } else { SchemaType::Type(Type::String) }
}

impl Operation {
    pub(crate) fn get<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Engine>,
        T: 'static,
    {
        Self::new("GET", path, name, get(handler))
    }

    pub(crate) fn post<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Engine>,
        T: 'static,
    {
        Self::new("POST", path, name, post(handler))
    }

    pub(crate) fn patch<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Engine>,
        T: 'static,
    {
        Self::new("PATCH", path, name, patch(handler))
    }

    pub(crate) fn put<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Engine>,
        T: 'static,
    {
        Self::new("PUT", path, name, put(handler))
    }

    pub(crate) fn delete<H, T>(path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, Engine>,
        T: 'static,
    {
        Self::new("DELETE", path, name, delete(handler))
    }

    fn new(
        method: &'static str,
        path: &'static str,
        name: &'static str,
        handler: MethodRouter<Engine>,
    ) -> Self {
        Self {
            method,
            addresses: vec![Address { path: path.into(), id: name.into() }],
            also: Vec::new(),
            mounted: None,
            handler,
            access: RouteAccess::Key,
            is_paid: false,
            error_form: ErrorForm::Problem,
            begins_rounds: false,
            tag: "",
            summary: "",
            text: "",
            scopes: Vec::new(),
            in_path: Vec::new(),
            parameters: Vec::new(),
            request: None,
            replies: Vec::new(),
            codes: Vec::new(),
            cases: Vec::new(),
            schemas: Vec::new(),
            tools: Vec::new(),
            input: None,
            output: schema::any_object,
        }
    }

    /// The operation's own path, without aliases.
    pub(crate) fn path(&self) -> &str {
        self.addresses.first().map_or("", |address| &address.path)
    }

    /// Every path of the operation, documented or not.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let listed = self.addresses.iter().map(|address| &*address.path);
        listed.chain(self.also.iter().map(|path| &**path))
    }

    /// Every path by which the router knows the operation.
    pub(crate) fn routes(&self) -> Vec<&str> {
        match self.mounted {
            Some(paths) => paths.to_vec(),
            None => self.paths().collect(),
        }
    }

    /// Sets the paths for the router, which cannot tell `{id}:cancel` from `{id}:subscribe`.
    pub(crate) const fn mounted_at(mut self, paths: &'static [&'static str]) -> Self {
        self.mounted = Some(paths);
        self
    }

    /// Also admits callers without a key.
    pub(crate) const fn for_visitors(mut self) -> Self {
        self.access = RouteAccess::Visitor;
        self
    }

    /// Admits callers without a key, who pay for the request or have paid for it.
    pub(crate) const fn for_payers(mut self) -> Self {
        self.is_paid = true;
        self.for_visitors()
    }

    /// Needs no key, and ignores one.
    pub(crate) const fn for_anyone(mut self) -> Self {
        self.access = RouteAccess::Anyone;
        self
    }

    /// Writes errors in the form of another API.
    pub(crate) const fn fails_as(mut self, form: ErrorForm) -> Self {
        self.error_form = form;
        self
    }

    /// Marks an operation that begins rounds, or work that begins them.
    pub(crate) const fn begins_rounds(mut self) -> Self {
        self.begins_rounds = true;
        self
    }

    /// Gives its problems the form of prompt-oriented clients.
    pub(crate) const fn with_peer_problems(mut self) -> Self {
        self.error_form = ErrorForm::Peer;
        self
    }

    /// Adds an undocumented form of the path.
    pub(crate) fn also(mut self, path: &'static str) -> Self {
        self.also.push(path.into());
        self
    }

    /// Adds a documented path with its own operation id.
    pub(crate) fn also_at(mut self, path: &'static str, id: &'static str) -> Self {
        self.addresses.push(Address { path: path.into(), id: id.into() });
        self
    }

    /// Adds aliases of the first address and the undocumented paths: replaces `from` with `to`, and
    /// appends `suffix` to the id.
    pub(crate) fn aliased(mut self, from: &str, to: &str, suffix: &str) -> Self {
        let moved = |path: &str| path.replacen(from, to, 1).into();
        if let Some(Address { path, id }) = self.addresses.first() {
            let alias = Address { path: moved(path), id: format!("{id}{suffix}").into() };
            self.addresses.push(alias);
        }
        self.also.extend(self.also.clone().iter().map(|path| moved(path)));
        self
    }

    /// The group in which documentation lists the operation.
    pub(crate) const fn tag(mut self, tag: &'static str) -> Self {
        self.tag = tag;
        self
    }

    /// The title of the operation.
    pub(crate) const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// The description of the operation, in sentences.
    pub(crate) const fn text(mut self, text: &'static str) -> Self {
        self.text = text;
        self
    }

    /// A scope that the key must have.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        self.scopes.push(scope);
        self
    }

    /// The path parameters, in order.
    pub(crate) fn in_path(mut self, names: impl IntoIterator<Item = PathParameter>) -> Self {
        self.in_path.extend(names);
        self
    }

    /// Query parameters and headers.
    pub(crate) fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// The JSON body, with examples that can be sent unchanged.
    pub(crate) fn takes<T: ToSchema>(
        mut self,
        examples: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        self.request = Some(RequestDescription {
            kind: "application/json",
            schema: self.refer::<T>().into(),
            required: Required::True,
            examples: examples.into_iter().collect(),
        });
        self.input = Some(schema::input::<T>);
        self
    }

    /// The form that it takes; the operation's text describes the fields.
    pub(crate) fn takes_form(mut self) -> Self {
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

    /// Makes the body optional.
    pub(crate) fn or_nothing(mut self) -> Self {
        if let Some(request) = &mut self.request {
            request.required = Required::False;
        }
        self
    }

    /// A reply without a body.
    pub(crate) fn answers_nothing(self, status: u16, text: &'static str) -> Self {
        self.reply(status, text, Vec::new())
    }

    /// A JSON reply. The first one is also the result of a tool.
    pub(crate) fn answers<T: ToSchema>(
        mut self,
        status: u16,
        text: &'static str,
        example: Value,
    ) -> Self {
        if self.replies.is_empty() {
            self.output = schema::output::<T>;
        }
        let content =
            ContentBuilder::new().schema(Some(self.refer::<T>())).example(Some(example)).build();
        self.reply(status, text, vec![("application/json", content)])
    }

    /// A text reply of one of these media types.
    pub(crate) fn answers_as(
        self,
        status: u16,
        text: &'static str,
        kinds: &[&'static str],
    ) -> Self {
        let content = |kind: &&'static str| {
            let schema = ObjectBuilder::new().schema_type(raw_type(kind));
            (*kind, ContentBuilder::new().schema(Some(schema)).build())
        };
        self.reply(status, text, kinds.iter().map(content).collect())
    }

    fn reply(
        mut self,
        status: u16,
        text: &'static str,
        contents: Vec<(&'static str, Content)>,
    ) -> Self {
        self.replies.push(ReplyDescription { status, text, contents, headers: Vec::new() });
        self
    }

    /// Offers the last reply as text of another media type too.
    pub(crate) fn or_as(mut self, kind: &'static str, text: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(raw_type(kind)).description(Some(text));
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push((kind, ContentBuilder::new().schema(Some(schema)).build()));
        }
        self
    }

    /// Offers the last reply as another media type with the same content.
    pub(crate) fn or_typed(mut self, kind: &'static str) -> Self {
        if let Some(reply) = self.replies.last_mut() {
            let same = reply.contents.first().map(|(_, content)| {
                // The example is the same, so it is shown once.
                let mut content = content.clone();
                content.example = None;
                (kind, content)
            });
            reply.contents.extend(same);
        }
        self
    }

    /// Adds a reply that is always an event stream, whose events have no names but `error`.
    pub(crate) fn streams(
        mut self,
        status: u16,
        text: &'static str,
        events: &[(&'static str, EventDescription)],
    ) -> Self {
        let about = "Server-sent events; `x-events` has the data schema of each. A `message` has no name; an `error` has one, and is the last.";
        let schema = ObjectBuilder::new().schema_type(raw_type(EVENTS)).description(Some(about));
        let content = self.with_events(events).schema(Some(schema)).build();
        self.reply(status, text, vec![(EVENTS, content)])
    }

    /// Offers the last reply as an event stream too; `events` lists the names and data types.
    pub(crate) fn or_streams(
        mut self,
        events: &[(&'static str, EventDescription)],
        example: &str,
    ) -> Self {
        let has_names = events.iter().all(|(name, _)| *name != "message");
        let about = if has_names {
            "Server-sent events. `x-events` has the data schema of each; the last one is `final`, `report` or `error`."
        } else {
            "Server-sent events without names; `x-events` has the data schema of a `message` and of an `error`. The last one has the data `[DONE]`, or is an error."
        };
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(about));
        let content = self.with_events(events).schema(Some(schema));
        let content = content.example(Some(Value::String(example.to_owned()))).build();
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push((EVENTS, content));
        }
        self
    }

    fn with_events(&mut self, events: &[(&'static str, EventDescription)]) -> ContentBuilder {
        let mut types = serde_json::Map::new();
        for (name, event) in events {
            (event.add)(&mut self.schemas);
            let reference = format!("#/components/schemas/{}", (event.name)());
            types.insert((*name).to_owned(), serde_json::json!({ "$ref": reference }));
        }
        let extensions = ExtensionsBuilder::new().add("x-events", Value::Object(types)).build();
        ContentBuilder::new().extensions(Some(extensions))
    }

    /// A header of the last reply.
    pub(crate) fn and_header(mut self, name: &'static str, text: &'static str) -> Self {
        if let Some(reply) = self.replies.last_mut() {
            reply.headers.push((name, header(text)));
        }
        self
    }

    /// Marks a write that takes `Idempotency-Key` and answers a repeated request with the stored
    /// reply. Call it after the replies are declared, because it adds a header to each.
    pub(crate) fn idempotent(mut self) -> Self {
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

    /// Problem codes beyond those of every route of its kind.
    pub(crate) fn refuses(mut self, codes: impl IntoIterator<Item = ProblemCode>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// A problem code, and the cases in which this operation answers with it.
    pub(crate) fn refuses_when(mut self, code: ProblemCode, when: &'static str) -> Self {
        self.codes.push(code);
        self.cases.push((code, when));
        self
    }

    /// A tool through which models call the operation.
    pub(crate) fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds the schemas of a type and of the types that it refers to, and returns a reference.
    fn refer<T: ToSchema>(&mut self) -> Ref {
        add::<T>(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }
}

/// The data type of an event.
pub(crate) struct EventDescription {
    name: fn() -> Cow<'static, str>,
    add: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl EventDescription {
    pub(crate) fn of<T: ToSchema>() -> Self {
        Self { name: T::name, add: add::<T> }
    }
}

/// Adds the schema of a type and of the types that it refers to.
pub(crate) fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    schemas.push((T::name().into_owned(), T::schema()));
    T::schemas(schemas);
}

/// A header that holds text.
pub(crate) fn header(text: &str) -> Header {
    HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(text))
        .build()
}

/// Parses an example from a file. Invalid JSON becomes null, which a test detects.
pub(crate) fn example(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

//! The declaration of an operation: its address, its words, its types, its errors and its tools.
//!
//! The router, the OpenAPI document, the list of tools and the HTTP reference are made from the
//! declarations, so an operation is written down once.

pub(crate) mod parameters;
mod tool;

use std::{borrow::Cow, fmt};

use axum::{
    handler::Handler,
    routing::{MethodRouter, delete, get, patch, post},
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
        schema::{ObjectBuilder, Schema, Type},
    },
};

use self::parameters::PathParameter;
pub(crate) use self::tool::{Argument, TextAuthor, Tool, ToolBody, ToolCall, ToolFuture};
use crate::mcp::schema;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    Anyone,
    /// Without a key too; with one, its caller is known.
    Visitor,
    Key,
}

/// A line of the route table, for tests and documents.
#[derive(Debug, Clone, Copy)]
pub struct RouteInfo {
    pub method: &'static str,
    pub path: &'static str,
    pub access: RouteAccess,
    /// The id of the operation in the OpenAPI document.
    pub operation: &'static str,
}

/// An operation of the API, with everything that is known of it.
pub(crate) struct Operation {
    pub(crate) method: &'static str,
    /// The addresses that documents list: the first is its own, the others are aliases.
    pub(crate) addresses: Vec<Address>,
    /// Paths that answer as well and that documents leave out, such as `@handle/slug` as two
    /// segments.
    pub(crate) also: Vec<Cow<'static, str>>,
    pub(crate) handler: MethodRouter<Engine>,
    pub(crate) access: RouteAccess,
    /// Refused first if the node has too much to do; all else never is.
    pub(crate) begins_rounds: bool,
    pub(crate) tag: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) text: &'static str,
    /// All of them are needed.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) in_path: Vec<PathParameter>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) request: Option<RequestDescription>,
    pub(crate) replies: Vec<ReplyDescription>,
    pub(crate) codes: Vec<ProblemCode>,
    pub(crate) schemas: Vec<(String, RefOr<Schema>)>,
    pub(crate) tools: Vec<Tool>,
    /// What a tool for it takes as a body, and what it returns.
    pub(crate) input: Option<fn() -> JsonObject>,
    pub(crate) output: fn() -> JsonObject,
}

/// A path, and the id of the operation at it.
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
            handler,
            access: RouteAccess::Key,
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
            schemas: Vec::new(),
            tools: Vec::new(),
            input: None,
            output: schema::any_object,
        }
    }

    /// Its own path, without those of its aliases.
    pub(crate) fn path(&self) -> &str {
        self.addresses.first().map_or("", |address| &address.path)
    }

    /// Every path at which it answers.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        let listed = self.addresses.iter().map(|address| &*address.path);
        listed.chain(self.also.iter().map(|path| &**path))
    }

    /// Takes a caller without a key too.
    pub(crate) const fn for_visitors(mut self) -> Self {
        self.access = RouteAccess::Visitor;
        self
    }

    /// Needs no key, and does not look for one.
    pub(crate) const fn for_anyone(mut self) -> Self {
        self.access = RouteAccess::Anyone;
        self
    }

    /// Begins rounds itself, or work that does.
    pub(crate) const fn begins_rounds(mut self) -> Self {
        self.begins_rounds = true;
        self
    }

    /// Answers at a second form of its path, which documents leave out.
    pub(crate) fn also(mut self, path: &'static str) -> Self {
        self.also.push(path.into());
        self
    }

    /// Answers at another path under an id of its own.
    pub(crate) fn also_at(mut self, path: &'static str, id: &'static str) -> Self {
        self.addresses.push(Address { path: path.into(), id: id.into() });
        self
    }

    /// Answers under another beginning of all its paths so far, with `suffix` at its id.
    pub(crate) fn aliased(mut self, from: &str, to: &str, suffix: &str) -> Self {
        let moved = |path: &str| path.replacen(from, to, 1).into();
        if let Some(Address { path, id }) = self.addresses.first() {
            let alias = Address { path: moved(path), id: format!("{id}{suffix}").into() };
            self.addresses.push(alias);
        }
        self.also.extend(self.also.clone().iter().map(|path| moved(path)));
        self
    }

    /// The family of operations that documents list it with.
    pub(crate) const fn tag(mut self, tag: &'static str) -> Self {
        self.tag = tag;
        self
    }

    /// What it does, as a title.
    pub(crate) const fn summary(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// What it does, in sentences.
    pub(crate) const fn text(mut self, text: &'static str) -> Self {
        self.text = text;
        self
    }

    /// A scope that the key must have.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        self.scopes.push(scope);
        self
    }

    /// The parameters of its path, in their order.
    pub(crate) fn in_path(mut self, names: impl IntoIterator<Item = PathParameter>) -> Self {
        self.in_path.extend(names);
        self
    }

    /// Parameters of the query and headers.
    pub(crate) fn with(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// The body it takes, with examples that can be sent as they are.
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

    /// The form it takes, whose fields its text names.
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

    /// The body may be left out.
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

    /// A reply in JSON. The first one is what a tool returns.
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

    /// A reply that is text of one of these kinds.
    pub(crate) fn answers_as(
        self,
        status: u16,
        text: &'static str,
        kinds: &[&'static str],
    ) -> Self {
        let content = ContentBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
            .build();
        self.reply(status, text, kinds.iter().map(|kind| (*kind, content.clone())).collect())
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

    /// The last reply may come as text of another kind too.
    pub(crate) fn or_as(mut self, kind: &'static str, text: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text));
        if let Some(reply) = self.replies.last_mut() {
            reply.contents.push((kind, ContentBuilder::new().schema(Some(schema)).build()));
        }
        self
    }

    /// The last reply may come as a stream of events too; each is named with the type of its data.
    pub(crate) fn or_streams(
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

    /// A header of the last reply.
    pub(crate) fn and_header(mut self, name: &'static str, text: &'static str) -> Self {
        if let Some(reply) = self.replies.last_mut() {
            reply.headers.push((name, header(text)));
        }
        self
    }

    /// A write that takes `Idempotency-Key`, and answers a repeated request as before. It comes
    /// after the replies.
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

    /// Codes beyond those that every route of its kind can answer.
    pub(crate) fn refuses(mut self, codes: impl IntoIterator<Item = ProblemCode>) -> Self {
        self.codes.extend(codes);
        self
    }

    /// A tool by which models call it.
    pub(crate) fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a type and the types that it refers to, and refers to it.
    fn refer<T: ToSchema>(&mut self) -> Ref {
        add::<T>(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }
}

/// The data of an event.
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

/// An example that is kept in a file. A test finds one that is not JSON, because it is null.
pub(crate) fn example(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

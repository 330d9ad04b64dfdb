//! The tools of an operation: what models are told of it, and which arguments become which part of a
//! request.

use futures::future::BoxFuture;
use jurat_core::account::caller::{Caller, Scope};
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::Value;
use utoipa::ToSchema;

use super::Operation;
use crate::mcp::{ProgressReporter, ToolRequest, render, schema};

/// What a tool returns in the end.
pub(crate) type ToolFuture<'a> = BoxFuture<'a, Result<Value, Problem>>;

/// Runs a tool that reports its progress.
pub(crate) type ToolRunner = for<'a> fn(ToolCall<'a>) -> ToolFuture<'a>;

/// Makes the result of a tool from its arguments and the reply of its operation.
pub(crate) type ToolReply = fn(&Value, Value) -> Result<Value, Problem>;

/// One call of a tool: who calls, with which request, and who hears of its progress.
pub(crate) struct ToolCall<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) caller: &'a Caller,
    pub(crate) request: ToolRequest,
    pub(crate) progress: ProgressReporter,
    /// Cancelled when the caller is gone or wants no answer any more.
    pub(crate) gone: tokio_util::sync::CancellationToken,
}

/// A tool, as its operation declares it.
pub(crate) struct Tool {
    /// Clients know some tools by two names.
    pub(crate) names: Vec<&'static str>,
    pub(crate) title: &'static str,
    /// One or two sentences for a model.
    pub(crate) text: &'static str,
    pub(crate) effect: ToolEffect,
    /// The scopes that a key needs to see it, if they are not those of the operation.
    scopes: Option<&'static [Scope]>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) body: ToolBody,
    input: Option<fn() -> JsonObject>,
    output: Option<fn() -> JsonObject>,
    /// Whether arguments that it does not know are ignored, as by the routes of the registry.
    pub(crate) ignores_unknown: bool,
    /// The result in a sentence, in words of ours only.
    pub(crate) summary: fn(&Value) -> String,
    /// Who wrote the text that is in the result.
    pub(crate) author: TextAuthor,
    pub(crate) reply: Option<ToolReply>,
    pub(crate) run: Option<ToolRunner>,
}

/// An argument that is not part of the body.
pub(crate) enum Argument {
    /// The next parameter of the path.
    Path {
        /// One of these names it; the first is the one that a problem names.
        names: Vec<&'static str>,
        text: &'static str,
        pattern: Option<&'static str>,
    },
    /// The next parameter of the path, which is the number of a version.
    PathVersion(&'static str),
    /// A parameter of the query.
    Query { argument: &'static str, parameter: &'static str, is_required: bool },
    /// The parameter `account` of the query, which is always the account of the caller.
    OwnAccount,
}

/// Which arguments are the body of the request, if its operation takes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolBody {
    /// All that are neither in the path nor in the query.
    Rest,
    /// This one.
    Within(&'static str),
    /// Only those with these names.
    Only(&'static [&'static str]),
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// Has others do work, and keeps a record of it.
    Asks,
    Reads,
    /// Adds something, and changes nothing that is there.
    Adds,
    /// Changes something, and can change it back.
    Changes,
    /// Ends something for ever.
    Ends,
}

/// Whose words are in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextAuthor {
    Executors,
    Judges,
    /// The account itself.
    Caller,
    /// The account itself, or somebody who shares something with it.
    Others,
    /// Whoever published something.
    Published,
}

impl Tool {
    /// A tool that has others do work.
    pub(crate) fn asks(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Asks, name, title, text)
    }

    pub(crate) fn reads(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Reads, name, title, text)
    }

    pub(crate) fn adds(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Adds, name, title, text)
    }

    /// A tool whose change can be changed back.
    pub(crate) fn changes(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Changes, name, title, text)
    }

    /// A tool whose change is for ever.
    pub(crate) fn ends(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Ends, name, title, text)
    }

    fn new(
        effect: ToolEffect,
        name: &'static str,
        title: &'static str,
        text: &'static str,
    ) -> Self {
        Self {
            names: vec![name],
            title,
            text,
            effect,
            scopes: None,
            arguments: Vec::new(),
            body: ToolBody::Rest,
            input: None,
            output: None,
            ignores_unknown: false,
            summary: render::done,
            author: TextAuthor::Caller,
            reply: None,
            run: None,
        }
    }

    /// The name by which other clients know it.
    pub(crate) fn also(mut self, name: &'static str) -> Self {
        self.names.push(name);
        self
    }

    /// The scopes that a key needs to see it.
    pub(crate) const fn scopes(mut self, scopes: &'static [Scope]) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// The argument that is the next parameter of the path.
    pub(crate) fn path(self, name: &'static str, text: &'static str) -> Self {
        self.path_like(name, text, r"\S")
    }

    /// The same with the pattern that it must match.
    pub(crate) fn path_like(
        mut self,
        name: &'static str,
        text: &'static str,
        pattern: &'static str,
    ) -> Self {
        self.arguments.push(Argument::Path { names: vec![name], text, pattern: Some(pattern) });
        self
    }

    /// The same under one of two names.
    pub(crate) fn path_either(mut self, names: [&'static str; 2], text: &'static str) -> Self {
        self.arguments.push(Argument::Path { names: names.into(), text, pattern: None });
        self
    }

    /// The argument `version` is the next parameter of the path.
    pub(crate) fn path_version(mut self, text: &'static str) -> Self {
        self.arguments.push(Argument::PathVersion(text));
        self
    }

    /// Arguments that are parameters of the query with the same names.
    pub(crate) fn query(mut self, names: &[&'static str]) -> Self {
        let of = |name: &&'static str| Argument::Query {
            argument: name,
            parameter: name,
            is_required: false,
        };
        self.arguments.extend(names.iter().map(of));
        self
    }

    /// The same, and the tool needs it.
    pub(crate) fn needs(mut self, name: &'static str) -> Self {
        self.arguments.push(Argument::Query { argument: name, parameter: name, is_required: true });
        self
    }

    /// Always asks about the account of the caller.
    pub(crate) fn of_own_account(mut self) -> Self {
        self.arguments.push(Argument::OwnAccount);
        self
    }

    /// The body of the request is in this argument, and the arguments are described by this type.
    pub(crate) fn body_within<T: ToSchema>(mut self, name: &'static str) -> Self {
        self.body = ToolBody::Within(name);
        self.input = Some(schema::input::<T>);
        self
    }

    /// Only these members of the body can be sent.
    pub(crate) const fn body_of(mut self, names: &'static [&'static str]) -> Self {
        self.body = ToolBody::Only(names);
        self
    }

    /// Takes one of several forms of the body.
    pub(crate) fn takes<T: ToSchema>(mut self) -> Self {
        self.input = Some(schema::input::<T>);
        self
    }

    /// Says no more of its result than that it is an object, because the list of tools has to be
    /// short.
    pub(crate) fn answers_any_object(mut self) -> Self {
        self.output = Some(schema::any_object);
        self
    }

    /// Returns another type than its operation.
    pub(crate) const fn answers(mut self, output: fn() -> JsonObject) -> Self {
        self.output = Some(output);
        self
    }

    /// Ignores arguments that it does not know.
    pub(crate) const fn ignores_unknown(mut self) -> Self {
        self.ignores_unknown = true;
        self
    }

    pub(crate) fn summary(mut self, summary: fn(&Value) -> String) -> Self {
        self.summary = summary;
        self
    }

    pub(crate) const fn author(mut self, author: TextAuthor) -> Self {
        self.author = author;
        self
    }

    /// Makes its result from the reply.
    pub(crate) fn reply(mut self, reply: ToolReply) -> Self {
        self.reply = Some(reply);
        self
    }

    /// Reports its progress, and so does not wait for a reply.
    pub(crate) fn run(mut self, run: ToolRunner) -> Self {
        self.run = Some(run);
        self
    }

    /// The scopes that a key needs to see and to call it.
    pub(crate) fn needed_scopes<'a>(&'a self, operation: &'a Operation) -> &'a [Scope] {
        self.scopes.unwrap_or(&operation.scopes)
    }

    /// The schema of the arguments that are the body; `None` if there is no body.
    pub(crate) fn body_schema(&self, operation: &Operation) -> Option<JsonObject> {
        self.input.or(operation.input).map(|input| input())
    }

    pub(crate) fn output_schema(&self, operation: &Operation) -> JsonObject {
        self.output.map_or_else(|| (operation.output)(), |output| output())
    }
}

impl ToolEffect {
    pub(crate) fn hints(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new();
        match self {
            Self::Asks => hints.read_only(false).destructive(false).open_world(true),
            Self::Reads => hints.read_only(true).open_world(false),
            Self::Adds => hints.read_only(false).destructive(false).open_world(false),
            Self::Changes => {
                hints.read_only(false).destructive(false).idempotent(true).open_world(false)
            }
            Self::Ends => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
        }
    }
}

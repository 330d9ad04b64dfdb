//! The tools of an operation: descriptions for models, and the mapping of arguments to a request.

use futures::future::BoxFuture;
use jurat_core::account::caller::{Caller, Scope};
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::Value;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::Operation;
use crate::mcp::{CallSignals, ProgressReporter, ToolRequest, render, schema};

/// The future result of a tool.
pub(crate) type ToolFuture<'a> = BoxFuture<'a, Result<Value, Problem>>;

/// Runs a tool that reports its progress.
pub(crate) type ToolRunner = for<'a> fn(ToolCall<'a>) -> ToolFuture<'a>;

/// Makes the result of a tool from its arguments and the reply of its operation.
pub(crate) type ToolReply = fn(&Value, Value) -> Result<Value, Problem>;

/// One call of a tool: its caller, its request, and the reporter of its progress.
pub(crate) struct ToolCall<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) caller: &'a Caller,
    pub(crate) request: ToolRequest,
    pub(crate) progress: ProgressReporter,
    pub(crate) signals: CallSignals,
    /// When the message arrived.
    pub(crate) arrived: Instant,
}

/// A tool, as its operation declares it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a choice of its own, made by its builder"
)]
pub(crate) struct Tool {
    /// Clients know some tools by two names.
    pub(crate) names: Vec<&'static str>,
    pub(crate) title: &'static str,
    /// One or two sentences for a model.
    pub(crate) text: &'static str,
    pub(crate) effect: ToolEffect,
    /// Scopes that a key needs to see the tool, if they differ from the operation's.
    scopes: Option<&'static [Scope]>,
    /// A scope that is enough for some of the tool's objects.
    pub(crate) or_scope: Option<Scope>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) body: ToolBody,
    input: Option<fn() -> JsonObject>,
    output: Option<fn() -> JsonObject>,
    /// Whether unknown arguments are ignored, as the routes of the registry do.
    pub(crate) ignores_unknown: bool,
    /// Sums up the result in a sentence, without text from others.
    pub(crate) summary: fn(&Value) -> String,
    /// The author of the text in the result.
    pub(crate) author: TextAuthor,
    pub(crate) reply: Option<ToolReply>,
    pub(crate) run: Option<ToolRunner>,
    /// Whether a person is asked before it is called, by clients that can ask.
    pub(crate) is_confirmed: bool,
    /// Whether it has a name of another system, and is listed only if the operator turns that on.
    pub(crate) is_for_peers: bool,
    /// Whether it takes an open round from a call that could not wait for its end.
    pub(crate) follows_rounds: bool,
    /// The tool that clients mean who send other arguments.
    pub(crate) stand_in: Option<StandIn>,
}

/// A tool that answers in place of another, to a call with arguments of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandIn {
    pub(crate) tool: &'static str,
    /// The argument of the other tool that the call lacks.
    pub(crate) lacks: &'static str,
    /// Arguments of its own; the call has one of them.
    pub(crate) has: &'static [&'static str],
}

/// An argument that is not part of the body.
pub(crate) enum Argument {
    /// The next path parameter.
    Path {
        /// Accepted names; a problem about a missing argument names the first.
        names: Vec<&'static str>,
        text: &'static str,
        pattern: Option<&'static str>,
    },
    /// The last path parameter, which may be left out: the request then goes to the path before it.
    MaybePath { name: &'static str, text: &'static str },
    /// The next path parameter, which is a version number.
    PathVersion(&'static str),
    /// A query parameter.
    Query { argument: &'static str, parameter: &'static str, is_required: bool },
    /// The query parameter `wait`, which ends before the patience of common clients does.
    Wait {
        /// In seconds; `None` does not wait unless the caller asks for it.
        default_s: Option<u64>,
    },
    /// The query parameter `account`, which is always the caller's account.
    OwnAccount,
}

/// The arguments that form the body of the request, if the operation takes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolBody {
    /// All arguments that are neither path nor query parameters.
    Rest,
    /// The value of this argument.
    Within(&'static str),
    /// Only the arguments with these names.
    Only(&'static [&'static str]),
}

/// The effect of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolEffect {
    /// Requests work from others, and records it.
    Asks,
    Reads,
    /// Adds something, and changes nothing that exists.
    Adds,
    /// Makes a reversible change.
    Changes,
    /// Ends something permanently.
    Ends,
}

/// The author of the text in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextAuthor {
    Executors,
    Judges,
    /// The account itself.
    Caller,
    /// The account itself, or others who share something with it.
    Others,
    /// The account that published the text.
    Published,
}

impl Tool {
    /// A tool that requests work from others.
    pub(crate) fn asks(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Asks, name, title, text)
    }

    pub(crate) fn reads(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Reads, name, title, text)
    }

    pub(crate) fn adds(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Adds, name, title, text)
    }

    /// A tool whose change is reversible.
    pub(crate) fn changes(name: &'static str, title: &'static str, text: &'static str) -> Self {
        Self::new(ToolEffect::Changes, name, title, text)
    }

    /// A tool whose change is permanent.
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
            or_scope: None,
            arguments: Vec::new(),
            body: ToolBody::Rest,
            input: None,
            output: None,
            ignores_unknown: false,
            summary: render::done,
            author: TextAuthor::Caller,
            reply: None,
            run: None,
            is_confirmed: false,
            is_for_peers: false,
            follows_rounds: false,
            stand_in: None,
        }
    }

    /// A second name, which other clients use.
    pub(crate) fn also(mut self, name: &'static str) -> Self {
        self.names.push(name);
        self
    }

    /// Scopes that a key needs to see the tool.
    pub(crate) const fn scopes(mut self, scopes: &'static [Scope]) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// A scope that is enough for some objects: a key with it sees the tool, too, and the operation
    /// decides about the object.
    pub(crate) const fn or_scope(mut self, scope: Scope) -> Self {
        self.or_scope = Some(scope);
        self
    }

    /// Maps an argument to the next path parameter.
    pub(crate) fn path(self, name: &'static str, text: &'static str) -> Self {
        self.path_like(name, text, r"\S")
    }

    /// Like `path`, with a pattern that the argument must match.
    pub(crate) fn path_like(
        mut self,
        name: &'static str,
        text: &'static str,
        pattern: &'static str,
    ) -> Self {
        self.arguments.push(Argument::Path { names: vec![name], text, pattern: Some(pattern) });
        self
    }

    /// Maps an optional argument to the last path parameter.
    pub(crate) fn maybe_path(mut self, name: &'static str, text: &'static str) -> Self {
        self.arguments.push(Argument::MaybePath { name, text });
        self
    }

    /// Like `path`, with two accepted names.
    pub(crate) fn path_either(mut self, names: [&'static str; 2], text: &'static str) -> Self {
        self.arguments.push(Argument::Path { names: names.into(), text, pattern: None });
        self
    }

    /// Maps the argument `version` to the next path parameter.
    pub(crate) fn path_version(mut self, text: &'static str) -> Self {
        self.arguments.push(Argument::PathVersion(text));
        self
    }

    /// Maps optional arguments to the query parameters with the same names.
    pub(crate) fn query(mut self, names: &[&'static str]) -> Self {
        let of = |name: &&'static str| Argument::Query {
            argument: name,
            parameter: name,
            is_required: false,
        };
        self.arguments.extend(names.iter().map(of));
        self
    }

    /// Like `query`, for one required argument.
    pub(crate) fn needs(mut self, name: &'static str) -> Self {
        self.arguments.push(Argument::Query { argument: name, parameter: name, is_required: true });
        self
    }

    /// Takes an argument `wait`, in seconds; without it, waits for the default.
    pub(crate) fn waits(mut self, default_s: Option<u64>) -> Self {
        self.arguments.push(Argument::Wait { default_s });
        self
    }

    /// Sets the query parameter `account` to the caller's account.
    pub(crate) fn of_own_account(mut self) -> Self {
        self.arguments.push(Argument::OwnAccount);
        self
    }

    /// Takes the body of the request from this argument; `T` describes the arguments.
    pub(crate) fn body_within<T: ToSchema>(mut self, name: &'static str) -> Self {
        self.body = ToolBody::Within(name);
        self.input = Some(schema::input::<T>);
        self
    }

    /// Limits the body to these members.
    pub(crate) const fn body_of(mut self, names: &'static [&'static str]) -> Self {
        self.body = ToolBody::Only(names);
        self
    }

    /// Takes the form of the body that `T` describes, one of several.
    pub(crate) fn takes<T: ToSchema>(mut self) -> Self {
        self.input = Some(schema::input::<T>);
        self
    }

    /// Describes the result only as an object, to keep the list of tools short.
    pub(crate) fn answers_any_object(mut self) -> Self {
        self.output = Some(schema::any_object);
        self
    }

    /// Returns a type other than the operation's.
    pub(crate) const fn answers(mut self, output: fn() -> JsonObject) -> Self {
        self.output = Some(output);
        self
    }

    /// Ignores unknown arguments.
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

    /// Makes the result from the operation's reply.
    pub(crate) fn reply(mut self, reply: ToolReply) -> Self {
        self.reply = Some(reply);
        self
    }

    /// Has a person asked for a yes first, because the tool destroys something.
    pub(crate) const fn confirmed(mut self) -> Self {
        self.is_confirmed = true;
        self
    }

    /// Lists the tool only if the operator turns on the names of another system. Its result is only
    /// the body, which those clients parse.
    pub(crate) const fn for_peers(mut self) -> Self {
        self.is_for_peers = true;
        self
    }

    /// Puts the tool into every set with a tool that returns open rounds.
    pub(crate) const fn follows_rounds(mut self) -> Self {
        self.follows_rounds = true;
        self
    }

    /// Has another tool answer if a call has its arguments.
    pub(crate) const fn or_else(mut self, stand_in: StandIn) -> Self {
        self.stand_in = Some(stand_in);
        self
    }

    /// Runs the tool with a function that reports progress, instead of waiting for a reply.
    pub(crate) fn run(mut self, run: ToolRunner) -> Self {
        self.run = Some(run);
        self
    }

    /// Scopes that a key needs to see and call the tool.
    pub(crate) fn needed_scopes<'a>(&'a self, operation: &'a Operation) -> &'a [Scope] {
        self.scopes.unwrap_or(&operation.scopes)
    }

    /// The schema of the arguments that are the body; `None` if there is no body.
    pub(crate) fn body_schema(&self, operation: &Operation) -> Option<JsonObject> {
        self.input.or(operation.input).map(|input| input())
    }

    pub(crate) fn output_schema(&self, operation: &Operation) -> JsonObject {
        let whole = self.output.map_or_else(|| (operation.output)(), |output| output());
        schema::brief(&whole, self.run.is_some())
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

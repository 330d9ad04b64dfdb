//! The table of tools. A tool is one entry, and does what the operation of the same name does.

mod people;
mod rounds;
mod tasks;

use std::sync::{Arc, LazyLock};

use futures::future::BoxFuture;
use jurat_core::account::caller::{Caller, Scope};
use jurat_wire::{
    api::{
        consensus_reply::{DelegateReply, VerdictReply},
        consensus_request::{DelegateRequest, FactcheckRequest, ValidateRequest},
        kit::page::PageBody,
        mcp::arguments::{
            DeleteVerifierArguments, DeployVerifierArguments, GetVerifierArguments,
            ListVerifiersArguments, RevokeVerifierArguments,
        },
        verifiers::{
            DeletedVerifier, DeployedVerifier, ListedVerifier, RevokedVerifier, VerifierBody,
        },
    },
    problem::Problem,
};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use super::{call::ToolCall, consensus, render, schema, templates, verifiers, workflows};

/// A tool: what clients are told of it, and what it does.
pub(super) struct ToolEntry {
    pub(super) name: &'static str,
    /// What a key must have; a tool beyond that is neither listed for it nor called by it.
    pub(super) scopes: &'static [Scope],
    pub(super) title: &'static str,
    pub(super) text: &'static str,
    pub(super) effect: ToolEffect,
    /// From the types that describe the same body of the API.
    pub(super) input: fn() -> JsonObject,
    pub(super) output: fn() -> JsonObject,
    pub(super) run: for<'a> fn(ToolCall<'a>) -> BoxFuture<'a, Result<Value, Problem>>,
    /// The result in a sentence, in words of ours only.
    pub(super) summary: fn(&Value) -> String,
    /// Who wrote the text that is in the result.
    pub(super) author: TextAuthor,
}

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEffect {
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
pub(super) enum TextAuthor {
    Executors,
    Judges,
    /// The account itself.
    Caller,
    /// The account itself, or somebody who shares something with it.
    Others,
    /// Whoever published something.
    Published,
}

static ALL: &[ToolEntry] = &[
    ToolEntry {
        name: "delegate",
        scopes: &[Scope::RoundsCreate],
        title: "Delegate a job",
        text: "Runs a job on 1, 3 or 5 independent executors, checks every output under a policy, and returns the output they agree on, with agreement, confidence and each replica's answer.",
        effect: ToolEffect::Asks,
        input: schema::input::<DelegateRequest>,
        output: schema::output::<DelegateReply<'static>>,
        run: consensus::delegate,
        summary: render::round,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "validate",
        scopes: &[Scope::RoundsCreate],
        title: "Validate a candidate",
        text: "Has 1, 3 or 5 independent executors judge a claim or an output under a policy, and returns the verdict they agree on: VALID, INVALID, RETRY or NEEDS_SPEC, or null if they do not agree.",
        effect: ToolEffect::Asks,
        input: schema::input::<ValidateRequest>,
        output: schema::output::<VerdictReply<'static>>,
        run: consensus::validate,
        summary: render::round,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "factcheck",
        scopes: &[Scope::RoundsCreate],
        title: "Fact-check a claim",
        text: "Has 1, 3 or 5 independent executors decide whether a claim is true, and returns the verdict they agree on: TRUE, FALSE or UNSURE, or null if they do not agree.",
        effect: ToolEffect::Asks,
        input: schema::input::<FactcheckRequest>,
        output: schema::output::<VerdictReply<'static>>,
        run: consensus::factcheck,
        summary: render::round,
        author: TextAuthor::Executors,
    },
    ToolEntry {
        name: "deploy_verifier",
        scopes: &[Scope::VerifiersWrite],
        title: "Deploy a verifier",
        text: "Stores a version of a verifier: a criterion that a judge decides, with labelled examples. A new name creates a verifier; the next version of a name needs its `version_token` as `expected_version_token`.",
        effect: ToolEffect::Adds,
        input: schema::input::<DeployVerifierArguments>,
        output: schema::output::<DeployedVerifier<'static>>,
        run: verifiers::deploy,
        summary: render::deployed,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "list_verifiers",
        scopes: &[Scope::VerifiersRead],
        title: "List verifiers",
        text: "Lists the active verifiers that the account owns or can use through shared workflows, by name, one page at a time.",
        effect: ToolEffect::Reads,
        input: schema::input::<ListVerifiersArguments>,
        output: schema::output::<PageBody<'static, ListedVerifier<'static>>>,
        run: verifiers::list,
        summary: render::listed,
        author: TextAuthor::Others,
    },
    ToolEntry {
        name: "get_verifier",
        scopes: &[Scope::VerifiersRead],
        title: "Show a verifier",
        text: "Returns a full version of a verifier: criterion, input contract, examples, judge and version token.",
        effect: ToolEffect::Reads,
        input: schema::input::<GetVerifierArguments>,
        output: schema::output::<VerifierBody<'static>>,
        run: verifiers::get,
        summary: render::shown,
        author: TextAuthor::Others,
    },
    ToolEntry {
        name: "run_verifier",
        scopes: &[Scope::VerifiersRun],
        title: "Run a verifier",
        text: "Has the judge of a verifier decide whether inputs pass, and returns `passed` with the reasoning. `passed` is null when no judge could decide, which is neither a pass nor a fail.",
        effect: ToolEffect::Asks,
        input: verifiers::run_input,
        output: verifiers::run_output,
        run: verifiers::run,
        summary: render::judged,
        author: TextAuthor::Judges,
    },
    ToolEntry {
        name: "revoke_verifier",
        scopes: &[Scope::VerifiersWrite],
        title: "Revoke a verifier",
        text: "Permanently deactivates a verifier. Its name cannot be reused, and its runs can still be read.",
        effect: ToolEffect::Ends,
        input: schema::input::<RevokeVerifierArguments>,
        output: schema::output::<RevokedVerifier<'static>>,
        run: verifiers::revoke,
        summary: render::revoked,
        author: TextAuthor::Caller,
    },
    ToolEntry {
        name: "delete_verifier",
        scopes: &[Scope::VerifiersWrite],
        title: "Delete a verifier",
        text: "Permanently deletes a verifier with all its versions and runs. This cannot be undone; prefer `revoke_verifier`.",
        effect: ToolEffect::Ends,
        input: schema::input::<DeleteVerifierArguments>,
        output: schema::output::<DeletedVerifier<'static>>,
        run: verifiers::delete,
        summary: render::deleted,
        author: TextAuthor::Caller,
    },
];

/// Every tool, in the order in which clients see them.
fn all() -> impl Iterator<Item = &'static ToolEntry> {
    let of_tasks = tasks::ALL.iter().chain(tasks::AGENT_RUNS);
    let others = workflows::ENTRIES.iter().chain(templates::ALL).chain(people::ALL);
    ALL.iter().chain(rounds::ALL).chain(of_tasks).chain(others)
}

pub(super) fn find(name: &str) -> Option<&'static ToolEntry> {
    all().find(|entry| entry.name == name)
}

/// What is told of every tool, made once.
static DESCRIBED: LazyLock<Vec<(&ToolEntry, Tool)>> =
    LazyLock::new(|| all().map(|entry| (entry, entry.description())).collect());

/// The tools that a caller may use.
pub(super) fn listed(caller: &Caller) -> Vec<Tool> {
    let may = |entry: &ToolEntry| entry.lacks(caller).is_none();
    DESCRIBED.iter().filter(|(entry, _)| may(entry)).map(|(_, tool)| tool.clone()).collect()
}

/// A tool as clients are told of it.
pub(super) fn described(name: &str) -> Option<Tool> {
    DESCRIBED.iter().find(|(entry, _)| entry.name == name).map(|(_, tool)| tool.clone())
}

impl ToolEntry {
    /// A scope that the tool needs and the caller does not have.
    pub(super) fn lacks(&self, caller: &Caller) -> Option<Scope> {
        self.scopes.iter().copied().find(|scope| !caller.may(*scope))
    }

    fn description(&self) -> Tool {
        Tool::new(self.name, self.text, (self.input)())
            .with_title(self.title)
            .with_raw_output_schema(Arc::new((self.output)()))
            .with_annotations(self.effect.hints())
    }
}

impl ToolEffect {
    /// What a tool for workflows or templates needs.
    pub(super) const fn of_workflows(self) -> &'static [Scope] {
        match self {
            Self::Reads => &[Scope::WorkflowsRead],
            Self::Asks | Self::Adds | Self::Changes | Self::Ends => &[Scope::WorkflowsWrite],
        }
    }

    fn hints(self) -> ToolAnnotations {
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

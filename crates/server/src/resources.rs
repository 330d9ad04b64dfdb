//! The resources of the API. Each file declares its operations next to their handlers.

mod a2a;
mod accounts;
mod agent_events;
mod agent_registration;
mod agent_runs;
mod api_keys;
mod chat;
mod consensus;
mod devices;
mod docs;
mod doctor;
mod executors;
mod follow;
mod health;
mod invitations;
mod knowledge;
mod logins;
mod mcp;
mod me;
mod nodes;
mod packs;
mod peer;
mod prune;
mod rounds;
mod sessions;
mod shares;
mod stream;
mod tasks;
mod teams;
mod templates;
mod verifier_runs;
mod verifier_tests;
mod verifiers;
mod verify;
mod webhooks;
mod workflows;
mod x402;

use std::sync::LazyLock;

pub(crate) use self::{doctor::MOST_ENTRIES, verifier_runs::verifier_run_request};
use crate::operation::Operation;

pub(super) const CONSENSUS: &str = "consensus";
pub(super) const CHAT: &str = "chat";
pub(super) const PAYMENTS: &str = "payments";
pub(super) const ROUNDS: &str = "rounds";
pub(super) const TASKS: &str = "tasks";
pub(super) const AGENT_EVENTS: &str = "agent events";
pub(super) const EXECUTORS: &str = "executors";
pub(super) const SESSIONS: &str = "sessions";
pub(super) const NODES: &str = "nodes";
pub(super) const KEYS: &str = "keys";
pub(super) const WEBHOOKS: &str = "webhooks";
pub(super) const CREDITS: &str = "credits";
pub(super) const VERIFIERS: &str = "verifiers";
pub(super) const AGENT_RUNS: &str = "runs";
pub(super) const PEOPLE: &str = "people";
pub(super) const WORKFLOWS: &str = "workflows";
pub(super) const TEMPLATES: &str = "templates";
pub(super) const WORKFLOW_TOOLS: &str = "instructions";
pub(super) const MODELS: &str = "models";
pub(super) const AGENTS: &str = "agents";
pub(super) const PEER_CLIENTS: &str = "prompts";
pub(super) const OPERATIONS: &str = "operations";

/// The groups of operations, with a description of each.
pub(crate) const TAGS: &[(&str, &str)] = &[
    (CONSENSUS, "Delegate, validate and fact-check with several executors."),
    (CHAT, "Ask for a consensus in the form of OpenAI's API."),
    (PAYMENTS, "Pay for single requests (x402), without a key."),
    (ROUNDS, "Read rounds and their decisions."),
    (TASKS, "Have executors propose and vote on a job under a contract."),
    (EXECUTORS, "Register the services that execute and verify."),
    (AGENT_EVENTS, "Inspect events to executors, and send them events."),
    (SESSIONS, "Define named routes to executors, with a profile, a tier and a price."),
    (NODES, "Trust other nodes, hire their executors, and lend them the executors of this one."),
    (VERIFIERS, "Deploy, run and measure semantic checks that a judge decides."),
    (AGENT_RUNS, "Have several agents work on one job, and combine their values into one result."),
    (WORKFLOWS, "Save runbooks that name their verifiers, and share both."),
    (TEMPLATES, "Publish workflows with their checks, and read, search and fork them."),
    (WORKFLOW_TOOLS, "Get instructions for agents that design and improve workflows."),
    (KEYS, "Create, list, rotate and revoke API keys."),
    (WEBHOOKS, "Send the events of an account to its own addresses."),
    (CREDITS, "Show and grant credit, and suspend accounts."),
    (PEOPLE, "Manage handles, teams, shares and invitations."),
    (MODELS, "Call the operations as tools from models and agents."),
    (AGENTS, "Send messages as another agent does, over the Agent2Agent protocol."),
    (PEER_CLIENTS, "Serve prompt-oriented clients of the Cortensor router."),
    (OPERATIONS, "Check the server, and read this document."),
];

/// Every operation, in the order in which models see their tools.
pub(crate) fn operations() -> &'static [Operation] {
    static ALL: LazyLock<Vec<Operation>> = LazyLock::new(|| {
        let families = [
            consensus::operations,
            chat::operations,
            x402::operations,
            verifiers::operations,
            verifier_runs::operations,
            verifier_tests::operations,
            rounds::operations,
            tasks::operations,
            knowledge::operations,
            agent_runs::operations,
            workflows::operations,
            packs::operations,
            templates::operations,
            me::operations,
            teams::operations,
            shares::operations,
            invitations::operations,
            api_keys::operations,
            webhooks::operations,
            accounts::operations,
            agent_events::operations,
            executors::operations,
            sessions::operations,
            nodes::operations,
            verify::operations,
            logins::operations,
            devices::operations,
            prune::operations,
            doctor::operations,
            mcp::operations,
            a2a::operations,
            peer::operations,
            agent_registration::operations,
            health::operations,
            docs::operations,
        ];
        families.iter().flat_map(|family| family()).collect()
    });
    &ALL
}

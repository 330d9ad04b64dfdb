//! `/.well-known/agent-registration.json`: the server as an agent of ERC-8004.

use std::sync::Arc;

use axum::{Extension, extract::State};
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::{
    api::agent_registration::{self, AgentRegistrationFile, ServicePath},
    problem::Problem,
};

use super::operations as all_operations;
use crate::{
    operation::{Operation, example},
    peers::PeerOptions,
    request::encode::{self, HandlerResult},
    resources::OPERATIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![show_operation()]
}

/// The addresses that a registration file can name; only those that the server has are named.
const SERVICES: [ServicePath; 4] = [
    ("web", "/", None),
    ("MCP", "/mcp", Some("2026-07-28")),
    ("A2A", "/.well-known/agent-card.json", None),
    ("OpenAPI", "/openapi.json", Some("3.1.0")),
];

fn show_operation() -> Operation {
    let text = "The registration file of ERC-8004. There is one only if the public URL of the server is configured.";
    Operation::get("/.well-known/agent-registration.json", "agent_registration_show", show)
        .for_anyone()
        .tag(OPERATIONS)
        .summary("Show the agent registration")
        .text(text)
        .answers::<AgentRegistrationFile<'_>>(
            200,
            "The file.",
            example(include_str!("agent_registration/file.json")),
        )
        .refuses([ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
) -> HandlerResult {
    let Some(profile) = &peers.agent else {
        let detail = "this server has no registration file; its operator did not set a public URL";
        return Err(Problem::new(ProblemCode::NotFound, detail).into());
    };
    let is_served = |path: &str| all_operations().iter().any(|it| it.paths().any(|at| at == path));
    let services: Vec<ServicePath> =
        SERVICES.into_iter().filter(|(_, path, _)| is_served(path)).collect();
    Ok(encode::ok(&agent_registration::file(profile, &services, engine.sells())))
}

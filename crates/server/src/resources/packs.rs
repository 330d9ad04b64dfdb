//! `/v1/design` and `/v1/audit`, and what agents get for one workflow: instructions, and a screen.

use axum::{Extension, extract::State};
use jurat_core::account::caller::Caller;
use jurat_engine::{Engine, InstructionKind, InstructionPack, instructions_for};
use jurat_wire::{
    api::{packs::PackBody, workflows},
    problem::Problem,
};

use super::{templates::checked_body, verifiers::version};
use crate::request::page::{QueryFilters, wrong};
use crate::request::{
    decode::PathText,
    encode::{self, HandlerResult},
};

pub(super) async fn design(State(_): State<Engine>) -> HandlerResult {
    Ok(encode::ok(&body(&instructions_for(InstructionKind::Design, None, None), None)))
}

pub(super) async fn audit(State(_): State<Engine>) -> HandlerResult {
    Ok(encode::ok(&body(&instructions_for(InstructionKind::Audit, None, None), None)))
}

/// A pack, and the workflow that it is about.
pub(crate) fn body<'a>(pack: &'a InstructionPack, workflow: Option<&'a str>) -> PackBody<'a> {
    PackBody {
        skill_md: &pack.text,
        references: &pack.references,
        max_iterations: pack.max_iterations,
        skill_id: workflow,
        workflow_id: workflow,
        id: workflow,
    }
}

pub(super) async fn teach(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (InstructionKind::Teach, None)).await
}

pub(super) async fn audit_one(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (InstructionKind::Audit, None)).await
}

pub(super) async fn optimize(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    of_workflow(&engine, &caller, &text, (InstructionKind::Optimize, iterations(&query)?)).await
}

pub(super) async fn optimize_description(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    let kind = InstructionKind::OptimizeDescription;
    of_workflow(&engine, &caller, &text, (kind, iterations(&query)?)).await
}

/// Has a workflow screened as before publishing.
pub(super) async fn check_safety(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&["version"])?;
    let wanted = workflows::pinned(workflows::reference(&text)?, version(&query)?)?;
    let checked = engine.workflow_check_safety(&caller, &wanted).await?;
    Ok(encode::ok(&checked_body(&checked)))
}

async fn of_workflow(
    engine: &Engine,
    caller: &Caller,
    text: &str,
    (kind, iterations): (InstructionKind, Option<u32>),
) -> HandlerResult {
    let view = engine.workflow_get(caller, &workflows::reference(text)?).await?;
    let workflow = &view.reached.workflow;
    let pack = instructions_for(kind, Some((&workflow.id, &workflow.name)), iterations);
    Ok(encode::ok(&body(&pack, Some(&workflow.id))))
}

fn iterations(query: &QueryFilters) -> Result<Option<u32>, Problem> {
    query.only(&["max_iterations"])?;
    let Some(text) = query.get("max_iterations") else { return Ok(None) };
    match text.parse() {
        Ok(count) if (1..=1_000).contains(&count) => Ok(Some(count)),
        _ => Err(wrong("max_iterations", "must be a whole number from 1 to 1000")),
    }
}

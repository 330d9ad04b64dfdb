//! `/v1/design` and `/v1/audit`, and what agents get for one workflow: instructions, and a screen.

use axum::{Extension, extract::State};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, Pack, PackKind, packed};
use jurat_wire::{
    api::{packs::PackBody, workflows},
    problem::Problem,
};

use super::{
    page::{Filters, wrong},
    templates::checked_body,
    verifiers::version,
};
use crate::{
    decode::PathText,
    encode::{self, Answer},
};

pub(super) async fn design(State(_): State<Engine>) -> Answer {
    Ok(encode::ok(&body(&packed(PackKind::Design, None, None), None)))
}

pub(super) async fn audit(State(_): State<Engine>) -> Answer {
    Ok(encode::ok(&body(&packed(PackKind::Audit, None, None), None)))
}

/// A pack, and the workflow that it is about.
pub(crate) fn body<'a>(pack: &'a Pack, workflow: Option<&'a str>) -> PackBody<'a> {
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
    query: Filters,
) -> Answer {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (PackKind::Teach, None)).await
}

pub(super) async fn audit_one(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: Filters,
) -> Answer {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (PackKind::Audit, None)).await
}

pub(super) async fn optimize(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: Filters,
) -> Answer {
    of_workflow(&engine, &caller, &text, (PackKind::Optimize, iterations(&query)?)).await
}

pub(super) async fn optimize_description(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: Filters,
) -> Answer {
    let kind = PackKind::OptimizeDescription;
    of_workflow(&engine, &caller, &text, (kind, iterations(&query)?)).await
}

/// Has a workflow screened as before publishing.
pub(super) async fn check_safety(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: Filters,
) -> Answer {
    query.only(&["version"])?;
    let wanted = workflows::pinned(workflows::reference(&text)?, version(&query)?)?;
    let checked = engine.workflow_check_safety(&caller, &wanted).await?;
    Ok(encode::ok(&checked_body(&checked)))
}

async fn of_workflow(
    engine: &Engine,
    caller: &Caller,
    text: &str,
    (kind, iterations): (PackKind, Option<u32>),
) -> Answer {
    let view = engine.workflow_get(caller, &workflows::reference(text)?).await?;
    let workflow = &view.reached.workflow;
    let pack = packed(kind, Some((&workflow.id, &workflow.name)), iterations);
    Ok(encode::ok(&body(&pack, Some(&workflow.id))))
}

fn iterations(query: &Filters) -> Result<Option<u32>, Problem> {
    query.only(&["max_iterations"])?;
    let Some(text) = query.get("max_iterations") else { return Ok(None) };
    match text.parse() {
        Ok(count) if (1..=1_000).contains(&count) => Ok(Some(count)),
        _ => Err(wrong("max_iterations", "must be a whole number from 1 to 1000")),
    }
}

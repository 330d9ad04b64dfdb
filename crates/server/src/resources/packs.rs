//! `/v1/design` and `/v1/audit`, and for one workflow: agent instructions and a safety screen.

use std::borrow::Cow;

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
};
use jurat_engine::{Engine, InstructionKind, InstructionPack, instructions_for};
use jurat_wire::{
    api::{packs::PackBody, templates::SafetyCheckBody, workflows},
    problem::Problem,
};

use super::{templates::checked_body, verifiers::version};
use crate::{
    mcp::render,
    operation::{Operation, TextAuthor, Tool, parameters},
    request::{
        decode::PathText,
        encode::{self, HandlerResult},
        page::{QueryFilters, wrong},
    },
    resources::{
        WORKFLOW_TOOLS,
        templates::{SCREENED, examples},
        workflows::{WORKFLOW, WORKFLOW_NAMES},
    },
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        teach_operation(),
        optimize_operation(),
        optimize_description_operation(),
        audit_one_operation(),
        check_safety_operation(),
        design_operation(),
        audit_operation(),
    ]
}

fn design_operation() -> Operation {
    let text = "Instructions for an agent that designs a workflow with its checks, in Markdown, with the texts that they refer to.";
    let about = "Returns instructions for designing a workflow with checks; follow them with the other tools.";
    Operation::get("/v1/design/workflow-prompt", "design_prompt", design)
        .also_at("/v1/design/skill-prompt", "design_skill_prompt")
        .tag(WORKFLOW_TOOLS)
        .summary("Get instructions to design a workflow")
        .text(text)
        .answers::<PackBody<'_>>(
            200,
            "The instructions.",
            examples::pack(InstructionKind::Design, None),
        )
        .tool(
            Tool::reads("design_skill", "Design a workflow", about)
                .also("design_workflow")
                .scopes(&[Scope::WorkflowsRead])
                .ignores_unknown()
                .summary(render::instructions)
                .author(TextAuthor::Published),
        )
}

async fn design(State(_): State<Engine>) -> HandlerResult {
    Ok(encode::ok(&body(&instructions_for(InstructionKind::Design, None, None), None)))
}

fn audit_operation() -> Operation {
    let text = "Instructions for an agent that audits a workflow, in Markdown, with the texts that they refer to.";
    Operation::get("/v1/audit/workflow-prompt", "audit_prompt", audit)
        .also_at("/v1/audit/skill-prompt", "audit_skill_prompt")
        .tag(WORKFLOW_TOOLS)
        .summary("Get instructions to audit a workflow")
        .text(text)
        .answers::<PackBody<'_>>(
            200,
            "The instructions.",
            examples::pack(InstructionKind::Audit, None),
        )
}

async fn audit(State(_): State<Engine>) -> HandlerResult {
    Ok(encode::ok(&body(&instructions_for(InstructionKind::Audit, None, None), None)))
}

/// The body for an instruction pack, with the workflow that it is about.
pub(crate) fn body<'a>(pack: &'a InstructionPack, workflow: Option<&'a str>) -> PackBody<'a> {
    let references = pack.references.iter();
    let references = references.map(|(path, text)| ((*path).into(), (*text).into()));
    PackBody {
        skill_md: Cow::Borrowed(&pack.text),
        references: references.collect(),
        max_iterations: pack.max_iterations,
        skill_id: workflow.map(Cow::Borrowed),
        workflow_id: workflow.map(Cow::Borrowed),
        id: workflow.map(Cow::Borrowed),
    }
}

fn teach_operation() -> Operation {
    let text = "Instructions for an agent that turns a person's corrections into the next version of a workflow and its verifiers.";
    let about = "Returns instructions for turning a person's corrections into the next version of a workflow.";
    pack(
        Operation::post("/v1/workflows/{ref}/teach", "workflow_teach", teach)
            .aliased("/v1/workflows", "/v1/skills", "_of_skill")
            .tag(WORKFLOW_TOOLS)
            .summary("Get instructions to teach a workflow")
            .text(text)
            .in_path([WORKFLOW]),
        InstructionKind::Teach,
    )
    .tool(
        Tool::reads("teach_skill", "Teach a workflow", about)
            .also("teach_workflow")
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
            .ignores_unknown()
            .summary(render::instructions)
            .author(TextAuthor::Published),
    )
}

async fn teach(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (InstructionKind::Teach, None)).await
}

fn audit_one_operation() -> Operation {
    let text = "Instructions for an agent that audits one of the caller's own or shared workflows.";
    pack(
        Operation::post("/v1/workflows/{ref}/audit", "workflow_audit", audit_one)
            .aliased("/v1/workflows", "/v1/skills", "_of_skill")
            .tag(WORKFLOW_TOOLS)
            .summary("Get instructions to audit this workflow")
            .text(text)
            .in_path([WORKFLOW]),
        InstructionKind::Audit,
    )
    .tool(
        Tool::reads(
            "audit_skill",
            "Audit a workflow",
            "Returns instructions for auditing a workflow.",
        )
        .also("audit_workflow")
        .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
        .ignores_unknown()
        .summary(render::instructions)
        .author(TextAuthor::Published),
    )
}

async fn audit_one(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    of_workflow(&engine, &caller, &text, (InstructionKind::Audit, None)).await
}

fn optimize_operation() -> Operation {
    let text = "Instructions for an agent that improves a workflow in a measured loop.";
    let about = "Returns instructions for improving a workflow in a measured loop.";
    pack(
        Operation::post("/v1/workflows/{ref}/optimize", "workflow_optimize", optimize)
            .aliased("/v1/workflows", "/v1/skills", "_of_skill")
            .tag(WORKFLOW_TOOLS)
            .summary("Get instructions to optimize a workflow")
            .text(text)
            .in_path([WORKFLOW]),
        InstructionKind::Optimize,
    )
    .with([parameters::iterations(20)])
    .tool(
        Tool::reads("optimize_skill", "Optimize a workflow", about)
            .also("optimize_workflow")
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
            .query(&["max_iterations"])
            .ignores_unknown()
            .summary(render::instructions)
            .author(TextAuthor::Published),
    )
}

async fn optimize(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    of_workflow(&engine, &caller, &text, (InstructionKind::Optimize, iterations(&query)?)).await
}

fn optimize_description_operation() -> Operation {
    let text = "Instructions for an agent that improves the description that agents use to choose a workflow, in a measured loop.";
    let about =
        "Returns instructions for improving the description that agents use to choose a workflow.";
    pack(
        Operation::post(
            "/v1/workflows/{ref}/optimize-description",
            "workflow_optimize_description",
            optimize_description,
        )
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOW_TOOLS)
        .summary("Get instructions to optimize a workflow description")
        .text(text)
        .in_path([WORKFLOW]),
        InstructionKind::OptimizeDescription,
    )
    .with([parameters::iterations(10)])
    .tool(
        Tool::reads("optimize_description", "Optimize a workflow description", about)
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
            .query(&["max_iterations"])
            .ignores_unknown()
            .summary(render::instructions)
            .author(TextAuthor::Published),
    )
}

async fn optimize_description(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
) -> HandlerResult {
    let kind = InstructionKind::OptimizeDescription;
    of_workflow(&engine, &caller, &text, (kind, iterations(&query)?)).await
}

fn check_safety_operation() -> Operation {
    let text = "Screens a version of a workflow with the judges that screen templates before publishing, as two runs that the caller pays for.";
    let about = "Screens a workflow with the judges that screen templates before publishing, as two paid runs.";
    Operation::post("/v1/workflows/{ref}/safety-check", "workflow_check_safety", check_safety)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOW_TOOLS)
        .summary("Check the safety of a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsRead)
        .scope(Scope::VerifiersRun)
        .with([parameters::version("The version to check; defaults to the current one.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("workflow"))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .refuses(SCREENED)
        .tool(
            Tool::asks("check_skill_safety", "Check the safety of a workflow", about)
                .also("check_workflow_safety")
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
                .query(&["version"])
                .ignores_unknown()
                .summary(render::checked)
                .author(TextAuthor::Published),
        )
}

/// Screens a workflow as publishing would.
async fn check_safety(
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

fn pack(operation: Operation, kind: InstructionKind) -> Operation {
    operation
        .scope(Scope::WorkflowsRead)
        .answers::<PackBody<'_>>(200, "The instructions.", examples::pack(kind, Some(examples::ID)))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

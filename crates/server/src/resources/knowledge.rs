//! `/v1/knowledge`: decisions that may be used again.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    task::knowledge::{KnowledgeFilter, KnowledgePosition, KnowledgeRecord, KnowledgeScope},
    time::Timestamp,
};
use jurat_engine::Engine;
use jurat_wire::{
    api::{
        kit::page::PageBody,
        knowledge::{KnowledgeBody, KnowledgeView, body},
    },
    problem::Problem,
};

use crate::{
    mcp::render,
    operation::{Operation, TextAuthor, Tool, parameters},
    request::{
        cursor,
        encode::{self, HandlerResult},
        page::{ListQuery, wrong},
    },
    resources::{TASKS, tasks::examples},
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![list_operation()]
}

fn list_operation() -> Operation {
    let text = "The decisions of the account's tasks, newest first, for one task type or one task: send either `task_type` or `task_id`. Tasks with the same inputs reuse them as candidates, and executors receive decisions of similar tasks.";
    let about = "Lists the decisions of the account's tasks, newest first, for one `task_type` or one `task_id`.";
    Operation::get("/v1/knowledge", "knowledge_list", list)
        .tag(TASKS)
        .summary("List remembered decisions")
        .text(text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_knowledge())
        .answers::<PageBody<'_, KnowledgeBody<'_>>>(
            200,
            "A page of decisions.",
            examples::knowledge(),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("export_knowledge", "List remembered decisions", about)
                .query(&["task_type", "task_id", "limit", "cursor"])
                .summary(render::counted)
                .author(TextAuthor::Executors),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["task_type", "task_id"])?;
    let of = subject(query.filters.get("task_type"), query.filters.get("task_id"))?;
    let before = query.position()?.map(position).transpose()?;
    let wanted = KnowledgeFilter { of, before, limit: query.with_one_more() };
    let mut found = engine.knowledge_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, position_of);
    Ok(encode::ok(&PageBody::new(found.iter().map(learned), next.as_deref())))
}

/// The filter of the list. Exactly one of the two is required.
fn subject(task_type: Option<&str>, task_id: Option<&str>) -> Result<KnowledgeScope, Problem> {
    match (task_type, task_id) {
        (Some(task_type), None) => Ok(KnowledgeScope::TaskType(task_type.to_owned())),
        (None, Some(task_id)) => Ok(KnowledgeScope::Task(task_id.to_owned())),
        (Some(_), Some(_)) => Err(wrong("task_id", "contradicts `task_type`; leave one out")),
        (None, None) => Err(wrong("task_type", "or `task_id` is required")),
    }
}

/// The sort key of the list: the time of the decision, its epoch and its task.
fn position_of(learned: &KnowledgeRecord) -> [String; 3] {
    let KnowledgeRecord { task_id, knowledge } = learned;
    let micros = knowledge.created_at.micros();
    [micros.to_string(), knowledge.epoch.to_string(), task_id.clone()]
}

fn position([micros, epoch, task_id]: [String; 3]) -> Result<KnowledgePosition, Problem> {
    let created_at = micros.parse().map(Timestamp::from_micros).map_err(|_| cursor::refused())?;
    let epoch = epoch.parse::<u32>().map_err(|_| cursor::refused())?.into();
    Ok(KnowledgePosition { created_at, epoch, task_id })
}

fn learned(KnowledgeRecord { task_id, knowledge }: &KnowledgeRecord) -> KnowledgeBody<'_> {
    let digests = &knowledge.digests;
    body(KnowledgeView {
        task_id,
        epoch: knowledge.epoch,
        task_type: &knowledge.task_type,
        policy_id: &digests.policy_id,
        input_digest: &digests.inputs,
        schema_digest: &digests.schema,
        params_digest: &digests.params,
        candidate: &knowledge.candidate,
        output: &knowledge.output,
        reason_codes: &knowledge.reason_codes,
        confidence: knowledge.confidence,
        quorum: &knowledge.quorum,
        final_hash: &knowledge.final_hash,
        created_at: knowledge.created_at,
        deprecated_at: knowledge.deprecated_at,
    })
}

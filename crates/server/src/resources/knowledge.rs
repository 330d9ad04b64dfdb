//! `/v1/knowledge`: what is remembered of decisions.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::Caller,
    task::knowledge::{KnowledgePosition, KnowledgeRecord, KnowledgeScope},
    time::Timestamp,
};
use jurat_engine::{Engine, KnowledgeQuery};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        knowledge::{KnowledgeBody, KnowledgeView, body},
    },
    problem::Problem,
};

use crate::request::encode::{self, HandlerResult};
use crate::request::page::{ListQuery, wrong};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["task_type", "task_id"])?;
    let of = subject(query.filters.get("task_type"), query.filters.get("task_id"))?;
    let before = position(query.cursor.as_deref())?;
    let wanted = KnowledgeQuery { of, before, limit: query.with_one_more() };
    let mut found = engine.knowledge_list(&caller, wanted).await?;
    let next = query.cut(&mut found, cursor_of);
    Ok(encode::ok(&PageBody::new(found.iter().map(learned), next.as_deref())))
}

/// One of the two, and not both.
pub(crate) fn subject(
    task_type: Option<&str>,
    task_id: Option<&str>,
) -> Result<KnowledgeScope, Problem> {
    match (task_type, task_id) {
        (Some(task_type), None) => Ok(KnowledgeScope::TaskType(task_type.to_owned())),
        (None, Some(task_id)) => Ok(KnowledgeScope::Task(task_id.to_owned())),
        (Some(_), Some(_)) => Err(wrong("task_id", "contradicts `task_type`; leave one out")),
        (None, None) => Err(wrong("task_type", "or `task_id` is required")),
    }
}

/// When it was decided, which epoch it was, and the task: the order of the list.
pub(crate) fn cursor_of(learned: &KnowledgeRecord) -> String {
    let KnowledgeRecord { task_id, knowledge } = learned;
    format!("{}.{}.{task_id}", knowledge.created_at.micros(), knowledge.epoch)
}

pub(crate) fn position(cursor: Option<&str>) -> Result<Option<KnowledgePosition>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let read = |mut parts: std::str::SplitN<'_, char>| {
        let created_at = Timestamp::from_micros(parts.next()?.parse().ok()?);
        let epoch = parts.next()?.parse::<u32>().ok()?.into();
        Some(KnowledgePosition { created_at, epoch, task_id: parts.next()?.to_owned() })
    };
    let position = read(cursor.splitn(3, '.'));
    position.map(Some).ok_or_else(|| wrong("cursor", "was not returned by a list"))
}

pub(crate) fn learned(
    KnowledgeRecord { task_id, knowledge }: &KnowledgeRecord,
) -> KnowledgeBody<'_> {
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

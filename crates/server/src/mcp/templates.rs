//! The tools for templates and for instructions.

use futures::FutureExt as _;
use jurat_core::{
    account::caller::Scope,
    code::ProblemCode,
    workflow::template::{TemplateChangeKind, TemplateFilter},
};
use jurat_engine::{
    EngineError, ForkOrder, IdempotentOutcome, InstructionKind, PublishOrder, instructions_for,
};
use jurat_wire::{
    api::{
        kit::page::{self, PageBody},
        mcp::{
            people::{NoArguments, nothing},
            template_arguments as tool,
            workflows::{
                self as skill_tool, OptimizeWorkflowArguments, WorkflowArguments,
                WorkflowVersionArguments,
            },
        },
        packs::PackBody,
        templates::{
            self, ArchivedTemplate, DeletedTemplate, DeletedVersion, DeprecatedVersion,
            ForkTemplateRequest, ForkedTemplate, OfferedTemplate, PublishTemplateRequest,
            PublishedTemplateBody, SafetyCheckBody, SearchTemplatesRequest, TemplateBody,
            TemplateFileEnvelope, TemplateSearchBody, TemplateSummary, UnarchivedTemplate,
            UnpublishedVersion,
        },
        workflows,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::{
    call::{ToolCall, ToolFuture},
    schema,
    tools::{TextAuthor, ToolEffect, ToolEntry},
};
use crate::{
    request::encode::engine_problem,
    resources::{checked_body, forked, offered_template, pack_body, published},
};
type ToolText = (&'static str, &'static str, &'static str);
type ToolFn = for<'a> fn(ToolCall<'a>) -> ToolFuture<'a>;

/// A tool of this table: what it takes and returns is told by types.
macro_rules! entry {
    ($told:expr, $effect:ident, $input:ty => $output:ty, $run:path, $summary:path) => {{
        const TEXT: ToolText = $told;
        const RUN: ToolFn = $run;
        ToolEntry {
            name: TEXT.0,
            scopes: ToolEffect::$effect.of_workflows(),
            title: TEXT.1,
            text: TEXT.2,
            effect: ToolEffect::$effect,
            input: schema::input::<$input>,
            output: schema::output::<$output>,
            run: RUN,
            summary: $summary,
            author: TextAuthor::Published,
        }
    }};
}

/// Whoever has something screened looks at it, and pays the judges.
const CHECKS: &[Scope] = &[Scope::WorkflowsRead, Scope::VerifiersRun];

#[rustfmt::skip]
const DESIGN: ToolEntry = entry!(("design_skill", "Design a workflow", "Returns instructions for designing a workflow with checks; follow them with the other tools."), Reads, NoArguments => PackBody<'static>, design, instructions);
#[rustfmt::skip]
const TEACH: ToolEntry = entry!(("teach_skill", "Teach a workflow", "Returns instructions for turning a person's corrections into the next version of a workflow."), Reads, WorkflowArguments => PackBody<'static>, teach, instructions);
#[rustfmt::skip]
const OPTIMIZE: ToolEntry = entry!(("optimize_skill", "Optimize a workflow", "Returns instructions for improving a workflow in a measured loop."), Reads, OptimizeWorkflowArguments => PackBody<'static>, optimize, instructions);
#[rustfmt::skip]
const AUDIT: ToolEntry = entry!(("audit_skill", "Audit a workflow", "Returns instructions for auditing a workflow."), Reads, WorkflowArguments => PackBody<'static>, audit, instructions);
#[rustfmt::skip]
const CHECK: ToolEntry = ToolEntry { scopes: CHECKS, ..entry!(("check_skill_safety", "Check the safety of a workflow", "Screens a workflow with the judges that screen templates before publishing, as two paid runs."), Asks, WorkflowVersionArguments => SafetyCheckBody<'static>, check_skill, checked) };

#[rustfmt::skip]
pub(super) static ALL: &[ToolEntry] = &[
    DESIGN,
    ToolEntry { name: "design_workflow", ..DESIGN },
    TEACH,
    ToolEntry { name: "teach_workflow", ..TEACH },
    OPTIMIZE,
    ToolEntry { name: "optimize_workflow", ..OPTIMIZE },
    entry!(("optimize_description", "Optimize a workflow description", "Returns instructions for improving the description that agents use to choose a workflow."), Reads, OptimizeWorkflowArguments => PackBody<'static>, optimize_description, instructions),
    AUDIT,
    ToolEntry { name: "audit_workflow", ..AUDIT },
    CHECK,
    ToolEntry { name: "check_workflow_safety", ..CHECK },
    ToolEntry { scopes: CHECKS, ..entry!(("check_template_safety", "Check the safety of a template", "Screens a template with the judges that screen templates before publishing, as two paid runs."), Asks, tool::GetTemplateArguments => SafetyCheckBody<'static>, check_template, checked) },
    entry!(("publish_template_version", "Publish a template", "Publishes the current version of a workflow as a public template, with its verifiers, after judges have screened it."), Asks, PublishTemplateRequest => PublishedTemplateBody<'static>, publish, done),
    entry!(("unpublish_template_version", "Unpublish a template version", "Withdraws a version of a template from the public."), Ends, tool::TemplateVersionArguments => UnpublishedVersion<'static>, unpublish, done),
    entry!(("deprecate_template_version", "Deprecate a template version", "Shows a warning to users who read or fork a version of a template."), Adds, tool::DeprecateArguments => DeprecatedVersion<'static>, deprecate, done),
    entry!(("delete_template_version", "Delete a template version", "Permanently deletes an unpublished version of a template."), Ends, tool::TemplateVersionArguments => DeletedVersion<'static>, delete_version, done),
    entry!(("delete_template", "Delete a template", "Permanently deletes a template with all its versions."), Ends, tool::TemplateArguments => DeletedTemplate<'static>, delete, done),
    entry!(("archive_template", "Archive a template", "Hides a template from everyone but its owner."), Adds, tool::ArchiveArguments => ArchivedTemplate<'static>, archive, done),
    entry!(("unarchive_template", "Unarchive a template", "Makes an archived template public again."), Adds, tool::TemplateArguments => UnarchivedTemplate<'static>, unarchive, done),
    entry!(("list_templates", "List templates", "Lists templates, newest first, a page at a time."), Reads, tool::ListTemplatesArguments => PageBody<'static, TemplateSummary<'static>>, list, listed),
    entry!(("search_templates", "Search templates", "Finds templates that match the words of a query, best first."), Reads, SearchTemplatesRequest => TemplateSearchBody<'static>, search, listed),
    entry!(("get_template", "Read a template", "Returns a full version of a template, with its verifiers as published."), Reads, tool::GetTemplateArguments => TemplateBody<'static>, get, shown),
    entry!(("get_template_file", "Read a template file", "Returns a file of a template."), Reads, tool::GetTemplateFileArguments => TemplateFileEnvelope<'static>, file, shown),
    entry!(("fork_template", "Fork a template", "Creates a private workflow from a template, with private verifiers."), Adds, ForkTemplateRequest => ForkedTemplate<'static>, fork, done),
    entry!(("transfer_template_ownership", "Transfer a template", "Offers a template to another user, who owns it after accepting."), Adds, tool::TransferTemplateArguments => OfferedTemplate<'static>, transfer, done),
];

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn wrong(error: EngineError) -> Problem {
    engine_problem(&error)
}

fn now<T>(done: Result<IdempotentOutcome<T>, EngineError>) -> Result<T, Problem> {
    match done {
        Ok(IdempotentOutcome::Now(result)) => Ok(result),
        Ok(IdempotentOutcome::Before(_)) => {
            Err(wrong(EngineError::Bug("a request without a key was repeated")))
        }
        Err(error) => Err(wrong(error)),
    }
}

fn design(ToolCall { arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        nothing(arguments)?;
        Ok(json!(pack_body(&instructions_for(InstructionKind::Design, None, None), None)))
    }
    .boxed()
}

/// Instructions for one workflow.
async fn pack(call: ToolCall<'_>, kind: InstructionKind) -> Result<Value, Problem> {
    let (skill, iterations) = match kind {
        InstructionKind::Optimize | InstructionKind::OptimizeDescription => {
            skill_tool::optimize(call.arguments)?
        }
        InstructionKind::Design | InstructionKind::Teach | InstructionKind::Audit => {
            (skill_tool::named(call.arguments, &[])?.0, None)
        }
    };
    let wanted = workflows::reference(skill)?;
    let view = call.engine.workflow_get(call.caller, &wanted).await.map_err(wrong)?;
    let workflow = &view.reached.workflow;
    let pack = instructions_for(kind, Some((&workflow.id, &workflow.name)), iterations);
    Ok(json!(pack_body(&pack, Some(&workflow.id))))
}

fn teach(call: ToolCall<'_>) -> ToolFuture<'_> {
    pack(call, InstructionKind::Teach).boxed()
}

fn audit(call: ToolCall<'_>) -> ToolFuture<'_> {
    pack(call, InstructionKind::Audit).boxed()
}

fn optimize(call: ToolCall<'_>) -> ToolFuture<'_> {
    pack(call, InstructionKind::Optimize).boxed()
}

fn optimize_description(call: ToolCall<'_>) -> ToolFuture<'_> {
    pack(call, InstructionKind::OptimizeDescription).boxed()
}

fn check_skill(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (skill, version, _) = skill_tool::named(arguments, &["version"])?;
        let wanted = workflows::pinned(workflows::reference(skill)?, version)?;
        let checked = engine.workflow_check_safety(caller, &wanted).await.map_err(wrong)?;
        Ok(json!(checked_body(&checked)))
    }
    .boxed()
}

fn check_template(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let wanted = tool::identifier(arguments)?;
        let checked = engine.template_check_safety(caller, &wanted).await.map_err(wrong)?;
        Ok(json!(checked_body(&checked)))
    }
    .boxed()
}

fn publish(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (workflow, release_notes) = templates::decode_publish(arguments)?;
        let order = PublishOrder { workflow, release_notes };
        Ok(published(&now(engine.template_publish(caller, order, None).await)?))
    }
    .boxed()
}

fn unpublish(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, version, _) = tool::template_version(arguments, None)?;
        let change = TemplateChangeKind::Unpublish(version);
        let changed = now(engine.template_change(caller, &wanted, change, None).await)?;
        let template_id = changed.template.id.as_str();
        Ok(json!(UnpublishedVersion { template_id, version, unpublished: true }))
    }
    .boxed()
}

fn deprecate(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, version, message) = tool::template_version(arguments, Some("message"))?;
        let change = TemplateChangeKind::Deprecate(version, message.map(str::to_owned));
        let changed = now(engine.template_change(caller, &wanted, change, None).await)?;
        Ok(json!(templates::deprecated(&changed.template.id, version, changed.at, message)))
    }
    .boxed()
}

fn delete_version(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, version, _) = tool::template_version(arguments, None)?;
        let change = TemplateChangeKind::DeleteVersion(version);
        let changed = now(engine.template_change(caller, &wanted, change, None).await)?;
        Ok(json!(templates::deleted_version(&changed.template.id, version)))
    }
    .boxed()
}

fn delete(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let wanted = tool::template(arguments)?;
        let changed =
            now(engine.template_change(caller, &wanted, TemplateChangeKind::Delete, None).await)?;
        let (template_id, slug) = (changed.template.id.as_str(), changed.template.slug.as_str());
        Ok(json!(DeletedTemplate { template_id, slug, deleted: true }))
    }
    .boxed()
}

fn archive(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, reason) = tool::template_and_text(arguments, "archive_reason")?;
        let change = TemplateChangeKind::Archive(reason.map(str::to_owned));
        let changed = now(engine.template_change(caller, &wanted, change, None).await)?;
        Ok(json!(ArchivedTemplate { template_id: &changed.template.id, archived: true }))
    }
    .boxed()
}

fn unarchive(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let wanted = tool::template(arguments)?;
        let changed = now(engine
            .template_change(caller, &wanted, TemplateChangeKind::Unarchive, None)
            .await)?;
        Ok(json!(UnarchivedTemplate { template_id: &changed.template.id, archived: false }))
    }
    .boxed()
}

fn list(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = tool::list(arguments)?;
        let filter = TemplateFilter {
            is_mine: order.is_mine,
            search: order.search,
            before: order.cursor,
            limit: order.limit + 1,
            ..TemplateFilter::default()
        };
        let mut found = engine.template_list(Some(caller), filter).await.map_err(wrong)?;
        // One more than asked for tells whether there are more.
        let limit = usize::try_from(order.limit).unwrap_or(usize::MAX);
        let has_more = limit < found.len();
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|last| page::cursor(&last.template.id));
        Ok(json!(PageBody::new(found.iter().map(templates::listed), next.as_deref())))
    }
    .boxed()
}

fn search(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let order = templates::decode_search(arguments)?;
        let found =
            engine.template_search(Some(caller), &order.query, order.is_mine, order.limit).await;
        let found = found.map_err(wrong)?;
        Ok(json!(templates::searched(&order.query, order.limit, &found)))
    }
    .boxed()
}

fn get(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let wanted = tool::identifier(arguments)?;
        let view = engine.template_get(Some(caller), &wanted).await.map_err(wrong)?;
        Ok(json!(templates::shown(&view.found, view.is_owner)))
    }
    .boxed()
}

fn file(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, path) = tool::identifier_and_path(arguments)?;
        let view = engine.template_file(Some(caller), &wanted, path).await.map_err(wrong)?;
        if templates::MOST_OVER_MCP < view.file.size_bytes {
            let detail = "the file is too long for a tool; read it over HTTP with `format=raw`";
            return Err(Problem::new(ProblemCode::PayloadTooLarge, detail));
        }
        Ok(json!(templates::envelope(&view.file, &view.content)))
    }
    .boxed()
}

fn fork(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, name) = templates::decode_fork(arguments)?;
        let order = ForkOrder { wanted, name };
        Ok(forked(&now(engine.template_fork(caller, order, None).await)?))
    }
    .boxed()
}

fn transfer(ToolCall { engine, caller, arguments, .. }: ToolCall<'_>) -> ToolFuture<'_> {
    async move {
        let (wanted, to) = tool::transfer(arguments)?;
        Ok(offered_template(&now(engine.template_offer(caller, &wanted, to, None).await)?))
    }
    .boxed()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn instructions(body: &Value) -> String {
    let references = body["references"].as_object().map_or(0, serde_json::Map::len);
    format!(
        "Instructions in `skill_md`, with {references} texts in `references`. Follow them together with the person you work for."
    )
}

fn checked(body: &Value) -> String {
    format!("Result of the screen: `{}`.", text(&body["status"]))
}

fn done(body: &Value) -> String {
    let id = ["template_id", "workflow_id", "invitation_id"].map(|name| text(&body[name]));
    let id = id.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
    match body["version"].as_u64() {
        Some(version) => format!("Done: `{id}`, version {version}."),
        None => format!("Done: `{id}`."),
    }
}

fn listed(body: &Value) -> String {
    let count = body["items"].as_array().map_or(0, Vec::len);
    format!("{count} templates.")
}

fn shown(body: &Value) -> String {
    match body["version"].as_u64() {
        Some(version) => format!("Template `{}` version {version}.", text(&body["id"])),
        None => "A file of a template.".to_owned(),
    }
}

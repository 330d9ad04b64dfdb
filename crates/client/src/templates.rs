//! `/v1/templates`, and the instructions for designing a workflow.

use jurat_wire::api::{
    packs::PackBody,
    templates::{
        ArchiveTemplateDraft, ArchivedTemplate, DeletedTemplate, DeletedVersion,
        DeprecateVersionDraft, DeprecatedVersion, ForkTemplateDraft, ForkedTemplate,
        OfferedTemplate, PublishTemplateDraft, PublishedTemplateBody, SafetyCheckBody,
        SearchTemplatesDraft, TemplateBody, TemplateFileEnvelope, TemplateSearchBody,
        TemplateSummary, TransferTemplateDraft, UnarchivedTemplate, UnpublishedVersion,
    },
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/templates";

/// The path of a template. The slash in its name is not percent-encoded.
fn address(template: &str, rest: &str) -> String {
    let parts: Vec<&str> = template.splitn(2, '/').collect();
    format!("{}{rest}", path(ROUTE, &parts))
}

pub fn list(
    filter: Option<&str>,
    search: Option<&str>,
    include_archived: Option<bool>,
) -> Call<Page<TemplateSummary<'static>>> {
    Call::get(ROUTE)
        .query("filter", filter)
        .query("search", search)
        .query("include_archived", include_archived)
}

pub fn search(search: &SearchTemplatesDraft) -> Call<TemplateSearchBody<'static>> {
    Call::post("/v1/templates/search", search)
}

/// One version, by default the newest one.
pub fn show(template: &str, version: Option<u32>) -> Call<TemplateBody<'static>> {
    Call::get(address(template, "")).query("version", version)
}

pub fn file(
    template: &str,
    path: &str,
    version: Option<u32>,
) -> Call<TemplateFileEnvelope<'static>> {
    Call::get(address(template, "/files")).query("path", Some(path)).query("version", version)
}

pub fn publish(
    workflow: &str,
    release_notes: Option<&str>,
) -> Call<PublishedTemplateBody<'static>> {
    let body = PublishTemplateDraft {
        workflow_id: Some(workflow.to_owned()),
        skill_id: None,
        release_notes: release_notes.map(str::to_owned),
    };
    Call::post(ROUTE, &body)
}

pub fn fork(fork: &ForkTemplateDraft) -> Call<ForkedTemplate<'static>> {
    Call::post("/v1/templates/fork", fork)
}

pub fn delete(template: &str) -> Call<DeletedTemplate<'static>> {
    Call::delete(address(template, ""))
}

pub fn unpublish(template: &str, version: u32) -> Call<UnpublishedVersion<'static>> {
    Call::delete(address(template, &format!("/versions/{version}")))
}

pub fn delete_version(template: &str, version: u32) -> Call<DeletedVersion<'static>> {
    Call::delete(address(template, &format!("/versions/{version}/permanent")))
}

pub fn deprecate_version(
    template: &str,
    version: u32,
    message: Option<&str>,
) -> Call<DeprecatedVersion<'static>> {
    let address = address(template, &format!("/versions/{version}/deprecate"));
    Call::post(address, &DeprecateVersionDraft { message: message.map(str::to_owned) })
}

pub fn archive(template: &str, reason: Option<&str>) -> Call<ArchivedTemplate<'static>> {
    let body = ArchiveTemplateDraft { archive_reason: reason.map(str::to_owned) };
    Call::post(address(template, "/archive"), &body)
}

pub fn unarchive(template: &str) -> Call<UnarchivedTemplate<'static>> {
    Call::post_empty(address(template, "/unarchive"))
}

pub fn check_safety(template: &str, version: Option<u32>) -> Call<SafetyCheckBody<'static>> {
    Call::post_empty(address(template, "/safety-check")).query("version", version)
}

pub fn transfer_ownership(template: &str, new_owner: &str) -> Call<OfferedTemplate<'static>> {
    let body = TransferTemplateDraft { new_owner_user_id_or_email: new_owner.to_owned() };
    Call::post(address(template, "/transfer-ownership"), &body)
}

/// Instructions for an agent that designs a workflow.
pub fn design() -> Call<PackBody<'static>> {
    Call::get("/v1/design/workflow-prompt")
}

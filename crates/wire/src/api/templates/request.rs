//! Requests about templates.

use jurat_core::{
    code::ProblemCode,
    workflow::{search::MOST_HITS, template::TemplateRef},
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::kit::fields::{RequestFields, short},
    problem::Problem,
};

const NOTES_CHARS: usize = 4_000;
const NAME_CHARS: usize = 200;
const QUERY_CHARS: usize = 500;

/// A workflow to publish.
#[derive(Debug, ToSchema)]
pub struct PublishTemplateRequest {
    /// The id or slug of one of the caller's workflows.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub workflow_id: Option<String>,
    /// Alias of `workflow_id`; one of the two is required.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub skill_id: Option<String>,
    /// What is new in this version.
    #[schema(pattern = r"^[^\x00]*$", max_length = 4000)]
    pub release_notes: Option<String>,
}

/// Search query.
#[derive(Debug, ToSchema)]
pub struct SearchTemplatesRequest {
    /// Search query.
    #[schema(pattern = r"\S", max_length = 500)]
    pub query: String,
    /// `all`, or `mine` for the caller's own.
    #[schema(pattern = "^(all|mine)$")]
    pub filter: Option<String>,
    /// Number of results to return; defaults to 10.
    #[schema(minimum = 1, maximum = 10)]
    pub limit: Option<u32>,
}

/// A template to fork.
#[derive(Debug, ToSchema)]
pub struct ForkTemplateRequest {
    /// The id of a template, or `@handle/slug`; append `@vN` to pin a version.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub identifier: String,
    /// The version to fork; defaults to the newest.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
    /// The name of the fork; defaults to the template's name.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 200)]
    pub name: Option<String>,
}

/// Why a version is deprecated.
#[derive(Debug, ToSchema)]
pub struct DeprecateVersionRequest {
    /// Message to users of the version.
    #[schema(pattern = r"^[^\x00]*$", max_length = 4000)]
    pub message: Option<String>,
}

/// Why a template is archived.
#[derive(Debug, ToSchema)]
pub struct ArchiveTemplateRequest {
    /// Reason.
    #[schema(pattern = r"^[^\x00]*$", max_length = 4000)]
    pub archive_reason: Option<String>,
}

/// The user who is offered a workflow or template.
#[derive(Debug, ToSchema)]
pub struct TransferTemplateRequest {
    /// An e-mail address, a handle, or an account id.
    #[schema(min_length = 1, pattern = r"\S")]
    pub new_owner_user_id_or_email: String,
}

pub fn decode_transfer(body: &Value) -> Result<&str, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    fields.required_text("new_owner_user_id_or_email")
}

/// What a search is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSearchOrder {
    pub query: String,
    pub is_mine: bool,
    pub limit: usize,
}

/// A template as an address or a field names it, with the version that stands beside it. What has
/// not the form of a reference names none.
pub fn reference(text: &str, version: Option<u32>) -> Result<TemplateRef, Problem> {
    let absent =
        || Problem::new(ProblemCode::NotFound, format!("there is no template `{}`", short(text)));
    let wanted = TemplateRef::parse(text).ok_or_else(absent)?;
    match (wanted.version, version) {
        (Some(one), Some(other)) if one != other => {
            let detail = format!("`version` is {other}, but `{}` pins {one}", short(text));
            Err(Problem::new(ProblemCode::ValidationError, detail).at("version"))
        }
        (pinned, beside) => Ok(TemplateRef { version: pinned.or(beside), ..wanted }),
    }
}

/// The workflow, and what is new.
pub fn decode_publish(body: &Value) -> Result<(String, Option<String>), Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let old = limited(&fields, "workflow_id", NAME_CHARS)?;
    let new = limited(&fields, "skill_id", NAME_CHARS)?;
    let workflow = match (old, new) {
        (Some(old), Some(new)) if old != new => {
            return Err(fields.wrong("skill_id", "and `workflow_id` name different workflows"));
        }
        (Some(it), _) | (None, Some(it)) => it,
        (None, None) => {
            let reason = "is required, or `skill_id` instead";
            return Err(fields.wrong("workflow_id", reason));
        }
    };
    if workflow.trim().is_empty() {
        let name = if old.is_some() { "workflow_id" } else { "skill_id" };
        return Err(fields.wrong(name, "must not be blank"));
    }
    let notes = limited(&fields, "release_notes", NOTES_CHARS)?;
    Ok((workflow.to_owned(), notes.map(str::to_owned)))
}

pub fn decode_search(body: &Value) -> Result<TemplateSearchOrder, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let query = fields.required_text("query")?;
    if QUERY_CHARS < query.chars().count() {
        return Err(too_long(&fields, "query", QUERY_CHARS));
    }
    let is_mine = is_mine(&fields)?;
    let most = u64::try_from(MOST_HITS).unwrap_or(u64::MAX);
    let limit = fields.whole("limit", 1, most)?.and_then(|limit| usize::try_from(limit).ok());
    Ok(TemplateSearchOrder { query: query.to_owned(), is_mine, limit: limit.unwrap_or(MOST_HITS) })
}

/// Whether only those of the caller are wanted.
pub(crate) fn is_mine(fields: &RequestFields<'_>) -> Result<bool, Problem> {
    match fields.text("filter")? {
        None | Some("all") => Ok(false),
        Some("mine") => Ok(true),
        Some(_) => Err(fields.wrong("filter", "must be all or mine")),
    }
}

/// The template, and the name of the fork.
pub fn decode_fork(body: &Value) -> Result<(TemplateRef, Option<String>), Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let identifier = fields.required_text("identifier")?;
    let version = fields.whole("version", 1, u64::from(u32::MAX))?;
    let version = version.and_then(|version| u32::try_from(version).ok());
    let name = limited(&fields, "name", NAME_CHARS)?;
    if name.is_some_and(|name| name.trim().is_empty()) {
        return Err(fields.wrong("name", "must not be blank"));
    }
    Ok((reference(identifier, version)?, name.map(str::to_owned)))
}

pub fn decode_deprecate(body: &Value) -> Result<Option<String>, Problem> {
    one(body, "message")
}

pub fn decode_archive(body: &Value) -> Result<Option<String>, Problem> {
    one(body, "archive_reason")
}

fn one(body: &Value, name: &str) -> Result<Option<String>, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let text = limited(&fields, name, NOTES_CHARS)?;
    Ok(text.filter(|text| !text.trim().is_empty()).map(str::to_owned))
}

fn limited<'a>(
    fields: &RequestFields<'a>,
    name: &str,
    most: usize,
) -> Result<Option<&'a str>, Problem> {
    let text = fields.text(name)?;
    if text.is_some_and(|text| most < text.chars().count()) {
        return Err(too_long(fields, name, most));
    }
    if text.is_some_and(|text| text.contains('\0')) {
        return Err(fields.wrong(name, "contains a NUL character"));
    }
    Ok(text)
}

fn too_long(fields: &RequestFields<'_>, name: &str, most: usize) -> Problem {
    fields.wrong(name, &format!("must have at most {most} characters"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_workflow_is_named_under_either_name() {
        let read = |body: Value| decode_publish(&body).map(|(workflow, _)| workflow);
        assert_eq!(read(json!({ "workflow_id": "a" })).unwrap(), "a");
        assert_eq!(read(json!({ "skill_id": "a", "workflow_id": null })).unwrap(), "a");
        assert_eq!(read(json!({ "skill_id": "a", "workflow_id": "a" })).unwrap(), "a");
        for (body, field) in [
            (json!({}), "workflow_id"),
            (json!({ "skill_id": "a", "workflow_id": "b" }), "skill_id"),
            (json!({ "skill_id": " " }), "skill_id"),
            (json!({ "workflow": "a" }), "workflow_id"),
        ] {
            assert_eq!(read(body).unwrap_err().field.as_deref(), Some(field));
        }
    }
}

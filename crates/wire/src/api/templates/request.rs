//! Requests about templates.

use jurat_core::{
    code::ProblemCode,
    workflow::{search::MOST_HITS, template::TemplateRef},
};
use serde_json::Value;

use crate::{
    api::kit::{
        json::short,
        request::{
            self, FieldFault, request, text, values,
            values::{
                Count, Identifier, NOT_BLANK, PlainText, VersionNumber, filled_text, text_of,
            },
        },
    },
    problem::Problem,
};

const REMARK_CHARS: usize = 4_000;
const QUERY_CHARS: usize = 500;

request! {
    /// A workflow to publish.
    pub open struct PublishTemplateRequest, draft PublishTemplateDraft {
        /// The id or slug of one of the caller's workflows.
        workflow_id: Option<PlainText<200>>,
        /// Alias of `workflow_id`; one of the two is required.
        skill_id: Option<PlainText<200>>,
        /// What is new in this version.
        release_notes: Option<Remark>,
    }

    /// Search query.
    pub open struct SearchTemplatesRequest, draft SearchTemplatesDraft {
        /// Search query.
        query: TemplateQuery,
        /// `all`, or `mine` for the caller's own.
        filter: Option<OnlyMine>,
        /// Number of results to return; defaults to 10.
        limit: Option<Count<1, 10>>,
    }

    /// A template to fork.
    pub open struct ForkTemplateRequest, draft ForkTemplateDraft {
        /// The id of a template, or `@handle/slug`; append `@vN` to pin a version.
        identifier: TemplateName,
        /// The version to fork; defaults to the newest.
        version: Option<VersionNumber>,
        /// The name of the fork; defaults to the template's name.
        name: Option<PlainText<200>>,
    }

    /// Why a version is deprecated.
    pub open struct DeprecateVersionRequest, draft DeprecateVersionDraft {
        /// Message to users of the version.
        message: Option<Remark>,
    }

    /// Why a template is archived.
    pub open struct ArchiveTemplateRequest, draft ArchiveTemplateDraft {
        /// Reason.
        archive_reason: Option<Remark>,
    }

    /// The user who is offered a workflow or template.
    pub open struct TransferTemplateRequest, draft TransferTemplateDraft {
        /// An e-mail address, a handle, or an account id.
        new_owner_user_id_or_email: Identifier,
    }
}

values! {
    /// A text for other users, which may be blank.
    pub struct Remark(String):
        text().pattern(Some(r"^[^\x00]*$")).max_length(Some(REMARK_CHARS)) => remark;

    /// A search query for templates.
    pub struct TemplateQuery(String):
        text().pattern(Some(NOT_BLANK)).max_length(Some(QUERY_CHARS)) => query;

    /// Whether only the caller's own templates are wanted.
    pub struct OnlyMine(bool as String): text().pattern(Some("^(all|mine)$")) => only_mine;

    /// A reference to a template. Any text that is not blank is accepted: a malformed reference is
    /// a template that does not exist.
    pub struct TemplateName(String): text().pattern(Some(TEMPLATE)) => template_name;
}

/// Pattern of a reference: an id, or a handle and a slug, with an optional version.
const TEMPLATE: &str = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$";

/// Reads the user who is offered a template.
pub fn decode_transfer(body: &Value) -> Result<String, Problem> {
    let request: TransferTemplateRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.new_owner_user_id_or_email.0)
}

/// A search for templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSearchOrder {
    pub query: String,
    pub is_mine: bool,
    pub limit: usize,
}

/// Reads a reference to a template, with a separately given version. A malformed reference is a
/// template that does not exist.
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

/// Reads the workflow and the release notes.
pub fn decode_publish(body: &Value) -> Result<(String, Option<String>), Problem> {
    let request: PublishTemplateRequest = request::read(body, ProblemCode::ValidationError)?;
    let workflow = match (request.workflow_id, request.skill_id) {
        (Some(workflow), Some(skill)) if workflow != skill => {
            return Err(request::wrong("skill_id", "and `workflow_id` name different workflows"));
        }
        (Some(it), _) | (None, Some(it)) => it.0,
        (None, None) => {
            return Err(request::wrong("workflow_id", "is required, or `skill_id` instead"));
        }
    };
    Ok((workflow, request.release_notes.map(|notes| notes.0)))
}

/// Reads a search for templates.
pub fn decode_search(body: &Value) -> Result<TemplateSearchOrder, Problem> {
    let request: SearchTemplatesRequest = request::read(body, ProblemCode::ValidationError)?;
    let limit = request.limit.and_then(|limit| usize::try_from(limit.0).ok());
    Ok(TemplateSearchOrder {
        query: request.query.0,
        is_mine: request.filter.is_some_and(|filter| filter.0),
        limit: limit.unwrap_or(MOST_HITS),
    })
}

/// Reads the template and the name of the fork.
pub fn decode_fork(body: &Value) -> Result<(TemplateRef, Option<String>), Problem> {
    let request: ForkTemplateRequest = request::read(body, ProblemCode::ValidationError)?;
    let version = request.version.map(|version| version.0);
    Ok((reference(&request.identifier.0, version)?, request.name.map(|name| name.0)))
}

/// Reads the message to users of a deprecated version.
pub fn decode_deprecate(body: &Value) -> Result<Option<String>, Problem> {
    let request: DeprecateVersionRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(said(request.message))
}

/// Reads the reason for archiving a template.
pub fn decode_archive(body: &Value) -> Result<Option<String>, Problem> {
    let request: ArchiveTemplateRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(said(request.archive_reason))
}

/// The remark, unless it is blank.
fn said(remark: Option<Remark>) -> Option<String> {
    remark.map(|remark| remark.0).filter(|text| !text.trim().is_empty())
}

fn remark(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    if REMARK_CHARS < text.chars().count() {
        return Err(format!("must have at most {REMARK_CHARS} characters").into());
    }
    if text.contains('\0') {
        return Err("must not contain a NUL character".into());
    }
    Ok(text.to_owned())
}

fn query(value: &Value) -> Result<String, FieldFault> {
    let text = filled_text(value)?;
    if QUERY_CHARS < text.chars().count() {
        return Err(format!("must have at most {QUERY_CHARS} characters").into());
    }
    Ok(text.to_owned())
}

fn only_mine(value: &Value) -> Result<bool, FieldFault> {
    match text_of(value)? {
        "all" => Ok(false),
        "mine" => Ok(true),
        _ => Err("must be all or mine".into()),
    }
}

fn template_name(value: &Value) -> Result<String, FieldFault> {
    filled_text(value).map(str::to_owned)
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

//! What the tools for workflows take, where that is not the body of a request.

use jurat_core::{code::Code, workflow::Whose};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    api::{fields::Fields, words, workflows},
    problem::Problem,
};

const IDS: [&str; 2] = ["skill_id", "workflow_id"];

/// Which workflow: `skill_id` or `workflow_id`, an id, a slug or a name.
#[derive(Debug, ToSchema)]
pub struct WorkflowArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
}

/// Which workflow, and which version of it.
#[derive(Debug, ToSchema)]
pub struct WorkflowVersionArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// The version; the current one when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which file of which workflow.
#[derive(Debug, ToSchema)]
pub struct WorkflowFileArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// Where the file lies beside the body.
    pub path: String,
    /// The version; the current one when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which files of which workflow.
#[derive(Debug, ToSchema)]
pub struct WorkflowFilesArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// Where the files lie beside the body.
    #[schema(min_items = 1, max_items = 100)]
    pub paths: Vec<String>,
    /// The version; the current one when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which workflows to list.
#[derive(Debug, ToSchema)]
pub struct ListWorkflowsArguments {
    /// Whose workflows: `all` when left out.
    pub filter: Option<words::WhoseWorkflows>,
    /// Only those with this tag.
    pub tag: Option<String>,
    /// A text that stands in the name, the tags, the description or the outcome.
    pub search: Option<String>,
    /// The caller's own that are put away too.
    pub include_archived: Option<bool>,
    /// How many to return; 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Whom to let use a workflow.
#[derive(Debug, ToSchema)]
pub struct GrantWorkflowArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// The e-mail address of a user, or `@` and the handle of a team.
    pub grantee_email_or_at_team_handle: String,
    /// `view`, `edit` or `admin`.
    pub role: String,
    /// Whether versions before the current one are shared too.
    pub include_history: Option<bool>,
}

/// Whose grant ends.
#[derive(Debug, ToSchema)]
pub struct RevokeWorkflowGrantArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// The e-mail address of a user, or `@` and the handle of a team.
    pub grantee_email_or_at_team_handle: String,
}

/// Who is asked to own a workflow.
#[derive(Debug, ToSchema)]
pub struct TransferWorkflowArguments {
    /// The id, the slug or the name of a workflow.
    pub skill_id: Option<String>,
    /// The same.
    pub workflow_id: Option<String>,
    /// The e-mail address, the id, or `@` and the handle of a user.
    pub new_owner_user_id_or_email: String,
}

/// Which workflows a list has.
#[derive(Debug)]
pub struct ListOrder {
    pub filter: Whose,
    pub tag: Option<String>,
    pub search: Option<String>,
    pub with_archived: bool,
    pub limit: u32,
    pub cursor: Option<String>,
}

pub fn list(arguments: &Value) -> Result<ListOrder, Problem> {
    let names = ["filter", "tag", "search", "include_archived", "limit", "cursor"];
    let fields = known(arguments, &names)?;
    let text = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    let filter = workflows::whose(fields.text("filter")?)
        .map_err(|error| fields.wrong("filter", &error.problem))?;
    let limit = fields.whole("limit", 1, 200)?.unwrap_or(50);
    Ok(ListOrder {
        filter,
        tag: text("tag")?,
        search: text("search")?,
        with_archived: fields.flag("include_archived")? == Some(true),
        limit: u32::try_from(limit).unwrap_or(50),
        cursor: text("cursor")?,
    })
}

/// A workflow, the version that is asked for beside it, and all else as the body of a request.
pub fn named<'a>(
    arguments: &'a Value,
    others: &[&str],
) -> Result<(&'a str, Option<u32>, Value), Problem> {
    let names: Vec<&str> = IDS.iter().chain(&["version"]).chain(others).copied().collect();
    let fields = known(arguments, &names)?;
    let text = match (fields.text(IDS[0])?, fields.text(IDS[1])?) {
        (Some(one), Some(other)) if one != other => {
            return Err(fields.wrong(IDS[1], "contradicts `skill_id`; leave one out"));
        }
        (one, other) => one.or(other).ok_or_else(|| fields.wrong(IDS[0], "is required"))?,
    };
    let version = fields.whole("version", 1, u64::from(u32::MAX))?;
    let version = version.and_then(|version| u32::try_from(version).ok());
    let mut rest = arguments.as_object().cloned().unwrap_or_else(Map::new);
    rest.retain(|name, _| others.contains(&name.as_str()));
    Ok((text, version, Value::Object(rest)))
}

/// One path, or several.
pub fn paths(rest: &Value) -> Result<Vec<String>, Problem> {
    let fields = Fields::of_body(rest, Code::ValidationError)?;
    if let Some(path) = fields.text("path")? {
        return Ok(vec![path.to_owned()]);
    }
    let paths: Vec<String> = fields.texts("paths")?.into_iter().map(str::to_owned).collect();
    if paths.is_empty() || paths.len() > 100 {
        return Err(fields.wrong("paths", "must have 1 to 100 paths"));
    }
    Ok(paths)
}

/// Models that misspell an argument are told so.
fn known<'a>(arguments: &'a Value, names: &[&str]) -> Result<Fields<'a>, Problem> {
    let fields = Fields::of_body(arguments, Code::ValidationError)?;
    fields.refuse_others(names)?;
    Ok(fields)
}

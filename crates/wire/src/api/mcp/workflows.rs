//! What the tools for workflows take, where that is not the body of a request.

use jurat_core::{code::ProblemCode, workflow::OwnershipFilter};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::arguments::{given, number, position_of};
use crate::{
    api::{
        kit::{choices::Person, fields::RequestFields, words},
        workflows,
    },
    problem::Problem,
};

const IDS: [&str; 2] = ["skill_id", "workflow_id"];

/// A workflow: its id, slug or name, as `skill_id` or `workflow_id`.
#[derive(Debug, ToSchema)]
pub struct WorkflowArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
}

/// A workflow and a version of it.
#[derive(Debug, ToSchema)]
pub struct WorkflowVersionArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The version; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// The workflow to optimize.
#[derive(Debug, ToSchema)]
pub struct OptimizeWorkflowArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// Maximum number of iterations.
    #[schema(minimum = 1, maximum = 1000)]
    pub max_iterations: Option<u32>,
}

/// A file of a workflow.
#[derive(Debug, ToSchema)]
pub struct WorkflowFileArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The path of the file.
    #[schema(pattern = r"\S")]
    pub path: String,
    /// The version; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Files of a workflow.
#[derive(Debug, ToSchema)]
pub struct WorkflowFilesArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The paths of the files.
    #[schema(min_items = 1, max_items = 100)]
    pub paths: Vec<String>,
    /// The version; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which workflows to list.
#[derive(Debug, ToSchema)]
pub struct ListWorkflowsArguments {
    /// Which workflows to include; defaults to `all`.
    pub filter: Option<words::WhoseWorkflows>,
    /// Only workflows with this tag.
    pub tag: Option<String>,
    /// Text that the name, tags, description or outcome contains.
    pub search: Option<String>,
    /// Include the caller's archived workflows.
    pub include_archived: Option<bool>,
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// A grant of a workflow.
#[derive(Debug, ToSchema)]
pub struct GrantWorkflowArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The e-mail address of a user, or `@` and the handle of a team.
    pub grantee_email_or_at_team_handle: Person,
    /// `view`, `edit` or `admin`.
    #[schema(pattern = "^(view|edit|admin)$")]
    pub role: String,
    /// Whether to share versions before the current one too.
    pub include_history: Option<bool>,
}

/// A grant to revoke.
#[derive(Debug, ToSchema)]
pub struct RevokeWorkflowGrantArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The e-mail address of a user, or `@` and the handle of a team.
    pub grantee_email_or_at_team_handle: Person,
}

/// The new owner of a workflow.
#[derive(Debug, ToSchema)]
pub struct TransferWorkflowArguments {
    /// The id, slug or name of a workflow.
    pub skill_id: Option<String>,
    /// Alias of `skill_id`.
    pub workflow_id: Option<String>,
    /// The e-mail address or id of a user, or `@` and the user's handle.
    pub new_owner_user_id_or_email: Person,
}

/// Which workflows a list has.
#[derive(Debug)]
pub struct WorkflowListOrder {
    pub filter: OwnershipFilter,
    pub tag: Option<String>,
    pub search: Option<String>,
    pub with_archived: bool,
    pub limit: u32,
    pub cursor: Option<String>,
}

pub fn list(arguments: &Value) -> Result<WorkflowListOrder, Problem> {
    let fields = given(arguments)?;
    let text = |name: &str| fields.text(name).map(|text| text.map(str::to_owned));
    let filter = workflows::whose(fields.text("filter")?)
        .map_err(|error| fields.wrong("filter", &error.problem))?;
    let (limit, cursor) = position_of(&fields)?;
    Ok(WorkflowListOrder {
        filter,
        tag: text("tag")?,
        search: text("search")?,
        with_archived: fields.flag("include_archived")? == Some(true),
        limit,
        cursor,
    })
}

/// A workflow, the version where `others` has one, and all of `others` as the body of a request.
pub fn named<'a>(
    arguments: &'a Value,
    others: &[&str],
) -> Result<(&'a str, Option<u32>, Value), Problem> {
    let fields = given(arguments)?;
    let text = match (fields.text(IDS[0])?, fields.text(IDS[1])?) {
        (Some(one), Some(other)) if one != other => {
            return Err(fields.wrong(IDS[1], "contradicts `skill_id`; leave one out"));
        }
        (one, other) => {
            let reason = "is required, or `workflow_id` instead";
            one.or(other).ok_or_else(|| fields.wrong(IDS[0], reason))?
        }
    };
    let has_version = others.contains(&"version");
    let version = if has_version { number(&fields, "version", u32::MAX)? } else { None };
    let mut rest = arguments.as_object().cloned().unwrap_or_else(Map::new);
    rest.retain(|name, _| others.contains(&name.as_str()));
    Ok((text, version, Value::Object(rest)))
}

/// A workflow, and how often a loop goes around.
pub fn optimize(arguments: &Value) -> Result<(&str, Option<u32>), Problem> {
    let (text, _, rest) = named(arguments, &["max_iterations"])?;
    let fields = RequestFields::of_body(&rest, ProblemCode::ValidationError)?;
    Ok((text, number(&fields, "max_iterations", 1_000)?))
}

/// A file of a workflow: the workflow, its version, and the path.
pub fn file(arguments: &Value) -> Result<(&str, Option<u32>, String), Problem> {
    let (text, version, rest) = named(arguments, &["version", "path"])?;
    let fields = RequestFields::of_body(&rest, ProblemCode::ValidationError)?;
    Ok((text, version, fields.required_text("path")?.to_owned()))
}

/// Files of a workflow: the workflow, its version, and the paths.
pub fn files(arguments: &Value) -> Result<(&str, Option<u32>, Vec<String>), Problem> {
    let (text, version, rest) = named(arguments, &["version", "paths"])?;
    let fields = RequestFields::of_body(&rest, ProblemCode::ValidationError)?;
    let paths: Vec<String> = fields.texts("paths")?.into_iter().map(str::to_owned).collect();
    if paths.is_empty() || paths.len() > 100 {
        return Err(fields.wrong("paths", "must have 1 to 100 paths"));
    }
    Ok((text, version, paths))
}

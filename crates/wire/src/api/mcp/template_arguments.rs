//! What the tools for templates and for instructions take, where that is no body of a request.

use jurat_core::{code::Code, template::TemplateRef};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    api::{fields::Fields, templates::reference},
    problem::Problem,
};

/// What a tool takes that needs nothing.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// A workflow.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillArguments {
    /// The id, the slug or the name of a workflow.
    #[schema(pattern = r"\S")]
    pub skill_id: String,
}

/// A workflow that a loop works on.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OptimizeArguments {
    /// The id, the slug or the name of a workflow.
    #[schema(pattern = r"\S")]
    pub skill_id: String,
    /// How often the loop goes around at the most.
    #[schema(minimum = 1, maximum = 1000)]
    pub max_iterations: Option<u32>,
}

/// A version of a workflow.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckSkillArguments {
    /// The id, the slug or the name of a workflow.
    #[schema(pattern = r"\S")]
    pub skill_id: String,
    /// The current one when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// A template.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(pattern = r"\S")]
    pub template_id: String,
}

/// A version of a template.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TemplateVersionArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(pattern = r"\S")]
    pub template_id: String,
    /// The number of the version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: u32,
}

/// A version of a template, and why it should not be used any more.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeprecateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(pattern = r"\S")]
    pub template_id: String,
    /// The number of the version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: u32,
    /// What to tell those who use it.
    pub message: Option<String>,
}

/// A template, and why it is archived.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchiveArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(pattern = r"\S")]
    pub template_id: String,
    /// Why.
    pub archive_reason: Option<String>,
}

/// A template that somebody may see.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTemplateArguments {
    /// The id of a template, or `@handle/slug`; `@vN` behind it pins a version.
    #[schema(pattern = r"\S")]
    pub identifier: String,
    /// The newest when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// A file of a template.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GetTemplateFileArguments {
    /// The id of a template, or `@handle/slug`; `@vN` behind it pins a version.
    #[schema(pattern = r"\S")]
    pub identifier: String,
    /// The path of the file.
    #[schema(pattern = r"\S")]
    pub path: String,
    /// The newest when left out.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which templates to list.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ListTemplatesArguments {
    /// How many to return; 50 when left out.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// `all`, or `mine` for those of the caller.
    #[schema(pattern = "^(all|mine)$")]
    pub filter: Option<String>,
    /// Only those that have this text in what the list shows.
    pub search: Option<String>,
}

/// A template, and somebody who is offered it.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferTemplateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(pattern = r"\S")]
    pub template_id: String,
    /// An e-mail address, a handle, or the id of an account.
    #[schema(pattern = r"\S")]
    pub new_owner_user_id_or_email: String,
}

/// Which templates a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateListOrder {
    pub limit: u32,
    pub cursor: Option<String>,
    pub is_mine: bool,
    pub search: Option<String>,
}

pub fn nothing(arguments: &Value) -> Result<(), Problem> {
    known(arguments, &[]).map(drop)
}

pub fn skill(arguments: &Value) -> Result<&str, Problem> {
    known(arguments, &["skill_id"])?.required_text("skill_id")
}

/// A workflow, and a whole number beside it.
pub fn skill_and<'a>(
    arguments: &'a Value,
    name: &str,
    most: u32,
) -> Result<(&'a str, Option<u32>), Problem> {
    let fields = known(arguments, &["skill_id", name])?;
    Ok((fields.required_text("skill_id")?, number(&fields, name, most)?))
}

pub fn template(arguments: &Value) -> Result<TemplateRef, Problem> {
    let fields = known(arguments, &["template_id"])?;
    reference(fields.required_text("template_id")?, None)
}

/// A template, a version of it, and a text where the tool takes one.
pub fn template_version<'a>(
    arguments: &'a Value,
    text: Option<&str>,
) -> Result<(TemplateRef, u32, Option<&'a str>), Problem> {
    let names: Vec<&str> = ["template_id", "version"].into_iter().chain(text).collect();
    let fields = known(arguments, &names)?;
    let wanted = reference(fields.required_text("template_id")?, None)?;
    let version = number(&fields, "version", u32::MAX)?;
    let version = version.ok_or_else(|| fields.wrong("version", "is required"))?;
    let text = match text {
        Some(name) => fields.text(name)?,
        None => None,
    };
    Ok((wanted, version, text))
}

pub fn template_and_text<'a>(
    arguments: &'a Value,
    name: &str,
) -> Result<(TemplateRef, Option<&'a str>), Problem> {
    let fields = known(arguments, &["template_id", name])?;
    Ok((reference(fields.required_text("template_id")?, None)?, fields.text(name)?))
}

pub fn identifier(arguments: &Value) -> Result<TemplateRef, Problem> {
    let fields = known(arguments, &["identifier", "version"])?;
    reference(fields.required_text("identifier")?, number(&fields, "version", u32::MAX)?)
}

pub fn identifier_and_path(arguments: &Value) -> Result<(TemplateRef, &str), Problem> {
    let fields = known(arguments, &["identifier", "path", "version"])?;
    let version = number(&fields, "version", u32::MAX)?;
    let wanted = reference(fields.required_text("identifier")?, version)?;
    Ok((wanted, fields.required_text("path")?))
}

pub fn list(arguments: &Value) -> Result<TemplateListOrder, Problem> {
    let fields = known(arguments, &["limit", "cursor", "filter", "search"])?;
    let is_mine = match fields.text("filter")? {
        None | Some("all") => false,
        Some("mine") => true,
        Some(_) => return Err(fields.wrong("filter", "must be all or mine")),
    };
    Ok(TemplateListOrder {
        limit: number(&fields, "limit", 200)?.unwrap_or(50),
        cursor: fields.text("cursor")?.map(str::to_owned),
        is_mine,
        search: fields.text("search")?.map(str::to_owned),
    })
}

fn number(fields: &Fields<'_>, name: &str, most: u32) -> Result<Option<u32>, Problem> {
    let number = fields.whole(name, 1, u64::from(most))?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// Models that misspell an argument are told so.
fn known<'a>(arguments: &'a Value, names: &[&str]) -> Result<Fields<'a>, Problem> {
    let fields = Fields::of_body(arguments, Code::ValidationError)?;
    fields.refuse_others(names)?;
    Ok(fields)
}

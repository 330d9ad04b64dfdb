//! What the tools for templates and for instructions take, where that is no body of a request.

use jurat_core::workflow::template::TemplateRef;
use serde_json::Value;
use utoipa::ToSchema;

use super::arguments::{given, number, position_of};
use crate::{
    api::templates::{is_mine, reference},
    problem::Problem,
};

/// A template.
#[derive(Debug, ToSchema)]
pub struct TemplateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub template_id: String,
}

/// A version of a template.
#[derive(Debug, ToSchema)]
pub struct TemplateVersionArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub template_id: String,
    /// The number of the version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: u32,
}

/// A version of a template, and why it is deprecated.
#[derive(Debug, ToSchema)]
pub struct DeprecateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub template_id: String,
    /// The number of the version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: u32,
    /// Message to users of the version.
    pub message: Option<String>,
}

/// A template, and why it is archived.
#[derive(Debug, ToSchema)]
pub struct ArchiveArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub template_id: String,
    /// Reason.
    pub archive_reason: Option<String>,
}

/// A template that the caller can see.
#[derive(Debug, ToSchema)]
pub struct GetTemplateArguments {
    /// The id of a template, or `@handle/slug`; append `@vN` to pin a version.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub identifier: String,
    /// Defaults to the newest version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// A file of a template.
#[derive(Debug, ToSchema)]
pub struct GetTemplateFileArguments {
    /// The id of a template, or `@handle/slug`; append `@vN` to pin a version.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub identifier: String,
    /// The path of the file.
    #[schema(pattern = r"\S")]
    pub path: String,
    /// Defaults to the newest version.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Which templates to list.
#[derive(Debug, ToSchema)]
pub struct ListTemplatesArguments {
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// `all`, or `mine` for the caller's own.
    #[schema(pattern = "^(all|mine)$")]
    pub filter: Option<String>,
    /// Only templates that contain this text in their listed fields.
    pub search: Option<String>,
}

/// A template, and the user it is offered to.
#[derive(Debug, ToSchema)]
pub struct TransferTemplateArguments {
    /// The id of a template, or `@handle/slug`.
    #[schema(
        pattern = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$"
    )]
    pub template_id: String,
    /// An e-mail address, a handle, or an account id.
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

pub fn template(arguments: &Value) -> Result<TemplateRef, Problem> {
    let fields = given(arguments)?;
    reference(fields.required_text("template_id")?, None)
}

/// A template, a version of it, and a text where the tool takes one.
pub fn template_version<'a>(
    arguments: &'a Value,
    text: Option<&str>,
) -> Result<(TemplateRef, u32, Option<&'a str>), Problem> {
    let fields = given(arguments)?;
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
    let fields = given(arguments)?;
    Ok((reference(fields.required_text("template_id")?, None)?, fields.text(name)?))
}

/// A template, and the user it is offered to.
pub fn transfer(arguments: &Value) -> Result<(TemplateRef, &str), Problem> {
    let fields = given(arguments)?;
    let wanted = reference(fields.required_text("template_id")?, None)?;
    Ok((wanted, fields.required_text("new_owner_user_id_or_email")?))
}

pub fn identifier(arguments: &Value) -> Result<TemplateRef, Problem> {
    let fields = given(arguments)?;
    reference(fields.required_text("identifier")?, number(&fields, "version", u32::MAX)?)
}

pub fn identifier_and_path(arguments: &Value) -> Result<(TemplateRef, &str), Problem> {
    let fields = given(arguments)?;
    let version = number(&fields, "version", u32::MAX)?;
    let wanted = reference(fields.required_text("identifier")?, version)?;
    Ok((wanted, fields.required_text("path")?))
}

pub fn list(arguments: &Value) -> Result<TemplateListOrder, Problem> {
    let fields = given(arguments)?;
    let (limit, cursor) = position_of(&fields)?;
    Ok(TemplateListOrder {
        limit,
        cursor,
        is_mine: is_mine(&fields)?,
        search: fields.text("search")?.map(str::to_owned),
    })
}

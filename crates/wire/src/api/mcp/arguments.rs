//! What the tools for verifiers take, where that is not the body of a request.

use jurat_core::code::ProblemCode;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    api::{
        kit::{fields::RequestFields, known_fields::DescribedRequest, page::position},
        verifiers::DeployVerifierRequest,
    },
    problem::Problem,
};

const VERIFIER: &str = "verifier_id";
/// What a page of a list has at most, and when nobody says.
const LARGEST_PAGE: u32 = 200;
const USUAL_PAGE: u32 = 50;

/// Arguments of `deploy_verifier`.
#[derive(Debug, ToSchema)]
pub struct DeployVerifierArguments {
    /// The version to deploy: the first version of a new verifier, or the next version of the
    /// verifier with this name.
    pub payload: DeployVerifierRequest,
}

/// Arguments of `list_verifiers`.
#[derive(Debug, ToSchema)]
pub struct ListVerifiersArguments {
    /// Number of items to return; defaults to 50.
    #[schema(minimum = 1, maximum = 200)]
    pub limit: Option<u32>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// Arguments of `get_verifier`.
#[derive(Debug, ToSchema)]
pub struct GetVerifierArguments {
    /// The id or name of a verifier, or `@owner/name` for another owner's; append `@` and a version
    /// to pin one.
    #[schema(pattern = r"\S")]
    pub verifier_id: String,
    /// The version to show; defaults to the current one.
    #[schema(minimum = 1, maximum = 4_294_967_295u64)]
    pub version: Option<u32>,
}

/// Arguments of `revoke_verifier`.
#[derive(Debug, ToSchema)]
pub struct RevokeVerifierArguments {
    /// The id or name of a verifier.
    #[schema(pattern = r"\S")]
    pub verifier_id: String,
}

/// Arguments of `delete_verifier`.
#[derive(Debug, ToSchema)]
pub struct DeleteVerifierArguments {
    /// The id of a verifier; a name is not accepted.
    #[schema(pattern = r"\S")]
    pub verifier_id: String,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageOrder {
    pub limit: u32,
    pub cursor: Option<String>,
}

/// The body of the request that deploys a version.
pub fn payload(arguments: &Value) -> Result<&Value, Problem> {
    let fields = given(arguments)?;
    fields.get("payload").ok_or_else(|| fields.wrong("payload", "is required"))
}

pub fn page(arguments: &Value) -> Result<PageOrder, Problem> {
    let fields = given(arguments)?;
    let (limit, cursor) = position_of(&fields)?;
    Ok(PageOrder { limit, cursor })
}

/// `limit` and `cursor` among other arguments.
pub fn page_of(fields: &RequestFields<'_>) -> Result<(u32, Option<String>), Problem> {
    let limit = number(fields, "limit", LARGEST_PAGE)?.unwrap_or(USUAL_PAGE);
    Ok((limit, fields.text("cursor")?.map(str::to_owned)))
}

/// The same where the cursor is sealed: the place that it leads to.
pub(super) fn position_of(fields: &RequestFields<'_>) -> Result<(u32, Option<String>), Problem> {
    let (limit, cursor) = page_of(fields)?;
    Ok((limit, cursor.as_deref().map(position).transpose()?))
}

/// A verifier, and the version that is asked for beside it.
pub fn verifier_version(arguments: &Value) -> Result<(&str, Option<u32>), Problem> {
    let fields = given(arguments)?;
    let version = number(&fields, "version", u32::MAX)?;
    Ok((fields.required_text(VERIFIER)?, version))
}

pub fn verifier(arguments: &Value) -> Result<&str, Problem> {
    given(arguments)?.required_text(VERIFIER)
}

/// A verifier, and the body of the request that runs it, which stands beside its name.
pub fn verifier_run(arguments: &Value) -> Result<(&str, Value), Problem> {
    let verifier =
        RequestFields::of_body(arguments, ProblemCode::ValidationError)?.required_text(VERIFIER)?;
    let mut body = arguments.as_object().cloned().unwrap_or_else(Map::new);
    body.remove(VERIFIER);
    Ok((verifier, Value::Object(body)))
}

/// A whole number from 1 on, where it is given.
pub(super) fn number(
    fields: &RequestFields<'_>,
    name: &str,
    most: u32,
) -> Result<Option<u32>, Problem> {
    let number = fields.whole(name, 1, u64::from(most))?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// What a tool of the registry is given. As on its routes, what is not known is ignored.
pub(super) fn given(arguments: &Value) -> Result<RequestFields<'_>, Problem> {
    RequestFields::of_body(arguments, ProblemCode::ValidationError)
}

/// What any other tool is given; models that misspell an argument are told so.
pub(super) fn known_arguments<R: DescribedRequest>(
    arguments: &Value,
) -> Result<RequestFields<'_>, Problem> {
    let fields = given(arguments)?;
    fields.keep_to::<R>()?;
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_a_verifier_is_the_request_without_its_name() {
        let arguments = json!({ "verifier_id": "a@2", "inputs": { "text": "x" }, "fresh": true });
        let (verifier, body) = verifier_run(&arguments).unwrap();
        assert_eq!(verifier, "a@2");
        assert_eq!(body, json!({ "inputs": { "text": "x" }, "fresh": true }));
        assert_eq!(verifier_run(&json!({})).unwrap_err().field.as_deref(), Some("verifier_id"));
    }

    #[test]
    fn a_page_has_a_usual_size_and_a_largest_one() {
        assert_eq!(page(&json!({})).unwrap(), PageOrder { limit: 50, cursor: None });
        let sealed = crate::api::kit::page::cursor("c");
        let asked = page(&json!({ "limit": 200, "cursor": sealed })).unwrap();
        assert_eq!(asked, PageOrder { limit: 200, cursor: Some("c".to_owned()) });
        // The registry ignores what it does not know.
        assert_eq!(page(&json!({ "limits": 2 })).unwrap().limit, 50);
        for (arguments, field) in [
            (json!({ "limit": 0 }), "limit"),
            (json!({ "limit": 201 }), "limit"),
            (json!({ "cursor": "c" }), "cursor"),
        ] {
            assert_eq!(page(&arguments).unwrap_err().field.as_deref(), Some(field));
        }
    }
}

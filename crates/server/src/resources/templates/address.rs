//! Template names in addresses: an id, or a handle and a slug with a slash between them.

use axum::{
    extract::{FromRequestParts, RawPathParams},
    http::{Uri, request::Parts},
    response::Response,
};
use jurat_core::{code::ProblemCode, workflow::template::TemplateRef};
use jurat_wire::{api::templates, problem::Problem};

use crate::request::encode;
use crate::{request::page::QueryFilters, resources::verifiers::version};

/// A template as an address names it, with the rest of the address.
#[derive(Debug)]
pub(in crate::resources) struct TemplatePath {
    text: String,
    /// The number after `versions`, if the address has one.
    number: Option<String>,
    pub(super) filters: QueryFilters,
    uri: Uri,
}

impl<S: Send + Sync> FromRequestParts<S> for TemplatePath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let filters = QueryFilters::from_request_parts(parts, state).await?;
        let params = RawPathParams::from_request_parts(parts, state).await;
        let Ok(params) = params else { return Err(encode::problem(&nothing())) };
        let get = |name: &str| params.iter().find(|(it, _)| *it == name).map(|(_, text)| text);
        let first = get("ref").unwrap_or_default();
        let text = match get("slug") {
            Some(slug) => format!("{first}/{slug}"),
            None => first.to_owned(),
        };
        if text.contains('\0') {
            return Err(encode::problem(&nothing()));
        }
        let number = get("version").map(str::to_owned);
        Ok(Self { text, number, filters, uri: parts.uri.clone() })
    }
}

fn nothing() -> Problem {
    Problem::new(
        ProblemCode::NotFound,
        "the path contains characters that are not allowed in a name",
    )
}

impl TemplatePath {
    /// The template, with the version that the query or the name pins.
    pub(super) fn wanted(&self, parameters: &[&str]) -> Result<TemplateRef, Problem> {
        self.filters.only(parameters)?;
        templates::reference(&self.text, version(&self.filters)?)
    }

    /// The template, and the version number after `versions`.
    pub(super) fn numbered(&self) -> Result<(TemplateRef, u32), Problem> {
        self.filters.only(&[])?;
        let absent =
            || Problem::new(ProblemCode::NotFound, "there is no such version of the template");
        let number = self.number.as_deref().and_then(|text| text.parse().ok());
        let number = number.filter(|number| 0 < *number).ok_or_else(absent)?;
        Ok((templates::reference(&self.text, None)?, number))
    }

    /// The same address with another name for the template.
    pub(super) fn moved_to(&self, name: &str) -> String {
        let path = self.uri.path();
        let tail = if path.ends_with("/files") { "/files" } else { "" };
        let query = self.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("/v1/templates/{name}{tail}{query}")
    }
}

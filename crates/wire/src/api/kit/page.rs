//! A page of a list, the same for every resource.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use jurat_core::{canonical::digest, code::ProblemCode};
use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

use crate::problem::Problem;

/// How many digits of its digest a cursor begins with.
const CHECKSUM_DIGITS: usize = 8;

/// A cursor for a place in a list. One that no list returned is told from it.
pub fn cursor(place: &str) -> String {
    format!("{}{}", checksum(place), URL_SAFE_NO_PAD.encode(place))
}

/// The place of a cursor.
pub fn position(cursor: &str) -> Result<String, Problem> {
    let read = || {
        let (given, place) = cursor.split_at_checked(CHECKSUM_DIGITS)?;
        let place = String::from_utf8(URL_SAFE_NO_PAD.decode(place).ok()?).ok()?;
        (given == checksum(&place)).then_some(place)
    };
    read().ok_or_else(|| {
        let detail = "`cursor` was not returned by a list; leave it out to start at the first page";
        Problem::new(ProblemCode::ValidationError, detail).at("cursor")
    })
}

fn checksum(place: &str) -> String {
    let digest = digest(format!("cursor {place}").as_bytes());
    digest.trim_start_matches("sha256:").chars().take(CHECKSUM_DIGITS).collect()
}

/// Some items, and the cursor of the next page.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PageBody<'a, T> {
    pub items: Vec<T>,
    pub next_cursor: Option<Cow<'a, str>>,
}

impl<'a, T> PageBody<'a, T> {
    pub fn new(items: impl IntoIterator<Item = T>, next_cursor: Option<&'a str>) -> Self {
        let next_cursor = next_cursor.map(Cow::Borrowed);
        Self { items: items.into_iter().collect(), next_cursor }
    }
}

// Written by hand, because a derived one would be called `Page_Round` instead of `RoundPage`.
impl<T: ToSchema> PartialSchema for PageBody<'_, T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let cursor = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Send it as `cursor` to get the next page; null on the last page."));
        ObjectBuilder::new()
            .description(Some("A page of a list."))
            .property("items", items)
            .required("items")
            .property("next_cursor", cursor)
            .required("next_cursor")
            .build()
            .into()
    }
}

impl<T: ToSchema> ToSchema for PageBody<'_, T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_place_and_an_invented_one_nowhere() {
        for text in ["", "s1", "ä:b", "01a0c450-6c00-7538-a949-42a28a807973"] {
            assert_eq!(position(&cursor(text)).unwrap(), text);
        }
        for invented in ["", "s1", "00000000", "00000000czE", &cursor("s1")[1..], "äääää"] {
            assert_eq!(
                position(invented).unwrap_err().field.as_deref(),
                Some("cursor"),
                "{invented}"
            );
        }
    }
}

//! A page of a list, the same for every resource.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

/// Items of a list, with the cursor of the next page.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub struct PageBody<'a, T> {
    pub items: Vec<T>,
    pub next_cursor: Option<Cow<'a, str>>,
}

impl<'a, T> PageBody<'a, T> {
    /// A page with these items; the last page has no cursor.
    pub fn new(items: impl IntoIterator<Item = T>, next_cursor: Option<&'a str>) -> Self {
        let next_cursor = next_cursor.map(Cow::Borrowed);
        Self { items: items.into_iter().collect(), next_cursor }
    }
}

// Written by hand, because a derived schema would be named `Page_Round` instead of `RoundPage`.
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

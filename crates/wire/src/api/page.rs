//! A page of a list, the same for every resource.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

/// Some items, and where to go on.
#[derive(Debug, Serialize)]
pub struct Page<'a, T> {
    pub items: Vec<T>,
    pub next_cursor: Option<&'a str>,
}

impl<'a, T> Page<'a, T> {
    pub fn new(items: impl IntoIterator<Item = T>, next_cursor: Option<&'a str>) -> Self {
        Self { items: items.into_iter().collect(), next_cursor }
    }
}

// Written by hand, because a derived one would be called `Page_Round` instead of `RoundPage`.
impl<T: ToSchema> PartialSchema for Page<'_, T> {
    fn schema() -> RefOr<Schema> {
        let items = ArrayBuilder::new().items(Ref::from_schema_name(T::name()));
        let cursor = ObjectBuilder::new()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Send it as `cursor` to go on; null at the end."));
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

impl<T: ToSchema> ToSchema for Page<'_, T> {
    fn name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Page", T::name()))
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

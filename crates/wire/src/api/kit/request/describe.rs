//! Builds the schema of a request from the types of its fields.

use utoipa::{
    ToSchema,
    openapi::{
        RefOr,
        schema::{
            AdditionalProperties, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaType, Type,
        },
    },
};

use super::{RequestField, UnknownFields};

/// Schemas with their names in the document.
pub type SchemaParts = Vec<(String, RefOr<Schema>)>;

/// The schema of an object without its fields.
pub fn about(doc: &[&str], unknown: UnknownFields) -> ObjectBuilder {
    let object = object().description(joined(doc));
    match unknown {
        UnknownFields::Refused => {
            object.additional_properties(Some(AdditionalProperties::FreeForm(false)))
        }
        UnknownFields::Ignored => object,
    }
}

/// Adds a field to the schema of an object.
pub fn property<T: RequestField>(object: ObjectBuilder, name: &str, doc: &[&str]) -> ObjectBuilder {
    if !T::IS_DESCRIBED {
        return object;
    }
    let object = object.property(name, described(T::describe(), joined(doc)));
    if T::IS_REQUIRED { object.required(name) } else { object }
}

/// A reference to a schema that the document names.
pub fn component<T: ToSchema>() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(T::name()))
}

/// Adds the schema of a type that the document names, and the schemas that it refers to.
pub fn add_component<T: ToSchema>(parts: &mut SchemaParts) {
    parts.push((T::name().into_owned(), T::schema()));
    T::schemas(parts);
}

/// The schema, extended to allow null.
pub fn nullable(schema: RefOr<Schema>) -> RefOr<Schema> {
    let with_null = |kind: SchemaType| match kind {
        SchemaType::Type(kind) => SchemaType::from_iter([kind, Type::Null]),
        SchemaType::Array(kinds) => kinds.into_iter().chain([Type::Null]).collect(),
        SchemaType::AnyValue => SchemaType::AnyValue,
    };
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = with_null(object.schema_type);
            RefOr::T(Schema::Object(object))
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = with_null(array.schema_type);
            RefOr::T(Schema::Array(array))
        }
        other @ (RefOr::Ref(_) | RefOr::T(_)) => {
            let null = ObjectBuilder::new().schema_type(Type::Null);
            RefOr::T(OneOfBuilder::new().item(other).item(null).build().into())
        }
    }
}

/// The schema with the description of the field.
fn described(mut schema: RefOr<Schema>, doc: Option<String>) -> RefOr<Schema> {
    let Some(doc) = doc else { return schema };
    match &mut schema {
        RefOr::Ref(reference) => reference.description = doc,
        RefOr::T(Schema::Object(object)) => object.description = Some(doc),
        RefOr::T(Schema::Array(array)) => array.description = Some(doc),
        RefOr::T(Schema::OneOf(choice)) => match choice.items.first_mut() {
            Some(RefOr::Ref(reference)) => reference.description = doc,
            Some(RefOr::T(_)) | None => choice.description = Some(doc),
        },
        RefOr::T(_) => {}
    }
    schema
}

/// Joins the lines of a doc comment.
fn joined(doc: &[&str]) -> Option<String> {
    let lines: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A choice between schemas.
pub fn one_of(text: &str) -> OneOfBuilder {
    OneOfBuilder::new().description(Some(text))
}

/// The schema of a string.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// The schema of a whole number.
pub fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer)
}

/// The schema of an object.
pub fn object() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object)
}

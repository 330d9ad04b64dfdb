//! Declares requests: each field is written once, and its type defines its rules.
//!
//! `request!` declares the fields of a request. The reader, the messages about faults, the
//! detection of unknown fields, the OpenAPI schema and the draft that a client sends are all derived
//! from that declaration.

mod declare;
mod describe;
mod draft;
mod path;
pub mod unknown;
pub mod values;

use std::{borrow::Cow, collections::BTreeMap};

use jurat_core::code::ProblemCode;
use serde_json::{Map, Value};
use utoipa::{
    ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
    },
};

pub(crate) use self::declare::{named, request, values};
pub use self::{
    describe::{
        SchemaParts, about, add_component, component, integer, nullable, object, one_of, property,
        text,
    },
    draft::{DraftField, DraftValue},
    path::FieldPath,
};
use super::{
    faults::RequestFaults,
    json::{kind, short},
};
use crate::problem::Problem;
use unknown::{FieldShape, KnownFields, SearchDepth, UnknownField};

/// A type for fields of requests: how its values are read, and how the OpenAPI document describes
/// them.
pub trait RequestField: Sized {
    /// Whether the description lists the field as required.
    const IS_REQUIRED: bool = true;
    /// Whether the field is part of the description.
    const IS_DESCRIBED: bool = true;

    /// Reads a value that is present. Adds every fault to `faults`, and returns `None` if there is
    /// one.
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self>;

    /// The value of a field that is left out, or the reason why it is required.
    fn absent() -> Result<Self, &'static str> {
        Err("is required")
    }

    /// Reads a list of such values.
    fn read_items(
        value: &Value,
        at: &FieldPath<'_>,
        faults: &mut RequestFaults,
    ) -> Option<Vec<Self>> {
        let Some(items) = value.as_array() else {
            faults.add(at.wrong(&format!("must be a list of objects, not {}", kind(value))));
            return None;
        };
        let read = |(index, item): (usize, &Value)| {
            Self::read(item, &at.member(&index.to_string()), faults)
        };
        // Reads every item even if one fails, so that no fault is missed.
        let read: Vec<Option<Self>> = items.iter().enumerate().map(read).collect();
        read.into_iter().collect()
    }

    /// The schema of the value; a reference if the document names the type.
    fn describe() -> RefOr<Schema>;

    /// Adds the named schemas that [`RequestField::describe`] refers to.
    fn describe_parts(_parts: &mut SchemaParts) {}

    /// The known fields within the value.
    fn shape() -> FieldShape {
        FieldShape::Leaf
    }
}

/// A request, or an object within one.
pub trait RequestBody: RequestField + ToSchema {
    /// How unknown fields are handled.
    const UNKNOWN: UnknownFields;

    /// All fields of the request, including those of inner objects.
    fn known() -> &'static KnownFields;

    /// Adds the fields of the request to the schema of an object.
    fn properties(object: ObjectBuilder) -> ObjectBuilder;
}

/// How a request handles unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownFields {
    /// Unknown fields are refused by name, so that a misspelt field never silently weakens a
    /// request.
    Refused,
    /// Unknown fields are ignored, as clients of the registry expect.
    Ignored,
}

/// Why a value is refused, as the end of a sentence about its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldFault {
    /// The value breaks a rule.
    Wrong(Cow<'static, str>),
    /// The value asks for something that is not supported.
    Unsupported(Cow<'static, str>),
}

impl From<&'static str> for FieldFault {
    fn from(reason: &'static str) -> Self {
        Self::Wrong(Cow::Borrowed(reason))
    }
}

impl From<String> for FieldFault {
    fn from(reason: String) -> Self {
        Self::Wrong(Cow::Owned(reason))
    }
}

/// Reads a request; on failure returns its first fault.
pub fn read<R: RequestBody>(body: &Value, code: ProblemCode) -> Result<R, Problem> {
    read_all(body, code).map_err(|faults| faults.into_first(code))
}

/// Reads a request; on failure returns all its faults.
pub fn read_all<R: RequestBody>(body: &Value, code: ProblemCode) -> Result<R, RequestFaults> {
    let mut faults = RequestFaults::default();
    let at = FieldPath::body(code);
    note_unknown::<R>(body, &at, &mut faults);
    let read = R::read(body, &at, &mut faults);
    match read {
        Some(read) if faults.is_empty() => Ok(read),
        Some(_) | None => Err(faults),
    }
}

/// Adds a fault for each unknown field, up to a limit, unless the request ignores unknown fields.
pub fn note_unknown<R: RequestBody>(body: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) {
    let Some(members) = body.as_object().filter(|_| R::UNKNOWN == UnknownFields::Refused) else {
        return;
    };
    for stranger in R::known().unknown_fields(members, SearchDepth::All) {
        faults.add(refused(R::known(), &stranger, at));
    }
}

/// Refuses any unknown field of the request itself, on a surface that is stricter than others.
pub fn refuse_unknown<R: RequestBody>(body: &Value, code: ProblemCode) -> Result<(), Problem> {
    let Some(members) = body.as_object() else { return Ok(()) };
    let strangers = R::known().unknown_fields(members, SearchDepth::Top);
    let first = strangers.first();
    first.map_or(Ok(()), |it| Err(refused(R::known(), it, &FieldPath::body(code))))
}

/// Refuses an unknown field that looks misspelt, for requests that otherwise ignore unknown fields.
pub fn refuse_slips<R: RequestBody>(body: &Value, code: ProblemCode) -> Result<(), Problem> {
    let Some(members) = body.as_object() else { return Ok(()) };
    let strangers = R::known().unknown_fields(members, SearchDepth::Top);
    let slip = strangers.iter().find(|stranger| stranger.is_slip());
    slip.map_or(Ok(()), |it| Err(refused(R::known(), it, &FieldPath::body(code))))
}

fn refused(known: &KnownFields, stranger: &UnknownField<'_>, at: &FieldPath<'_>) -> Problem {
    let advice = known.advice(stranger, &at.to_string());
    at.member(&stranger.path).wrong(&format!("is not a known field{advice}"))
}

/// The members of a value that must be an object.
pub fn members<'v>(
    value: &'v Value,
    at: &FieldPath<'_>,
    faults: &mut RequestFaults,
) -> Option<&'v Map<String, Value>> {
    let members = value.as_object();
    if members.is_none() {
        faults.add(at.wrong(&format!("must be an object, not {}", kind(value))));
    }
    members
}

/// Reads one field of an object, under its name or its alias. Null counts as left out.
pub fn member<T: RequestField>(
    members: &Map<String, Value>,
    (name, alias): (&str, Option<&str>),
    at: &FieldPath<'_>,
    faults: &mut RequestFaults,
) -> Option<T> {
    let given = |name: &str| members.get(name).filter(|value| !value.is_null());
    let under_alias = alias.and_then(|alias| given(alias).map(|value| (alias, value)));
    let at_name = at.member(name);
    match (given(name), under_alias) {
        (Some(value), None) => T::read(value, &at_name, faults),
        (None, Some((alias, value))) => T::read(value, &at.member(alias), faults),
        (Some(_), Some((alias, _))) => {
            let reason = format!("means the same as `{name}`; leave one out");
            faults.add(at.member(alias).wrong(&reason));
            None
        }
        (None, None) => T::absent().map_err(|reason| faults.add(at_name.wrong(reason))).ok(),
    }
}

/// A problem with a field, found after the request was read, such as a broken rule across fields.
pub fn wrong(field: &str, reason: &str) -> Problem {
    FieldPath::body(ProblemCode::ValidationError).member(field).wrong(reason)
}

/// Adds the fault of a value without fields to `faults`, and returns the value if there is none.
pub fn noted<T>(
    read: Result<T, FieldFault>,
    at: &FieldPath<'_>,
    faults: &mut RequestFaults,
) -> Option<T> {
    let problem = |fault| match fault {
        FieldFault::Wrong(reason) => at.wrong(&reason),
        FieldFault::Unsupported(reason) => at.unsupported(&reason),
    };
    read.map_err(|fault| faults.add(problem(fault))).ok()
}

impl<T: RequestField> RequestField for Option<T> {
    const IS_REQUIRED: bool = false;
    const IS_DESCRIBED: bool = T::IS_DESCRIBED;

    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        T::read(value, at, faults).map(Some)
    }

    fn absent() -> Result<Self, &'static str> {
        Ok(None)
    }

    fn describe() -> RefOr<Schema> {
        nullable(T::describe())
    }

    fn describe_parts(parts: &mut SchemaParts) {
        T::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        T::shape()
    }
}

impl<T: RequestField> RequestField for Vec<T> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        T::read_items(value, at, faults)
    }

    fn describe() -> RefOr<Schema> {
        RefOr::T(ArrayBuilder::new().items(T::describe()).build().into())
    }

    fn describe_parts(parts: &mut SchemaParts) {
        T::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        FieldShape::Items(Box::new(T::shape()))
    }
}

impl<T: RequestField> RequestField for Box<T> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        T::read(value, at, faults).map(Self::new)
    }

    fn describe() -> RefOr<Schema> {
        T::describe()
    }

    fn describe_parts(parts: &mut SchemaParts) {
        T::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        T::shape()
    }
}

/// A known field that is not described: an alias, or a field that exists only to be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden<T>(pub Option<T>);

impl<T: RequestField> RequestField for Hidden<T> {
    const IS_REQUIRED: bool = false;
    const IS_DESCRIBED: bool = false;

    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        T::read(value, at, faults).map(|read| Self(Some(read)))
    }

    fn absent() -> Result<Self, &'static str> {
        Ok(Self(None))
    }

    fn describe() -> RefOr<Schema> {
        T::describe()
    }

    fn shape() -> FieldShape {
        FieldShape::Free
    }
}

/// A list with bounds that the schema describes and the conversion to the domain type checks.
#[derive(Debug)]
pub struct ListOf<T, const LEAST: usize, const MOST: usize>(pub Vec<T>);

impl<T: RequestField, const LEAST: usize, const MOST: usize> RequestField
    for ListOf<T, LEAST, MOST>
{
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        T::read_items(value, at, faults).map(Self)
    }

    fn describe() -> RefOr<Schema> {
        let least = Some(LEAST).filter(|least| 0 < *least);
        let list = ArrayBuilder::new().items(T::describe());
        RefOr::T(list.min_items(least).max_items(Some(MOST)).build().into())
    }

    fn describe_parts(parts: &mut SchemaParts) {
        T::describe_parts(parts);
    }

    fn shape() -> FieldShape {
        FieldShape::Items(Box::new(T::shape()))
    }
}

/// Any JSON value.
impl RequestField for Value {
    fn read(value: &Value, _at: &FieldPath<'_>, _faults: &mut RequestFaults) -> Option<Self> {
        Some(value.clone())
    }

    fn describe() -> RefOr<Schema> {
        RefOr::T(ObjectBuilder::new().schema_type(SchemaType::AnyValue).build().into())
    }

    fn shape() -> FieldShape {
        FieldShape::Free
    }
}

impl RequestField for bool {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let wrong = || format!("must be true or false, not {}", kind(value)).into();
        noted(value.as_bool().ok_or_else(wrong), at, faults)
    }

    fn describe() -> RefOr<Schema> {
        RefOr::T(ObjectBuilder::new().schema_type(Type::Boolean).build().into())
    }
}

impl RequestField for String {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        noted(values::text_of(value), at, faults).map(str::to_owned)
    }

    fn read_items(
        value: &Value,
        at: &FieldPath<'_>,
        faults: &mut RequestFaults,
    ) -> Option<Vec<Self>> {
        noted(values::texts_of(value), at, faults)
            .map(|texts| texts.into_iter().map(str::to_owned).collect())
    }

    fn describe() -> RefOr<Schema> {
        RefOr::T(text().build().into())
    }
}

/// An object whose members must all be strings; a fault names the member that is not.
impl RequestField for BTreeMap<String, String> {
    fn read(value: &Value, at: &FieldPath<'_>, faults: &mut RequestFaults) -> Option<Self> {
        let members = members(value, at, faults)?;
        let read = |(name, value): (&String, &Value)| {
            let text = String::read(value, &at.member(&short(name)), faults)?;
            Some((name.clone(), text))
        };
        members.iter().map(read).collect()
    }

    fn describe() -> RefOr<Schema> {
        let names = Schema::from(text().build());
        let map = object().property_names(Some(names)).additional_properties(Some(text()));
        RefOr::T(map.build().into())
    }
}

#[cfg(test)]
mod tests;

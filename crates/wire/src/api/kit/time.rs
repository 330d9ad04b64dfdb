//! Times as RFC 3339 text in UTC.

use std::borrow::Cow;

use jurat_core::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type},
    },
};

/// The time as RFC 3339 text; empty if it is out of range.
pub fn text(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros())
        .map_or_else(|_| String::new(), |at| at.to_string())
}

/// Reads a time; `None` if the text is not RFC 3339 or the year is not from 1970 to 9999.
pub fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    let is_ours = (0..=253_402_300_799).contains(&at.as_second());
    is_ours.then(|| Timestamp::from_micros(at.as_microsecond()))
}

/// The time as a JSON string.
pub fn value(at: Timestamp) -> Value {
    Value::String(text(at))
}

/// A time, as replies write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_str(&text(self.0))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(reader)?;
        let at = parse(&text).map(Self);
        at.ok_or_else(|| D::Error::custom(format!("`{text}` is not a time in RFC 3339")))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A time in UTC, as RFC 3339 text."))
            .build()
            .into()
    }
}

impl ToSchema for Time {}

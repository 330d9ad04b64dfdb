//! A member that some replies leave out and others may set to null.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Left out, or present; a present member may be null.
///
/// A field of this type needs `#[serde(default)]`, or a reply without the member cannot be read.
#[derive(Debug, Clone, Default)]
pub enum OptionalMember<T> {
    #[default]
    LeftOut,
    Is(Option<T>),
}

impl<T> OptionalMember<T> {
    /// Whether the member is left out, for `skip_serializing_if`.
    pub const fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
    }

    /// The value, or `None` if the member is left out or null.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::LeftOut => None,
            Self::Is(value) => value.as_ref(),
        }
    }
}

impl<T: Serialize> Serialize for OptionalMember<T> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::LeftOut => writer.serialize_none(),
            Self::Is(value) => value.serialize(writer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OptionalMember<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Option::deserialize(reader).map(Self::Is)
    }
}

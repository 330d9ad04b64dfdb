//! A member that one reply has, perhaps as null, and another has not.

use serde::{Serialize, Serializer};

/// Left out, or there; what is there may be null.
#[derive(Debug)]
pub enum OptionalMember<T> {
    LeftOut,
    Is(Option<T>),
}

impl<T> OptionalMember<T> {
    pub const fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
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

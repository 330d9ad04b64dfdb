//! The form of times and verdicts in the documents of a task.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{policy::EvaluationStatus, time::Timestamp};

/// In microseconds since 1970.
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        self.micros().serialize(writer)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        i64::deserialize(reader).map(Self::from_micros)
    }
}

/// By its name.
impl Serialize for EvaluationStatus {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        self.as_str().serialize(writer)
    }
}

impl<'de> Deserialize<'de> for EvaluationStatus {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let word = String::deserialize(reader)?;
        let known = [Self::Passed, Self::Failed, Self::Inconclusive];
        let found = known.into_iter().find(|status| status.as_str() == word);
        found.ok_or_else(|| D::Error::custom(format!("`{word}` is not a verdict")))
    }
}

//! The check `count`: the number of items in a list, or of members in an object.

use jurat_limits::size::as_u64;
use serde_json::Value;

use super::{CheckFailure, kind_of, read::CheckMembers};
use crate::{policy::params::BindError, reason};

#[derive(Debug, PartialEq)]
pub(super) struct CountCheck {
    min: Option<u64>,
    max: Option<u64>,
    equals: Option<u64>,
}

impl CountCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let terms = members.terms("count", &["min", "max", "equals"])?;
        let whole = |name| terms.optional(name, "a whole number, 0 or more", Value::as_u64);
        let read = Self { min: whole("min")?, max: whole("max")?, equals: whole("equals")? };
        if let (Some(min), Some(max)) = (read.min, read.max)
            && max < min
        {
            return Err(terms
                .path()
                .refuse("has a `min` above its `max`, which nothing can satisfy"));
        }
        if read == (Self { min: None, max: None, equals: None }) {
            return Err(terms.path().refuse("needs at least one of: min, max, equals"));
        }
        Ok(read)
    }

    pub(super) fn judge(&self, found: &Value, part: &str) -> Result<(), CheckFailure> {
        let (count, entries) = match found {
            Value::Array(items) => (as_u64(items.len()), "items"),
            Value::Object(members) => (as_u64(members.len()), "members"),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let why = format!("{part} is {}, not a list or an object.", kind_of(found));
                return Err(CheckFailure::unusable(why));
            }
        };
        let wanted = match self {
            Self { equals: Some(equals), .. } if *equals != count => format!("exactly {equals}"),
            Self { min: Some(min), .. } if count < *min => format!("at least {min}"),
            Self { max: Some(max), .. } if *max < count => format!("at most {max}"),
            _ => return Ok(()),
        };
        let why = format!("{part} has {count} {entries}; it must have {wanted}.");
        Err(CheckFailure::new(reason::CHECK_COUNT_WRONG, why))
    }
}

//! The check `required`: members that are present and not null.

use jurat_limits::quote::short;
use serde_json::Value;

use super::{
    CheckFailure,
    read::{CheckMembers, ParamPath},
    subject::{kind_of, pointer_work},
};
use crate::{
    policy::params::{BindError, is_pointer},
    reason,
    schema::WorkEstimate,
};

const MAX_REQUIRED: usize = 200;
const MAX_POINTER_BYTES: usize = 1_024;

#[derive(Debug, PartialEq)]
pub(super) struct RequiredCheck {
    members: Vec<RequiredMember>,
}

#[derive(Debug, PartialEq)]
struct RequiredMember {
    /// As the caller wrote it.
    written: String,
    pointer: String,
}

impl RequiredCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let (at, given) = members.get("required");
        let listed = given.as_array().filter(|list| !list.is_empty());
        let listed = listed
            .filter(|list| list.len() <= MAX_REQUIRED)
            .ok_or_else(|| at.refuse(&format!("must be a list of 1 to {MAX_REQUIRED} names")))?;
        let read = listed.iter().enumerate().map(|(index, item)| member(&at.child(index), item));
        Ok(Self { members: read.collect::<Result<_, _>>()? })
    }

    pub(super) fn work(&self) -> WorkEstimate {
        let followed = self.members.iter().map(|member| pointer_work(&member.pointer)).sum();
        WorkEstimate { applications: followed, ..WorkEstimate::default() }
    }

    pub(super) fn judge(&self, found: &Value, part: &str) -> Result<(), CheckFailure> {
        if !found.is_object() && !found.is_array() {
            let why = format!("{part} is {}, which has no members.", kind_of(found));
            return Err(CheckFailure::unusable(why));
        }
        let is_missing =
            |member: &&RequiredMember| found.pointer(&member.pointer).is_none_or(Value::is_null);
        let missing: Vec<String> = self
            .members
            .iter()
            .filter(is_missing)
            .map(|member| format!("`{}`", short(&member.written, 40)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let why = format!("{} must be present and not null in {part}.", missing.join(", "));
        Err(CheckFailure::new(reason::CHECK_REQUIRED_MISSING, why))
    }
}

/// A plain name selects a top-level member, a pointer a deeper one.
fn member(at: &ParamPath, item: &Value) -> Result<RequiredMember, BindError> {
    let refuse = || at.refuse("must be the name of a member, or a JSON Pointer such as /a/b");
    let written = item.as_str().filter(|text| !text.is_empty()).ok_or_else(refuse)?;
    let is_pointed = written.starts_with('/');
    if MAX_POINTER_BYTES < written.len() || is_pointed && !is_pointer(written) {
        return Err(refuse());
    }
    let pointer = if is_pointed {
        written.to_owned()
    } else {
        format!("/{}", written.replace('~', "~0").replace('/', "~1"))
    };
    Ok(RequiredMember { written: written.to_owned(), pointer })
}

//! The check `set`: the values of a list, regardless of order and repetition.

use std::{borrow::Borrow, collections::BTreeMap};

use jurat_limits::size::{as_u64, size_within};
use serde_json::Value;

use super::{CheckFailure, kind_of, read::CheckMembers};
use crate::{
    canonical::canonical,
    policy::{params::BindError, schema_thresholds::shown},
    reason,
    schema::WorkEstimate,
};

const MAX_VALUES: usize = 10_000;
/// How many values a note names.
const MAX_NAMED: usize = 3;
/// Writing a value canonically and sorting it in costs more than reading it.
const WRITTEN: u64 = 8;

#[derive(Debug, PartialEq)]
pub(super) struct SetCheck {
    equals: Option<CanonicalValues<Value>>,
    subset_of: Option<CanonicalValues<Value>>,
    superset_of: Option<CanonicalValues<Value>>,
}

/// Values by their canonical JSON.
type CanonicalValues<V> = BTreeMap<Vec<u8>, V>;

impl SetCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let terms = members.terms("set", &["equals", "subset_of", "superset_of"])?;
        let wanted = format!("a list of at most {MAX_VALUES} values");
        let listed = |name| {
            terms.optional(name, &wanted, |value| {
                let listed = value.as_array().filter(|list| list.len() <= MAX_VALUES)?;
                Some(listed.iter().map(|value| (key(value), value.clone())).collect())
            })
        };
        let read = Self {
            equals: listed("equals")?,
            subset_of: listed("subset_of")?,
            superset_of: listed("superset_of")?,
        };
        if read == (Self { equals: None, subset_of: None, superset_of: None }) {
            let problem = "needs at least one of: equals, subset_of, superset_of";
            return Err(terms.path().refuse(problem));
        }
        Ok(read)
    }

    pub(super) fn work(&self, found: &Value, most: u64) -> WorkEstimate {
        let wanted = [&self.equals, &self.subset_of, &self.superset_of];
        let wanted = wanted.into_iter().flatten().map(|values| as_u64(values.len()));
        let found = size_within(found, most).saturating_mul(WRITTEN);
        WorkEstimate {
            applications: wanted.fold(found, u64::saturating_add),
            ..WorkEstimate::default()
        }
    }

    pub(super) fn judge(&self, found: &Value, part: &str) -> Result<(), CheckFailure> {
        let Value::Array(items) = found else {
            let why = format!("{part} is {}, not a list.", kind_of(found));
            return Err(CheckFailure::unusable(why));
        };
        let held: CanonicalValues<&Value> = items.iter().map(|value| (key(value), value)).collect();
        for wanted in [&self.equals, &self.superset_of].into_iter().flatten() {
            if let Some(missing) = named(wanted, &held) {
                return Err(differs(format!("{part} lacks {missing}.")));
            }
        }
        for allowed in [&self.equals, &self.subset_of].into_iter().flatten() {
            if let Some(more) = named(&held, allowed) {
                return Err(differs(format!("{part} has {more}, which is not allowed.")));
            }
        }
        Ok(())
    }
}

fn key(value: &Value) -> Vec<u8> {
    let mut written = canonical(value);
    written.shrink_to_fit();
    written
}

fn differs(why: String) -> CheckFailure {
    CheckFailure::new(reason::CHECK_SET_DIFFERS, why)
}

/// The first few values that are missing from the others.
fn named<V: Borrow<Value>, W>(
    values: &CanonicalValues<V>,
    others: &CanonicalValues<W>,
) -> Option<String> {
    let mut beyond = values.iter().filter(|(key, _)| !others.contains_key(*key));
    let first = beyond.by_ref().take(MAX_NAMED).map(|(_, value)| shown(value.borrow()));
    let first: Vec<String> = first.collect();
    let more = beyond.count();
    match (first.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(first.join(", ")),
        (false, more) => Some(format!("{} and {more} more", first.join(", "))),
    }
}

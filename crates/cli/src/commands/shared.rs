//! Helpers that several commands share.

pub(crate) mod confirm;
pub(crate) mod gate;
pub(crate) mod input;
pub(crate) mod junit;
pub(crate) mod pages;

/// The values of a flag that can be repeated; `None` if it is not given.
pub(crate) fn given(values: &[String]) -> Option<Vec<String>> {
    (!values.is_empty()).then(|| values.to_vec())
}

//! What the requests and replies of every resource share.

pub mod choices;
pub(crate) mod faults;
pub mod fields;
pub mod known_fields;
pub mod member;
pub mod page;
pub mod terms;
pub mod time;
pub mod words;

#[cfg(test)]
mod described;

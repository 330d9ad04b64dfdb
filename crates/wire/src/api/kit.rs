//! Parts that requests and replies of all resources share.

pub mod choices;
pub mod faults;
pub mod json;
pub mod member;
pub mod page;
pub mod request;
pub mod terms;
pub mod time;
pub mod words;

#[cfg(test)]
mod described;

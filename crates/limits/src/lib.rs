//! Work limits for what callers send: JSON Schemas, patterns and CEL expressions.
//!
//! A computation cannot be stopped from outside, so the work is limited before it starts. Each of
//! the three is compiled only if its size has a limit, and each gives an upper limit of its work on
//! one value. Everything here is a pure function of the texts and values that it is given.

pub mod cel;
pub mod pattern;
pub mod quote;
pub mod schema;
pub mod size;
pub mod work;

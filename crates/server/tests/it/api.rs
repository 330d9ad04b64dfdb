//! The consensus API, a file per route.

mod checks;
mod delegate;
mod factcheck;
mod terms;
mod v2;
mod validate;

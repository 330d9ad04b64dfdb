//! The consensus API, a file per route.

mod checks;
mod delegate;
mod factcheck;
mod semantic;
mod spares;
mod terms;
mod unknown_fields;
mod v2;
mod validate;

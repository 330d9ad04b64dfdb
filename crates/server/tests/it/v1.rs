//! Our own resources, a file per resource.

mod api_keys;
mod doctor;
mod executors;
mod rounds;
mod sessions;
pub(crate) mod verifiers;

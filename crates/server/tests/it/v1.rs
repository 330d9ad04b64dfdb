//! Our own resources, a file per resource.

mod api_keys;
mod executors;
mod rounds;
mod sessions;

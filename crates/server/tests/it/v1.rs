//! Our own resources, a file per resource.

mod executors;
mod rounds;
mod sessions;

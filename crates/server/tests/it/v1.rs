//! Our own resources, a file per resource.

mod doctor;
mod executors;
mod rounds;
mod sessions;

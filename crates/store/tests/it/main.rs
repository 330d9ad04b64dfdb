//! One suite for both databases, and what only one of them has.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod backend;
mod backup;
mod conformance;
mod migrated;
mod postgres;
mod samples;
mod sqlite;

//! One suite for both databases, and tests of each database alone.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::panic, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "all else is a surprise")]

mod backend;
mod backup;
mod conformance;
mod migrated;
mod postgres;
mod samples;
mod sqlite;

//! All types that Jurat sends or receives as JSON, with their conversions.

pub mod api;
pub mod executor;
pub mod problem;
pub mod signature;

pub use jurat_core::strict_json;

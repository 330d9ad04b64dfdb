//! All types that Jurat sends or receives as JSON, with their conversions.

pub mod api;
pub mod executor;
pub mod mesh;
pub mod problem;
pub mod signature;
pub mod x402;

pub use jurat_core::strict_json;

//! Every type of Jurat that crosses a boundary as JSON, with its conversions.

pub mod api;
pub mod executor;
pub mod problem;
pub mod signature;

pub use jurat_core::strict_json;

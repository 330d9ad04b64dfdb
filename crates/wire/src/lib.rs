//! Every type of Jurat that crosses a boundary as JSON, with its conversions.

pub mod executor;
pub mod strict;

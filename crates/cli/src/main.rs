//! The `jurat` binary.
fn main() {}

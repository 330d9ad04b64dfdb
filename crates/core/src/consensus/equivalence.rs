//! equivalence

//! The page of a small document.

//! Which sessions answer.

//! The lifecycle of tasks: told in stories, under random commands, and as documents.

mod documents;
mod driven;

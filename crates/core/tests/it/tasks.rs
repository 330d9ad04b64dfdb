//! The life of tasks: as stories, under random commands, and as documents.

mod documents;
mod driven;
mod oracle;
mod properties;
mod script;
mod stories;
mod terms;

//! The id of a message, which takes two shapes.

pub use super::request::values::Person;
use super::request::{integer, named, one_of, text};

/// The id that links a reply to its message.
#[derive(Debug)]
pub struct MessageId;

named!(
    MessageId:
        one_of("Identifies the request that a response belongs to; a message without an id gets no response.")
            .item(text())
            .item(integer())
);

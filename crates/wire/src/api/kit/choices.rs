//! Values with more than one shape.

pub use super::request::values::Person;
use super::request::{integer, named, one_of, text};

/// The id that links a response to its message: a string or an integer.
#[derive(Debug)]
pub struct MessageId;

named!(
    MessageId:
        one_of("Identifies the request that a response belongs to; a message without an id gets no response.")
            .item(text())
            .item(integer())
);

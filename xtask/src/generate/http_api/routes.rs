//! The tables of routes, with a link from each operation to its section.

use std::fmt::Write as _;

use super::{
    anchors::anchor,
    capitalized,
    document::{Document, OperationEntry},
};
use crate::generate::pages::row;

/// One table for each family of operations.
pub(super) fn tables(document: &Document) -> String {
    let mut text = String::new();
    for (index, (tag, about)) in document.tags().enumerate() {
        let gap = if index == 0 { "" } else { "\n" };
        let name = capitalized(tag);
        let _ = write!(text, "{gap}**[{name}](#{}).** {about}\n\n", anchor(&name));
        text.push_str("| method and path | does | scope |\n|---|---|---|\n");
        for operation in document.operations.iter().filter(|it| it.tag == tag) {
            row(&mut text, &[&addresses(operation), &link(operation), &operation.scopes()]);
        }
    }
    text
}

fn addresses(operation: &OperationEntry) -> String {
    let quoted: Vec<String> = operation.addresses.iter().map(|it| format!("`{it}`")).collect();
    quoted.join(", ")
}

fn link(operation: &OperationEntry) -> String {
    format!("[{}](#{})", operation.summary, anchor(operation.address()))
}

//! The list of tools, generated from the declared operations.

use std::sync::{Arc, LazyLock};

use jurat_core::account::caller::{Caller, Scope};

use super::schema;
use crate::{
    operation::{Operation, Tool},
    resources::operations,
};

/// A tool under one of its names.
pub(super) struct ListedTool {
    pub(super) operation: &'static Operation,
    pub(super) tool: &'static Tool,
    description: rmcp::model::Tool,
}

/// Every tool, in the order of the declarations, built once.
static ALL: LazyLock<Vec<ListedTool>> = LazyLock::new(|| {
    let tools = operations().iter().flat_map(|it| it.tools.iter().map(move |tool| (it, tool)));
    let named = tools.flat_map(|(operation, tool)| {
        tool.names.iter().map(move |name| ListedTool {
            operation,
            tool,
            description: description(operation, tool, name),
        })
    });
    named.collect()
});

/// A tool by its name; those with names of another system only if they are on.
pub(super) fn find(name: &str, has_peer_tools: bool) -> Option<&'static ListedTool> {
    ALL.iter().find(|it| it.description.name == name && it.is_on(has_peer_tools))
}

/// The tools that a caller may use.
pub(super) fn listed(caller: &Caller, has_peer_tools: bool) -> Vec<rmcp::model::Tool> {
    let may = |it: &&ListedTool| it.is_on(has_peer_tools) && it.lacks(caller).is_none();
    ALL.iter().filter(may).map(|it| it.description.clone()).collect()
}

/// The description of a tool for clients.
pub(super) fn described(name: &str, has_peer_tools: bool) -> Option<rmcp::model::Tool> {
    find(name, has_peer_tools).map(|it| it.description.clone())
}

impl ListedTool {
    const fn is_on(&self, has_peer_tools: bool) -> bool {
        has_peer_tools || !self.tool.is_for_peers
    }

    /// A scope that the tool needs and the caller does not have.
    pub(super) fn lacks(&self, caller: &Caller) -> Option<Scope> {
        let mut scopes = self.tool.needed_scopes(self.operation).iter().copied();
        scopes.find(|scope| !caller.may(*scope))
    }
}

fn description(operation: &Operation, tool: &Tool, name: &'static str) -> rmcp::model::Tool {
    rmcp::model::Tool::new(name, tool.text, schema::arguments(operation, tool))
        .with_title(tool.title)
        .with_raw_output_schema(Arc::new(tool.output_schema(operation)))
        .with_annotations(tool.effect.hints())
}

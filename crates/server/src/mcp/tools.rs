//! The list of tools, generated from the declared operations.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use jurat_core::account::caller::{Caller, Scope};
use rmcp::model::JsonObject;

use super::{
    schema,
    sets::{ToolSelection, ToolSet},
};
use crate::{
    operation::{Operation, StandIn, Tool},
    resources::operations,
};

/// A tool under one of its names.
pub(super) struct ListedTool {
    pub(super) operation: &'static Operation,
    pub(super) tool: &'static Tool,
    pub(super) set: ToolSet,
    /// Further sets that have the tool.
    also_in: BTreeSet<ToolSet>,
    /// Whether this is a second name.
    is_alias: bool,
    description: rmcp::model::Tool,
}

/// Every tool, in the order of the declarations, built once.
static ALL: LazyLock<Vec<ListedTool>> = LazyLock::new(|| {
    let tools = || operations().iter().flat_map(|it| it.tools.iter().map(move |tool| (it, tool)));
    // The sets with a tool that may return an open round.
    let handing = tools().filter(|(_, tool)| tool.run.is_some());
    let handing: BTreeSet<ToolSet> = handing.map(|(it, tool)| ToolSet::of(it, tool)).collect();
    let named = tools().flat_map(|(operation, tool)| {
        let also_in = if tool.follows_rounds { handing.clone() } else { BTreeSet::new() };
        tool.names.iter().enumerate().map(move |(nth, name)| ListedTool {
            operation,
            tool,
            set: ToolSet::of(operation, tool),
            also_in: also_in.clone(),
            is_alias: 0 < nth,
            description: description(operation, tool, name),
        })
    });
    named.collect()
});

pub(super) fn find(name: &str) -> Option<&'static ListedTool> {
    ALL.iter().find(|it| it.description.name == name)
}

/// The selected tools that a caller may use.
pub(super) fn listed(caller: &Caller, selection: &ToolSelection) -> Vec<rmcp::model::Tool> {
    let is_listed = |it: &&ListedTool| {
        // Clients of the other system look for every name that they know.
        let lists_aliases = selection.lists_aliases || it.set == ToolSet::Cortensor;
        let is_wanted = it.is_in(selection) && (lists_aliases || !it.is_alias);
        is_wanted && it.lacks(caller).is_none()
    };
    ALL.iter().filter(is_listed).map(|it| it.description.clone()).collect()
}

/// The description of a tool for clients.
pub(super) fn described(name: &str) -> Option<rmcp::model::Tool> {
    find(name).map(|it| it.description.clone())
}

impl ListedTool {
    /// The tool that a call with these arguments means: clients use some names for two tools.
    pub(super) fn meant_by(&'static self, arguments: Option<&JsonObject>) -> &'static Self {
        let is_given = |name: &str| {
            arguments.and_then(|it| it.get(name)).is_some_and(|value| !value.is_null())
        };
        let is_meant =
            |it: &StandIn| !is_given(it.lacks) && it.has.iter().any(|name| is_given(name));
        let other = self.tool.stand_in.filter(is_meant).and_then(|it| find(it.tool));
        other.unwrap_or(self)
    }

    /// Whether one of the selected sets has the tool.
    pub(super) fn is_in(&self, selection: &ToolSelection) -> bool {
        selection.has(self.set) || self.also_in.iter().any(|set| selection.has(*set))
    }

    /// A scope that the tool needs and the caller does not have.
    pub(super) fn lacks(&self, caller: &Caller) -> Option<Scope> {
        if self.tool.or_scope.is_some_and(|scope| caller.may(scope)) {
            return None;
        }
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

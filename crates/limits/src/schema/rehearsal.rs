//! Rehearses the compilation, because the validator compiles some subschemas more than once.
//!
//! For unevaluated properties and items it compiles each branch again, through every reference, and
//! only avoids cycles. It also compiles a resource again for each path through other resources that
//! leads to it. Both are counted here first.

use std::collections::BTreeSet;

use super::{error::SchemaError, graph::SchemaGraph};

const MAX_STEPS: usize = 30_000;
const MAX_NESTED: usize = 500;
const MAX_WAYS: usize = 1_000;
/// Subschemas of the resources on all paths.
const MAX_ON_WAYS: usize = 10_000;

pub(super) fn rehearse(graph: &SchemaGraph) -> Result<(), SchemaError> {
    let mut rehearsal =
        Rehearsal { graph, steps: 0, nested: 0, marking: vec![false; graph.nodes.len()] };
    let targets = graph.nodes.iter().flat_map(|node| node.references.iter().flatten().copied());
    let entries: BTreeSet<usize> = std::iter::once(0).chain(targets).collect();
    for entry in entries {
        if rehearsal.compile(entry).is_none() {
            return Err(SchemaError::Compilation { at: graph.nodes[entry].at.clone() });
        }
    }
    if ResourcePaths::of(graph).visit(0).is_none() {
        return Err(SchemaError::Compilation { at: String::new() });
    }
    Ok(())
}

struct Rehearsal<'a> {
    graph: &'a SchemaGraph,
    steps: usize,
    nested: usize,
    marking: Vec<bool>,
}

impl Rehearsal<'_> {
    /// `None` if there are too many steps, or too deep ones.
    fn compile(&mut self, index: usize) -> Option<()> {
        self.step()?;
        let node = &self.graph.nodes[index];
        let parts = [
            &node.in_place,
            &node.named,
            &node.indexed,
            &node.each,
            &node.contains,
            &node.unevaluated,
        ];
        for &child in parts.into_iter().flatten() {
            self.compile(child)?;
        }
        if !node.unevaluated.is_empty() {
            self.mark(index)?;
        }
        self.nested -= 1;
        Some(())
    }

    fn mark(&mut self, index: usize) -> Option<()> {
        self.step()?;
        if !self.marking[index] {
            self.marking[index] = true;
            let node = &self.graph.nodes[index];
            for &branch in &node.in_place {
                self.compile(branch)?;
                self.mark(branch)?;
            }
            for &child in node.contains.iter().chain(&node.unevaluated) {
                self.compile(child)?;
            }
            for &target in node.references.iter().flatten() {
                self.mark(target)?;
            }
            self.marking[index] = false;
        }
        self.nested -= 1;
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        self.nested += 1;
        (self.steps <= MAX_STEPS && self.nested <= MAX_NESTED).then_some(())
    }
}

/// The paths from resource to resource that do not visit one twice.
struct ResourcePaths {
    next: Vec<BTreeSet<usize>>,
    sizes: Vec<usize>,
    on_way: Vec<bool>,
    ways: usize,
    steps: usize,
}

impl ResourcePaths {
    fn of(graph: &SchemaGraph) -> Self {
        let count = graph.nodes.iter().map(|node| node.resource + 1).max().unwrap_or(1);
        let mut next = vec![BTreeSet::new(); count];
        let mut sizes = vec![0; count];
        for node in &graph.nodes {
            sizes[node.resource] += 1;
            let targets = node.references.iter().flatten();
            next[node.resource].extend(targets.map(|target| graph.nodes[*target].resource));
        }
        Self { next, sizes, on_way: vec![false; count], ways: 0, steps: 0 }
    }

    /// `None` if there are too many.
    fn visit(&mut self, resource: usize) -> Option<()> {
        self.ways += 1;
        self.steps += self.sizes[resource];
        // A schema of one resource has one path, however large it is.
        if 1 < self.ways && (MAX_WAYS < self.ways || MAX_ON_WAYS < self.steps) {
            return None;
        }
        self.on_way[resource] = true;
        for next in self.next[resource].clone() {
            if !self.on_way[next] {
                self.visit(next)?;
            }
        }
        self.on_way[resource] = false;
        Some(())
    }
}

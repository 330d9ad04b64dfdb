//! A sound upper limit of the work that a schema causes on an instance, found without the instance.
//!
//! For each depth below the root of an instance there is a number of subschemas that may be applied
//! to one value at that depth. It follows from the graph alone, because a member has one name and
//! an item one index. The sum over the values of an instance limits the work.

use super::{
    MAX_DEPTH, MAX_EXPANSION, MAX_IN_PLACE,
    error::SchemaError,
    graph::{SchemaGraph, SchemaNode},
    scan::InstanceShape,
};
use crate::{size::as_u64, work::WorkEstimate};

#[derive(Debug)]
pub(super) struct WorkLimit {
    /// Weighted applications to one value, by its depth.
    applications: Vec<u64>,
    /// Pattern states that read one value or the name of one member, by its depth.
    states: Vec<u64>,
    /// Searches for equal items in one value, by its depth. Each reads everything below.
    unique: Vec<u64>,
    in_place: u64,
    all_states: u64,
}

impl WorkLimit {
    pub(super) fn of(graph: &SchemaGraph) -> Result<Self, SchemaError> {
        let order = SubschemaOrder::of(graph)?;
        let applications = order.spread(graph, |node| node.weight, |_| 0);
        if let Some(node) = applications.first.iter().position(|times| MAX_EXPANSION < *times) {
            return Err(SchemaError::Expansion { at: graph.nodes[node].at.clone() });
        }
        // Additional and unevaluated properties match the names a second time.
        let states = order.spread(graph, |node| node.states, |node| 2 * node.name_states);
        let unique = order.spread(graph, |node| u64::from(node.is_unique), |_| 0);
        let all_states =
            graph.nodes.iter().map(|node| node.states.saturating_add(node.name_states)).sum();
        Ok(Self {
            applications: applications.at_root,
            states: states.at_root,
            unique: unique.at_root,
            in_place: order.longest,
            all_states,
        })
    }

    /// States of all patterns together.
    pub(super) const fn states(&self) -> u64 {
        self.all_states
    }

    pub(super) fn work(&self, shape: &InstanceShape) -> WorkEstimate {
        if shape.is_cut() {
            return WorkEstimate::EXCEEDED;
        }
        let mut work = WorkEstimate::default();
        let mut beneath = 0_u64;
        for (depth, level) in shape.levels().iter().enumerate().rev() {
            beneath = beneath.saturating_add(level.values);
            let at = |times: &[u64]| times.get(depth).copied().unwrap_or(u64::MAX);
            let applied = level.values.saturating_mul(at(&self.applications));
            let searched = beneath.saturating_mul(at(&self.unique));
            work.applications = work.applications.saturating_add(applied).saturating_add(searched);
            let read = level.bytes.saturating_mul(at(&self.states));
            work.regex_steps = work.regex_steps.saturating_add(read);
        }
        let levels = as_u64(shape.levels().len());
        work.stack = self.in_place.saturating_mul(levels);
        work
    }
}

/// The subschemas, sorted so that those applied in place come before those that apply them.
struct SubschemaOrder {
    order: Vec<usize>,
    longest: u64,
}

/// How often something happens to one value.
struct ApplicationCounts {
    /// To the value at which the root is applied and to those below, by depth.
    at_root: Vec<u64>,
    /// To the value at which each subschema is applied.
    first: Vec<u64>,
}

impl SubschemaOrder {
    fn of(graph: &SchemaGraph) -> Result<Self, SchemaError> {
        let size = graph.nodes.len();
        let mut appliers = vec![Vec::new(); size];
        let mut waiting = vec![0_usize; size];
        for (node, held) in graph.nodes.iter().enumerate() {
            for target in in_place(held) {
                appliers[target].push(node);
                waiting[node] += 1;
            }
        }
        let mut chain = vec![1_usize; size];
        let mut order: Vec<usize> = (0..size).filter(|node| waiting[*node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &applier in &appliers[node] {
                chain[applier] = chain[applier].max(chain[node] + 1);
                waiting[applier] -= 1;
                if waiting[applier] == 0 {
                    order.push(applier);
                }
            }
        }
        if order.len() < size {
            return Err(SchemaError::Cycle { at: in_cycle(graph, &waiting) });
        }
        if let Some(node) = chain.iter().position(|length| MAX_IN_PLACE < *length) {
            return Err(SchemaError::ChainTooLong { at: graph.nodes[node].at.clone() });
        }
        let longest = chain.iter().max().copied().unwrap_or_default();
        Ok(Self { order, longest: as_u64(longest) })
    }

    /// Counts for each depth what happens `here`, at a value, and `beneath`, at each of its
    /// members.
    fn spread(
        &self,
        graph: &SchemaGraph,
        here: impl Fn(&SchemaNode) -> u64,
        beneath: impl Fn(&SchemaNode) -> u64,
    ) -> ApplicationCounts {
        let mut above = vec![0_u64; graph.nodes.len()];
        let mut spread = ApplicationCounts { at_root: Vec::new(), first: Vec::new() };
        for depth in 0..=MAX_DEPTH {
            let own = |node: &SchemaNode| match depth {
                0 => here(node),
                1 => beneath(node),
                _ => 0,
            };
            let level = self.level(graph, &above, own, depth);
            spread.at_root.push(level.first().copied().unwrap_or_default());
            if depth == 0 {
                spread.first.clone_from(&level);
            }
            above = level;
        }
        spread
    }

    /// One level deeper, from the counts of the level above.
    fn level(
        &self,
        graph: &SchemaGraph,
        above: &[u64],
        own: impl Fn(&SchemaNode) -> u64,
        depth: usize,
    ) -> Vec<u64> {
        let mut applied = vec![0_u64; graph.nodes.len()];
        // Looking for unevaluated parts goes through everything in place again, and applies each
        // step on the path before it looks into it.
        let mut marked = vec![0_u64; graph.nodes.len()];
        for &index in &self.order {
            let node = &graph.nodes[index];
            let mut apply = own(node);
            let mut mark = apply;
            for &target in &node.in_place {
                add(&mut apply, applied[target]);
                add(&mut mark, applied[target]);
                add(&mut mark, marked[target]);
            }
            for targets in &node.references {
                add(&mut apply, most(targets, &applied));
                add(&mut mark, most(targets, &applied));
                add(&mut mark, most(targets, &marked));
            }
            if depth > 0 {
                let again =
                    sum(&node.contains, above).saturating_add(sum(&node.unevaluated, above));
                add(&mut apply, most(&node.named, above));
                add(&mut apply, most(&node.indexed, above));
                add(&mut apply, sum(&node.each, above));
                add(&mut apply, again);
                add(&mut mark, again);
            }
            if !node.unevaluated.is_empty() {
                add(&mut apply, mark);
            }
            applied[index] = apply;
            marked[index] = mark;
        }
        applied
    }
}

fn in_place(node: &SchemaNode) -> impl Iterator<Item = usize> + '_ {
    node.in_place.iter().copied().chain(node.references.iter().flatten().copied())
}

/// A subschema on a cycle, found by walking among those that still wait for each other.
fn in_cycle(graph: &SchemaGraph, waiting: &[usize]) -> String {
    let mut node = waiting.iter().position(|left| *left > 0).unwrap_or_default();
    let mut seen = vec![false; graph.nodes.len()];
    while !seen[node] {
        seen[node] = true;
        let next = in_place(&graph.nodes[node]).find(|target| waiting[*target] > 0);
        node = next.unwrap_or(node);
    }
    graph.nodes[node].at.clone()
}

fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}

fn most(targets: &[usize], counts: &[u64]) -> u64 {
    targets.iter().map(|target| counts[*target]).max().unwrap_or_default()
}

fn sum(targets: &[usize], counts: &[u64]) -> u64 {
    targets.iter().fold(0, |total: u64, target| total.saturating_add(counts[*target]))
}

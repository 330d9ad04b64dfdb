//! The check `cel`: an expression over the output that must be true, bounded before it is run.
//!
//! An expression is parsed, its names are checked, and some of its parts are replaced: `matches`
//! by one whose pattern is compiled beforehand, arithmetic by one that takes whole numbers and
//! fractions together, and the range of each loop by one in a fixed order. Before it is run, a
//! bound on its work follows from the tree and from the shape of the output.

mod compile;
mod evaluate;
mod number;
mod work_limit;

use ::cel::IdedExpr;

pub(super) use self::evaluate::CelContext;
use super::{CheckSubject, Patterns};
use crate::schema::WorkEstimate;

/// The names by which a tree calls what is ours. No source can spell them.
const MATCHES: &str = "@matches";
const ORDERED: &str = "@ordered";
const ACCUMULATOR: &str = "@result";

/// An expression that was read and can be run.
#[derive(Debug, PartialEq)]
pub(super) struct CelExpression {
    source: String,
    tree: IdedExpr,
    /// The longest way from the root of the tree to a leaf.
    depth: usize,
    uses_evidence: bool,
}

impl CelExpression {
    /// Reads an expression, and adds the patterns it uses. The error is about the field.
    pub(super) fn compile(text: &str, patterns: &mut Patterns) -> Result<Self, String> {
        compile::compile(text, patterns)
    }

    pub(super) const fn uses_evidence(&self) -> bool {
        self.uses_evidence
    }

    /// An upper bound on the work of running it on this subject.
    pub(super) fn work(
        &self,
        subject: &CheckSubject<'_>,
        patterns: &Patterns,
        most: u64,
    ) -> WorkEstimate {
        work_limit::work(self, subject, patterns, most)
    }
}

#[cfg(test)]
mod soundness;

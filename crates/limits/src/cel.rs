//! CEL expressions, whose work is limited before they run.
//!
//! An expression is parsed, its names are checked, and some of its parts are replaced: `matches`
//! calls a pattern that is already compiled, arithmetic takes whole numbers and fractions together,
//! and each loop has a fixed order. Before the expression runs, an upper limit of its work follows
//! from the tree and from the shape of the values that it reads.

mod compile;
mod evaluate;
mod number;
mod work_limit;

use ::cel::IdedExpr;
use serde_json::Value;

pub use self::evaluate::CelContext;
use crate::{pattern::Patterns, size::size_within, work::WorkEstimate};

/// Names of our own functions in a tree. No source text can spell them.
const MATCHES: &str = "@matches";
const ORDERED: &str = "@ordered";
const ACCUMULATOR: &str = "@result";

/// The values that an expression can read.
#[derive(Debug, Clone, Copy)]
pub struct CelSubject<'a> {
    /// The variable `output`.
    pub output: &'a Value,
    /// The variable `evidence`.
    pub evidence: &'a Value,
}

impl CelSubject<'_> {
    /// The work of handing the values to expressions.
    pub fn work(&self, most: u64) -> WorkEstimate {
        let output = size_within(self.output, most);
        let evidence = size_within(self.evidence, most.saturating_sub(output));
        WorkEstimate::of_applications(output.saturating_add(evidence))
    }
}

/// A compiled expression.
#[derive(Debug, PartialEq)]
pub struct CelExpression {
    source: String,
    tree: IdedExpr,
    /// The longest path from the root of the tree to a leaf.
    depth: usize,
    uses_evidence: bool,
}

impl CelExpression {
    /// Compiles an expression and adds the patterns that it uses. The error is a clause about the
    /// field that holds the expression.
    pub fn compile(text: &str, patterns: &mut Patterns) -> Result<Self, String> {
        compile::compile(text, patterns)
    }

    /// The expression as it was given.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub const fn uses_evidence(&self) -> bool {
        self.uses_evidence
    }

    /// An upper limit of the work on this subject.
    pub fn work(&self, subject: &CelSubject<'_>, patterns: &Patterns, most: u64) -> WorkEstimate {
        work_limit::work(self, subject, patterns, most)
    }
}

#[cfg(test)]
mod soundness;

//! Collects the faults of a request, so that the author of a long document learns all of them.

use jurat_core::code::ProblemCode;
use serde_json::json;

use crate::problem::Problem;

/// How many faults are listed.
const MOST: usize = 20;
/// How many of them the message names.
const SAID: usize = 5;

/// The faults of a request, in the order of its fields.
#[derive(Debug, Default)]
pub struct RequestFaults(Vec<Problem>);

impl From<Problem> for RequestFaults {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl IntoIterator for RequestFaults {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl RequestFaults {
    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a fault unless it is noted already.
    pub fn add_once(&mut self, problem: Problem) {
        if !self.0.contains(&problem) {
            self.add(problem);
        }
    }

    /// The first fault.
    pub fn into_first(self, code: ProblemCode) -> Problem {
        self.0.into_iter().next().unwrap_or_else(|| unreadable(code))
    }

    /// One problem that names all faults.
    pub fn into_problem(self, code: ProblemCode) -> Problem {
        self.problem(code).unwrap_or_else(|| unreadable(code))
    }

    /// Adds a fault.
    pub fn add(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// One problem that names all faults, if there are any.
    pub fn problem(self, code: ProblemCode) -> Option<Problem> {
        let Self(faults) = self;
        let first = faults.first()?.clone();
        if faults.len() == 1 {
            return Some(first);
        }
        let said: Vec<&str> = faults.iter().take(SAID).map(|it| it.detail.as_str()).collect();
        let rest = if SAID < faults.len() { "; and more" } else { "" };
        let detail = format!("{} fields are wrong: {}{rest}", faults.len(), said.join("; "));
        let errors: Vec<_> = faults
            .iter()
            .take(MOST)
            .map(|it| json!({ "field": it.field, "reason": it.detail }))
            .collect();
        let problem = Problem::new(code, detail).with("errors", json!(errors));
        Some(match first.field {
            Some(field) => problem.at(field),
            None => problem,
        })
    }
}

/// A value that could not be read has noted its fault, so this is never the answer.
fn unreadable(code: ProblemCode) -> Problem {
    Problem::new(code, "the body cannot be read")
}

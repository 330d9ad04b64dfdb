//! Collects all faults of a request, so that the author of a long document can fix them together.

use jurat_core::code::ProblemCode;
use serde_json::json;

use crate::problem::Problem;

/// Maximum number of faults in the list.
const MOST: usize = 20;
/// Maximum number of faults in the message.
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
    /// Whether there are no faults.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a fault unless it was added before.
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

/// Fallback that is never returned, because every value that cannot be read adds a fault.
fn unreadable(code: ProblemCode) -> Problem {
    Problem::new(code, "the body cannot be read")
}

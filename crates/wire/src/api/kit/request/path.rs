//! The path of a field, for messages.

use std::fmt;

use jurat_core::code::ProblemCode;

use crate::problem::Problem;

/// The path of a field within its request, such as `consensus.session_pool.1`.
#[derive(Debug, Clone, Copy)]
pub struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    name: &'a str,
    /// The code for a faulty field, which differs between the APIs.
    code: ProblemCode,
}

impl<'a> FieldPath<'a> {
    /// The path of the request itself.
    pub const fn body(code: ProblemCode) -> FieldPath<'static> {
        FieldPath { parent: None, name: "", code }
    }

    /// The path of a member.
    #[must_use]
    pub const fn member(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), name, code: self.code }
    }

    /// The last name of the path.
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// A problem with the field; the reason completes a sentence that begins with its path.
    pub fn wrong(&self, reason: &str) -> Problem {
        self.problem(self.code, reason)
    }

    /// A problem with a field that is known but not supported.
    pub fn unsupported(&self, reason: &str) -> Problem {
        self.problem(ProblemCode::NotSupported, reason)
    }

    fn problem(&self, code: ProblemCode, reason: &str) -> Problem {
        if self.parent.is_none() {
            return Problem::new(code, format!("the body {reason}"));
        }
        let path = self.to_string();
        Problem::new(code, format!("`{path}` {reason}")).at(path)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent.filter(|parent| parent.parent.is_some()) {
            write!(f, "{parent}.")?;
        }
        f.write_str(self.name)
    }
}

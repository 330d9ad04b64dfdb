//! Reads the arguments of tools and names the one that is wrong.

use jurat_core::code::ProblemCode;
use serde_json::{Map, Value};

pub use super::json::{kind, short, whole_number};
use super::{known_fields::DescribedRequest, request::unknown::SearchDepth};
use crate::problem::Problem;

/// An object of a request, with the path that leads to it.
#[derive(Debug, Clone)]
pub struct RequestFields<'a> {
    members: &'a Map<String, Value>,
    path: String,
    /// The code of a wrong field: it differs between surfaces.
    code: ProblemCode,
}

impl<'a> RequestFields<'a> {
    /// The body of a request.
    pub fn of_body(body: &'a Value, code: ProblemCode) -> Result<Self, Problem> {
        match body.as_object() {
            Some(members) => Ok(Self { members, path: String::new(), code }),
            None => {
                Err(Problem::new(code, format!("the body must be an object, not {}", kind(body))))
            }
        }
    }

    /// The path of a member, as it stands in messages.
    pub fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A problem with a member.
    pub fn wrong(&self, name: &str, reason: &str) -> Problem {
        let path = self.path(name);
        Problem::new(self.code, format!("`{path}` {reason}")).at(path)
    }

    /// A member that is there and not null.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, &format!("must be a string, not {}", kind(other)))),
        }
    }

    /// A text that must be there and not blank.
    pub fn required_text(&self, name: &str) -> Result<&'a str, Problem> {
        match self.text(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.wrong(name, "must not be blank")),
            None => Err(self.wrong(name, "is required")),
        }
    }

    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => {
                Err(self.wrong(name, &format!("must be true or false, not {}", kind(other))))
            }
        }
    }

    pub fn whole(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match whole_number(value) {
            Some(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong(name, &format!("must be a whole number from {least} to {most}"))),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<&'a str>, Problem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().and_then(|items| items.iter().map(Value::as_str).collect());
        items.ok_or_else(|| self.wrong(name, "must be a list of strings"))
    }

    /// Refuses the first member that the arguments do not have.
    pub fn keep_to<R: DescribedRequest>(&self) -> Result<(), Problem> {
        let known = R::known_fields();
        let strangers = known.unknown_fields(self.members, SearchDepth::All);
        strangers.first().map_or(Ok(()), |stranger| {
            let advice = known.advice(stranger, &self.path);
            Err(self.wrong(&stranger.path, &format!("is not a known field{advice}")))
        })
    }

    /// A word of a fixed set.
    pub fn word<T: std::str::FromStr>(
        &self,
        name: &str,
        known: &[&str],
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let parsed = text.parse().map_err(|_| {
            self.wrong(name, &format!("must be one of {}, not `{}`", known.join(", "), short(text)))
        });
        parsed.map(Some)
    }
}

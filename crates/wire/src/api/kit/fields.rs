//! Reads the members of a JSON object and names the one that is wrong.

use std::collections::BTreeMap;

use jurat_core::code::ProblemCode;
use serde_json::{Map, Value};

use super::known_fields::{DescribedRequest, KnownFields, SearchDepth, UnknownField};
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

    /// A member that is known and not built.
    pub fn unsupported(&self, name: &str, reason: &str) -> Problem {
        let path = self.path(name);
        Problem::new(ProblemCode::NotSupported, format!("`{path}` {reason}")).at(path)
    }

    /// A member that is there and not null.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        #[cfg(test)]
        super::described::asked_for(self.path(name));
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub fn object(&self, name: &str) -> Result<Option<RequestFields<'a>>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(members)) => {
                Ok(Some(RequestFields { members, path: self.path(name), code: self.code }))
            }
            Some(other) => {
                Err(self.wrong(name, &format!("must be an object, not {}", kind(other))))
            }
        }
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(name, &format!("must be a string, not {}", kind(other)))),
        }
    }

    /// A text that must be there, not blank, and without a NUL, which not every store can keep.
    pub fn plain_text(&self, name: &str) -> Result<&'a str, Problem> {
        let text = self.required_text(name)?;
        if text.contains('\0') {
            return Err(self.wrong(name, "must not contain a NUL character"));
        }
        Ok(text)
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

    /// An object whose members are all strings; the one that is not is named.
    pub fn text_map(&self, name: &str) -> Result<BTreeMap<String, String>, Problem> {
        let Some(object) = self.object(name)? else { return Ok(BTreeMap::new()) };
        let members = object.members.iter().map(|(member, value)| {
            let text = value.as_str().ok_or_else(|| {
                let reason = format!("must be a string, not {}", kind(value));
                object.wrong(&short(member), &reason)
            });
            text.map(|text| (member.clone(), text.to_owned()))
        });
        members.collect()
    }

    /// A list of objects; each has its place as a part of its path.
    pub fn objects(&self, name: &str) -> Result<Vec<RequestFields<'a>>, Problem> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| {
            self.wrong(name, &format!("must be a list of objects, not {}", kind(value)))
        })?;
        let item = |(index, item): (usize, &'a Value)| {
            let path = format!("{name}.{index}");
            match item.as_object() {
                Some(members) => {
                    Ok(RequestFields { members, path: self.path(&path), code: self.code })
                }
                None => Err(self.wrong(&path, &format!("must be an object, not {}", kind(item)))),
            }
        };
        items.iter().enumerate().map(item).collect()
    }

    /// Refuses the first member, here or deeper, that the request does not have.
    pub fn keep_to<R: DescribedRequest>(&self) -> Result<(), Problem> {
        self.unknown_fields::<R>(SearchDepth::All).into_iter().next().map_or(Ok(()), Err)
    }

    /// Ignores unknown members but those that look like a misspelt one.
    pub fn refuse_slips<R: DescribedRequest>(&self) -> Result<(), Problem> {
        let (known, members) = (R::known_fields(), self.members);
        let slip =
            known.unknown_fields(members, SearchDepth::Top).into_iter().find(UnknownField::is_slip);
        slip.map_or(Ok(()), |stranger| Err(self.refuse(known, &stranger)))
    }

    /// A problem for each of the first members that the request does not have.
    pub fn unknown_fields<R: DescribedRequest>(&self, depth: SearchDepth) -> Vec<Problem> {
        let known = R::known_fields();
        let strangers = known.unknown_fields(self.members, depth);
        strangers.iter().map(|stranger| self.refuse(known, stranger)).collect()
    }

    fn refuse(&self, known: &KnownFields, stranger: &UnknownField<'_>) -> Problem {
        let advice = known.advice(stranger, &self.path);
        self.wrong(&stranger.path, &format!("is not a known field{advice}"))
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

/// A whole number that is not negative, however it is written: `3.0` is 3 in JSON.
pub fn whole_number(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    let of_float = |number: f64| {
        let is_whole = number.fract() == 0.0 && (0.0..=LARGEST).contains(&number);
        is_whole.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(of_float))
}

/// What a value is, in words.
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The beginning of a text that a caller sent.
pub fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

//! Reads the checks from `policy_params`, with errors that name the field.

use jurat_limits::{
    cel::CelExpression,
    pattern::{MAX_PATTERNS, MAX_STATES, Pattern, Patterns},
    quote::{did_you_mean, plain},
};
use serde_json::{Map, Value};

use super::{
    BoundsCheck, CheckKind, CountCheck, DigestCheck, PolicyCheck, RegexCheck, RequiredCheck,
    SetCheck,
};
use crate::{
    policy::params::{self, BindError, is_pointer},
    schema::{MAX_TEXT, Schema},
};

const MAX_CHECKS: usize = 64;
const MAX_NAME_CHARS: usize = 100;
const MAX_POINTER_BYTES: usize = 1_024;
const KINDS: &[&str] = &["schema", "required", "count", "bounds", "regex", "set", "hash", "cel"];
/// The members of all kinds of checks.
const ALL: &[&str] = &[
    "name", "path", "matches", "schema", "required", "count", "bounds", "regex", "set", "hash",
    "cel",
];

/// The checks, and the patterns that their expressions use.
pub(super) fn checks(given: &Value) -> Result<(Vec<PolicyCheck>, Patterns), BindError> {
    let field = "policy_params.checks";
    let listed = match params::members(given, &["checks"])? {
        Some(members) => params::list(members, "checks", MAX_CHECKS)?,
        None => &[],
    };
    if listed.is_empty() {
        let problem = format!("must be a list of 1 to {MAX_CHECKS} checks");
        return Err(BindError::params(field, problem));
    }
    let mut reading = CheckReader::default();
    let mut checks = Vec::with_capacity(listed.len());
    for (index, item) in listed.iter().enumerate() {
        checks.push(reading.check(index, item)?);
    }
    Ok((checks, reading.patterns))
}

/// The totals over all checks, which have limits, too.
#[derive(Default)]
struct CheckReader {
    patterns: Patterns,
    /// The number of patterns in `regex` checks.
    regular: usize,
    states: u64,
    schema_bytes: usize,
}

impl CheckReader {
    fn check(&mut self, index: usize, item: &Value) -> Result<PolicyCheck, BindError> {
        let at = ParamPath(format!("policy_params.checks.{index}"));
        let Value::Object(given) = item else {
            return Err(
                at.refuse("must be an object such as {\"required\": \"…\"}, with exactly one kind")
            );
        };
        let kind = kind_of_check(&at, given)?;
        let members = CheckMembers { at, given };
        let known: &[&str] = match kind {
            "regex" => &["name", "path", "regex", "matches"],
            // An expression selects its own parts of the output.
            "cel" => &["name", "cel"],
            kind => &["name", "path", kind],
        };
        members.refuse_others(known, &format!("a check `{kind}`"))?;
        let named = format!("a string of 1 to {MAX_NAME_CHARS} characters");
        let name = members.optional("name", &named, |name| {
            let name = name.as_str()?;
            (1..=MAX_NAME_CHARS).contains(&name.chars().count()).then(|| plain(name, 60))
        })?;
        let path = members.pointer("path")?.unwrap_or_default();
        let kind = self.kind(kind, &members)?;
        self.refuse_excess(&members.at)?;
        Ok(PolicyCheck { name: name.unwrap_or_else(|| format!("checks.{index}")), path, kind })
    }

    fn kind(&mut self, kind: &str, members: &CheckMembers<'_>) -> Result<CheckKind, BindError> {
        Ok(match kind {
            "schema" => CheckKind::Schema(self.schema(members)?),
            "required" => CheckKind::Required(RequiredCheck::read(members)?),
            "count" => CheckKind::Count(CountCheck::read(members)?),
            "bounds" => CheckKind::Bounds(BoundsCheck::read(members)?),
            "regex" => {
                let regular = RegexCheck::read(members)?;
                self.states = self.states.saturating_add(regular.states());
                self.regular += 1;
                CheckKind::Regex(regular)
            }
            "set" => CheckKind::Set(SetCheck::read(members)?),
            "hash" => CheckKind::Hash(DigestCheck::read(members)?),
            _ => CheckKind::Cel(self.expression(members)?),
        })
    }

    fn schema(&mut self, members: &CheckMembers<'_>) -> Result<Schema, BindError> {
        let (at, given) = members.get("schema");
        let schema = Schema::compile(given)
            .map_err(|error| at.refuse(&format!("is refused ({}): {error}", error.slug())))?;
        self.schema_bytes = self.schema_bytes.saturating_add(schema.text_bytes());
        self.states = self.states.saturating_add(schema.states());
        Ok(schema)
    }

    fn expression(&mut self, members: &CheckMembers<'_>) -> Result<CelExpression, BindError> {
        let (at, given) = members.get("cel");
        let text = given.as_str().ok_or_else(|| at.refuse("must be an expression, as a string"))?;
        let before: u64 = self.patterns.values().map(Pattern::states).sum();
        let read = CelExpression::compile(text, &mut self.patterns);
        let after: u64 = self.patterns.values().map(Pattern::states).sum();
        self.states = self.states.saturating_add(after - before);
        read.map_err(|problem| at.refuse(&problem))
    }

    /// Refuses a total that exceeds its limit, at the check that exceeded it.
    fn refuse_excess(&self, at: &ParamPath) -> Result<(), BindError> {
        if MAX_TEXT < self.schema_bytes {
            let problem = format!(
                "makes the schemas of all checks exceed {MAX_TEXT} bytes; make them smaller"
            );
            return Err(at.refuse(&problem));
        }
        if MAX_PATTERNS < self.patterns.len() + self.regular || MAX_STATES < self.states {
            let problem = format!(
                "makes the patterns of all checks exceed {MAX_PATTERNS}, or their automata exceed {MAX_STATES} states; use fewer or simpler patterns"
            );
            return Err(at.refuse(&problem));
        }
        Ok(())
    }
}

/// The one member that gives the kind of the check.
fn kind_of_check(at: &ParamPath, given: &Map<String, Value>) -> Result<&'static str, BindError> {
    let mut kinds = KINDS.iter().filter(|kind| given.contains_key(**kind));
    match (kinds.next(), kinds.next()) {
        (Some(kind), None) => Ok(kind),
        (Some(one), Some(other)) => {
            Err(at.refuse(&format!("has both `{one}` and `{other}`; write one check for each")))
        }
        (None, _) => {
            refuse_unknown(at, given, ALL, "a check")?;
            Err(at.refuse(&format!("must have one of: {}", KINDS.join(", "))))
        }
    }
}

fn refuse_unknown(
    at: &ParamPath,
    given: &Map<String, Value>,
    known: &[&str],
    what: &str,
) -> Result<(), BindError> {
    let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) else {
        return Ok(());
    };
    let meant = did_you_mean(name, known);
    let problem = format!("is not part of {what}{meant} Known are: {}", known.join(", "));
    let problem = if meant.is_empty() { problem.replace(" Known", "; known") } else { problem };
    Err(at.child(plain(name, 60)).refuse(&problem))
}

/// A dotted path in the parameters.
#[derive(Debug, Clone)]
pub(super) struct ParamPath(String);

impl ParamPath {
    pub(super) fn child(&self, name: impl std::fmt::Display) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    pub(super) fn refuse(&self, problem: &str) -> BindError {
        BindError::params(self.0.clone(), plain(problem, 600))
    }
}

/// The members of a check, or of its terms.
#[derive(Debug)]
pub(super) struct CheckMembers<'a> {
    at: ParamPath,
    given: &'a Map<String, Value>,
}

impl<'a> CheckMembers<'a> {
    pub(super) const fn path(&self) -> &ParamPath {
        &self.at
    }

    /// A member and its path; an absent member is null.
    pub(super) fn get(&self, name: &str) -> (ParamPath, &'a Value) {
        (self.at.child(name), self.given.get(name).unwrap_or(&Value::Null))
    }

    /// The terms of a check: an object with no members other than these.
    pub(super) fn terms(&self, name: &str, known: &[&str]) -> Result<Self, BindError> {
        let (at, given) = self.get(name);
        let Value::Object(given) = given else {
            let problem = format!("must be an object with some of: {}", known.join(", "));
            return Err(at.refuse(&problem));
        };
        let terms = Self { at, given };
        terms.refuse_others(known, &format!("`{name}`"))?;
        Ok(terms)
    }

    /// An optional member, read by `read`, or refused for not being `what`.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, BindError> {
        match self.get(name) {
            (_, Value::Null) => Ok(None),
            (at, value) => match read(value) {
                Some(value) => Ok(Some(value)),
                None => Err(at.refuse(&format!("must be {what}"))),
            },
        }
    }

    /// An optional JSON Pointer.
    pub(super) fn pointer(&self, name: &str) -> Result<Option<String>, BindError> {
        let what = format!("a JSON Pointer such as /a/b, of at most {MAX_POINTER_BYTES} bytes");
        self.optional(name, &what, |value| {
            let text = value.as_str().filter(|text| is_pointer(text))?;
            (text.len() <= MAX_POINTER_BYTES).then(|| text.to_owned())
        })
    }

    fn refuse_others(&self, known: &[&str], what: &str) -> Result<(), BindError> {
        refuse_unknown(&self.at, self.given, known, what)
    }
}

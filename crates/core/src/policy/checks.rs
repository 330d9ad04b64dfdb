//! `vp.checks.v1`: structural and functional checks of the output, without a model.

mod bounds;
mod budget;
mod cel;
mod count;
mod hash;
mod pattern;
mod read;
mod required;
mod set;
mod subject;

use std::sync::Arc;

use serde_json::Value;

use self::{
    bounds::Bounds,
    budget::Budget,
    cel::{Expression, World},
    count::Count,
    hash::Hash,
    pattern::{Patterns, Regular},
    required::Required,
    set::Set,
    subject::{Subject, kind_of, place},
};
use super::{Evaluation, Policy, params::BindError, schema_only};
use crate::{
    candidate::Candidate,
    reason,
    schema::{Matches, Schema, Work},
};

const MAX_NOTE_CHARS: usize = 200;

/// What a candidate must satisfy. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Checks {
    held: Arc<Held>,
}

#[derive(Debug, PartialEq)]
struct Held {
    checks: Vec<Check>,
    /// The patterns that stand in expressions, by their text.
    patterns: Patterns,
}

#[derive(Debug, PartialEq)]
struct Check {
    /// The name that the caller gave, or the place in the parameters.
    name: String,
    /// A JSON Pointer to the part of the output that the check is about.
    path: String,
    kind: Kind,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Schema(Schema),
    Required(Required),
    Count(Count),
    Bounds(Bounds),
    Regex(Regular),
    Set(Set),
    Hash(Hash),
    Cel(Expression),
}

/// Why a check is not satisfied.
#[derive(Debug)]
struct Unmet {
    code: u16,
    why: String,
}

impl Unmet {
    fn new(code: u16, why: String) -> Self {
        Self { code, why }
    }

    /// The value is not one that the check can be about.
    fn unusable(why: String) -> Self {
        Self::new(reason::CHECK_VALUE_UNUSABLE, why)
    }
}

pub(super) fn bind(given: &Value) -> Result<Policy, BindError> {
    let (checks, patterns) = read::checks(given)?;
    Ok(Policy::Checks(Checks { held: Arc::new(Held { checks, patterns }) }))
}

/// An upper bound on the work, or more than can be done at once.
pub(super) fn estimate(checks: &Checks, candidate: &Candidate) -> Work {
    let held = checks.held.as_ref();
    // Reading evidence is work of its own, which is not done twice.
    if held.uses_evidence() && !candidate.evidence.inline.is_empty() {
        return Budget::exceeded();
    }
    let subject = Subject { output: &candidate.output, evidence: &Value::Null };
    let mut budget = Budget::small();
    if held.uses_cel() && !budget.take(subject.work(budget.left())) {
        return Budget::exceeded();
    }
    let fits = held.checks.iter().all(|check| {
        let work = check.work(&subject, &held.patterns, budget.left());
        budget.take(work)
    });
    if fits { budget.taken() } else { Budget::exceeded() }
}

pub(super) fn evaluate(checks: &Checks, candidate: &Candidate, schema: &Schema) -> Evaluation {
    // An output that is too deep for what follows is refused here as well.
    if let Some(evaluation) = schema_only::unmatched(&candidate.output, schema) {
        return evaluation;
    }
    let held = checks.held.as_ref();
    let evidence = if held.uses_evidence() { subject::evidence(candidate) } else { Value::Null };
    let subject = Subject { output: &candidate.output, evidence: &evidence };
    held.decide(&subject)
}

impl Held {
    fn uses_cel(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.kind, Kind::Cel(_)))
    }

    fn uses_evidence(&self) -> bool {
        self.checks.iter().any(|check| match &check.kind {
            Kind::Cel(expression) => expression.uses_evidence(),
            Kind::Schema(_)
            | Kind::Required(_)
            | Kind::Count(_)
            | Kind::Bounds(_)
            | Kind::Regex(_)
            | Kind::Set(_)
            | Kind::Hash(_) => false,
        })
    }

    /// Makes every check. One that fails decides, even beside one that was too much work.
    fn decide(&self, subject: &Subject<'_>) -> Evaluation {
        let mut budget = Budget::full();
        let is_seen = self.uses_cel() && budget.take(subject.work(budget.left()));
        let world = is_seen.then(|| World::of(subject, &self.patterns));
        let (mut unmet, mut refused) = (Vec::new(), Vec::new());
        for check in &self.checks {
            let is_blind = world.is_none() && matches!(check.kind, Kind::Cel(_));
            let work = check.work(subject, &self.patterns, budget.left());
            if is_blind || !budget.take(work) {
                refused.push(format!("Check `{}` would take too much work.", check.name));
            } else if let Err(found) = check.judge(subject, world.as_ref()) {
                unmet.push((found.code, note(&check.name, &found.why)));
            }
        }
        verdict(unmet, refused)
    }
}

fn verdict(unmet: Vec<(u16, String)>, refused: Vec<String>) -> Evaluation {
    if unmet.is_empty() && refused.is_empty() {
        return Evaluation::passed(Vec::new());
    }
    if unmet.is_empty() {
        let inconclusive = Evaluation::inconclusive(reason::EVALUATION_REFUSED, "");
        return Evaluation { notes: refused, ..inconclusive };
    }
    let mut codes: Vec<u16> = unmet.iter().map(|(code, _)| *code).collect();
    codes.sort_unstable();
    codes.dedup();
    let notes = unmet.into_iter().map(|(_, note)| note).chain(refused).collect();
    Evaluation::failed(codes, notes)
}

fn note(name: &str, why: &str) -> String {
    let note = format!("Check `{name}` failed: {why}");
    match note.char_indices().nth(MAX_NOTE_CHARS) {
        Some((end, _)) => format!("{}…", &note[..end]),
        None => note,
    }
}

impl Check {
    /// An upper bound on the work; what is more than `most` may be counted only in part.
    fn work(&self, subject: &Subject<'_>, patterns: &Patterns, most: u64) -> Work {
        let followed = Work { applications: subject::pointer_work(&self.path), ..Work::default() };
        let Some(found) = subject.output.pointer(&self.path) else { return followed };
        followed.and(match &self.kind {
            Kind::Schema(schema) => schema.estimate(found),
            Kind::Required(required) => required.work(),
            Kind::Count(_) | Kind::Bounds(_) => Work::default(),
            Kind::Regex(regular) => regular.work(found),
            Kind::Set(set) => set.work(found, most),
            Kind::Hash(hash) => hash.work(found, most),
            Kind::Cel(expression) => expression.work(subject, patterns, most),
        })
    }

    fn judge(&self, subject: &Subject<'_>, world: Option<&World<'_>>) -> Result<(), Unmet> {
        let found = subject.output.pointer(&self.path);
        let found =
            found.ok_or_else(|| Unmet::unusable(format!("{} is missing.", self.place())))?;
        match &self.kind {
            Kind::Schema(schema) => matched(schema, found, &self.place()),
            Kind::Required(required) => required.judge(found, &self.place()),
            Kind::Count(count) => count.judge(found, &self.place()),
            Kind::Bounds(bounds) => bounds.judge(found, &self.place()),
            Kind::Regex(regular) => regular.judge(found, &self.place()),
            Kind::Set(set) => set.judge(found, &self.place()),
            Kind::Hash(hash) => hash.judge(found, subject.output, &self.place()),
            Kind::Cel(expression) => match world {
                Some(world) => world.judge(expression),
                None => Err(Unmet::unusable("the output could not be read.".to_owned())),
            },
        }
    }

    fn place(&self) -> String {
        place(&self.path)
    }
}

fn matched(schema: &Schema, found: &Value, place: &str) -> Result<(), Unmet> {
    let mismatches = match schema.check(found) {
        Ok(Matches::Yes) => return Ok(()),
        Ok(Matches::No(mismatches)) => mismatches,
        // The budget is no larger than the bounds of one schema, so this is not reached; and if
        // it were, an output that was not checked must not pass.
        Err(refused) => vec![refused.to_string()],
    };
    let first = mismatches.into_iter().next().unwrap_or_default();
    let why = format!("{place} does not match its schema: {first}");
    Err(Unmet::new(reason::CHECK_SCHEMA_FAILED, why))
}

//! `vp.checks.v1`: structural and functional checks of the output, without a model.

mod bounds;
mod cel;
mod count;
mod hash;
mod pattern;
mod read;
mod required;
mod set;
mod subject;

use std::sync::Arc;

use jurat_limits::{
    cel::{CelContext, CelExpression, CelSubject},
    pattern::Patterns,
    work::WorkBudget,
};
use serde_json::Value;

use self::{
    bounds::BoundsCheck,
    count::CountCheck,
    hash::DigestCheck,
    pattern::RegexCheck,
    required::RequiredCheck,
    set::SetCheck,
    subject::{kind_of, part_name},
};
use super::{Evaluation, Policy, params::BindError, schema_only};
use crate::{
    reason,
    round::candidate::Candidate,
    schema::{Schema, SchemaMatch, WorkEstimate},
};

const MAX_NOTE_CHARS: usize = 200;

/// The checks that a candidate must pass. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct Checks {
    held: Arc<CheckSet>,
}

#[derive(Debug, PartialEq)]
struct CheckSet {
    checks: Vec<PolicyCheck>,
    /// The patterns in expressions, by their text.
    patterns: Patterns,
}

#[derive(Debug, PartialEq)]
struct PolicyCheck {
    /// The caller's name for the check, or its path in the parameters.
    name: String,
    /// A JSON Pointer to the part of the output that is checked.
    path: String,
    kind: CheckKind,
}

#[derive(Debug, PartialEq)]
enum CheckKind {
    Schema(Schema),
    Required(RequiredCheck),
    Count(CountCheck),
    Bounds(BoundsCheck),
    Regex(RegexCheck),
    Set(SetCheck),
    Hash(DigestCheck),
    Cel(CelExpression),
}

/// Why a check failed.
#[derive(Debug)]
struct CheckFailure {
    code: u16,
    why: String,
}

impl CheckFailure {
    fn new(code: u16, why: String) -> Self {
        Self { code, why }
    }

    /// The value does not have the type that the check needs.
    fn unusable(why: String) -> Self {
        Self::new(reason::CHECK_VALUE_UNUSABLE, why)
    }
}

pub(super) fn bind(given: &Value) -> Result<Policy, BindError> {
    let (checks, patterns) = read::checks(given)?;
    Ok(Policy::Checks(Checks { held: Arc::new(CheckSet { checks, patterns }) }))
}

/// An upper limit of the work, or a sign that it exceeds what may be done inline.
pub(super) fn estimate(checks: &Checks, candidate: &Candidate) -> WorkEstimate {
    let held = checks.held.as_ref();
    // Parsing evidence is work of its own, which must not be done twice.
    if held.uses_evidence() && !candidate.evidence.inline.is_empty() {
        return WorkEstimate::EXCEEDED;
    }
    let subject = CelSubject { output: &candidate.output, evidence: &Value::Null };
    let mut budget = WorkBudget::small();
    if held.uses_cel() && !budget.take(subject.work(budget.left())) {
        return WorkEstimate::EXCEEDED;
    }
    let fits = held.checks.iter().all(|check| {
        let work = check.work(&subject, &held.patterns, budget.left());
        budget.take(work)
    });
    if fits { budget.taken() } else { WorkEstimate::EXCEEDED }
}

pub(super) fn evaluate(checks: &Checks, candidate: &Candidate, schema: &Schema) -> Evaluation {
    // An output too deep for the checks that follow is refused here, too.
    if let Some(evaluation) = schema_only::unmatched(&candidate.output, schema) {
        return evaluation;
    }
    let held = checks.held.as_ref();
    let evidence = if held.uses_evidence() { subject::evidence(candidate) } else { Value::Null };
    let subject = CelSubject { output: &candidate.output, evidence: &evidence };
    held.decide(&subject)
}

impl CheckSet {
    fn uses_cel(&self) -> bool {
        self.checks.iter().any(|check| matches!(check.kind, CheckKind::Cel(_)))
    }

    fn uses_evidence(&self) -> bool {
        self.checks.iter().any(|check| match &check.kind {
            CheckKind::Cel(expression) => expression.uses_evidence(),
            CheckKind::Schema(_)
            | CheckKind::Required(_)
            | CheckKind::Count(_)
            | CheckKind::Bounds(_)
            | CheckKind::Regex(_)
            | CheckKind::Set(_)
            | CheckKind::Hash(_) => false,
        })
    }

    /// Runs every check. A failed one decides, even if another was too much work.
    fn decide(&self, subject: &CelSubject<'_>) -> Evaluation {
        let mut budget = WorkBudget::full();
        let is_seen = self.uses_cel() && budget.take(subject.work(budget.left()));
        let context = is_seen.then(|| CelContext::of(subject, &self.patterns));
        let (mut unmet, mut refused) = (Vec::new(), Vec::new());
        for check in &self.checks {
            let is_blind = context.is_none() && matches!(check.kind, CheckKind::Cel(_));
            let work = check.work(subject, &self.patterns, budget.left());
            if is_blind || !budget.take(work) {
                refused.push(format!("Check `{}` would take too much work.", check.name));
            } else if let Err(found) = check.judge(subject, context.as_ref()) {
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

impl PolicyCheck {
    /// An upper limit of the work; more than `most` may be counted only in part.
    fn work(&self, subject: &CelSubject<'_>, patterns: &Patterns, most: u64) -> WorkEstimate {
        let followed = WorkEstimate::of_applications(subject::pointer_work(&self.path));
        let Some(found) = subject.output.pointer(&self.path) else { return followed };
        followed.and(match &self.kind {
            CheckKind::Schema(schema) => schema.estimate(found),
            CheckKind::Required(required) => required.work(),
            CheckKind::Count(_) | CheckKind::Bounds(_) => WorkEstimate::default(),
            CheckKind::Regex(regular) => regular.work(found),
            CheckKind::Set(set) => set.work(found, most),
            CheckKind::Hash(hash) => hash.work(found, most),
            CheckKind::Cel(expression) => expression.work(subject, patterns, most),
        })
    }

    fn judge(
        &self,
        subject: &CelSubject<'_>,
        context: Option<&CelContext<'_>>,
    ) -> Result<(), CheckFailure> {
        let found = subject.output.pointer(&self.path);
        let found = found
            .ok_or_else(|| CheckFailure::unusable(format!("{} is missing.", self.part_name())))?;
        match &self.kind {
            CheckKind::Schema(schema) => matched(schema, found, &self.part_name()),
            CheckKind::Required(required) => required.judge(found, &self.part_name()),
            CheckKind::Count(count) => count.judge(found, &self.part_name()),
            CheckKind::Bounds(bounds) => bounds.judge(found, &self.part_name()),
            CheckKind::Regex(regular) => regular.judge(found, &self.part_name()),
            CheckKind::Set(set) => set.judge(found, &self.part_name()),
            CheckKind::Hash(hash) => hash.judge(found, subject.output, &self.part_name()),
            CheckKind::Cel(expression) => match context {
                Some(context) => cel::judge(context, expression),
                None => Err(CheckFailure::unusable("the output could not be read.".to_owned())),
            },
        }
    }

    fn part_name(&self) -> String {
        part_name(&self.path)
    }
}

fn matched(schema: &Schema, found: &Value, part: &str) -> Result<(), CheckFailure> {
    let mismatches = match schema.check(found) {
        Ok(SchemaMatch::Yes) => return Ok(()),
        Ok(SchemaMatch::No(mismatches)) => mismatches,
        // The budget never exceeds the limits of one schema, so this cannot happen; if it did, an
        // unchecked output must not pass.
        Err(refused) => vec![refused.to_string()],
    };
    let first = mismatches.into_iter().next().unwrap_or_default();
    let why = format!("{part} does not match its schema: {first}");
    Err(CheckFailure::new(reason::CHECK_SCHEMA_FAILED, why))
}

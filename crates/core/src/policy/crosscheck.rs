//! `vp.crosscheck.v1`: the output belongs to the majority of the answers, itself included.

use std::borrow::Cow;

use jurat_limits::size::{as_u64, size};
use serde_json::Value;

use super::{
    EquivalenceError, Evaluation, Policy, PolicyRules,
    params::{self, BindError},
    parse_equivalence, schema_only,
};
use crate::{
    reason,
    round::{
        candidate::{Candidate, InlineEvidence},
        consensus::{form, same_form},
        job::Equivalence,
    },
    schema::{Schema, WorkEstimate},
};

/// Whether earlier decisions of the account on the same question count as references. A task adds
/// them to the evidence as further candidates; other rounds have none.
pub const PRIOR_DECISIONS: &str = "prior_decisions";

const MAX_REFERENCES: usize = 100;
/// The maximum number of values compared in one check.
const MAX_COMPARED: u64 = 5_000_000;

/// The answers that a candidate is compared with, and the relation to use.
#[derive(Debug, Clone, PartialEq)]
pub struct CrosscheckParams {
    /// Known outputs, in addition to the candidates in the evidence.
    pub references: Vec<Value>,
    pub equivalence: Equivalence,
    /// The minimum score; only WattSwarm's rules have one.
    pub min_score: Option<f64>,
}

pub(super) fn bind(rules: PolicyRules, given: &Value) -> Result<Policy, BindError> {
    let mut against = CrosscheckParams {
        references: Vec::new(),
        equivalence: Equivalence::Canonical,
        min_score: None,
    };
    match rules {
        PolicyRules::WattSwarm => {
            against.min_score = given.get("min_score").and_then(Value::as_f64);
        }
        PolicyRules::Jurat => {
            let known = ["references", "equivalence", PRIOR_DECISIONS];
            if let Some(members) = params::members(given, &known)? {
                params::toggle(members, PRIOR_DECISIONS)?;
                let references = params::list(members, "references", MAX_REFERENCES)?;
                against.references = references.to_vec();
                if let Some(relation) = members.get("equivalence").filter(|it| !it.is_null()) {
                    against.equivalence = equivalence(relation)?;
                }
            }
        }
    }
    Ok(Policy::Crosscheck { rules, against })
}

fn equivalence(relation: &Value) -> Result<Equivalence, BindError> {
    parse_equivalence(relation).map_err(|error| {
        let problem = match &error {
            EquivalenceError::NotSupported(_) => format!("cannot be used: {error}"),
            EquivalenceError::Invalid(problem) => problem.clone(),
        };
        BindError::params("policy_params.equivalence", problem)
    })
}

/// The work of parsing the evidence and comparing each answer with each other.
pub(super) fn estimate(against: &CrosscheckParams, candidate: &Candidate) -> WorkEstimate {
    let inline = candidate.evidence.inline.iter().filter(|item| is_json(item));
    let (items, bytes) = inline.fold((0_u64, 0_u64), |(items, bytes), item| {
        (items + 1, bytes.saturating_add(as_u64(item.content.len())))
    });
    let known = against.references.iter().map(size).fold(0, u64::saturating_add);
    let count = items.saturating_add(as_u64(against.references.len()));
    // A value takes at least two bytes of text.
    let total = known.saturating_add(bytes / 2).saturating_add(size(&candidate.output));
    let compared = total.saturating_mul(count.saturating_add(1));
    let followed = pointers(&against.equivalence).saturating_mul(count.saturating_add(1));
    WorkEstimate { applications: compared.saturating_add(followed), ..WorkEstimate::default() }
}

/// How many pointers the relation follows in each answer.
fn pointers(relation: &Equivalence) -> u64 {
    match relation {
        Equivalence::Fields(pointers) => as_u64(pointers.len()),
        Equivalence::Canonical
        | Equivalence::Numeric { .. }
        | Equivalence::Buckets(_)
        | Equivalence::Unordered
        | Equivalence::Text => 0,
    }
}

pub(super) fn evaluate(
    against: &CrosscheckParams,
    candidate: &Candidate,
    schema: &Schema,
) -> Evaluation {
    if !schema.is_open()
        && let Some(evaluation) = schema_only::unmatched(&candidate.output, schema)
    {
        return evaluation;
    }
    let references = &against.references;
    let mut candidates: Vec<Value> = Vec::new();
    for item in candidate.evidence.inline.iter().filter(|item| is_json(item)) {
        candidates.extend(other_output(item, &candidate.candidate_id));
        if MAX_REFERENCES < references.len() + candidates.len() {
            let note = format!("There are more than {MAX_REFERENCES} answers to compare with.");
            return Evaluation::inconclusive(reason::EVALUATION_REFUSED, note);
        }
    }
    let others = references.iter().chain(&candidates);
    let compared = others.map(size).fold(0, u64::saturating_add);
    let compared = compared.saturating_add(size(&candidate.output));
    let count = as_u64(references.len() + candidates.len());
    if MAX_COMPARED < compared.saturating_mul(count) {
        let note = "Comparing the output with the others would take too much work.";
        return Evaluation::inconclusive(reason::EVALUATION_REFUSED, note);
    }
    decide(&against.equivalence, &candidate.output, references, &candidates)
}

/// The candidate is one answer among the others. It passes with the majority and fails against it.
/// If no answer has the majority, it still fails if most references disagree with it, because the
/// caller gave them as the yardstick.
fn decide(
    relation: &Equivalence,
    output: &Value,
    references: &[Value],
    candidates: &[Value],
) -> Evaluation {
    let count = references.len() + candidates.len();
    if count == 0 {
        return Evaluation::inconclusive(
            reason::CROSSCHECK_EMPTY,
            "There is no other answer to compare the output with.",
        );
    }
    let (references, candidates) = (forms(relation, references), forms(relation, candidates));
    let own = form(relation, output);
    let others = || references.iter().chain(&candidates);
    let agreeing = |with: &Value, among: &mut dyn Iterator<Item = &Cow<'_, Value>>| {
        among.filter(|other| same_form(relation, with, other)).count()
    };
    let all = count + 1;
    let with_own = agreeing(&own, &mut others()) + 1;
    if all < 2 * with_own {
        let code = reason::CROSSCHECK_CONSISTENT;
        let note = format!("{with_own} of {all} answers agree, the output included ({code}).");
        return Evaluation::passed(vec![note]);
    }
    let most = others().map(|other| agreeing(other, &mut others())).max().unwrap_or_default();
    if all < 2 * most {
        return inconsistent(format!(
            "{most} of {all} answers agree on another answer, and {with_own} on the output."
        ));
    }
    let is_other = |it: &&Cow<'_, Value>| !same_form(relation, &own, it);
    let against = references.iter().filter(is_other);
    let most = against.map(|it| agreeing(it, &mut references.iter())).max().unwrap_or_default();
    if references.len() < 2 * most {
        let all = references.len();
        return inconsistent(format!("{most} of {all} references agree on another answer."));
    }
    let note = format!("None of the {all} answers, the output included, has a majority.");
    Evaluation::inconclusive(reason::CROSSCHECK_SPLIT, note)
}

/// The part of each output that the relation compares.
fn forms<'a>(relation: &Equivalence, values: &'a [Value]) -> Vec<Cow<'a, Value>> {
    values.iter().map(|value| form(relation, value)).collect()
}

fn inconsistent(note: String) -> Evaluation {
    Evaluation::failed(vec![reason::CROSSCHECK_INCONSISTENT], vec![note])
}

fn is_json(item: &InlineEvidence) -> bool {
    let mime = item.mime.split(';').next().unwrap_or_default().trim();
    mime.eq_ignore_ascii_case("application/json")
}

/// The output of another candidate, if the evidence is one. Other kinds of evidence are ignored.
fn other_output(item: &InlineEvidence, own_id: &str) -> Option<Value> {
    let Ok(Value::Object(mut tagged)) = serde_json::from_str(&item.content) else { return None };
    if tagged.get("kind").and_then(Value::as_str) != Some("candidate") {
        return None;
    }
    // A candidate does not confirm itself.
    if tagged.get("candidate_id").and_then(Value::as_str).is_some_and(|id| id == own_id) {
        return None;
    }
    tagged.remove("output").or_else(|| tagged.remove("value"))
}

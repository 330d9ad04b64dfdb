//! `vp.crosscheck.v1`: the output is consistent with the majority of other answers.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    EquivalenceError, Evaluation, Policy, Rules,
    cost::{as_u64, size},
    params::{self, BindError},
    parse_equivalence, schema_only,
};
use crate::{
    candidate::{Candidate, InlineEvidence},
    consensus::{form, same_form},
    job::Equivalence,
    reason,
    schema::{Schema, Work},
};

/// Whether decisions on the same that an account reached before count as references. A task adds
/// them to the evidence as further candidates; elsewhere there are none.
pub const PRIOR_DECISIONS: &str = "prior_decisions";

const MAX_REFERENCES: usize = 100;
/// Values compared, over all comparisons of one check.
const MAX_COMPARED: u64 = 5_000_000;

/// What a candidate is compared with, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Against {
    /// Outputs known beforehand, in addition to the candidates in the evidence.
    pub references: Vec<Value>,
    pub equivalence: Equivalence,
    /// The least score; only WattSwarm's rules have one.
    pub min_score: Option<f64>,
}

pub(super) fn bind(rules: Rules, given: &Value) -> Result<Policy, BindError> {
    let mut against =
        Against { references: Vec::new(), equivalence: Equivalence::Canonical, min_score: None };
    match rules {
        Rules::WattSwarm => against.min_score = given.get("min_score").and_then(Value::as_f64),
        Rules::Jurat => {
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

/// The work of reading the evidence and comparing each with each.
pub(super) fn estimate(against: &Against, candidate: &Candidate) -> Work {
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
    Work { applications: compared.saturating_add(followed), ..Work::default() }
}

/// How many places the relation looks up in each answer.
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

pub(super) fn evaluate(against: &Against, candidate: &Candidate, schema: &Schema) -> Evaluation {
    if !schema.is_open()
        && let Some(evaluation) = schema_only::unmatched(&candidate.output, schema)
    {
        return evaluation;
    }
    let mut others: Vec<Cow<'_, Value>> = against.references.iter().map(Cow::Borrowed).collect();
    for item in candidate.evidence.inline.iter().filter(|item| is_json(item)) {
        others.extend(other_output(item, &candidate.candidate_id).map(Cow::Owned));
        if MAX_REFERENCES < others.len() {
            let note = format!("There are more than {MAX_REFERENCES} answers to compare with.");
            return Evaluation::inconclusive(reason::EVALUATION_REFUSED, note);
        }
    }
    let compared = others.iter().map(|other| size(other)).fold(0, u64::saturating_add);
    let compared = compared.saturating_add(size(&candidate.output));
    if MAX_COMPARED < compared.saturating_mul(as_u64(others.len())) {
        let note = "Comparing the output with the others would take too much work.";
        return Evaluation::inconclusive(reason::EVALUATION_REFUSED, note);
    }
    decide(&against.equivalence, &candidate.output, &others)
}

fn decide(relation: &Equivalence, output: &Value, others: &[Cow<'_, Value>]) -> Evaluation {
    let all = others.len();
    let others: Vec<Cow<'_, Value>> = others.iter().map(|other| form(relation, other)).collect();
    let agreeing =
        |with: &Value| others.iter().filter(|other| same_form(relation, with, other)).count();
    let is_majority = |count: usize| all < 2 * count;
    if all == 0 {
        return Evaluation::inconclusive(
            reason::CROSSCHECK_EMPTY,
            "There is no other answer to compare the output with.",
        );
    }
    let with_output = agreeing(&form(relation, output));
    if is_majority(with_output) {
        let code = reason::CROSSCHECK_CONSISTENT;
        let note = format!("The output agrees with {with_output} of {all} references ({code}).");
        return Evaluation::passed(vec![note]);
    }
    match others.iter().map(|other| agreeing(other)).find(|count| is_majority(*count)) {
        Some(count) => Evaluation::failed(
            vec![reason::CROSSCHECK_INCONSISTENT],
            vec![format!(
                "{count} of {all} references agree on another answer; {with_output} agree with the output."
            )],
        ),
        None => Evaluation::inconclusive(
            reason::CROSSCHECK_SPLIT,
            format!("No majority of the {all} references agrees on an answer."),
        ),
    }
}

fn is_json(item: &InlineEvidence) -> bool {
    let mime = item.mime.split(';').next().unwrap_or_default().trim();
    mime.eq_ignore_ascii_case("application/json")
}

/// The output of another candidate, if the evidence is one. All else is evidence of other kinds.
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

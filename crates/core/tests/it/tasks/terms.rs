//! Terms that no task can satisfy are named by their field.

use jurat_core::task::{BudgetRenewal, DecisionMode, TaskTerms};

use super::driven::{at, terms};

/// A field of the contract, and a change that makes it invalid.
type Case = (&'static str, fn(&mut TaskTerms));

const COUNTS: [Case; 15] = [
    ("assignment.claim.max_concurrency.propose", |it| it.propose_at_once = 0),
    ("assignment.claim.max_concurrency.verify", |it| it.verify_at_once = 65),
    ("assignment.explore.max_proposers", |it| it.max_proposers = 0),
    ("assignment.explore.topk", |it| it.topk = 0),
    ("assignment.explore.stop.no_new_evidence_rounds", |it| it.no_new_evidence_rounds = 0),
    ("assignment.verify.max_verifiers", |it| it.max_verifiers = 65),
    ("assignment.finalize.max_finalizers", |it| it.max_finalizers = 0),
    ("acceptance.quorum_threshold", |it| it.quorum = 0),
    ("acceptance.quorum_threshold", |it| it.quorum = it.max_verifiers + 1),
    ("acceptance.da_quorum_threshold", |it| it.da_quorum = it.max_verifiers + 1),
    ("assignment.verify.max_repeats", |it| it.max_repeats = 65),
    ("assignment.explore.max_retries", |it| it.max_retries = 65),
    ("budget.reuse_max_attempts", |it| it.budget.reuse_max_attempts = 0),
    ("budget.reuse_max_attempts", |it| it.budget.reuse_max_attempts = 65),
    ("budget.reuse_verify_cost_units", |it| it.budget.reuse_verify_cost_units = 31),
];

const SPANS: [Case; 13] = [
    ("assignment.claim.lease_ms", |it| it.lease_ms = 99),
    ("assignment.claim.lease_ms", |it| it.lease_ms = 86_400_001),
    ("acceptance.vote.reveal_deadline_ms", |it| it.reveal_ms = 0),
    ("assignment.explore.backoff_ms", |it| it.backoff_ms = 0),
    ("assignment.explore.backoff_ms", |it| it.backoff_ms = 86_400_001),
    ("acceptance.settlement.window_ms", |it| it.window_ms = u64::MAX),
    ("expiry_ms", |it| it.expires_at = at(1)),
    ("expiry_ms", |it| it.expires_at = at(400_000_000_000)),
    ("budget.time_ms", |it| it.budget.time_ms = u64::MAX),
    ("budget.reuse_verify_time_ms", |it| it.budget.reuse_verify_time_ms = 20_001),
    ("budget.mode", |it| it.mode = DecisionMode::Continuous),
    ("budget.max_steps", |it| it.budget.max_steps = 2),
    ("budget.max_steps", |it| (it.da_quorum, it.budget.max_steps) = (3, 3)),
];

const UNITS: [Case; 6] = [
    ("budget.explore_cost_units", |it| it.budget.explore = 0),
    ("budget.verify_cost_units", |it| it.budget.verify = 1),
    ("budget.verify_cost_units", |it| (it.da_quorum, it.budget.verify) = (3, 2)),
    ("budget.finalize_cost_units", |it| it.budget.finalize = 0),
    ("budget.cost_units", |it| it.budget.cost_units = 19),
    ("budget.cost_units", |it| it.budget.cost_units = u64::MAX),
];

#[test]
fn every_invalid_term_is_named_by_its_field() {
    assert_eq!(terms().check(at(1)), []);
    for (field, make_wrong) in COUNTS.into_iter().chain(SPANS).chain(UNITS) {
        let mut wrong = terms();
        make_wrong(&mut wrong);
        let found = wrong.check(at(1));
        let fields: Vec<&str> = found.iter().map(|error| error.field).collect();
        assert!(fields.contains(&field), "{field} is not among {fields:?}");
        for error in found {
            assert!(!error.reason.contains(['[', ']']), "{}: {}", error.field, error.reason);
        }
    }
}

#[test]
fn all_faults_are_reported_together() {
    let mut wrong = terms();
    wrong.quorum = 5;
    wrong.budget.verify = 1;
    wrong.budget.cost_units = 3;
    wrong.expires_at = at(0);
    let mut fields: Vec<&str> = wrong.check(at(1)).iter().map(|error| error.field).collect();
    fields.sort_unstable();
    let expected = [
        "acceptance.quorum_threshold",
        "budget.cost_units",
        "budget.reuse_verify_cost_units",
        "budget.verify_cost_units",
        "expiry_ms",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_duration_is_not_an_expiry_time() {
    let (now, mut wrong) = (at(1_900_000_000_000), terms());
    wrong.expires_at = at(600_000);
    let said = |terms: &TaskTerms| terms.check_clock(now).unwrap().reason;
    assert!(said(&wrong).contains("milliseconds since 1970"), "{}", said(&wrong));
    wrong.expires_at = at(1_800_000_000_000);
    assert_eq!(said(&wrong), "is in the past");
    // Without the clock nothing is wrong with it.
    assert_eq!(wrong.check_lasting(), []);
}

#[test]
fn messages_use_the_singular_for_one() {
    let mut wrong = terms();
    (wrong.max_verifiers, wrong.quorum) = (1, 2);
    let said = |terms: &TaskTerms, field: &str| {
        let found = terms.check_lasting().into_iter().find(|it| it.field == field);
        found.unwrap().reason
    };
    let quorum = said(&wrong, "acceptance.quorum_threshold");
    assert_eq!(quorum, "cannot be reached: at most 1 verifier is asked");
    (wrong.quorum, wrong.da_quorum, wrong.budget.max_steps) = (1, 0, 1);
    let steps = said(&wrong, "budget.max_steps");
    assert_eq!(steps, "must be at least 2: one proposal and 1 verdict");
}

#[test]
fn a_continuous_task_renews_its_budget() {
    let mut continuous = terms();
    continuous.mode = DecisionMode::Continuous;
    continuous.budget.renewal = BudgetRenewal::EpochRenew;
    assert_eq!(continuous.check(at(1)), []);
}

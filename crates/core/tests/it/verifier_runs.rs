//! The effect of a round's decision on its verifier run.

use jurat_core::{
    account::ledger::CreditHold,
    id::{AccountId, NodeId, RoundId},
    peer::{
        PeerId,
        book::{BookSide, PeerBooking},
    },
    round::{
        OpenRound, RetainedRequest, RoundClosing, RoundEnding,
        consensus::{TallyInput, agree},
        job::{Disagreement, JobKind, Toggle},
        replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer},
    },
    time::Timestamp,
    verifier::run::{
        Provenance, RoundSettlement, VerifierRunEnd, VerifierRunError, VerifierRunPurpose,
        VerifierRunTicket,
    },
};
use serde_json::json;

use crate::consensus::{stranger, terms, vote};

fn closing(answers: Vec<ReplicaAnswer>) -> RoundClosing {
    let replicas: Vec<Replica> =
        answers.into_iter().enumerate().map(|(index, answer)| stranger(index, answer)).collect();
    let mut terms = terms();
    terms.replicas = u8::try_from(replicas.len()).unwrap();
    let ballot = TallyInput {
        kind: JobKind::Validate,
        has_schema: false,
        terms: &terms,
        replicas: &replicas,
    };
    let consensus = agree(&ballot);
    RoundClosing {
        ending: RoundEnding::Closed,
        consensus,
        replicas,
        closed_at: Timestamp::from_millis(1_250),
        receipt_id: "sha256:00".to_owned(),
        entry: "{}".to_owned(),
        bookings: Vec::new(),
    }
}

fn open() -> OpenRound {
    let at = Timestamp::from_millis(1_000);
    OpenRound {
        id: RoundId::new(at, 1),
        account: AccountId::admin(),
        kind: JobKind::Validate,
        node: NodeId::new(at, 2),
        lease_token: 3,
        lease_until: at,
        request_digest: "sha256:00".to_owned(),
        policy_id: "vp.semantic.v1".to_owned(),
        policy_hash: "sha256:00".to_owned(),
        disagreement: Disagreement::ReturnAll,
        traces: Toggle::Off,
        seats: Vec::new(),
        opened_at: at,
        deadline_at: at,
        run: Some(VerifierRunTicket {
            id: "r".to_owned(),
            verifier_id: "v".to_owned(),
            version: 1,
            purpose: VerifierRunPurpose::Run,
            provenance: Provenance::default(),
            inputs_digest: String::new(),
        }),
        verifier: None,
        step: None,
        hold: Some(CreditHold {
            micros: 100,
            most_micros: 100,
            least_micros: 100,
            is_limited: true,
            day_cap_micros: None,
        }),
        kept: RetainedRequest::default(),
    }
}

fn end(answers: Vec<ReplicaAnswer>) -> VerifierRunEnd {
    VerifierRunEnd::of(&open(), &closing(answers))
}

fn says(label: Label, reasoning: &str) -> ReplicaAnswer {
    vote(label, Some(json!({ "reasoning": reasoning })))
}

fn error(answers: Vec<ReplicaAnswer>) -> (VerifierRunError, String) {
    end(answers).verdict.unwrap_err()
}

#[test]
fn a_judgement_is_a_pass_or_a_fail_with_its_reasoning() {
    let passed = end(vec![says(Label::Valid, "all cited")]);
    assert_eq!((passed.verdict, passed.duration_ms), (Ok(true), 250));
    assert_eq!(passed.reasoning.as_deref(), Some("all cited"));
    assert_eq!(end(vec![says(Label::Invalid, "no source")]).verdict, Ok(false));
}

#[test]
fn the_majority_of_judges_decides() {
    let valid = || says(Label::Valid, "fine");
    let ended = end(vec![says(Label::Invalid, "bad"), valid(), valid()]);
    assert_eq!(ended.verdict, Ok(true));
    assert_eq!(ended.reasoning.as_deref(), Some("fine"));
}

#[test]
fn a_judge_that_fails_is_neither_a_pass_nor_a_fail() {
    let failed = |code| vec![ReplicaAnswer::nothing(code, "why")];
    assert_eq!(error(failed(FailureCode::Timeout)), (VerifierRunError::Timeout, "why".to_owned()));
    assert_eq!(
        error(failed(FailureCode::JudgeUnavailable)).0,
        VerifierRunError::VerifierUnavailable
    );
    assert_eq!(error(failed(FailureCode::JudgeUnreadable)).0, VerifierRunError::RuntimeError);
    assert_eq!(error(failed(FailureCode::MediaUnavailable)).0, VerifierRunError::RuntimeError);
}

#[test]
fn judges_that_do_not_agree_or_do_not_decide_are_an_error() {
    let split = vec![
        says(Label::Valid, "yes"),
        says(Label::Invalid, "no"),
        ReplicaAnswer::nothing(FailureCode::Timeout, "late"),
    ];
    let (code, message) = error(split);
    assert_eq!(code, VerifierRunError::RuntimeError);
    assert_eq!(message, "the judges do not agree: VALID, INVALID, TIMEOUT");
    let said =
        AnswerContent { notes: vec!["no source is given".to_owned()], ..AnswerContent::default() };
    let (_, message) = error(vec![ReplicaAnswer::Abstained { label: Label::Retry, said }]);
    assert_eq!(message, "the judge did not decide: no source is given");
}

#[test]
fn the_cost_is_captured_and_the_rest_of_the_hold_is_released() {
    let open = open();
    let mut closing = closing(vec![says(Label::Valid, "fine")]);
    closing.replicas[0].cost_micros = 30;
    let settled = RoundSettlement::of(&open, &closing);
    assert_eq!((settled.captured_micros, settled.released_micros), (30, 70));
    assert_eq!(settled.run.unwrap().cost_micros, 30);
    closing.replicas[0].cost_micros = 300;
    let settled = RoundSettlement::of(&open, &closing);
    assert_eq!((settled.captured_micros, settled.released_micros), (100, 0));
    // A cost that a provider claims beyond that is not charged to the run.
    assert_eq!(settled.run.unwrap().cost_micros, 100);
}

#[test]
fn a_round_that_is_not_paid_for_books_nothing() {
    let mut closing = closing(vec![says(Label::Valid, "fine")]);
    closing.replicas[0].cost_micros = 30;
    closing.bookings = vec![PeerBooking {
        peer: PeerId::of_key(&[1; 32]),
        side: BookSide::Owed,
        origin: PeerId::of_key(&[2; 32]),
        execution_id: "x".to_owned(),
        price_micros: 30,
    }];
    let unpaid = closing.unpaid();
    assert_eq!((unpaid.replicas[0].cost_micros, &unpaid.bookings[..]), (0, &[][..]));
}

#[test]
fn without_a_verdict_there_is_no_reasoning() {
    let split = end(vec![says(Label::Valid, "yes"), says(Label::Invalid, "no")]);
    assert_eq!((split.verdict.is_err(), split.reasoning), (true, None));
}

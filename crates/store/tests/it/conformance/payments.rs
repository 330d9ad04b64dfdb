//! Payments for single requests.

use jurat_core::{
    id::{AccountId, PaymentId, RoundId},
    idempotency::SavedAnswer,
    payment::{
        network::PaymentNetwork,
        record::{Payment, PaymentKey, PaymentProtocol},
        state::PaymentState,
    },
};
use jurat_store::{
    Behalf, NewPayment, PaymentCounts, PaymentEnd, PaymentPruning, PaymentRefusal, PaymentSettling,
    PaymentTake, PaymentUnsettled, Store, WriteOutcome,
};

use super::storage::miscounted;
use crate::{
    backend::Backend,
    samples::{account, at},
};

fn payment(whose: &AccountId, number: u8) -> Payment {
    let payer = format!("0x{:0>40}", whose.as_str().len());
    Payment {
        id: PaymentId::new(at(i64::from(number)), u128::from(number) + (bits_of(whose) << 8)),
        account: whose.clone(),
        key: PaymentKey {
            network: PaymentNetwork::Base,
            asset: PaymentNetwork::Base.asset().to_owned(),
            payer: payer.parse().unwrap(),
            nonce: format!("0x{number:064x}{whose}"),
        },
        protocol: PaymentProtocol::V2,
        amount: 3_000,
        request_digest: "r".to_owned(),
        payment_digest: format!("p{number}"),
        identifier: Some(format!("name-{number}")),
        state: PaymentState::Reserved,
        settle_request: "{}".to_owned(),
        valid_before: at(100),
        round: None,
        answer: None,
        transaction: None,
        reason: None,
        attempts: 0,
        created_at: at(i64::from(number)),
        updated_at: at(i64::from(number)),
    }
}

/// Identifiers are unique across accounts.
fn bits_of(whose: &AccountId) -> u128 {
    whose.as_str().bytes().map(u128::from).sum()
}

async fn reserve(store: &Store, payment: &Payment) -> WriteOutcome<(), PaymentRefusal> {
    let (young_since, good_since) = (payment.created_at, at(0));
    let new = NewPayment { payment: payment.clone(), most_open: 3, young_since, good_since };
    store.payments().reserve(&Behalf::from(&payment.account), &new, None).await.unwrap()
}

/// Stores the reply and the intent to settle, under the lease 7.
async fn settle(store: &Store, payment: &Payment) -> bool {
    let settling = PaymentSettling {
        account: payment.account.clone(),
        id: payment.id.clone(),
        round: RoundId::new(at(1), 1),
        answer: SavedAnswer { tag: 200, text: "reply".to_owned() },
        lease_token: 7,
        next_at: at(50),
        now: at(10),
    };
    store.payments().settle(&Behalf::from(&payment.account), &settling).await.unwrap()
}

async fn end(store: &Store, payment: &Payment, lease_token: u64, state: PaymentState) -> bool {
    let end = PaymentUnsettled {
        account: payment.account.clone(),
        id: payment.id.clone(),
        lease_token,
        state,
        transaction: Some("0x7".to_owned()),
        reason: "no".to_owned(),
        attempts: 1,
        next_at: (state == PaymentState::Unknown).then(|| at(60)),
        now: at(20),
    };
    store.payments().unsettled(&Behalf::from(&payment.account), &end).await.unwrap()
}

async fn settled(store: &Store, payment: &Payment, transaction: &str) -> bool {
    let (account, id) = (payment.account.clone(), payment.id.clone());
    let end = PaymentEnd { account, id, transaction: transaction.to_owned(), now: at(30) };
    store.payments().settled(&Behalf::from(&payment.account), &end).await.unwrap()
}

async fn get(store: &Store, payment: &Payment) -> Payment {
    store.payments().get(&Behalf::Platform, &payment.id).await.unwrap().unwrap()
}

async fn take(store: &Store, millis: i64, lease_token: u64) -> Vec<Payment> {
    let take = PaymentTake { lease_token, next_at: at(millis + 50), now: at(millis), limit: 10 };
    store.payments().take_due(&Behalf::Platform, &take).await.unwrap()
}

pub(crate) async fn with_everything(store: &Store, whose: &AccountId) {
    assert_eq!(reserve(store, &payment(whose, 1)).await, WriteOutcome::Done(()));
}

pub(crate) async fn an_authorization_is_reserved_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let first = payment(&alice, 1);
    assert_eq!(reserve(store, &first).await, WriteOutcome::Done(()));
    assert_eq!(get(store, &first).await, first);
    let known = WriteOutcome::Refused(PaymentRefusal::Known);
    // Another id or name, but the same authorization.
    let again = Payment { identifier: None, id: payment(&alice, 2).id, ..first.clone() };
    assert_eq!(reserve(store, &again).await, known);
    // Another authorization, but the same name.
    let named = Payment { identifier: first.identifier.clone(), ..payment(&alice, 2) };
    assert_eq!(reserve(store, &named).await, known);
    let behalf = Behalf::from(&alice);
    let found = store.payments().of_authorization(&Behalf::Platform, &first.key).await.unwrap();
    assert_eq!(found.as_ref(), Some(&first));
    assert_eq!(
        store.payments().of_identifier(&behalf, &alice, "name-1").await.unwrap(),
        Some(first.clone())
    );
    // Released, it is free again.
    assert!(store.payments().release(&behalf, &alice, &first.id).await.unwrap());
    assert_eq!(reserve(store, &again).await, WriteOutcome::Done(()));
    // A young reservation counts as open, and an old one does not.
    let bob = account("bob");
    for number in 1..=3 {
        assert_eq!(reserve(store, &payment(&bob, number)).await, WriteOutcome::Done(()));
    }
    let fourth = payment(&bob, 4);
    let asked = |young_since| NewPayment {
        payment: fourth.clone(),
        most_open: 2,
        young_since,
        good_since: at(0),
    };
    let of_bob = Behalf::from(&bob);
    let refused = store.payments().reserve(&of_bob, &asked(at(1)), None).await.unwrap();
    assert_eq!(refused, WriteOutcome::Refused(PaymentRefusal::TooManyOpen));
    let done = store.payments().reserve(&of_bob, &asked(at(2)), None).await.unwrap();
    assert_eq!(done, WriteOutcome::Done(()));
    // The account of the payer exists, and too many open payments are refused.
    assert!(store.accounts().get(&Behalf::Platform, &alice).await.unwrap().is_some());
    for number in 3..6 {
        let open = payment(&alice, number);
        assert_eq!(reserve(store, &open).await, WriteOutcome::Done(()));
        assert!(settle(store, &open).await);
    }
    let more = WriteOutcome::Refused(PaymentRefusal::TooManyOpen);
    assert_eq!(reserve(store, &payment(&alice, 6)).await, more);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
}

pub(crate) async fn an_unknown_payment_counts_while_its_authorization_is_good(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for (number, good_until) in [(1, 100), (2, 90)] {
        let one = Payment { valid_before: at(good_until), ..payment(&alice, number) };
        assert_eq!(reserve(store, &one).await, WriteOutcome::Done(()));
        assert!(settle(store, &one).await);
        assert!(end(store, &one, 7, PaymentState::Unknown).await);
    }
    let third = payment(&alice, 3);
    let asked = async |good_since| {
        let (payment, young_since) = (third.clone(), at(50));
        let new = NewPayment { payment, most_open: 2, young_since, good_since };
        store.payments().reserve(&Behalf::from(&alice), &new, None).await.unwrap()
    };
    let refused = WriteOutcome::Refused(PaymentRefusal::TooManyOpen);
    assert_eq!(asked(at(89)).await, refused);
    assert_eq!(asked(at(90)).await, WriteOutcome::Done(()));
}

pub(crate) async fn a_name_is_free_again_after_a_final_failure(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let first = payment(&alice, 1);
    assert_eq!(reserve(store, &first).await, WriteOutcome::Done(()));
    assert!(settle(store, &first).await);
    assert!(end(store, &first, 7, PaymentState::FailedFinal).await);
    let failed = get(store, &first).await;
    assert_eq!((failed.state, failed.answer), (PaymentState::FailedFinal, None));
    let next = Payment { identifier: first.identifier.clone(), ..payment(&alice, 2) };
    assert_eq!(reserve(store, &next).await, WriteOutcome::Done(()));
    // A failure is final.
    assert!(!settled(store, &first, "0x1").await);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
}

pub(crate) async fn a_payment_is_settled_once_whoever_finds_out(backend: &Backend) {
    let store = &*backend.store;
    let one = payment(&account("alice"), 1);
    assert_eq!(reserve(store, &one).await, WriteOutcome::Done(()));
    assert!(!settled(store, &one, "0x1").await, "nothing was sent");
    assert!(settle(store, &one).await);
    assert!(!settle(store, &one).await, "it is no longer reserved");
    let behalf = Behalf::from(&one.account);
    assert!(!store.payments().release(&behalf, &one.account, &one.id).await.unwrap());
    // Another process takes it, and the first one still learns the truth.
    assert_eq!(take(store, 49, 8).await, []);
    let [taken] = &take(store, 50, 8).await[..] else { panic!("it is due") };
    assert_eq!((taken.attempts, taken.state), (2, PaymentState::Settling));
    assert_eq!(taken.answer.as_ref().map(|it| it.text.as_str()), Some("reply"));
    let has_paid = async || store.payments().has_paid(&behalf, &one.account).await.unwrap();
    assert!(!has_paid().await);
    assert!(settled(store, &one, "0x1").await);
    assert!(has_paid().await);
    assert!(!settled(store, &one, "0x2").await);
    assert!(!end(store, &one, 8, PaymentState::Unknown).await);
    let stored = get(store, &one).await;
    assert_eq!((stored.state, stored.transaction.as_deref()), (PaymentState::Settled, Some("0x1")));
    assert_eq!(take(store, 10_000, 9).await, []);
}

pub(crate) async fn an_attempt_that_lost_its_turn_changes_nothing(backend: &Backend) {
    let store = &*backend.store;
    let one = payment(&account("alice"), 1);
    assert_eq!(reserve(store, &one).await, WriteOutcome::Done(()));
    assert!(settle(store, &one).await);
    assert_eq!(take(store, 50, 8).await.len(), 1);
    assert!(!end(store, &one, 7, PaymentState::FailedFinal).await, "it is another's turn");
    assert!(end(store, &one, 8, PaymentState::Unknown).await);
    assert_eq!(get(store, &one).await.transaction.as_deref(), Some("0x7"), "it may be proven yet");
    let counts = store.payments().counts(&Behalf::Platform).await.unwrap();
    assert_eq!(counts, PaymentCounts { count: 1, first: Some(at(1)) });
    assert_eq!(take(store, 59, 9).await, []);
    assert_eq!(take(store, 60, 9).await.len(), 1);
    // A process that is alone need not wait for a stopped one.
    let two = payment(&account("alice"), 2);
    assert_eq!(reserve(store, &two).await, WriteOutcome::Done(()));
    assert!(settle(store, &two).await);
    assert_eq!(store.payments().take_over(&Behalf::Platform, &at(11)).await.unwrap(), 2);
    let mut taken: Vec<PaymentId> = take(store, 11, 10).await.into_iter().map(|it| it.id).collect();
    taken.sort();
    assert_eq!(taken, [one.id.clone(), two.id]);
    // One that nobody has taken keeps its time.
    assert!(end(store, &one, 10, PaymentState::Unknown).await);
    store.payments().take_over(&Behalf::Platform, &at(12)).await.unwrap();
    assert!(take(store, 59, 11).await.iter().all(|it| it.id != one.id));
}

pub(crate) async fn a_payer_sees_its_payments_alone(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    with_everything(store, &alice).await;
    with_everything(store, &bob).await;
    let hers = payment(&alice, 1);
    let payments = store.payments();
    let his = payments.of_identifier(&Behalf::from(&bob), &bob, "name-1").await.unwrap().unwrap();
    assert_eq!(his.account, bob);
    assert_eq!(get(store, &hers).await.account, alice);
}

pub(crate) async fn old_payments_are_removed_and_open_ones_stay(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let all: Vec<Payment> = (1..=4).map(|number| payment(&alice, number)).collect();
    for one in &all {
        assert_eq!(reserve(store, one).await, WriteOutcome::Done(()));
    }
    for one in &all[1..] {
        assert!(settle(store, one).await);
    }
    assert!(end(store, &all[1], 7, PaymentState::Unknown).await);
    assert!(end(store, &all[2], 7, PaymentState::FailedFinal).await);
    assert!(settled(store, &all[3], "0x1").await);
    let prune = async |before: i64, settled_before: i64, now: i64| {
        let (before, settled_before, now) = (at(before), at(settled_before), at(now));
        let pruning = PaymentPruning { before, settled_before, now, limit: 10 };
        store.payments().prune(&Behalf::Platform, &pruning).await.unwrap()
    };
    assert_eq!(prune(1, 1, 1_000).await, 0, "none is that old");
    // Their authorizations are not over, and the reply of the settled one is.
    assert_eq!(prune(1_000, 1_000, 100).await, 1);
    let cleared = get(store, &all[3]).await;
    let expected = Payment {
        state: PaymentState::Settled,
        round: cleared.round.clone(),
        transaction: Some("0x1".to_owned()),
        settle_request: String::new(),
        attempts: 1,
        updated_at: at(30),
        ..all[3].clone()
    };
    assert_eq!(cleared, expected);
    assert_eq!(prune(1_000, 1_000, 100).await, 0);
    let kept = get(store, &all[1]).await;
    assert_eq!((kept.state, kept.answer.is_some()), (PaymentState::Unknown, true));
    // The settled one outlives the others, and its name with it.
    assert_eq!(prune(1_000, 30, 101).await, 2);
    assert_eq!(get(store, &all[3]).await, expected);
    let known = WriteOutcome::Refused(PaymentRefusal::Known);
    let named = Payment { identifier: all[3].identifier.clone(), ..payment(&alice, 5) };
    assert_eq!(reserve(store, &named).await, known);
    assert_eq!(prune(1_000, 31, 101).await, 1);
    assert_eq!(store.payments().get(&Behalf::Platform, &all[3].id).await.unwrap(), None);
    assert_eq!(get(store, &all[1]).await.state, PaymentState::Unknown);
    assert_eq!(backend.texts(&miscounted()).await, [""; 0]);
}

//! Users and teams by their names.

use std::sync::Arc;

use futures::future::join_all;
use jurat_core::{
    account::{AccountKind, AccountName, AccountProfile},
    id::AccountId,
    idempotency::SavedAnswer,
    time::Timestamp,
};
use jurat_store::{
    Behalf, HandleChange, HandleRefusal, IdempotencyAnswer, IdempotencyRecord, Store, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{account, at},
};

const DAY: i64 = 86_400_000_000;

async fn user(store: &Store, name: &str) -> AccountId {
    let account = account(name);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    account
}

fn claim(account: &AccountId, handle: &str, at: i64) -> HandleChange {
    let at = Timestamp::from_micros(at);
    HandleChange { account: account.clone(), handle: handle.to_owned(), at }
}

async fn found(store: &Store, handle: &str, at: i64) -> Option<AccountId> {
    let name = AccountName::Handle(handle.to_owned());
    let found = store.people().profile(&Behalf::Platform, &name, &Timestamp::from_micros(at)).await;
    found.unwrap().map(|profile| profile.account)
}

async fn claimed(
    store: &Store,
    claim: &HandleChange,
) -> WriteOutcome<AccountProfile, HandleRefusal> {
    store.people().claim_handle(&Behalf::Platform, claim, None).await.unwrap()
}

async fn renamed(
    store: &Store,
    claim: &HandleChange,
) -> WriteOutcome<AccountProfile, HandleRefusal> {
    store.people().rename_handle(&Behalf::Platform, claim, None).await.unwrap()
}

pub(crate) async fn a_handle_is_claimed_once_and_found(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    let WriteOutcome::Done(profile) = claimed(store, &claim(&ann, "ann", 5)).await else {
        panic!()
    };
    assert_eq!(profile.kind, AccountKind::User);
    assert_eq!(profile.handle.as_deref(), Some("ann"));
    assert_eq!(found(store, "ann", 6).await, Some(ann.clone()));
    assert_eq!(found(store, "bob", 6).await, None);
    let again = claimed(store, &claim(&ann, "anna", 7)).await;
    assert_eq!(again, WriteOutcome::Refused(HandleRefusal::Claimed("ann".to_owned())));
    let other = claimed(store, &claim(&bob, "ann", 7)).await;
    assert_eq!(other, WriteOutcome::Refused(HandleRefusal::Taken));
    let name = AccountName::Id(bob);
    let still = store.people().profile(&Behalf::Platform, &name, &at(1)).await.unwrap();
    assert_eq!(still.unwrap().handle, None, "what one claims is nobody else's");
    let nobody = claimed(store, &claim(&account("nobody"), "free", 7)).await;
    assert_eq!(nobody, WriteOutcome::Refused(HandleRefusal::UnknownAccount));
}

pub(crate) async fn a_former_handle_redirects_for_ninety_days(backend: &Backend) {
    let store = &*backend.store;
    let (ann, bob) = (user(store, "ann").await, user(store, "bob").await);
    let early = renamed(store, &claim(&ann, "anna", 0)).await;
    assert_eq!(early, WriteOutcome::Refused(HandleRefusal::NotClaimed));
    claimed(store, &claim(&ann, "ann", 0)).await;
    assert!(matches!(renamed(store, &claim(&ann, "anna", DAY)).await, WriteOutcome::Done(_)));
    assert_eq!(found(store, "ann", 90 * DAY).await, Some(ann.clone()));
    assert_eq!(found(store, "ann", 91 * DAY).await, None);
    let soon = renamed(store, &claim(&ann, "anne", 2 * DAY)).await;
    let until = Timestamp::from_micros(91 * DAY);
    assert_eq!(soon, WriteOutcome::Refused(HandleRefusal::TooSoon { until }));
    let taken = claimed(store, &claim(&bob, "ann", 90 * DAY)).await;
    assert_eq!(taken, WriteOutcome::Refused(HandleRefusal::Taken));
    assert!(matches!(claimed(store, &claim(&bob, "ann", 91 * DAY)).await, WriteOutcome::Done(_)));
    assert_eq!(found(store, "ann", 92 * DAY).await, Some(bob));
    assert_eq!(found(store, "anna", 92 * DAY).await, Some(ann));
}

pub(crate) async fn two_concurrent_claims_of_a_handle_have_one_winner(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    let mut claims = Vec::new();
    for index in 0..8 {
        let account = user(&one, &format!("user{index}")).await;
        claims.push((if index % 2 == 0 { &one } else { &two }, claim(&account, "wanted", index)));
    }
    let ends = join_all(claims.iter().map(|(store, claim)| claimed(store, claim))).await;
    assert_eq!(ends.iter().filter(|end| matches!(end, WriteOutcome::Done(_))).count(), 1);
    assert!(ends.iter().all(|end| match end {
        WriteOutcome::Done(profile) => profile.handle.as_deref() == Some("wanted"),
        WriteOutcome::Refused(refused) => *refused == HandleRefusal::Taken,
        WriteOutcome::Repeated => false,
    }));
    two.close().await;
}

pub(crate) async fn a_handle_claimed_under_a_key_is_claimed_once(backend: &Backend) {
    let store = &*backend.store;
    let ann = user(store, "ann").await;
    let once = |answer: &'static str| IdempotencyRecord {
        account: ann.clone(),
        key: "k".to_owned(),
        operation: "handle_claim".to_owned(),
        request_digest: "d".to_owned(),
        answer: IdempotencyAnswer::of(move |profile: &AccountProfile| {
            let handle = profile.handle.as_deref().unwrap();
            SavedAnswer { tag: 200, text: format!("{answer} {handle}") }
        }),
        at: at(1),
    };
    let behalf = Behalf::Account(ann.clone());
    let claim = claim(&ann, "ann", 5);
    // What is refused leaves no note.
    let early = store.people().rename_handle(&behalf, &claim, Some(&once("early"))).await.unwrap();
    assert_eq!(early, WriteOutcome::Refused(HandleRefusal::NotClaimed));
    let first = store.people().claim_handle(&behalf, &claim, Some(&once("first"))).await.unwrap();
    assert!(matches!(first, WriteOutcome::Done(_)));
    let second = store.people().claim_handle(&behalf, &claim, Some(&once("second"))).await.unwrap();
    assert_eq!(second, WriteOutcome::Repeated);
    let noted = store.idempotency().get(&Behalf::from(&ann), &ann, "k").await.unwrap().unwrap();
    assert_eq!(noted.answer.unwrap().text, "first ann");
}

//! Codes that come by mail, and programs that are let in.

use std::sync::Arc;

use futures::future::join_all;
use jurat_core::{
    id::AccountId,
    login::{CODE_MICROS, CODE_REST_MICROS, CODE_TRIES_OF_ALL, DeviceState, LoginPurpose},
    time::Timestamp,
};
use jurat_store::{
    Behalf, CodePut, CodeRefused, CodeTry, CodeUse, DeviceAnswer, DeviceAsked, DevicePoll,
    DeviceRefused, DeviceUse, Entered, InvitationFilter, NewCode, NewDevice, Store, Waited,
    Written,
};

use crate::{backend::Backend, samples::account};

const EMAIL: &str = "ann@example.com";
/// A code for an address without an account.
const NEW: Written<CodePut, CodeRefused> = Written::Done(CodePut::Replaced { is_known: false });
const KEPT: Written<CodePut, CodeRefused> = Written::Done(CodePut::Kept);

fn on(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

async fn put(
    store: &dyn Store,
    purpose: LoginPurpose,
    hash: &str,
    micros: i64,
) -> Written<CodePut, CodeRefused> {
    let new = NewCode {
        email: EMAIL.to_owned(),
        purpose,
        code_hash: hash.to_owned(),
        at: on(micros),
        expires_at: on(micros + CODE_MICROS),
    };
    store.sharing().code_put(&Behalf::Platform, &new, None).await.unwrap()
}

async fn tried(store: &dyn Store, micros: i64) -> Option<String> {
    let tried = CodeTry { email: EMAIL.to_owned(), at: on(micros) };
    match store.sharing().code_try(&Behalf::Platform, &tried, None).await.unwrap() {
        Written::Done(stored) => stored,
        other => panic!("{other:?}"),
    }
}

async fn used(store: &dyn Store, hash: &str, micros: i64) -> Written<Entered, CodeRefused> {
    let used = CodeUse {
        email: EMAIL.to_owned(),
        code_hash: hash.to_owned(),
        account: AccountId::new(on(micros), 7),
        grant_micros: 1_500_000,
        at: on(micros),
    };
    store.sharing().code_use(&Behalf::Platform, &used, None).await.unwrap()
}

pub(crate) async fn a_code_makes_an_account_once_and_its_invitations_find_it(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    assert_eq!(put(&*one, LoginPurpose::Register, "h", 0).await, NEW);
    let ends = join_all((0..6).map(|index| {
        let store: &dyn Store = if index % 2 == 0 { &*one } else { &*two };
        used(store, "h", 1)
    }))
    .await;
    let done: Vec<&Written<Entered, CodeRefused>> =
        ends.iter().filter(|end| matches!(end, Written::Done(_))).collect();
    let [Written::Done(entered)] = done[..] else { panic!("{ends:?}") };
    assert!(entered.is_new);
    assert_eq!(entered.profile.email.as_deref(), Some(EMAIL));
    let state = one.account_get(&entered.profile.account).await.unwrap().unwrap();
    assert_eq!(state.balance.available, 1_500_000, "the credit comes with the account, once");
    assert_eq!(one.credit_check().await.unwrap(), Vec::<String>::new());
    // The next code lets into the same account.
    let known = Written::Done(CodePut::Replaced { is_known: true });
    assert_eq!(put(&*one, LoginPurpose::Register, "i", 2).await, known, "the first was used");
    let Written::Done(again) = used(&*one, "i", 3).await else { panic!() };
    assert_eq!((again.profile.account, again.is_new), (entered.profile.account.clone(), false));
    two.close().await;
}

pub(crate) async fn a_code_is_tried_by_strangers_and_stays_good(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    put(&*one, LoginPurpose::Register, "h", 0).await;
    let ends = join_all((0..12).map(|index| {
        let store: &dyn Store = if index % 2 == 0 { &*one } else { &*two };
        tried(store, 1)
    }))
    .await;
    assert!(ends.iter().all(|end| end.as_deref() == Some("h")), "{ends:?}");
    for _ in 12..CODE_TRIES_OF_ALL {
        assert!(tried(&*one, 1).await.is_some());
    }
    assert_eq!(tried(&*one, 1).await, None, "so many that somebody guesses");
    // One that can not be used any more is replaced at once.
    assert_eq!(put(&*one, LoginPurpose::Register, "i", 2).await, NEW);
    assert_eq!(tried(&*one, 3).await.as_deref(), Some("i"), "a new code has its own tries");
    assert_eq!(tried(&*one, 2 + CODE_MICROS).await, None, "and its own end");
    assert_eq!(used(&*one, "h", 4).await, Written::Refused(CodeRefused::Gone));
    let late = used(&*one, "i", 2 + CODE_MICROS).await;
    assert_eq!(late, Written::Refused(CodeRefused::Gone), "however early it was tried");
    two.close().await;
}

pub(crate) async fn a_code_is_not_replaced_by_who_asks_for_others(backend: &Backend) {
    let store = &*backend.store;
    assert_eq!(put(store, LoginPurpose::Register, "h", 0).await, NEW);
    for number in 1..20 {
        assert_eq!(put(store, LoginPurpose::Register, "x", number).await, KEPT);
        assert_eq!(put(store, LoginPurpose::Login, "x", number).await, KEPT);
    }
    // A login makes no account, and so does not take the place of what does, however old.
    assert_eq!(put(store, LoginPurpose::Login, "x", CODE_REST_MICROS).await, KEPT);
    assert_eq!(tried(store, CODE_REST_MICROS).await.as_deref(), Some("h"));
    assert_eq!(put(store, LoginPurpose::Register, "i", CODE_REST_MICROS).await, NEW);
    // What was sent to nobody keeps nobody from registering.
    let late = CODE_REST_MICROS + CODE_MICROS;
    assert_eq!(put(store, LoginPurpose::Login, "j", late).await, NEW);
    assert_eq!(put(store, LoginPurpose::Register, "k", late + 1).await, NEW);
    assert!(matches!(used(store, "k", late + 2).await, Written::Done(_)));
}

pub(crate) async fn a_login_makes_no_account(backend: &Backend) {
    let store = &*backend.store;
    put(store, LoginPurpose::Login, "h", 0).await;
    assert_eq!(used(store, "h", 1).await, Written::Refused(CodeRefused::Gone));
    assert_eq!(put(store, LoginPurpose::Login, "h", 2).await, NEW);
}

/// An address is invited, and so is another: each invitation finds its own account.
pub(crate) async fn an_invitation_finds_the_account_of_its_address(backend: &Backend) {
    let store = &*backend.store;
    for (number, to) in [(1, EMAIL), (2, "bob@example.com")] {
        let sql = format!(
            "insert into invitations (id, kind, target_id, target_label, from_id, to_id, to_label, \
             created_at, expires_at) values ('i{number}', 'team_membership', 't', '@t', 'acct_cat', \
             '{to}', '{to}', 0, 9)"
        );
        backend.tamper(&sql).await.unwrap();
    }
    put(store, LoginPurpose::Register, "h", 0).await;
    let Written::Done(entered) = used(store, "h", 1).await else { panic!() };
    let filter = InvitationFilter {
        account: entered.profile.account,
        is_received: true,
        is_sent: true,
        is_pending: true,
        before: None,
        limit: 9,
        now: on(2),
    };
    let found = store.sharing().invitation_list(&Behalf::Platform, &filter).await.unwrap();
    assert_eq!(found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["i1"]);
}

async fn begin(store: &dyn Store) {
    begin_as(store, "device", "BCDF-GHJK").await;
}

async fn begin_as(store: &dyn Store, device_hash: &str, user_code: &str) {
    let new = NewDevice {
        device_hash: device_hash.to_owned(),
        user_code: user_code.to_owned(),
        at: on(0),
        expires_at: on(900_000_000),
    };
    let begun = store.sharing().device_begin(&Behalf::Platform, &new, None).await.unwrap();
    assert_eq!(begun, Written::Done(()));
}

async fn polled(store: &dyn Store, seconds: i64) -> Written<Waited, DeviceRefused> {
    let poll = DevicePoll {
        device_hash: "device".to_owned(),
        token_hash: "token".to_owned(),
        at: on(seconds * 1_000_000),
    };
    store.sharing().device_poll(&Behalf::Platform, &poll, None).await.unwrap()
}

async fn answered(store: &dyn Store, is_approved: bool) -> Written<(), DeviceRefused> {
    answered_at(store, is_approved, 5).await
}

async fn answered_at(
    store: &dyn Store,
    is_approved: bool,
    micros: i64,
) -> Written<(), DeviceRefused> {
    let answer = DeviceAnswer {
        user_code: "BCDF-GHJK".to_owned(),
        account: account("ann"),
        is_approved,
        at: on(micros),
    };
    store.sharing().device_answer(&Behalf::Platform, &answer, None).await.unwrap()
}

pub(crate) async fn a_program_is_let_in_once(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    let gone = Written::Refused(DeviceRefused::Unknown);
    assert_eq!(polled(&*one, 1).await, Written::Refused(DeviceRefused::Unknown));
    begin(&*one).await;
    let asked = DeviceAsked { user_code: "BCDF-GHJK".to_owned(), at: on(1) };
    let state = one.sharing().device_get(&Behalf::Platform, &asked).await.unwrap();
    assert_eq!(state, Some(DeviceState::Pending));
    assert_eq!(polled(&*one, 1).await, Written::Done(Waited::Pending));
    assert_eq!(answered(&*one, true).await, Written::Done(()));
    assert_eq!(answered(&*one, false).await, gone);
    assert_eq!(polled(&*one, 2).await, Written::Done(Waited::Approved));
    assert_eq!(polled(&*one, 9).await, Written::Refused(DeviceRefused::Unknown));
    let used = DeviceUse { token_hash: "token".to_owned(), at: on(9_000_000) };
    let ends = join_all((0..6).map(async |index| {
        let store: &dyn Store = if index % 2 == 0 { &*one } else { &*two };
        store.sharing().device_use(&Behalf::Platform, &used, None).await.unwrap()
    }))
    .await;
    let done = ends.iter().filter(|end| **end == Written::Done(account("ann"))).count();
    assert_eq!(done, 1, "{ends:?}");
    two.close().await;
}

pub(crate) async fn a_program_that_asks_too_often_is_told(backend: &Backend) {
    let store = &*backend.store;
    begin(store).await;
    assert_eq!(polled(store, 1).await, Written::Done(Waited::Pending));
    assert_eq!(polled(store, 2).await, Written::Done(Waited::TooSoon));
    assert_eq!(polled(store, 7).await, Written::Done(Waited::Pending));
    assert_eq!(answered(store, false).await, Written::Done(()));
    assert_eq!(polled(store, 8).await, Written::Done(Waited::Denied));
    assert_eq!(polled(store, 900).await, Written::Refused(DeviceRefused::Unknown));
}

pub(crate) async fn a_login_of_a_program_ends_and_lets_in_no_other(backend: &Backend) {
    let store = &*backend.store;
    let used = async |token: &str, seconds: i64| {
        let used = DeviceUse { token_hash: token.to_owned(), at: on(seconds * 1_000_000) };
        store.sharing().device_use(&Behalf::Platform, &used, None).await.unwrap()
    };
    let gone = || Written::Refused(DeviceRefused::Unknown);
    begin(store).await;
    begin_as(store, "another", "LMNP-QRST").await;
    assert_eq!(answered_at(store, true, 900_000_000).await, gone(), "it has ended");
    assert_eq!(answered(store, true).await, Written::Done(()));
    assert_eq!(polled(store, 2).await, Written::Done(Waited::Approved));
    assert_eq!(used("another", 3).await, Written::Refused(DeviceRefused::Unknown));
    let asked = DeviceAsked { user_code: "LMNP-QRST".to_owned(), at: on(4) };
    let other = store.sharing().device_get(&Behalf::Platform, &asked).await.unwrap();
    assert_eq!(other, Some(DeviceState::Pending), "the other one still waits");
    assert_eq!(used("token", 900).await, Written::Refused(DeviceRefused::Unknown));
    assert_eq!(used("token", 899).await, Written::Done(account("ann")));
}

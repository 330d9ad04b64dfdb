//! Login codes sent by mail, and device logins.

use std::sync::Arc;

use futures::future::join_all;
use jurat_core::{
    account::{
        login::{CODE_MICROS, CODE_REST_MICROS, CODE_TRIES_OF_ALL, DeviceState, LoginPurpose},
        team::InvitationFilter,
    },
    id::AccountId,
    time::Timestamp,
};
use jurat_store::{
    Behalf, DeviceAnswer, DeviceLookup, DevicePoll, DevicePollOutcome, DeviceRefusal, DeviceUse,
    LoginCodeOutcome, LoginCodeRefusal, LoginCodeTry, LoginCodeUse, LoginEntrant, NewDevice,
    NewLoginCode, Store, WriteOutcome,
};

use crate::{backend::Backend, samples::account};

const EMAIL: &str = "ann@example.com";
/// A code for an address without an account.
const NEW: WriteOutcome<LoginCodeOutcome, LoginCodeRefusal> =
    WriteOutcome::Done(LoginCodeOutcome::Replaced { is_known: false });
const KEPT: WriteOutcome<LoginCodeOutcome, LoginCodeRefusal> =
    WriteOutcome::Done(LoginCodeOutcome::Kept);

fn on(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

async fn put(
    store: &Store,
    purpose: LoginPurpose,
    hash: &str,
    micros: i64,
) -> WriteOutcome<LoginCodeOutcome, LoginCodeRefusal> {
    let new = NewLoginCode {
        email: EMAIL.to_owned(),
        purpose,
        code_hash: hash.to_owned(),
        at: on(micros),
        expires_at: on(micros + CODE_MICROS),
    };
    store.logins().put_code(&Behalf::Platform, &new, None).await.unwrap()
}

async fn tried(store: &Store, micros: i64) -> Option<String> {
    let tried = LoginCodeTry { email: EMAIL.to_owned(), at: on(micros) };
    match store.logins().try_code(&Behalf::Platform, &tried, None).await.unwrap() {
        WriteOutcome::Done(stored) => stored,
        other => panic!("{other:?}"),
    }
}

async fn used(
    store: &Store,
    hash: &str,
    micros: i64,
) -> WriteOutcome<LoginEntrant, LoginCodeRefusal> {
    let used = LoginCodeUse {
        email: EMAIL.to_owned(),
        code_hash: hash.to_owned(),
        account: AccountId::new(on(micros), 7),
        grant_micros: 1_500_000,
        at: on(micros),
    };
    store.logins().use_code(&Behalf::Platform, &used, None).await.unwrap()
}

pub(crate) async fn a_code_makes_an_account_once_and_its_invitations_find_it(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    assert_eq!(put(&one, LoginPurpose::Register, "h", 0).await, NEW);
    let ends = join_all((0..6).map(|index| {
        let store: &Store = if index % 2 == 0 { &one } else { &two };
        used(store, "h", 1)
    }))
    .await;
    let done: Vec<&WriteOutcome<LoginEntrant, LoginCodeRefusal>> =
        ends.iter().filter(|end| matches!(end, WriteOutcome::Done(_))).collect();
    let [WriteOutcome::Done(entered)] = done[..] else { panic!("{ends:?}") };
    assert!(entered.is_new);
    assert_eq!(entered.profile.email.as_deref(), Some(EMAIL));
    let state =
        one.accounts().get(&Behalf::Platform, &entered.profile.account).await.unwrap().unwrap();
    assert_eq!(state.balance.available, 1_500_000, "the credit comes with the account, once");
    assert_eq!(one.ledger().faults(&Behalf::Platform).await.unwrap(), Vec::<String>::new());
    // The next code lets into the same account.
    let known = WriteOutcome::Done(LoginCodeOutcome::Replaced { is_known: true });
    assert_eq!(put(&one, LoginPurpose::Register, "i", 2).await, known, "the first was used");
    let WriteOutcome::Done(again) = used(&one, "i", 3).await else { panic!() };
    assert_eq!((again.profile.account, again.is_new), (entered.profile.account.clone(), false));
    two.close().await;
}

pub(crate) async fn a_code_stays_valid_despite_failed_tries_of_others(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    put(&one, LoginPurpose::Register, "h", 0).await;
    let ends = join_all((0..12).map(|index| {
        let store: &Store = if index % 2 == 0 { &one } else { &two };
        tried(store, 1)
    }))
    .await;
    assert!(ends.iter().all(|end| end.as_deref() == Some("h")), "{ends:?}");
    for _ in 12..CODE_TRIES_OF_ALL {
        assert!(tried(&one, 1).await.is_some());
    }
    assert_eq!(tried(&one, 1).await, None, "so many that somebody guesses");
    // One that can not be used any more is replaced at once.
    assert_eq!(put(&one, LoginPurpose::Register, "i", 2).await, NEW);
    assert_eq!(tried(&one, 3).await.as_deref(), Some("i"), "a new code has its own tries");
    assert_eq!(tried(&one, 2 + CODE_MICROS).await, None, "and its own end");
    assert_eq!(used(&one, "h", 4).await, WriteOutcome::Refused(LoginCodeRefusal::Gone));
    let late = used(&one, "i", 2 + CODE_MICROS).await;
    assert_eq!(late, WriteOutcome::Refused(LoginCodeRefusal::Gone), "however early it was tried");
    two.close().await;
}

pub(crate) async fn a_code_is_not_replaced_by_requests_for_others(backend: &Backend) {
    let store = &*backend.store;
    assert_eq!(put(store, LoginPurpose::Register, "h", 0).await, NEW);
    for number in 1..20 {
        assert_eq!(put(store, LoginPurpose::Register, "x", number).await, KEPT);
        assert_eq!(put(store, LoginPurpose::Login, "x", number).await, KEPT);
    }
    // A login creates no account, so it does not replace a code that does, however old.
    assert_eq!(put(store, LoginPurpose::Login, "x", CODE_REST_MICROS).await, KEPT);
    assert_eq!(tried(store, CODE_REST_MICROS).await.as_deref(), Some("h"));
    assert_eq!(put(store, LoginPurpose::Register, "i", CODE_REST_MICROS).await, NEW);
    // A code that was not sent does not block a registration.
    let late = CODE_REST_MICROS + CODE_MICROS;
    assert_eq!(put(store, LoginPurpose::Login, "j", late).await, NEW);
    assert_eq!(put(store, LoginPurpose::Register, "k", late + 1).await, NEW);
    assert!(matches!(used(store, "k", late + 2).await, WriteOutcome::Done(_)));
}

pub(crate) async fn a_login_makes_no_account(backend: &Backend) {
    let store = &*backend.store;
    put(store, LoginPurpose::Login, "h", 0).await;
    assert_eq!(used(store, "h", 1).await, WriteOutcome::Refused(LoginCodeRefusal::Gone));
    assert_eq!(put(store, LoginPurpose::Login, "h", 2).await, NEW);
}

/// Two addresses are invited: each invitation finds its own account.
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
    let WriteOutcome::Done(entered) = used(store, "h", 1).await else { panic!() };
    let filter = InvitationFilter {
        is_received: true,
        is_sent: true,
        is_pending: true,
        before: None,
        limit: 9,
    };
    let (invitations, account) = (store.invitations(), &entered.profile.account);
    let found = invitations.list(&Behalf::Platform, account, &filter, &on(2)).await.unwrap();
    assert_eq!(found.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["i1"]);
}

async fn begin(store: &Store) {
    begin_as(store, "device", "BCDF-GHJK").await;
}

async fn begin_as(store: &Store, device_hash: &str, user_code: &str) {
    let new = NewDevice {
        device_hash: device_hash.to_owned(),
        user_code: user_code.to_owned(),
        at: on(0),
        expires_at: on(900_000_000),
    };
    let begun = store.logins().begin_device(&Behalf::Platform, &new, None).await.unwrap();
    assert_eq!(begun, WriteOutcome::Done(()));
}

async fn polled(store: &Store, seconds: i64) -> WriteOutcome<DevicePollOutcome, DeviceRefusal> {
    let poll = DevicePoll {
        device_hash: "device".to_owned(),
        token_hash: "token".to_owned(),
        at: on(seconds * 1_000_000),
    };
    store.logins().poll_device(&Behalf::Platform, &poll, None).await.unwrap()
}

async fn answered(store: &Store, is_approved: bool) -> WriteOutcome<(), DeviceRefusal> {
    answered_at(store, is_approved, 5).await
}

async fn answered_at(
    store: &Store,
    is_approved: bool,
    micros: i64,
) -> WriteOutcome<(), DeviceRefusal> {
    let answer = DeviceAnswer {
        user_code: "BCDF-GHJK".to_owned(),
        account: account("ann"),
        is_approved,
        at: on(micros),
    };
    store.logins().answer_device(&Behalf::Platform, &answer, None).await.unwrap()
}

pub(crate) async fn a_device_login_succeeds_once(backend: &Backend) {
    let (one, two) = (Arc::clone(&backend.store), backend.second().await);
    let gone = WriteOutcome::Refused(DeviceRefusal::Unknown);
    assert_eq!(polled(&one, 1).await, WriteOutcome::Refused(DeviceRefusal::Unknown));
    begin(&one).await;
    let asked = DeviceLookup { user_code: "BCDF-GHJK".to_owned(), at: on(1) };
    let state = one.logins().device(&Behalf::Platform, &asked).await.unwrap();
    assert_eq!(state, Some(DeviceState::Pending));
    assert_eq!(polled(&one, 1).await, WriteOutcome::Done(DevicePollOutcome::Pending));
    assert_eq!(answered(&one, true).await, WriteOutcome::Done(()));
    assert_eq!(answered(&one, false).await, gone);
    assert_eq!(polled(&one, 2).await, WriteOutcome::Done(DevicePollOutcome::Approved));
    assert_eq!(polled(&one, 9).await, WriteOutcome::Refused(DeviceRefusal::Unknown));
    let used = DeviceUse { token_hash: "token".to_owned(), at: on(9_000_000) };
    let ends = join_all((0..6).map(async |index| {
        let store: &Store = if index % 2 == 0 { &one } else { &two };
        store.logins().use_device(&Behalf::Platform, &used, None).await.unwrap()
    }))
    .await;
    let done = ends.iter().filter(|end| **end == WriteOutcome::Done(account("ann"))).count();
    assert_eq!(done, 1, "{ends:?}");
    two.close().await;
}

pub(crate) async fn a_program_that_polls_too_often_is_slowed_down(backend: &Backend) {
    let store = &*backend.store;
    begin(store).await;
    assert_eq!(polled(store, 1).await, WriteOutcome::Done(DevicePollOutcome::Pending));
    assert_eq!(polled(store, 2).await, WriteOutcome::Done(DevicePollOutcome::TooSoon));
    assert_eq!(polled(store, 7).await, WriteOutcome::Done(DevicePollOutcome::Pending));
    assert_eq!(answered(store, false).await, WriteOutcome::Done(()));
    assert_eq!(polled(store, 8).await, WriteOutcome::Done(DevicePollOutcome::Denied));
    assert_eq!(polled(store, 900).await, WriteOutcome::Refused(DeviceRefusal::Unknown));
}

pub(crate) async fn a_device_login_expires_and_serves_no_other_program(backend: &Backend) {
    let store = &*backend.store;
    let used = async |token: &str, seconds: i64| {
        let used = DeviceUse { token_hash: token.to_owned(), at: on(seconds * 1_000_000) };
        store.logins().use_device(&Behalf::Platform, &used, None).await.unwrap()
    };
    let gone = || WriteOutcome::Refused(DeviceRefusal::Unknown);
    begin(store).await;
    begin_as(store, "another", "LMNP-QRST").await;
    assert_eq!(answered_at(store, true, 900_000_000).await, gone(), "it has ended");
    assert_eq!(answered(store, true).await, WriteOutcome::Done(()));
    assert_eq!(polled(store, 2).await, WriteOutcome::Done(DevicePollOutcome::Approved));
    assert_eq!(used("another", 3).await, WriteOutcome::Refused(DeviceRefusal::Unknown));
    let asked = DeviceLookup { user_code: "LMNP-QRST".to_owned(), at: on(4) };
    let other = store.logins().device(&Behalf::Platform, &asked).await.unwrap();
    assert_eq!(other, Some(DeviceState::Pending), "the other one still waits");
    assert_eq!(used("token", 900).await, WriteOutcome::Refused(DeviceRefusal::Unknown));
    assert_eq!(used("token", 899).await, WriteOutcome::Done(account("ann")));
}

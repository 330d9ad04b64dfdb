//! The separation of accounts, and the detection of changes in the tables.

use jurat_core::round::OpenRound;
use jurat_store::{Behalf, RoundLost, Store, StoreError, StoreErrorKind, WriteOutcome};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{
        account, at, close_round, closing, executor, find_round, key, newest, open_round, page,
        round, session, well,
    },
};

pub(crate) async fn another_account_sees_nothing(backend: &Backend) {
    let store = &backend.store;
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    open_round(store, &open).await;
    close_round(store, &open, &end).await;
    let bob = account("bob");
    assert_eq!(find_round(store, &bob, &open.id).await, None);
    assert_eq!(store.rounds().list(&Behalf::from(&bob), &bob, &newest(10)).await.unwrap(), []);
    assert_eq!(
        store.rounds().entry(&Behalf::from(&bob), &bob, &end.receipt_id).await.unwrap(),
        None
    );
}

pub(crate) async fn another_account_cannot_close(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    let stolen = OpenRound { account: account("bob"), ..open.clone() };
    let end = closing(&stolen);
    assert_eq!(close_round(&backend.store, &stolen, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(read(backend, &open).await.closing, None);
}

pub(crate) async fn two_accounts_may_have_a_round_of_the_same_identifier(backend: &Backend) {
    let (hers, his) = (round(&account("alice"), 1), round(&account("bob"), 1));
    assert_eq!(hers.id, his.id);
    for open in [&hers, &his] {
        open_round(&backend.store, open).await;
    }
    let end = closing(&hers);
    close_round(&backend.store, &hers, &end).await;
    assert_eq!(read(backend, &hers).await.closing, Some(end));
    assert_eq!(read(backend, &his).await.closing, None);
}

pub(crate) async fn an_entry_is_found_by_its_receipt(backend: &Backend) {
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    open_round(&backend.store, &open).await;
    close_round(&backend.store, &open, &end).await;
    let entry = backend
        .store
        .rounds()
        .entry(&Behalf::from(&open.account), &open.account, &end.receipt_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(jurat_core::canonical::digest(entry.as_bytes()), end.receipt_id);
    assert_eq!(
        backend
            .store
            .rounds()
            .entry(&Behalf::from(&open.account), &open.account, "sha256:00")
            .await
            .unwrap(),
        None
    );
}

pub(crate) async fn entries_cannot_be_changed_or_removed(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    close_round(&backend.store, &open, &closing(&open)).await;
    for sql in ["update entries set entry = '{}'", "delete from entries"] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.contains("entries are append-only"), "{sql}: {refusal}");
    }
    assert_eq!(read(backend, &open).await.closing, Some(closing(&open)));
}

pub(crate) async fn a_corrupt_row_is_named(backend: &Backend) {
    let store = &*backend.store;
    let open = round(&account("alice"), 1);
    fill(store, &open).await;
    let id = open.id.as_str();
    let corrupt = async |sql: &str| backend.tamper(sql).await.unwrap();

    corrupt("update replicas set document = '{' where position = 1").await;
    let error = store
        .rounds()
        .get(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap_err();
    check(&error, ("replicas", "document", id));
    corrupt("update rounds set consensus = '{}'").await;
    let error = store
        .rounds()
        .get(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap_err();
    check(&error, ("rounds", "consensus", id));
    corrupt("update rounds set kind = 'guess'").await;
    let error = store
        .rounds()
        .list(&Behalf::from(&open.account), &open.account, &newest(1))
        .await
        .unwrap_err();
    check(&error, ("rounds", "kind", id));

    corrupt("update executors set probe = 'well'").await;
    check(
        &store.sessions().pool(&Behalf::Platform).await.unwrap_err(),
        ("executors", "probe", "e1"),
    );
    corrupt("update sessions set price_micros = -1").await;
    check(
        &store.sessions().get(&Behalf::Platform, "s1").await.unwrap_err(),
        ("sessions", "price_micros", "s1"),
    );
    corrupt("update sessions set tier = 'best'").await;
    check(
        &store.sessions().list(&Behalf::Platform, &page(None, 1)).await.unwrap_err(),
        ("sessions", "tier", "s1"),
    );
    corrupt("update api_keys set secret_hash = 'short'").await;
    check(
        &store.keys().get(&Behalf::Platform, "k1").await.unwrap_err(),
        ("api_keys", "secret_hash", "k1"),
    );
}

async fn fill(store: &Store, open: &OpenRound) {
    open_round(store, open).await;
    close_round(store, open, &closing(open)).await;
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    store.executors().set_probe(&Behalf::Platform, "e1", &well(1)).await.unwrap();
    store.accounts().ensure(&Behalf::Platform, &open.account, &at(0)).await.unwrap();
    store.keys().put(&Behalf::Platform, &key("k1", &open.account)).await.unwrap();
}

#[track_caller]
fn check(error: &StoreError, (table, column, row): (&'static str, &'static str, &str)) {
    let row = row.to_owned();
    let text = format!("column `{column}` of row `{row}` in table `{table}` is corrupt");
    assert_eq!(error.kind, StoreErrorKind::Corrupt { table, column, row });
    assert_eq!(error.to_string(), text);
}

pub(crate) async fn a_store_answers_until_it_is_closed(backend: &Backend) {
    let second = backend.second().await;
    second.ping().await.unwrap();
    second.close().await;
    second.close().await;
    let open = round(&account("alice"), 1);
    for error in [
        second.ping().await.unwrap_err(),
        second.sessions().pool_version(&Behalf::Platform).await.unwrap_err(),
        second.rounds().open(&Behalf::from(&open.account), &open, None).await.unwrap_err(),
    ] {
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert_eq!(error.to_string(), "the store is unavailable");
    }
    backend.store.ping().await.unwrap();
}

//! The separation of accounts, and the detection of changes in the tables.

use jurat_core::round::OpenRound;
use jurat_store::{RoundCloseOutcome, Store, StoreError, StoreErrorKind};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{account, at, closing, executor, key, newest, page, round, session, well},
};

pub(crate) async fn another_account_sees_nothing(backend: &Backend) {
    let store = &backend.store;
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    store.round_open(&open, None).await.unwrap();
    store.round_close(&open, &end).await.unwrap();
    let bob = account("bob");
    assert_eq!(store.round_get(&bob, &open.id).await.unwrap(), None);
    assert_eq!(store.round_list(&bob, &newest(10)).await.unwrap(), []);
    assert_eq!(store.entry_get(&bob, &end.receipt_id).await.unwrap(), None);
}

pub(crate) async fn another_account_cannot_close(backend: &Backend) {
    let open = round(&account("alice"), 1);
    backend.store.round_open(&open, None).await.unwrap();
    let stolen = OpenRound { account: account("bob"), ..open.clone() };
    let end = closing(&stolen);
    assert_eq!(backend.store.round_close(&stolen, &end).await.unwrap(), RoundCloseOutcome::Lost);
    assert_eq!(read(backend, &open).await.closing, None);
}

pub(crate) async fn two_accounts_may_have_a_round_of_the_same_identifier(backend: &Backend) {
    let (hers, his) = (round(&account("alice"), 1), round(&account("bob"), 1));
    assert_eq!(hers.id, his.id);
    for open in [&hers, &his] {
        backend.store.round_open(open, None).await.unwrap();
    }
    let end = closing(&hers);
    backend.store.round_close(&hers, &end).await.unwrap();
    assert_eq!(read(backend, &hers).await.closing, Some(end));
    assert_eq!(read(backend, &his).await.closing, None);
}

pub(crate) async fn an_entry_is_found_by_its_receipt(backend: &Backend) {
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    backend.store.round_open(&open, None).await.unwrap();
    backend.store.round_close(&open, &end).await.unwrap();
    let entry = backend.store.entry_get(&open.account, &end.receipt_id).await.unwrap().unwrap();
    assert_eq!(jurat_core::canonical::digest(entry.as_bytes()), end.receipt_id);
    assert_eq!(backend.store.entry_get(&open.account, "sha256:00").await.unwrap(), None);
}

pub(crate) async fn entries_cannot_be_changed_or_removed(backend: &Backend) {
    let open = round(&account("alice"), 1);
    backend.store.round_open(&open, None).await.unwrap();
    backend.store.round_close(&open, &closing(&open)).await.unwrap();
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
    let error = store.round_get(&open.account, &open.id).await.unwrap_err();
    check(&error, ("replicas", "document", id));
    corrupt("update rounds set consensus = '{}'").await;
    let error = store.round_get(&open.account, &open.id).await.unwrap_err();
    check(&error, ("rounds", "consensus", id));
    corrupt("update rounds set kind = 'guess'").await;
    let error = store.round_list(&open.account, &newest(1)).await.unwrap_err();
    check(&error, ("rounds", "kind", id));

    corrupt("update executors set probe = 'well'").await;
    check(&store.pool().await.unwrap_err(), ("executors", "probe", "e1"));
    corrupt("update sessions set price_micros = -1").await;
    check(&store.session_get("s1").await.unwrap_err(), ("sessions", "price_micros", "s1"));
    corrupt("update sessions set tier = 'best'").await;
    check(&store.session_list(&page(None, 1)).await.unwrap_err(), ("sessions", "tier", "s1"));
    corrupt("update api_keys set secret_hash = 'short'").await;
    check(&store.key_get("k1").await.unwrap_err(), ("api_keys", "secret_hash", "k1"));
}

async fn fill(store: &dyn Store, open: &OpenRound) {
    store.round_open(open, None).await.unwrap();
    store.round_close(open, &closing(open)).await.unwrap();
    store.executor_add(&executor("e1"), Some(&session("s1", "e1")), None).await.unwrap();
    store.executor_probed("e1", &well(1)).await.unwrap();
    store.account_ensure(&open.account, at(0)).await.unwrap();
    store.key_put(&key("k1", &open.account)).await.unwrap();
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
        second.pool_version().await.unwrap_err(),
        second.round_open(&open, None).await.unwrap_err(),
    ] {
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert_eq!(error.to_string(), "the store is unavailable");
    }
    backend.store.ping().await.unwrap();
}

//! Accounts and keys.

use std::collections::BTreeMap;

use jurat_core::{account::caller::Scope, id::AccountId};
use jurat_store::{
    Behalf, KeyNameTaken, KeyRecord, KeyRevocation, KeyRevokeRefusal, KeyRotateRefusal,
    KeyRotation, KeySuccession, LiveKeys, Store, StoreErrorKind, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{account, at, key, page},
};

fn revocation(account: &AccountId, id_or_name: &str) -> KeyRevocation {
    KeyRevocation {
        account: account.clone(),
        id_or_name: id_or_name.to_owned(),
        at: at(100),
        by: "somebody".to_owned(),
        within: None,
    }
}

fn rotation(account: &AccountId, id_or_name: &str, new_id: &str) -> KeyRotation {
    KeyRotation {
        account: account.clone(),
        id_or_name: id_or_name.to_owned(),
        at: at(100),
        old_until: at(500),
        new_id: new_id.to_owned(),
        new_secret_hash: [9; 32],
    }
}

/// A key that cannot do everything.
fn plain(id: &str, account: &AccountId) -> KeyRecord {
    let mut record = key(id, account);
    record.key.scopes = [Scope::RoundsRead].into();
    record
}

async fn ids(store: &Store, account: Option<&AccountId>) -> Vec<String> {
    let listed = store.keys().list(&Behalf::Platform, account, &page(None, 100)).await.unwrap();
    listed.into_iter().map(|record| record.key.id).collect()
}

pub(crate) async fn an_account_may_be_ensured_again(backend: &Backend) {
    let alice = account("alice");
    backend.store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    backend.store.accounts().ensure(&Behalf::Platform, &alice, &at(1)).await.unwrap();
}

pub(crate) async fn a_key_reads_back_and_can_be_revoked(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    let mut record = key("k1", &alice);
    store.keys().put(&Behalf::Platform, &record).await.unwrap();
    assert_eq!(store.keys().get(&Behalf::Platform, "k1").await.unwrap(), Some(record.clone()));
    record.key.revoked_at = Some(at(9));
    record.key.expires_at = Some(at(8));
    record.key.last_used_at = Some(at(7));
    record.key.rate_per_minute = None;
    record.key.concurrent_rounds = None;
    record.key.scopes.clear();
    store.keys().put(&Behalf::Platform, &record).await.unwrap();
    assert_eq!(store.keys().get(&Behalf::Platform, "k1").await.unwrap(), Some(record));
    assert_eq!(store.keys().get(&Behalf::Platform, "k2").await.unwrap(), None);
}

pub(crate) async fn a_key_of_another_account_is_not_replaced(backend: &Backend) {
    let store = &backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for account in [&alice, &bob] {
        store.accounts().ensure(&Behalf::Platform, account, &at(0)).await.unwrap();
    }
    let hers = key("k1", &alice);
    store.keys().put(&Behalf::Platform, &hers).await.unwrap();
    let error = store.keys().put(&Behalf::Platform, &key("k1", &bob)).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(store.keys().get(&Behalf::Platform, "k1").await.unwrap(), Some(hers));
}

pub(crate) async fn a_key_needs_an_account(backend: &Backend) {
    let error = backend
        .store
        .keys()
        .put(&Behalf::Platform, &key("k1", &account("nobody")))
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(backend.store.keys().get(&Behalf::Platform, "k1").await.unwrap(), None);
}

pub(crate) async fn adding_a_key_makes_its_account(backend: &Backend) {
    let store = &backend.store;
    let record = key("k1", &account("alice"));
    assert_eq!(
        store.keys().add(&Behalf::Platform, &record, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(store.keys().get(&Behalf::Platform, "k1").await.unwrap(), Some(record));
    let again =
        store.keys().add(&Behalf::Platform, &key("k1", &account("bob")), None).await.unwrap_err();
    assert_eq!(again.kind, StoreErrorKind::Conflict);
}

pub(crate) async fn a_name_is_free_again_when_its_key_has_ended(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    let named = |id: &str, made| {
        let mut record = plain(id, &alice);
        "ci".clone_into(&mut record.key.name);
        record.key.created_at = at(made);
        record
    };
    let mut first = named("k1", 0);
    first.key.expires_at = Some(at(50));
    assert_eq!(
        store.keys().add(&Behalf::Platform, &first, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.keys().add(&Behalf::Platform, &named("k2", 49), None).await.unwrap(),
        WriteOutcome::Refused(KeyNameTaken)
    );
    // Another account has names of its own.
    let mut other = named("k3", 49);
    other.key.account = account("bob");
    assert_eq!(
        store.keys().add(&Behalf::Platform, &other, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.keys().add(&Behalf::Platform, &named("k4", 50), None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.keys().add(&Behalf::Platform, &named("k5", 51), None).await.unwrap(),
        WriteOutcome::Refused(KeyNameTaken)
    );
    store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k4"), None).await.unwrap();
    assert_eq!(
        store.keys().add(&Behalf::Platform, &named("k6", 101), None).await.unwrap(),
        WriteOutcome::Done(())
    );
}

pub(crate) async fn two_concurrent_keys_with_one_name_have_one_winner(backend: &Backend) {
    let second = backend.second().await;
    let alice = account("alice");
    // Often enough that they collide.
    for number in 0..20 {
        let named = |node: &str| {
            let mut record = plain(&format!("{node}{number}"), &alice);
            record.key.name = format!("ci {number}");
            record
        };
        let (left, right) = (named("left"), named("right"));
        let (one, other) = tokio::join!(
            backend.store.keys().add(&Behalf::Platform, &left, None),
            second.keys().add(&Behalf::Platform, &right, None)
        );
        let mut added = [one.unwrap(), other.unwrap()];
        added.sort_by_key(|added| *added != WriteOutcome::Done(()));
        assert_eq!(added, [WriteOutcome::Done(()), WriteOutcome::Refused(KeyNameTaken)]);
    }
    second.close().await;
}

pub(crate) async fn keys_are_listed_in_the_order_they_were_made_in_pages(backend: &Backend) {
    let store = &backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for (id, owner, made) in [("kc", &alice, 1), ("kb", &bob, 2), ("ka", &alice, 2)] {
        let mut record = plain(id, owner);
        record.key.created_at = at(made);
        store.keys().add(&Behalf::Platform, &record, None).await.unwrap();
    }
    assert_eq!(ids(store, None).await, ["kc", "ka", "kb"]);
    assert_eq!(ids(store, Some(&alice)).await, ["kc", "ka"]);
    assert_eq!(ids(store, Some(&account("nobody"))).await, Vec::<String>::new());
    let behind = async |account, after| {
        let listed =
            store.keys().list(&Behalf::Platform, account, &page(Some(after), 1)).await.unwrap();
        listed.into_iter().map(|record| record.key.id).collect::<Vec<_>>()
    };
    assert_eq!(behind(None, "kc").await, ["ka"]);
    assert_eq!(behind(None, "ka").await, ["kb"]);
    assert_eq!(behind(Some(&alice), "ka").await, Vec::<String>::new());
    assert_eq!(behind(None, "no such key").await, Vec::<String>::new());
}

pub(crate) async fn a_key_is_revoked_once_by_identifier_or_name(backend: &Backend) {
    let store = &backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for record in [plain("k1", &alice), plain("k2", &alice), plain("k3", &bob)] {
        store.keys().add(&Behalf::Platform, &record, None).await.unwrap();
    }
    // An account reaches only its own.
    assert_eq!(
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k3"), None).await.unwrap(),
        WriteOutcome::Refused(KeyRevokeRefusal::Unknown)
    );
    let revoked =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k1"), None).await.unwrap();
    assert_eq!(revoked, WriteOutcome::Done(vec!["k1".to_owned()]));
    assert_eq!(
        store.keys().get(&Behalf::Platform, "k1").await.unwrap().unwrap().key.revoked_at,
        Some(at(100))
    );
    // Whoever is not sure does it again, and nothing changes.
    let again =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k1"), None).await.unwrap();
    assert_eq!(again, WriteOutcome::Done(vec!["k1".to_owned()]));
    assert_eq!(
        store.keys().get(&Behalf::Platform, "k1").await.unwrap().unwrap().key.revoked_at,
        Some(at(100))
    );
    for untouched in ["k2", "k3"] {
        assert_eq!(
            store.keys().get(&Behalf::Platform, untouched).await.unwrap().unwrap().key.revoked_at,
            None
        );
    }
}

pub(crate) async fn an_identifier_comes_before_a_name(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    let mut confusing = plain("k2", &alice);
    "k1".clone_into(&mut confusing.key.name);
    store.keys().add(&Behalf::Platform, &confusing, None).await.unwrap();
    let mut meant = plain("k1", &alice);
    "other".clone_into(&mut meant.key.name);
    store.keys().add(&Behalf::Platform, &meant, None).await.unwrap();
    let revoked =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k1"), None).await.unwrap();
    assert_eq!(revoked, WriteOutcome::Done(vec!["k1".to_owned()]));
    let revoked =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k1"), None).await.unwrap();
    assert_eq!(revoked, WriteOutcome::Done(vec!["k2".to_owned()]));
}

pub(crate) async fn neither_the_own_key_nor_the_last_admin_key_can_be_revoked(backend: &Backend) {
    let store = &backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let mut short = key("k2", &bob);
    short.key.expires_at = Some(at(100));
    for record in [key("k1", &alice), short, plain("k3", &alice)] {
        store.keys().add(&Behalf::Platform, &record, None).await.unwrap();
    }
    let own = KeyRevocation { by: "k1".to_owned(), ..revocation(&alice, "k1") };
    assert_eq!(
        store.keys().revoke(&Behalf::Platform, &own, None).await.unwrap(),
        WriteOutcome::Refused(KeyRevokeRefusal::OwnKey)
    );
    // The other one with the scope ends at that moment.
    assert_eq!(
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k1"), None).await.unwrap(),
        WriteOutcome::Refused(KeyRevokeRefusal::LastAdmin)
    );
    let before = KeyRevocation { at: at(99), ..revocation(&alice, "k1") };
    assert!(matches!(
        store.keys().revoke(&Behalf::Platform, &before, None).await.unwrap(),
        WriteOutcome::Done(_)
    ));
    // What has ended anyway may be revoked, and what is no admin key too.
    assert!(matches!(
        store.keys().revoke(&Behalf::Platform, &revocation(&bob, "k2"), None).await.unwrap(),
        WriteOutcome::Done(_)
    ));
    let last =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "k3"), None).await.unwrap();
    assert!(matches!(last, WriteOutcome::Done(_)));
}

pub(crate) async fn two_admins_cannot_revoke_each_other_concurrently(backend: &Backend) {
    let second = backend.second().await;
    let alice = account("alice");
    let mut left = "left".to_owned();
    backend.store.keys().add(&Behalf::Platform, &key(&left, &alice), None).await.unwrap();
    // Often enough that they meet; one is left every time.
    for number in 0..20 {
        let right = format!("right{number}");
        backend.store.keys().add(&Behalf::Platform, &key(&right, &alice), None).await.unwrap();
        let hers = KeyRevocation { by: left.clone(), ..revocation(&alice, &right) };
        let his = KeyRevocation { by: right.clone(), ..revocation(&alice, &left) };
        let (hers, his) = tokio::join!(
            backend.store.keys().revoke(&Behalf::Platform, &hers, None),
            second.keys().revoke(&Behalf::Platform, &his, None)
        );
        let (hers, his) = (hers.unwrap(), his.unwrap());
        if hers == WriteOutcome::Refused(KeyRevokeRefusal::LastAdmin) {
            assert_eq!(his, WriteOutcome::Done(vec![left]));
            left = right;
        } else {
            assert_eq!(
                (hers, his),
                (
                    WriteOutcome::Done(vec![right]),
                    WriteOutcome::Refused(KeyRevokeRefusal::LastAdmin)
                )
            );
        }
    }
    second.close().await;
}

pub(crate) async fn a_rotated_key_has_a_successor_and_an_end(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    let mut old = plain("k1", &alice);
    "ci".clone_into(&mut old.key.name);
    old.key.last_used_at = Some(at(50));
    store.keys().add(&Behalf::Platform, &old, None).await.unwrap();
    let KeySuccession { old: ended, new, .. } = rotated(
        store.keys().rotate(&Behalf::Platform, &rotation(&alice, "ci", "k2"), None).await.unwrap(),
    );
    assert_eq!((ended.id.as_str(), ended.expires_at), ("k1", Some(at(500))));
    assert_eq!(store.keys().get(&Behalf::Platform, "k1").await.unwrap().unwrap().key, ended);
    let fresh = store.keys().get(&Behalf::Platform, "k2").await.unwrap().unwrap();
    assert_eq!((&fresh.key, fresh.secret_hash), (&new, [9; 32]));
    let expected = jurat_core::account::key::Key {
        id: "k2".to_owned(),
        created_at: at(100),
        last_used_at: None,
        ..old.key
    };
    assert_eq!(new, expected);
    // Of two with the name the newest is meant; a revocation by name means both.
    let again = rotated(
        store.keys().rotate(&Behalf::Platform, &rotation(&alice, "ci", "k3"), None).await.unwrap(),
    );
    assert_eq!(again.old.id, "k2");
    let revoked =
        store.keys().revoke(&Behalf::Platform, &revocation(&alice, "ci"), None).await.unwrap();
    assert_eq!(revoked, WriteOutcome::Done(["k3", "k2", "k1"].map(str::to_owned).into()));
}

pub(crate) async fn a_rotated_key_keeps_its_lifetime(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    let mut old = plain("k1", &alice);
    old.key.created_at = at(0);
    old.key.expires_at = Some(at(300));
    store.keys().add(&Behalf::Platform, &old, None).await.unwrap();
    let rotated = rotated(
        store.keys().rotate(&Behalf::Platform, &rotation(&alice, "k1", "k2"), None).await.unwrap(),
    );
    assert_eq!(rotated.new.expires_at, Some(at(400)));
    // It does not live longer than it would have.
    assert_eq!(rotated.old.expires_at, Some(at(300)));
}

pub(crate) async fn a_key_that_has_ended_cannot_be_rotated(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    let mut ended = plain("k1", &alice);
    ended.key.expires_at = Some(at(100));
    store.keys().add(&Behalf::Platform, &ended, None).await.unwrap();
    let mut revoked = plain("k2", &alice);
    revoked.key.revoked_at = Some(at(50));
    store.keys().add(&Behalf::Platform, &revoked, None).await.unwrap();
    for id in ["k1", "k2", "k3"] {
        let rotated = store
            .keys()
            .rotate(&Behalf::Platform, &rotation(&alice, id, "k9"), None)
            .await
            .unwrap();
        assert_eq!(rotated, WriteOutcome::Refused(KeyRotateRefusal::Unknown));
    }
    assert_eq!(store.keys().get(&Behalf::Platform, "k9").await.unwrap(), None);
    // A new identifier that is taken changes nothing of the old key.
    store.keys().add(&Behalf::Platform, &plain("k4", &alice), None).await.unwrap();
    assert!(
        store.keys().rotate(&Behalf::Platform, &rotation(&alice, "k4", "k1"), None).await.is_err()
    );
    assert_eq!(
        store.keys().get(&Behalf::Platform, "k4").await.unwrap().unwrap().key.expires_at,
        None
    );
}

pub(crate) async fn the_last_use_of_a_key_never_goes_back(backend: &Backend) {
    let store = &backend.store;
    let alice = account("alice");
    for id in ["k1", "k2"] {
        store.keys().add(&Behalf::Platform, &plain(id, &alice), None).await.unwrap();
    }
    let uses = |pairs: &[(&str, i64)]| -> BTreeMap<_, _> {
        pairs.iter().map(|(id, millis)| ((*id).to_owned(), at(*millis))).collect()
    };
    store
        .keys()
        .note_uses(&Behalf::Platform, &uses(&[("k1", 60), ("k2", 10), ("gone", 10)]))
        .await
        .unwrap();
    store.keys().note_uses(&Behalf::Platform, &uses(&[("k1", 30), ("k2", 20)])).await.unwrap();
    let last =
        async |id| store.keys().get(&Behalf::Platform, id).await.unwrap().unwrap().key.last_used_at;
    assert_eq!((last("k1").await, last("k2").await), (Some(at(60)), Some(at(20))));
}

fn rotated(rotated: WriteOutcome<KeySuccession, KeyRotateRefusal>) -> KeySuccession {
    let done = match rotated {
        WriteOutcome::Done(succession) => Some(succession),
        WriteOutcome::Refused(KeyRotateRefusal::Unknown | KeyRotateRefusal::Superseded(_))
        | WriteOutcome::Repeated => None,
    };
    done.unwrap()
}

pub(crate) async fn live_keys_are_found_among_many_ended_ones(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    // More than a page of the list, all older, and all over.
    let ended = "insert into api_keys (id, account_id, secret_hash, scopes, name, created_at, \
                 revoked_at) with recursive counted (n) as (select 1 union all select n + 1 \
                 from counted where n < 1001) select 'old' || n, 'acct_alice', '', \
                 '[\"admin\"]', 'login x', n, 5 from counted";
    backend.tamper(ended).await.unwrap();
    for (id, name, is_admin) in [("k1", "login a", true), ("k2", "other", false), ("k3", "x", true)]
    {
        let mut record = if is_admin { key(id, &alice) } else { plain(id, &alice) };
        record.key.name = name.to_owned();
        record.key.created_at = at(10 + i64::from(id == "k2"));
        record.key.expires_at = (id == "k3").then(|| at(50));
        store.keys().put(&Behalf::Platform, &record).await.unwrap();
    }
    let found = async |name_prefix: &str, admins_only: bool, limit: u32| {
        let (account, name_prefix) = (alice.clone(), name_prefix.to_owned());
        let wanted = LiveKeys { account, now: at(100), name_prefix, admins_only, limit };
        let keys = store.keys().live(&Behalf::Platform, &wanted).await.unwrap();
        keys.into_iter().map(|record| record.key.id).collect::<Vec<_>>()
    };
    assert_eq!(found("", false, 10).await, ["k2", "k1"], "the newest first");
    assert_eq!(found("", false, 1).await, ["k2"]);
    assert_eq!(found("login ", false, 10).await, ["k1"]);
    assert_eq!(found("", true, 1).await, ["k1"]);
}

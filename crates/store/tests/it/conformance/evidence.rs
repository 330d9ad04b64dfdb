//! Fetched evidence.

use jurat_core::id::AccountId;
use jurat_store::{Behalf, EvidenceBlob, EvidencePruning, NewEvidence, Store};

use super::workflows::behalf;
use crate::{
    backend::Backend,
    samples::{account, at},
};

fn blob(digest: &str, size: usize, millis: i64) -> EvidenceBlob {
    let bytes = vec![0xff; size];
    EvidenceBlob {
        digest: digest.to_owned(),
        uri: "https://example.org/a".to_owned(),
        mime: "text/plain".to_owned(),
        bytes,
        fetched_at: at(millis),
    }
}

pub(crate) async fn with_everything(store: &Store, whose: &AccountId) {
    put(store, whose, &blob("sha256:1", 5, 10)).await;
}

async fn put(store: &Store, whose: &AccountId, blob: &EvidenceBlob) {
    let found = NewEvidence { account: whose.clone(), blob: blob.clone() };
    store.evidence().put(&behalf(whose), &found).await.unwrap();
}

async fn get(store: &Store, whose: &AccountId, digest: &str) -> Option<EvidenceBlob> {
    store.evidence().get(&behalf(whose), whose, digest).await.unwrap()
}

pub(crate) async fn evidence_is_kept_for_its_account_alone(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    put(store, &alice, &blob("sha256:1", 5, 10)).await;
    assert_eq!(get(store, &alice, "sha256:1").await, Some(blob("sha256:1", 5, 10)));
    assert_eq!(get(store, &alice, "sha256:2").await, None);
    assert_eq!(get(store, &bob, "sha256:1").await, None);
    // A new finding makes it newer, and an older one does not make it older.
    put(store, &alice, &blob("sha256:1", 5, 30)).await;
    put(store, &alice, &blob("sha256:1", 5, 20)).await;
    assert_eq!(get(store, &alice, "sha256:1").await, Some(blob("sha256:1", 5, 30)));
    // It is known at the address where it was last found.
    let moved = EvidenceBlob { uri: "https://example.org/b".to_owned(), ..blob("sha256:1", 5, 40) };
    put(store, &alice, &moved).await;
    assert_eq!(get(store, &alice, "sha256:1").await, Some(moved));
}

pub(crate) async fn old_and_surplus_evidence_is_removed(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for (digest, size, millis) in [("old", 1, 10), ("1", 40, 100), ("2", 40, 110), ("3", 40, 120)] {
        put(store, &alice, &blob(digest, size, millis)).await;
    }
    put(store, &bob, &blob("1", 90, 100)).await;
    let pruning = EvidencePruning { before: at(50), most_bytes: 100, limit: 10 };
    let prune = async || store.evidence().prune(&Behalf::Platform, &pruning).await;
    assert_eq!(prune().await.unwrap(), 2);
    assert_eq!(get(store, &alice, "old").await, None);
    assert_eq!(get(store, &alice, "1").await, None, "the oldest above what the account may keep");
    assert!(get(store, &alice, "2").await.is_some());
    assert!(get(store, &alice, "3").await.is_some());
    assert!(get(store, &bob, "1").await.is_some());
    assert_eq!(prune().await.unwrap(), 0);
}

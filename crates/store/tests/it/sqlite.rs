//! The suite on SQLite, and what only a file has.

use std::{error::Error as _, fs, os::unix::fs::PermissionsExt as _, path::Path};

use jurat_core::round::{OpenRound, Round};
use jurat_store::{
    Behalf, RoundCharge, RoundTakeover, Store, StoreErrorKind, StoreLocation, TakeoverScope,
    WriteOutcome,
};
use rusqlite::Connection;

use crate::{
    backend::{Backend, texts},
    conformance::{conformance, storage},
    migrated::{everything_is_there, fixtures, the_earlier_program_was_understood, work_goes_on},
    samples::{
        account, claim, close_round, closing, executor, expiry, find_round, newest, node,
        open_round, page, round, session, summary,
    },
};

conformance!(Backend::sqlite());

#[tokio::test]
async fn a_round_that_a_crash_left_open_is_found_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let left = round(&account("alice"), 1);
    let before = Store::sqlite(&path).await.unwrap();
    open_round(&before, &left).await;
    drop(before);

    let after = Store::sqlite(&path).await.unwrap();
    // Its lease holds for an hour, but its node is gone.
    assert_eq!(
        after
            .rounds()
            .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
            .await
            .unwrap(),
        []
    );
    let claimed = after
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::All))
        .await
        .unwrap();
    let taken = OpenRound {
        node: node("second"),
        lease_token: 7,
        lease_until: claim("second", TakeoverScope::All).lease_until,
        ..left.clone()
    };
    assert_eq!(claimed, std::slice::from_ref(&taken));
    assert_eq!(
        close_round(&after, &taken, &expiry(&taken)).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    let read = find_round(&after, &left.account, &left.id).await.unwrap();
    assert_eq!(read, Round { closing: Some(expiry(&taken)), open: taken });
    after.close().await;
}

#[tokio::test]
async fn a_node_does_not_take_its_own_rounds_for_orphans() {
    let store = Store::in_memory().unwrap();
    let alice = account("alice");
    for number in 0..3 {
        store
            .rounds()
            .open(&Behalf::from(&round(&alice, number).account), &round(&alice, number), None)
            .await
            .unwrap();
    }
    let own = claim("first", TakeoverScope::All);
    assert_eq!(store.rounds().take_over(&Behalf::Platform, &own).await.unwrap(), []);
    // So a start that claims a few at a time comes to an end.
    let few = RoundTakeover { limit: 2, ..claim("second", TakeoverScope::All) };
    let mut sizes = Vec::new();
    for _ in 0..3 {
        sizes.push(store.rounds().take_over(&Behalf::Platform, &few).await.unwrap().len());
    }
    assert_eq!(sizes, [2, 1, 0]);
}

#[tokio::test]
async fn a_store_in_memory_reads_what_it_writes() {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    let open = round(&account("alice"), 1);
    open_round(&store, &open).await;
    close_round(&store, &open, &closing(&open)).await;
    assert_eq!(
        store.sessions().list(&Behalf::Platform, &page(None, 10)).await.unwrap(),
        [session("s1", "e1")]
    );
    let listed = store
        .rounds()
        .list(&Behalf::from(&open.account), &open.account, &newest(10))
        .await
        .unwrap();
    assert_eq!(listed, [summary(&open, Some(&closing(&open)))]);
    let read = find_round(&store, &open.account, &open.id).await.unwrap();
    assert_eq!(read, Round { closing: Some(closing(&open)), open });
    // Another one shares nothing with it.
    let other = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    assert_eq!(other.sessions().list(&Behalf::Platform, &page(None, 10)).await.unwrap(), []);
    store.close().await;
    assert_eq!(store.ping().await.unwrap_err().kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::sqlite(&path).await.unwrap();
    store
        .rounds()
        .open(
            &Behalf::from(&round(&account("alice"), 1).account),
            &round(&account("alice"), 1),
            None,
        )
        .await
        .unwrap();
    let mut names: Vec<String> = Vec::new();
    for file in fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        names.push(file.file_name().into_string().unwrap());
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{names:?}");
    }
    names.sort();
    assert_eq!(names, ["store.db", "store.db-shm", "store.db-wal"]);
    // A clean end leaves one file, which can be copied.
    store.close().await;
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_of_a_far_newer_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    Store::sqlite(&path).await.unwrap().close().await;
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Store::sqlite(&path).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert_eq!(
        error.source().unwrap().to_string(),
        "the database has schema version 99, but this program knows versions up to 13; use a newer program"
    );
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_unavailable() {
    let error = Store::sqlite(Path::new("/proc/nowhere/store.db")).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, "this is no database, and never was one".repeat(100)).unwrap();
    let error = Store::sqlite(&path).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn data_of_every_earlier_version_is_migrated_and_usable() {
    for fixture in fixtures("sqlite") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let before = Connection::open(&path).unwrap();
        // Each row is a transaction, and need not survive a power cut.
        before.pragma_update(None, "synchronous", "off").unwrap();
        for (_, text) in &fixture.migrations {
            before.execute_batch(text).unwrap();
        }
        before.pragma_update(None, "user_version", fixture.version()).unwrap();
        before.execute_batch(&fixture.rows).unwrap();
        drop(before);

        let store = Store::sqlite(&path).await.unwrap();
        everything_is_there(&fixture, &store).await;
        work_goes_on(&fixture, &store).await;
        let miscounted = texts(&Connection::open(&path).unwrap(), &storage::miscounted());
        assert_eq!(miscounted, [""; 0], "{}", fixture.name);
        store.close().await;
    }
}

#[tokio::test]
async fn the_previous_version_keeps_working_after_the_migration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = Store::sqlite(&path).await.unwrap();
    let previous = fixtures("sqlite").pop().unwrap();
    Connection::open(&path).unwrap().execute_batch(&previous.program).unwrap();
    the_earlier_program_was_understood(&store).await;
    assert_eq!(texts(&Connection::open(&path).unwrap(), &storage::miscounted()), [""; 0]);
    store.close().await;
}

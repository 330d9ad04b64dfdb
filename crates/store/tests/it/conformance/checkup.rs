//! The findings of a check-up.

use jurat_core::{checkup::faults, round::OpenRound};
use jurat_store::{Behalf, EndedRoundsQuery, StoreErrorKind};

use crate::{
    backend::Backend,
    samples::{account, close_round, closing, open_round, round},
};

async fn ended(backend: &Backend, name: &str, number: u32) -> OpenRound {
    let open = round(&account(name), number);
    open_round(&backend.store, &open).await;
    close_round(&backend.store, &open, &closing(&open)).await;
    open
}

/// The contradictions to the entry of the round.
async fn found(backend: &Backend, open: &OpenRound) -> Vec<String> {
    let record = backend
        .store
        .checkup()
        .record(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap()
        .unwrap();
    let is_erased = record.erased_at.is_some();
    let closing = record.round.closing.as_ref().unwrap();
    faults(&record.round.open, closing, &record.listed, is_erased)
}

pub(crate) async fn a_sound_store_has_no_faults(backend: &Backend) {
    let empty = backend.store.checkup().run(&Behalf::Platform).await.unwrap();
    assert_eq!((empty.newest, empty.ended_rounds), (None, 0));
    ended(backend, "alice", 1).await;
    let newest = round(&account("bob"), 2);
    open_round(&backend.store, &newest).await;
    let checkup = backend.store.checkup().run(&Behalf::Platform).await.unwrap();
    assert_eq!(checkup.faults, [] as [&str; 0]);
    assert_eq!(checkup.strays, [] as [&str; 0]);
    assert_eq!(checkup.schema_version, checkup.schema_needed);
    assert_eq!((checkup.newest, checkup.ended_rounds), (Some(newest.opened_at), 1));
}

pub(crate) async fn rounds_that_have_ended_are_walked_in_pages(backend: &Backend) {
    let mut all = Vec::new();
    for (name, number) in [("alice", 3), ("alice", 5), ("bob", 1), ("carol", 2), ("carol", 4)] {
        let open = ended(backend, name, number).await;
        all.push((open.account, open.id));
    }
    backend
        .store
        .rounds()
        .open(&Behalf::from(&round(&account("bob"), 9).account), &round(&account("bob"), 9), None)
        .await
        .unwrap();
    let mut walked = Vec::new();
    loop {
        let after = walked.last().cloned();
        let page = EndedRoundsQuery { after, since: None, limit: 2 };
        let found = backend.store.checkup().ended_rounds(&Behalf::Platform, &page).await.unwrap();
        if found.is_empty() {
            break;
        }
        assert!(found.len() <= 2);
        walked.extend(found);
    }
    assert_eq!(walked, all);
}

pub(crate) async fn the_newest_rounds_are_found(backend: &Backend) {
    for (name, number) in [("alice", 3), ("bob", 1), ("carol", 2)] {
        ended(backend, name, number).await;
    }
    let since = backend.store.checkup().ended_since(&Behalf::Platform, &2).await.unwrap();
    assert_eq!(since, Some(round(&account("carol"), 2).id));
    let page = EndedRoundsQuery { after: None, since, limit: 10 };
    let found = backend.store.checkup().ended_rounds(&Behalf::Platform, &page).await.unwrap();
    let owners: Vec<String> = found.iter().map(|(account, _)| account.to_string()).collect();
    assert_eq!(owners, ["acct_alice", "acct_carol"]);
    assert_eq!(backend.store.checkup().ended_since(&Behalf::Platform, &4).await.unwrap(), None);
    assert_eq!(backend.store.checkup().ended_since(&Behalf::Platform, &0).await.unwrap(), None);
}

pub(crate) async fn a_record_reads_back_with_all_answers(backend: &Backend) {
    let open = ended(backend, "alice", 1).await;
    let record = backend
        .store
        .checkup()
        .record(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap()
        .unwrap();
    let end = closing(&open);
    assert_eq!(record.entry_receipt_id, end.receipt_id);
    assert_eq!(record.round.closing, Some(end));
    assert_eq!(found(backend, &open).await, [] as [&str; 0]);
    assert_eq!(
        backend
            .store
            .checkup()
            .record(&Behalf::from(&account("bob")), &account("bob"), &open.id)
            .await
            .unwrap(),
        None
    );
    let running = round(&account("alice"), 2);
    open_round(&backend.store, &running).await;
    assert_eq!(
        backend
            .store
            .checkup()
            .record(&Behalf::from(&running.account), &running.account, &running.id)
            .await
            .unwrap(),
        None
    );
}

pub(crate) async fn changes_outside_of_the_store_are_found(backend: &Backend) {
    let open = ended(backend, "alice", 1).await;
    for (change, back, text) in [
        (
            "outcome = 'split'",
            "outcome = 'agreed'",
            "`outcome` is \"agreed\", but the store says \"split\"",
        ),
        ("verdict = 'INVALID'", "verdict = 'VALID'", "its summary in lists differs"),
        ("confidence_bp = 9999", "confidence_bp = 8123", "its summary in lists differs"),
        ("policy_id = 'x'", "policy_id = 'vp.schema_only.v1'", "`policy_id`"),
        ("opened_at = opened_at + 1", "opened_at = opened_at - 1", "`opened_at_us`"),
        ("receipt_id = 'sha256:00'", "receipt_id = receipt_id", "but its receipt says `sha256:00`"),
    ] {
        backend.tamper(&format!("update rounds set {change}")).await.unwrap();
        let faults = found(backend, &open).await;
        assert!(faults.iter().any(|fault| fault.contains(text)), "{change}: {faults:?}");
        backend.tamper(&format!("update rounds set {back}")).await.unwrap();
    }
    let open = ended(backend, "alice", 2).await;
    backend.tamper("update replicas set session_id = 'other' where position = 1").await.unwrap();
    assert_eq!(found(backend, &open).await, ["its entry and the store differ in `replicas`"]);
}

pub(crate) async fn an_entry_without_its_round_is_found(backend: &Backend) {
    let open = ended(backend, "alice", 1).await;
    ended(backend, "alice", 2).await;
    let reopened = format!("update rounds set state = 'open' where id = '{}'", open.id);
    backend.tamper(&reopened).await.unwrap();
    let added = "insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
                 values ('acct_x', 'rnd_x', 'sha256:00', '{}', 1)";
    backend.tamper(added).await.unwrap();
    let mut strays = backend.store.checkup().run(&Behalf::Platform).await.unwrap().strays;
    strays.sort();
    assert_eq!(strays, [open.id.to_string(), "rnd_x".to_owned()]);
}

pub(crate) async fn a_round_without_its_entry_is_found(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    backend.tamper("update rounds set state = 'closed', receipt_id = 'x'").await.unwrap();
    let error = backend
        .store
        .checkup()
        .record(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap_err();
    let row = open.id.to_string();
    assert_eq!(error.kind, StoreErrorKind::Corrupt { table: "entries", column: "entry", row });
}

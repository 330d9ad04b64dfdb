//! Verifiers: deployed, read, revoked and deleted.

use jurat_core::{
    checkup::faults,
    id::{AccountId, uuid},
    idempotency::SavedAnswer,
    round::{OpenRound, consensus::Consensus, job::JobKind, replica::ReplicaAnswer},
    time::Timestamp,
    verifier::{
        Verifier, VerifierSelector, VerifierStanding,
        registry::{DeployedVersion, Measurement},
        run::{VerifierRunPurpose, VerifierRunVerdict},
    },
};
use jurat_store::{
    Behalf, CachedVerdict, DeployRefusal, IdempotencyAnswer, IdempotencyRecord, NewVerifierVersion,
    RoundCharge, RoundOpenRefusal, RoundOpening, Store, StoreErrorKind, VerdictPruning,
    VerifierRemoval, VerifierRemoveRefusal, VersionKey, WriteOutcome,
};
use serde_json::json;

use crate::{
    backend::Backend,
    samples::{
        SAID, account, at, close_round, config, deploy, find_round, holding, judged, open_round,
        page, round, run, seat, verifier, verifiers, versions,
    },
};

async fn try_deploy(
    store: &Store,
    deploy: &NewVerifierVersion,
) -> WriteOutcome<DeployedVersion, DeployRefusal> {
    store.verifiers().deploy(&Behalf::from(&deploy.account), deploy, None).await.unwrap()
}

async fn revoke(
    store: &Store,
    removal: &VerifierRemoval,
) -> WriteOutcome<Verifier, VerifierRemoveRefusal> {
    store.verifiers().revoke(&Behalf::from(&removal.account), removal, None).await.unwrap()
}

async fn delete(
    store: &Store,
    removal: &VerifierRemoval,
) -> WriteOutcome<Verifier, VerifierRemoveRefusal> {
    store.verifiers().delete(&Behalf::Platform, removal, None).await.unwrap()
}

async fn measure(store: &Store, account: &AccountId, measurement: &Measurement) {
    store.measurements().add(&Behalf::from(account), account, measurement).await.unwrap();
}

async fn measurements(
    store: &Store,
    account: &AccountId,
    id: &str,
    version: u32,
) -> Vec<Measurement> {
    let of = VersionKey { account: account.clone(), verifier_id: id.to_owned(), version };
    store.measurements().list(&Behalf::from(account), &of).await.unwrap()
}

async fn put_verdict(store: &Store, account: &AccountId, id: &str, verdict: &CachedVerdict) {
    store.verdicts().put(&Behalf::from(account), account, id, verdict).await.unwrap();
}

async fn verdict(
    store: &Store,
    account: &AccountId,
    digest: &str,
    since: Timestamp,
) -> Option<CachedVerdict> {
    store.verdicts().get(&Behalf::from(account), account, digest, &since).await.unwrap()
}

pub(crate) async fn deployed(store: &Store, deploy: &NewVerifierVersion) -> DeployedVersion {
    done(try_deploy(store, deploy).await).unwrap()
}

fn done(deployed: WriteOutcome<DeployedVersion, DeployRefusal>) -> Option<DeployedVersion> {
    if let WriteOutcome::Done(deployment) = deployed { Some(deployment) } else { None }
}

fn name(name: &str) -> VerifierSelector {
    VerifierSelector::Name(name.to_owned())
}

fn removal(account: &AccountId, which: VerifierSelector) -> VerifierRemoval {
    VerifierRemoval { account: account.clone(), which, at: at(500) }
}

fn next(deploy: NewVerifierVersion, token: &str) -> NewVerifierVersion {
    NewVerifierVersion { expected_token: Some(token.to_owned()), ..deploy }
}

fn measurement(verifier_id: &str, number: u32, purpose: VerifierRunPurpose) -> Measurement {
    Measurement {
        id: uuid(at(i64::from(number)), u128::from(number)),
        verifier_id: verifier_id.to_owned(),
        version: 1,
        purpose,
        data_digest: format!("digest {number}"),
        document: json!({"own": true, "accuracy": 0.1 + 0.2}),
        cases: json!([{"said": SAID}]),
        at: at(i64::from(number)),
    }
}

pub(super) fn known(digest: &str, millis: i64) -> CachedVerdict {
    CachedVerdict {
        digest: digest.to_owned(),
        document: json!({"passed": true, "reasoning": SAID, "score": 0.1 + 0.2}),
        at: at(millis),
    }
}

pub(crate) async fn a_verifier_reads_back_by_identifier_and_name(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let first = deploy(&alice, "cites", 1);
    let made = deployed(store, &first).await;
    let expected = Verifier {
        account: alice.clone(),
        id: first.new_id.clone(),
        name: "cites".to_owned(),
        description: "the 1th".to_owned(),
        current_version: 1,
        version_token: "token-1".to_owned(),
        standing: VerifierStanding::Active,
        created_at: at(1),
        updated_at: at(1),
    };
    assert_eq!(made.verifier, expected);
    assert_eq!(made.config_hash, first.config.hash());
    for which in [name("cites"), VerifierSelector::Id(first.new_id.clone())] {
        let read = verifier(store, &alice, &which, None).await.unwrap();
        assert_eq!(read.verifier, expected);
        assert_eq!((read.version, read.deployed_at), (1, at(1)));
        assert_eq!((read.config, read.config_hash), (first.config.clone(), first.config.hash()));
    }
    for which in [name("other"), VerifierSelector::System("cites".to_owned())] {
        assert_eq!(verifier(store, &alice, &which, None).await, None);
    }
}

pub(crate) async fn a_version_is_added_and_the_earlier_ones_stay(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let first = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let second = next(deploy(&alice, "cites", 2), "token-1");
    let made = deployed(store, &second).await.verifier;
    assert_eq!((made.id.as_str(), made.current_version), (first.id.as_str(), 2));
    assert_eq!((made.created_at, made.updated_at), (at(1), at(2)));
    assert_eq!((made.version_token.as_str(), made.description.as_str()), ("token-2", "the 2th"));

    let read = async |version| verifier(store, &alice, &name("cites"), version).await;
    let old = read(Some(1)).await.unwrap();
    assert_eq!((old.version, old.config), (1, config("criterion 1")));
    assert_eq!((old.description.as_str(), old.verifier.current_version), ("the 1th", 2));
    assert_eq!(read(None).await.unwrap().config, config("criterion 2"));
    assert_eq!(read(Some(3)).await, None);

    let listed = versions(store, &alice, &first.id, (None, 10)).await;
    let shown =
        |it: &jurat_core::verifier::registry::VersionSummary| (it.version, it.config_hash.clone());
    let hash = |criterion| config(criterion).hash();
    assert_eq!(
        listed.iter().map(shown).collect::<Vec<_>>(),
        [(2, hash("criterion 2")), (1, hash("criterion 1"))]
    );
    let older = versions(store, &alice, &first.id, (Some(2), 10)).await;
    assert_eq!(older, listed[1..]);
    assert_eq!(versions(store, &alice, &first.id, (None, 1)).await, listed[..1]);
}

pub(crate) async fn a_deploy_needs_the_token_of_the_current_version(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let try_deploy = async |deploy: NewVerifierVersion| try_deploy(store, &deploy).await;
    let early = try_deploy(next(deploy(&alice, "cites", 1), "token-0")).await;
    assert_eq!(early, WriteOutcome::Refused(DeployRefusal::TokenUnexpected));
    assert_eq!(verifier(store, &alice, &name("cites"), None).await, None);
    deployed(store, &deploy(&alice, "cites", 1)).await;
    let current = "token-1".to_owned();
    let missing = try_deploy(deploy(&alice, "cites", 2)).await;
    assert_eq!(
        missing,
        WriteOutcome::Refused(DeployRefusal::TokenMissing { current: current.clone() })
    );
    let stale = try_deploy(next(deploy(&alice, "cites", 2), "token-0")).await;
    assert_eq!(stale, WriteOutcome::Refused(DeployRefusal::TokenStale { current }));
    let read = verifier(store, &alice, &name("cites"), None).await.unwrap();
    assert_eq!(read.verifier.current_version, 1);
}

pub(crate) async fn two_concurrent_deploys_have_one_winner(backend: &Backend) {
    let alice = account("alice");
    let behalf = Behalf::from(&alice);
    let other = backend.second().await;
    for turn in 0..15 {
        let called = format!("name-{turn}");
        let (left, right) =
            (deploy(&alice, &called, 4 * turn), deploy(&alice, &called, 4 * turn + 1));
        let (left, right) = tokio::join!(
            backend.store.verifiers().deploy(&behalf, &left, None),
            other.verifiers().deploy(&behalf, &right, None)
        );
        let token = winner(left.unwrap(), right.unwrap(), |current| {
            WriteOutcome::Refused(DeployRefusal::TokenMissing { current })
        });
        let left = next(deploy(&alice, &called, 4 * turn + 2), &token);
        let right = next(deploy(&alice, &called, 4 * turn + 3), &token);
        let (left, right) = tokio::join!(
            backend.store.verifiers().deploy(&behalf, &left, None),
            other.verifiers().deploy(&behalf, &right, None)
        );
        winner(left.unwrap(), right.unwrap(), |current| {
            WriteOutcome::Refused(DeployRefusal::TokenStale { current })
        });
        let read = verifier(&other, &alice, &name(&called), None).await.unwrap();
        assert_eq!(read.version, 2);
    }
    other.close().await;
}

/// The token of the one that won; the other was told it.
fn winner(
    left: WriteOutcome<DeployedVersion, DeployRefusal>,
    right: WriteOutcome<DeployedVersion, DeployRefusal>,
    loser: fn(String) -> WriteOutcome<DeployedVersion, DeployRefusal>,
) -> String {
    let (won, lost) =
        if matches!(left, WriteOutcome::Done(_)) { (left, right) } else { (right, left) };
    let won = done(won).unwrap();
    assert_eq!(lost, loser(won.verifier.version_token.clone()));
    won.verifier.version_token
}

pub(crate) async fn verifiers_are_listed_by_name_in_pages(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    for (number, called) in (1..).zip(["b", "d", "a", "c"]) {
        deployed(store, &deploy(&alice, called, number)).await;
    }
    revoke(store, &removal(&alice, name("b"))).await;
    let names = async |after, limit| {
        let listed = verifiers(store, &alice, &page(after, limit)).await;
        listed.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    assert_eq!(names(None, 10).await, ["a", "c", "d"]);
    assert_eq!(names(None, 2).await, ["a", "c"]);
    assert_eq!(names(Some("c"), 2).await, ["d"]);
}

pub(crate) async fn a_revoked_verifier_is_gone_and_keeps_its_name(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let made = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let gone = revoke(store, &removal(&alice, name("cites"))).await;
    assert_eq!(gone, WriteOutcome::Done(made.clone()));
    assert_eq!(verifier(store, &alice, &name("cites"), None).await, None);
    assert_eq!(versions(store, &alice, &made.id, (None, 10)).await, []);
    assert_eq!(verifiers(store, &alice, &page(None, 10)).await, []);
    for token in [None, Some("token-1".to_owned())] {
        let again = NewVerifierVersion { expected_token: token, ..deploy(&alice, "cites", 2) };
        assert_eq!(
            try_deploy(store, &again).await,
            WriteOutcome::Refused(DeployRefusal::NameRevoked)
        );
    }
    // A revoked one stays revoked, and the reply says so.
    let by_id = removal(&alice, VerifierSelector::Id(made.id.clone()));
    let again = revoke(store, &by_id).await;
    let revoked = Verifier { standing: VerifierStanding::Revoked, updated_at: at(500), ..made };
    assert_eq!(again, WriteOutcome::Done(revoked));
    let other = revoke(store, &removal(&alice, name("other"))).await;
    assert_eq!(other, WriteOutcome::Refused(VerifierRemoveRefusal::Unknown));
}

pub(crate) async fn a_deleted_verifier_leaves_nothing_but_entries(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    let kept = deployed(store, &deploy(&alice, "kept", 2)).await.verifier.id;
    let endings =
        [VerifierRunVerdict::Passed, VerifierRunVerdict::Failed, VerifierRunVerdict::Error];
    for (number, verdict) in (1..).zip(endings) {
        let open = run(&alice, &id, number);
        open_round(store, &open).await;
        close_round(store, &open, &judged(&open, verdict, 5)).await;
    }
    let other = run(&alice, &kept, 9);
    open_round(store, &other).await;
    close_round(store, &other, &judged(&other, VerifierRunVerdict::Passed, 5)).await;
    for (verifier, digest) in [(&id, "one"), (&kept, "two")] {
        put_verdict(store, &alice, verifier, &known(digest, 1)).await;
        measure(
            store,
            &alice,
            &measurement(verifier, 7 + u32::from(verifier == &id), VerifierRunPurpose::Test),
        )
        .await;
    }
    revoke(store, &removal(&alice, name("cites"))).await;

    let gone = delete(store, &removal(&alice, name("cites"))).await;
    assert!(matches!(gone, WriteOutcome::Done(it) if it.id == id));
    for (number, verdict) in (1..).zip(endings) {
        erased(backend, number, verdict, &id).await;
    }
    assert_eq!(verdict(store, &alice, "one", at(0)).await, None);
    assert_eq!(measurements(store, &alice, &id, 1).await, []);
    // The other verifier is as it was.
    let read = find_round(store, &alice, &other.id).await.unwrap();
    assert_eq!(read.closing, Some(judged(&other, VerifierRunVerdict::Passed, 5)));
    assert!(
        store
            .verifier_runs()
            .get(&Behalf::from(&alice), &alice, &other.run.as_ref().unwrap().id)
            .await
            .unwrap()
            .is_some()
    );
    assert!(verdict(store, &alice, "two", at(0)).await.is_some());
    assert_eq!(measurements(store, &alice, &kept, 1).await.len(), 1);
    // The name is free again, and nothing of before comes back with it.
    let again = delete(store, &removal(&alice, name("cites"))).await;
    assert_eq!(again, WriteOutcome::Refused(VerifierRemoveRefusal::Unknown));
    assert_eq!(deployed(store, &deploy(&alice, "cites", 5)).await.verifier.current_version, 1);
}

/// None of the judge's text is left of a run, and the rest still fits its entry.
async fn erased(backend: &Backend, number: u32, verdict: VerifierRunVerdict, verifier: &str) {
    let open = run(&account("alice"), verifier, number);
    let before = judged(&open, verdict, 5);
    let store = &backend.store;
    let record = store
        .checkup()
        .record(&Behalf::from(&open.account), &open.account, &open.id)
        .await
        .unwrap()
        .unwrap();
    assert!(!format!("{record:?}").contains(SAID), "{record:?}");
    assert_eq!(record.erased_at, Some(at(500)));
    let round = &record.round;
    let after = round.closing.as_ref().unwrap();
    assert_eq!((&after.receipt_id, &after.entry), (&before.receipt_id, &before.entry));
    assert_eq!(after.replicas.len(), 1);
    let (left, was) = (&after.replicas[0], &before.replicas[0]);
    assert_eq!(left.answer.label(), was.answer.label());
    assert_eq!(left.answer.failure().map(|it| it.code), was.answer.failure().map(|it| it.code));
    assert_eq!((left.usage, left.cost_micros), (was.usage, 5));
    assert_eq!((left.reliability, &left.independence), (was.reliability, &was.independence));
    let consensus = Consensus { output: None, ..before.consensus.clone() };
    assert_eq!((&after.consensus, &round.open.run), (&consensus, &None));
    assert_eq!(faults(&round.open, after, &record.listed, true), [] as [&str; 0]);
    assert_ne!(faults(&round.open, after, &record.listed, false), [] as [&str; 0]);
    assert_eq!(
        store
            .verifier_runs()
            .get(&Behalf::from(&open.account), &open.account, &open.run.unwrap().id)
            .await
            .unwrap(),
        None
    );
}

pub(crate) async fn answers_after_their_verifier_was_deleted_are_not_kept(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    let open = holding(run(&alice, &id, 1), 9, false);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    delete(store, &removal(&alice, VerifierSelector::Id(id.clone()))).await;
    let end = judged(&open, VerifierRunVerdict::Passed, 5);
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    erased(backend, 1, VerifierRunVerdict::Passed, &id).await;
    put_verdict(store, &alice, &id, &known("one", 1)).await;
    assert_eq!(verdict(store, &alice, "one", at(0)).await, None);
    let late = store
        .measurements()
        .add(&Behalf::from(&alice), &alice, &measurement(&id, 1, VerifierRunPurpose::Test))
        .await;
    assert_eq!(late.unwrap_err().kind, StoreErrorKind::Conflict);
    // Its cost is counted all the same.
    let next = run(&alice, &id, 2);
    assert_eq!(
        open_round(store, &next).await,
        WriteOutcome::Refused(RoundOpenRefusal::VerifierGone)
    );
    assert_eq!(find_round(store, &alice, &next.id).await, None);
    assert_eq!(
        store.ledger().spending(&Behalf::from(&alice), &alice, &at(0)).await.unwrap().micros,
        5
    );
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn the_answers_of_judges_are_deleted_with_their_verifier(backend: &Backend) {
    let (store, bob) = (&*backend.store, account("bob"));
    let alice = account("alice");
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    let of_kind = |number, kind| OpenRound {
        verifier: Some(id.clone()),
        kind,
        seats: vec![seat(0)],
        ..round(&bob, number)
    };
    // The answers of a delegate round are those of executors, with a judgment each.
    let end_of = |open: &OpenRound, verdict| {
        let mut end = judged(open, verdict, 0);
        if open.kind == JobKind::Delegate {
            end.consensus.output = Some(json!({"answer": 1}));
            if let ReplicaAnswer::Vote(vote) = &mut end.replicas[0].answer {
                vote.said.output = Some(json!({"answer": 1}));
                SAID.clone_into(&mut vote.said.evidence.inline[0].content);
            }
        }
        end
    };
    let cases = [
        (of_kind(1, JobKind::Validate), VerifierRunVerdict::Passed),
        (of_kind(2, JobKind::Delegate), VerifierRunVerdict::Passed),
        (of_kind(3, JobKind::Delegate), VerifierRunVerdict::Error),
        (of_kind(4, JobKind::Validate), VerifierRunVerdict::Failed),
        (of_kind(5, JobKind::Delegate), VerifierRunVerdict::Passed),
        (of_kind(6, JobKind::Delegate), VerifierRunVerdict::Error),
    ];
    let other = OpenRound { seats: vec![seat(0)], ..round(&bob, 7) };
    open_round(store, &other).await;
    close_round(store, &other, &judged(&other, VerifierRunVerdict::Passed, 0)).await;
    for (open, _) in &cases {
        assert_eq!(open_round(store, open).await, WriteOutcome::Done(RoundOpening::Whole));
        let read = find_round(store, &bob, &open.id).await.unwrap();
        assert_eq!(read.open.verifier, open.verifier);
    }
    // Some have ended before, and some end after it.
    for (open, verdict) in &cases[..3] {
        close_round(store, open, &end_of(open, *verdict)).await;
    }
    delete(store, &removal(&alice, VerifierSelector::Id(id.clone()))).await;
    for (open, verdict) in &cases[3..] {
        let closed = close_round(store, open, &end_of(open, *verdict)).await;
        assert_eq!(closed, WriteOutcome::Done(RoundCharge::Own));
    }
    for (open, verdict) in &cases {
        let closing = find_round(store, &bob, &open.id).await.unwrap().closing.unwrap();
        let kept = format!("{:?} {:?}", closing.replicas, closing.consensus.output);
        assert!(!kept.contains(SAID), "{:?} {verdict:?}: {kept}", open.kind);
        let has_output = open.kind == JobKind::Delegate;
        assert_eq!(closing.consensus.output.is_some(), has_output);
        let said = closing.replicas[0].answer.content();
        let output = said.and_then(|said| said.output.as_ref());
        assert_eq!(output.is_some(), has_output && *verdict == VerifierRunVerdict::Passed);
        assert!(!closing.entry.contains(SAID), "entries have digests only");
    }
    let other = find_round(store, &bob, &other.id).await.unwrap().closing.unwrap();
    assert!(format!("{:?}", other.replicas).contains(SAID), "what others said stays");
}

pub(crate) async fn runs_at_the_moment_of_a_delete_leave_nothing(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let other = backend.second().await;
    for turn in 0..20 {
        let id = deployed(store, &deploy(&alice, &format!("name-{turn}"), turn)).await.verifier.id;
        let (ending, beginning) = (run(&alice, &id, 2 * turn + 1), run(&alice, &id, 2 * turn + 2));
        open_round(store, &ending).await;
        let by_id = removal(&alice, VerifierSelector::Id(id.clone()));
        let end = judged(&ending, VerifierRunVerdict::Passed, 5);
        let behalf = Behalf::from(&alice);
        let (gone, closed, opened) = tokio::join!(
            other.verifiers().delete(&Behalf::Platform, &by_id, None),
            store.rounds().close(&behalf, &ending, &end),
            store.rounds().open(&behalf, &beginning, None),
        );
        assert!(matches!(gone.unwrap(), WriteOutcome::Done(_)));
        assert_eq!(closed.unwrap(), WriteOutcome::Done(RoundCharge::Own));
        erased(backend, 2 * turn + 1, VerifierRunVerdict::Passed, &id).await;
        if opened.unwrap() == WriteOutcome::Done(RoundOpening::Whole) {
            let end = judged(&beginning, VerifierRunVerdict::Passed, 5);
            assert_eq!(
                close_round(store, &beginning, &end).await,
                WriteOutcome::Done(RoundCharge::Own)
            );
            erased(backend, 2 * turn + 2, VerifierRunVerdict::Passed, &id).await;
        }
    }
    other.close().await;
}

pub(crate) async fn versions_cannot_be_changed(backend: &Backend) {
    deployed(&backend.store, &deploy(&account("alice"), "cites", 1)).await;
    let refusal = backend.tamper("update verifier_versions set config = '{}'").await.unwrap_err();
    assert!(refusal.contains("versions of verifiers never change"), "{refusal}");
}

pub(crate) async fn the_newest_measurement_of_each_purpose_is_shown(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    for (number, purpose) in [
        (3, VerifierRunPurpose::Test),
        (2, VerifierRunPurpose::Test),
        (4, VerifierRunPurpose::Attack),
        (1, VerifierRunPurpose::Attack),
    ] {
        measure(store, &alice, &measurement(&id, number, purpose)).await;
    }
    let newest = measurements(store, &alice, &id, 1).await;
    let expected = [
        measurement(&id, 3, VerifierRunPurpose::Test),
        measurement(&id, 4, VerifierRunPurpose::Attack),
    ];
    // A list of them does not read their cases.
    assert_eq!(newest, expected.clone().map(|it| Measurement { cases: json!(null), ..it }));
    let read = async |version, purpose| {
        let of = VersionKey { account: alice.clone(), verifier_id: id.clone(), version };
        store.measurements().newest(&Behalf::from(&alice), &of, &purpose).await.unwrap()
    };
    assert_eq!(read(1, VerifierRunPurpose::Test).await, Some(expected[0].clone()));
    assert_eq!(read(1, VerifierRunPurpose::Attack).await, Some(expected[1].clone()));
    assert_eq!(read(2, VerifierRunPurpose::Test).await, None);
    assert_eq!(measurements(store, &alice, &id, 2).await, []);
    // A test with other judges comes with them and replaces none; an attack is not even listed. A
    // text that looks like the mark is not one.
    let other = |number: u32, purpose: VerifierRunPurpose| {
        let document = json!({"own": false, "judges": ["p/\"own\":true"]});
        Measurement { document, ..measurement(&id, number, purpose) }
    };
    for (number, purpose) in [(6, VerifierRunPurpose::Test), (7, VerifierRunPurpose::Attack)] {
        measure(store, &alice, &other(number, purpose)).await;
    }
    let all = measurements(store, &alice, &id, 1).await;
    let ids: Vec<(&str, bool)> = all.iter().map(|it| (it.id.as_str(), it.is_own())).collect();
    let (third, fourth) = (
        measurement(&id, 3, VerifierRunPurpose::Test),
        measurement(&id, 4, VerifierRunPurpose::Attack),
    );
    let sixth = other(6, VerifierRunPurpose::Test);
    assert_eq!(
        ids,
        [(sixth.id.as_str(), false), (third.id.as_str(), true), (fourth.id.as_str(), true)]
    );
    assert_eq!(read(1, VerifierRunPurpose::Test).await, Some(third));
    let system = measurement("system:safety-block", 8, VerifierRunPurpose::Test);
    measure(store, &alice, &system).await;
    let read = measurements(store, &alice, "system:safety-block", 1).await;
    assert_eq!(read.len(), 1);
}

pub(crate) async fn a_verdict_is_cached_for_a_while(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    put_verdict(store, &alice, &id, &known("one", 10)).await;
    let read = async |since| verdict(store, &alice, "one", at(since)).await;
    assert_eq!(read(10).await, Some(known("one", 10)));
    assert_eq!(read(11).await, None);
    put_verdict(store, &alice, &id, &known("one", 20)).await;
    assert_eq!(read(11).await, Some(known("one", 20)));
    put_verdict(store, &alice, "system:safety-block", &known("two", 10)).await;
    assert!(verdict(store, &alice, "two", at(0)).await.is_some());
}

pub(crate) async fn old_and_surplus_verdicts_are_removed(backend: &Backend) {
    let (store, alice, bob) = (&*backend.store, account("alice"), account("bob"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    for number in 1..=6 {
        put_verdict(store, &alice, &id, &known(&number.to_string(), number)).await;
    }
    put_verdict(store, &bob, "system:safety-block", &known("his", 7)).await;
    let prune = async |before, most, limit| {
        let pruning = VerdictPruning { before: at(before), most, limit };
        store.verdicts().prune(&Behalf::Platform, &pruning).await.unwrap()
    };
    let left = async || {
        let mut left = Vec::new();
        for digest in ["1", "2", "3", "4", "5", "6"] {
            left.extend(verdict(store, &alice, digest, at(0)).await);
        }
        left.into_iter().map(|it| it.digest).collect::<Vec<_>>().concat()
    };
    assert_eq!((prune(1, 7, 10).await, left().await), (0, "123456".to_owned()), "nothing is over");
    assert_eq!((prune(3, 7, 1).await, left().await), (1, "23456".to_owned()), "one at a time");
    assert_eq!((prune(3, 7, 10).await, left().await), (1, "3456".to_owned()), "only the old");
    assert_eq!((prune(0, 2, 1).await, left().await), (1, "456".to_owned()), "the oldest first");
    assert_eq!((prune(5, 2, 10).await, left().await), (2, "6".to_owned()), "too old and too many");
    assert!(verdict(store, &bob, "his", at(0)).await.is_some());
    assert_eq!(prune(8, 0, 10).await, 2);
    assert!(verdict(store, &bob, "his", at(0)).await.is_none());
}

pub(crate) async fn another_account_sees_no_verifiers(backend: &Backend) {
    let (store, alice, bob) = (&*backend.store, account("alice"), account("bob"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    measure(store, &alice, &measurement(&id, 1, VerifierRunPurpose::Test)).await;
    put_verdict(store, &alice, &id, &known("one", 1)).await;
    for which in [name("cites"), VerifierSelector::Id(id.clone())] {
        assert_eq!(verifier(store, &bob, &which, None).await, None);
        let by = removal(&bob, which);
        assert_eq!(revoke(store, &by).await, WriteOutcome::Refused(VerifierRemoveRefusal::Unknown));
        assert_eq!(delete(store, &by).await, WriteOutcome::Refused(VerifierRemoveRefusal::Unknown));
    }
    assert_eq!(verifiers(store, &bob, &page(None, 10)).await, []);
    assert_eq!(versions(store, &bob, &id, (None, 10)).await, []);
    assert_eq!(measurements(store, &bob, &id, 1).await, []);
    assert_eq!(
        store
            .measurements()
            .newest(
                &Behalf::from(&bob),
                &VersionKey { account: bob.clone(), verifier_id: id.clone(), version: 1 },
                &VerifierRunPurpose::Test
            )
            .await
            .unwrap(),
        None
    );
    assert_eq!(verdict(store, &bob, "one", at(0)).await, None);
    let theirs = store
        .measurements()
        .add(&Behalf::from(&bob), &bob, &measurement(&id, 2, VerifierRunPurpose::Test))
        .await;
    assert_eq!(theirs.unwrap_err().kind, StoreErrorKind::Conflict);
    // The same name is free for another account.
    let his = deployed(store, &deploy(&bob, "cites", 2)).await.verifier;
    assert_eq!((his.account, his.current_version), (bob, 1));
}

fn once<T>(account: &AccountId, key: &str, answer: IdempotencyAnswer<T>) -> IdempotencyRecord<T> {
    IdempotencyRecord {
        account: account.clone(),
        key: key.to_owned(),
        operation: "operation".to_owned(),
        request_digest: "digest".to_owned(),
        answer,
        at: at(5),
    }
}

pub(crate) async fn a_deploy_under_a_key_happens_once(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let saved = |text: String| SavedAnswer { tag: 200, text };
    let of_token =
        IdempotencyAnswer::of(move |it: &DeployedVersion| saved(it.verifier.version_token.clone()));
    let key = once(&alice, "deploy", of_token);
    // A refused deploy leaves its key free.
    let early = next(deploy(&alice, "cites", 1), "none");
    store.verifiers().deploy(&Behalf::from(&early.account), &early, Some(&key)).await.unwrap();
    assert_eq!(
        store.idempotency().get(&Behalf::from(&alice), &alice, "deploy").await.unwrap(),
        None
    );
    let first = deploy(&alice, "cites", 1);
    assert!(matches!(
        store.verifiers().deploy(&Behalf::from(&first.account), &first, Some(&key)).await.unwrap(),
        WriteOutcome::Done(_)
    ));
    assert_eq!(
        store.verifiers().deploy(&Behalf::from(&first.account), &first, Some(&key)).await.unwrap(),
        WriteOutcome::Repeated
    );
    let found =
        store.idempotency().get(&Behalf::from(&alice), &alice, "deploy").await.unwrap().unwrap();
    assert_eq!(found.answer, Some(saved("token-1".to_owned())));
    for operation in ["revoke", "delete"] {
        let of_name = IdempotencyAnswer::of(move |it: &Verifier| saved(it.name.clone()));
        let (key, by) = (once(&alice, operation, of_name), removal(&alice, name("cites")));
        for expected in [false, true] {
            let gone = match operation {
                "revoke" => store
                    .verifiers()
                    .revoke(&Behalf::from(&by.account), &by, Some(&key))
                    .await
                    .unwrap(),
                _ => store.verifiers().delete(&Behalf::Platform, &by, Some(&key)).await.unwrap(),
            };
            assert_eq!(gone == WriteOutcome::Repeated, expected, "{operation}");
        }
        let found = store
            .idempotency()
            .get(&Behalf::from(&alice), &alice, operation)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(found.answer, Some(saved("cites".to_owned())));
    }
}

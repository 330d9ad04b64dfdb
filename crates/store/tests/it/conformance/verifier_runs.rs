//! Verifier runs: recorded with their rounds, and listed.

use jurat_core::{
    id::AccountId,
    round::OpenRound,
    verifier::run::{
        RoundSettlement, VerifierRun, VerifierRunEnd, VerifierRunError, VerifierRunFilter,
        VerifierRunPurpose, VerifierRunTicket, VerifierRunVerdict,
    },
};
use jurat_store::{
    Behalf, RoundCharge, RoundLost, RoundOpenRefusal, RoundOpening, Store, StoreErrorKind,
    TakeoverScope, WriteOutcome,
};

use super::verifiers::deployed;
use crate::{
    backend::Backend,
    samples::{
        SAID, abandoned, account, at, claim, close_round, deploy, expiry, find_round, holding,
        judged, open_round, run, ticket,
    },
};

const SYSTEM: &str = "system:safety-block";

pub(super) fn newest(limit: u32) -> VerifierRunFilter {
    VerifierRunFilter {
        verifier_id: None,
        version: None,
        verdict: None,
        purpose: None,
        since: None,
        until: None,
        limit,
        before: None,
    }
}

fn id_of(open: &OpenRound) -> &str {
    &open.run.as_ref().unwrap().id
}

async fn read(store: &Store, open: &OpenRound) -> VerifierRun {
    store
        .verifier_runs()
        .get(&Behalf::from(&open.account), &open.account, id_of(open))
        .await
        .unwrap()
        .unwrap()
}

pub(crate) async fn a_run_begins_and_ends_with_its_round(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    // The cost of a run is the captured part of its hold.
    let open = holding(run(&alice, &id, 1), 10, false);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    let begun = VerifierRun {
        account: alice.clone(),
        ticket: open.run.clone().unwrap(),
        round: open.id.clone(),
        created_at: open.opened_at,
        end: None,
    };
    assert_eq!(read(store, &open).await, begun);
    let round = find_round(store, &alice, &open.id).await.unwrap();
    assert_eq!(round.open.run, open.run);
    let end = judged(&open, VerifierRunVerdict::Passed, 7);
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let passed = VerifierRunEnd {
        verdict: Ok(true),
        reasoning: Some(SAID.to_owned()),
        duration_ms: 250,
        cost_micros: 7,
    };
    assert_eq!(read(store, &open).await, VerifierRun { end: Some(passed), ..begun });
    // A second close is lost, and does not change the run.
    let other = judged(&open, VerifierRunVerdict::Failed, 9);
    assert_eq!(close_round(store, &open, &other).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(read(store, &open).await.end.unwrap().verdict, Ok(true));
}

pub(crate) async fn a_run_whose_node_stopped_ends_as_an_error(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let open = OpenRound { run: Some(ticket(SYSTEM, 1)), ..abandoned(&alice, 1) };
    open_round(store, &open).await;
    let taken = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(taken.run, open.run);
    let late = judged(&open, VerifierRunVerdict::Passed, 7);
    assert_eq!(close_round(store, &open, &late).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(read(store, &open).await.end, None);
    let end = expiry(&taken);
    assert_eq!(close_round(store, &taken, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let ended = read(store, &open).await.end;
    assert_eq!(ended, RoundSettlement::of(&taken, &end).run);
    let (code, _) = ended.unwrap().verdict.unwrap_err();
    assert_eq!(code, VerifierRunError::VerifierUnavailable);
}

pub(crate) async fn a_round_that_is_not_opened_leaves_no_run(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let first = run(&alice, SYSTEM, 1);
    open_round(store, &first).await;
    // The same round again, as another run.
    let again = OpenRound { run: Some(ticket(SYSTEM, 2)), ..first.clone() };
    let error = store.rounds().open(&Behalf::from(&again.account), &again, None).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(
        store.verifier_runs().get(&Behalf::from(&alice), &alice, id_of(&again)).await.unwrap(),
        None
    );
    assert_eq!(
        store.verifier_runs().list(&Behalf::from(&alice), &alice, &newest(10)).await.unwrap().len(),
        1
    );
}

/// Runs of two verifiers, versions, purposes and of every verdict.
async fn fill(store: &Store, account: &AccountId) -> Vec<VerifierRun> {
    let ids = [1, 2].map(|number| deploy(account, &format!("v{number}"), number));
    for deploy in &ids {
        deployed(store, deploy).await;
    }
    let mut runs = Vec::new();
    for number in 0..48 {
        let spread = usize::try_from(number).unwrap();
        let ticket = VerifierRunTicket {
            version: 1 + (number / 2) % 2,
            purpose: VerifierRunPurpose::ALL[(spread / 4) % 3],
            ..ticket(&ids[spread % 2].new_id, number)
        };
        let open = OpenRound { run: Some(ticket), ..run(account, "", number) };
        open_round(store, &open).await;
        let verdict = VerifierRunVerdict::ALL[(spread / 12) % 4];
        if verdict != VerifierRunVerdict::Running {
            close_round(store, &open, &judged(&open, verdict, 1)).await;
        }
        runs.insert(0, read(store, &open).await);
    }
    runs
}

fn verdict(run: &VerifierRun) -> VerifierRunVerdict {
    match &run.end {
        None => VerifierRunVerdict::Running,
        Some(VerifierRunEnd { verdict: Ok(true), .. }) => VerifierRunVerdict::Passed,
        Some(VerifierRunEnd { verdict: Ok(false), .. }) => VerifierRunVerdict::Failed,
        Some(VerifierRunEnd { verdict: Err(_), .. }) => VerifierRunVerdict::Error,
    }
}

/// The meaning of the filter, written independently.
fn shows(filter: &VerifierRunFilter, run: &VerifierRun) -> bool {
    let VerifierRunTicket { id, verifier_id, version, purpose, .. } = &run.ticket;
    filter.verifier_id.as_ref().is_none_or(|wanted| wanted == verifier_id)
        && filter.version.is_none_or(|wanted| wanted == *version)
        && filter.verdict.is_none_or(|wanted| wanted == verdict(run))
        && filter.purpose.is_none_or(|wanted| wanted == *purpose)
        && filter.since.is_none_or(|since| since <= run.created_at)
        && filter.until.is_none_or(|until| run.created_at < until)
        && filter.before.as_ref().is_none_or(|before| id < before)
}

pub(crate) async fn runs_are_listed_by_every_filter_newest_first(backend: &Backend) {
    let (store, alice) = (&*backend.store, account("alice"));
    let runs = fill(store, &alice).await;
    let verifier = Some(runs[0].ticket.verifier_id.clone());
    let bounds = [(None, None), (Some(at(9_000)), Some(at(40_000)))];
    for verifier_id in [None, verifier, Some("nobody".to_owned())] {
        for wanted in [None, Some(VerifierRunVerdict::Failed), Some(VerifierRunVerdict::Running)] {
            for purpose in [None, Some(VerifierRunPurpose::Attack)] {
                for (version, (since, until)) in [None, Some(2)].into_iter().zip(bounds) {
                    let filter = VerifierRunFilter {
                        verifier_id: verifier_id.clone(),
                        version,
                        verdict: wanted,
                        purpose,
                        since,
                        until,
                        ..newest(100)
                    };
                    let listed = store
                        .verifier_runs()
                        .list(&Behalf::from(&alice), &alice, &filter)
                        .await
                        .unwrap();
                    let expected: Vec<VerifierRun> =
                        runs.iter().filter(|run| shows(&filter, run)).cloned().collect();
                    assert_eq!(listed, expected, "{filter:?}");
                    let page = VerifierRunFilter { limit: 2, ..filter };
                    in_pages(store, &alice, &page, &expected).await;
                }
            }
        }
    }
}

async fn in_pages(
    store: &Store,
    account: &AccountId,
    page: &VerifierRunFilter,
    expected: &[VerifierRun],
) {
    let mut walked: Vec<VerifierRun> = Vec::new();
    loop {
        let before = walked.last().map(|run| run.ticket.id.clone());
        let next = VerifierRunFilter { before, ..page.clone() };
        let found =
            store.verifier_runs().list(&Behalf::from(account), account, &next).await.unwrap();
        assert!(found.len() <= 2);
        if found.is_empty() {
            break;
        }
        walked.extend(found);
    }
    assert_eq!(walked, expected, "{page:?}");
}

pub(crate) async fn another_account_sees_no_runs(backend: &Backend) {
    let (store, alice, bob) = (&*backend.store, account("alice"), account("bob"));
    let id = deployed(store, &deploy(&alice, "cites", 1)).await.verifier.id;
    let open = run(&alice, &id, 1);
    open_round(store, &open).await;
    assert_eq!(
        store.verifier_runs().get(&Behalf::from(&bob), &bob, id_of(&open)).await.unwrap(),
        None
    );
    assert_eq!(
        store.verifier_runs().list(&Behalf::from(&bob), &bob, &newest(10)).await.unwrap(),
        []
    );
    let of_verifier = VerifierRunFilter { verifier_id: Some(id.clone()), ..newest(10) };
    assert_eq!(
        store.verifier_runs().list(&Behalf::from(&bob), &bob, &of_verifier).await.unwrap(),
        []
    );
    // Nor can it run what is not its own.
    let theirs = run(&bob, &id, 2);
    assert_eq!(
        open_round(store, &theirs).await,
        WriteOutcome::Refused(RoundOpenRefusal::VerifierGone)
    );
}

//! Rounds from open to closed, and their lists.

use futures::future::join_all;
use jurat_core::{
    id::{AccountId, RoundId},
    round::{
        OpenRound, Round, RoundEnding, RoundFilter, RoundStatus,
        consensus::{Basis, Outcome},
        job::JobKind,
        replica::Replica,
    },
};
use jurat_store::{Behalf, RoundCharge, RoundCount, RoundLost, StoreErrorKind, WriteOutcome};

use crate::{
    backend::Backend,
    samples::{
        account, close_round, closing, ended, find_round, newest, open_round, replicas, round,
        summary,
    },
};

/// The round as it is read back; a lease measured by the clock of the database is ignored.
pub(crate) async fn read(backend: &Backend, written: &OpenRound) -> Round {
    let mut read = find_round(&backend.store, &written.account, &written.id).await.unwrap();
    read.open.lease_until = written.lease_until;
    read
}

pub(crate) async fn an_open_round_reads_back(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    assert_eq!(read(backend, &open).await, Round { open: open.clone(), closing: None });
    let unknown = RoundId::parse("rnd_unknown").unwrap();
    assert_eq!(find_round(&backend.store, &open.account, &unknown).await, None);
}

pub(crate) async fn a_closed_round_reads_back_with_all_answers(backend: &Backend) {
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    open_round(&backend.store, &open).await;
    assert_eq!(
        close_round(&backend.store, &open, &end).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    assert_eq!(read(backend, &open).await, Round { open: open.clone(), closing: Some(end) });

    // Replacements and the basis of a decision are recorded as well.
    let open = round(&account("alice"), 2);
    let mut end = closing(&open);
    end.consensus.basis = Some(Basis::Executors);
    end.replicas[2].replaced_by = Some(3);
    end.replicas.push(Replica { index: 3, seat: 2, ..end.replicas[0].clone() });
    open_round(&backend.store, &open).await;
    assert_eq!(
        close_round(&backend.store, &open, &end).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    assert_eq!(read(backend, &open).await, Round { open: open.clone(), closing: Some(end) });
}

pub(crate) async fn a_round_is_opened_once(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    let mut again = open.clone();
    again.lease_token = 1;
    let error =
        backend.store.rounds().open(&Behalf::from(&again.account), &again, None).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(read(backend, &open).await.open, open);
}

pub(crate) async fn a_round_ends_once(backend: &Backend) {
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    open_round(&backend.store, &open).await;
    close_round(&backend.store, &open, &end).await;
    let other = ended(&open, RoundEnding::Expired, Outcome::Failed, replicas());
    assert_eq!(close_round(&backend.store, &open, &other).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(read(backend, &open).await.closing, Some(end));
    let entry = backend
        .store
        .rounds()
        .entry(&Behalf::from(&open.account), &open.account, &other.receipt_id)
        .await
        .unwrap();
    assert_eq!(entry, None);
}

pub(crate) async fn an_unknown_round_cannot_be_closed(backend: &Backend) {
    let open = round(&account("alice"), 1);
    let end = closing(&open);
    assert_eq!(close_round(&backend.store, &open, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(find_round(&backend.store, &open.account, &open.id).await, None);
    assert_eq!(
        backend
            .store
            .rounds()
            .entry(&Behalf::from(&open.account), &open.account, &end.receipt_id)
            .await
            .unwrap(),
        None
    );
}

pub(crate) async fn a_close_that_fails_changes_nothing(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    let mut broken = closing(&open);
    broken.replicas[2].index = 0;
    let error = backend
        .store
        .rounds()
        .close(&Behalf::from(&open.account), &open, &broken)
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(read(backend, &open).await.closing, None);
    assert_eq!(
        backend
            .store
            .rounds()
            .entry(&Behalf::from(&open.account), &open.account, &broken.receipt_id)
            .await
            .unwrap(),
        None
    );
    let end = closing(&open);
    assert_eq!(
        close_round(&backend.store, &open, &end).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    assert_eq!(read(backend, &open).await.closing, Some(end));
}

pub(crate) async fn a_receipt_belongs_to_one_round(backend: &Backend) {
    let alice = account("alice");
    let (first, second) = (round(&alice, 1), round(&alice, 2));
    for open in [&first, &second] {
        open_round(&backend.store, open).await;
    }
    let end = closing(&first);
    close_round(&backend.store, &first, &end).await;
    let error = backend
        .store
        .rounds()
        .close(&Behalf::from(&second.account), &second, &end)
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(read(backend, &second).await.closing, None);
}

pub(crate) async fn rounds_are_listed_newest_first_in_pages(backend: &Backend) {
    let alice = account("alice");
    for number in [2, 5, 1, 4, 3] {
        let open = round(&alice, number);
        open_round(&backend.store, &open).await;
        if number == 4 {
            close_round(&backend.store, &open, &closing(&open)).await;
        }
    }
    let ids = |numbers: &[u32]| -> Vec<RoundId> {
        numbers.iter().map(|number| round(&alice, *number).id).collect()
    };
    let listed = async |before: Option<u32>, limit| {
        let before = before.map(|number| round(&alice, number).id);
        let filter = RoundFilter { before, ..newest(limit) };
        let rounds =
            backend.store.rounds().list(&Behalf::from(&alice), &alice, &filter).await.unwrap();
        rounds.into_iter().map(|round| round.open.id).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 100).await, ids(&[5, 4, 3, 2, 1]));
    assert_eq!(listed(None, 2).await, ids(&[5, 4]));
    assert_eq!(listed(Some(4), 2).await, ids(&[3, 2]));
    assert_eq!(listed(Some(2), 2).await, ids(&[1]));
    assert_eq!(listed(Some(1), 2).await, ids(&[]));
}

pub(crate) async fn a_list_does_not_read_the_answers(backend: &Backend) {
    let alice = account("alice");
    let (closed, undecided, open) = (round(&alice, 1), round(&alice, 2), round(&alice, 3));
    let mut nobody = ended(&undecided, RoundEnding::Expired, Outcome::Failed, replicas());
    nobody.consensus.verdict = None;
    for (open, closing) in [(&closed, closing(&closed)), (&undecided, nobody.clone())] {
        open_round(&backend.store, open).await;
        close_round(&backend.store, open, &closing).await;
    }
    open_round(&backend.store, &open).await;
    // Nothing of this can be read any more, and a list does not notice.
    backend.tamper("update replicas set document = '{'").await.unwrap();
    backend.tamper("update rounds set consensus = '{'").await.unwrap();

    let mut listed =
        backend.store.rounds().list(&Behalf::from(&alice), &alice, &newest(10)).await.unwrap();
    for line in &mut listed {
        // A lease measured by the clock of the database is ignored.
        line.open.lease_until = round(&alice, 0).lease_until;
    }
    let mut expected = [
        summary(&open, None),
        summary(&undecided, Some(&nobody)),
        summary(&closed, Some(&closing(&closed))),
    ];
    for line in &mut expected {
        line.open.lease_until = round(&alice, 0).lease_until;
    }
    assert_eq!(listed, expected);
}

pub(crate) async fn rounds_are_filtered_by_kind_and_outcome(backend: &Backend) {
    let alice = account("alice");
    let plan = [
        (1, JobKind::Validate, Some(Outcome::Agreed)),
        (2, JobKind::Delegate, Some(Outcome::Split)),
        (3, JobKind::Validate, Some(Outcome::Split)),
        (4, JobKind::Delegate, None),
    ];
    for (number, kind, outcome) in plan {
        let open = OpenRound { kind, ..round(&alice, number) };
        open_round(&backend.store, &open).await;
        if let Some(outcome) = outcome {
            let end = ended(&open, RoundEnding::Closed, outcome, replicas());
            close_round(&backend.store, &open, &end).await;
        }
    }
    let listed = async |kind, outcome| {
        let filter = RoundFilter { kind, outcome, ..newest(10) };
        let rounds =
            backend.store.rounds().list(&Behalf::from(&alice), &alice, &filter).await.unwrap();
        let ids = rounds.into_iter().map(|round| round.open.id);
        let number = |id| plan.iter().map(|plan| plan.0).find(|n| round(&alice, *n).id == id);
        ids.map(|id| number(id).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(listed(Some(JobKind::Delegate), None).await, [4, 2]);
    assert_eq!(listed(None, Some(Outcome::Split)).await, [3, 2]);
    assert_eq!(listed(Some(JobKind::Validate), Some(Outcome::Split)).await, [3]);
    assert_eq!(listed(Some(JobKind::Factcheck), None).await, Vec::<u32>::new());
    // A page of a filtered list continues where the last one ended.
    let before = Some(round(&alice, 4).id);
    let filter = RoundFilter { kind: Some(JobKind::Delegate), before, ..newest(1) };
    let page = backend.store.rounds().list(&Behalf::from(&alice), &alice, &filter).await.unwrap();
    assert_eq!(page.iter().map(|it| &it.open.id).collect::<Vec<_>>(), [&round(&alice, 2).id]);
}

pub(crate) async fn rounds_are_filtered_by_state_and_time(backend: &Backend) {
    let alice = account("alice");
    let endings =
        [None, Some(RoundEnding::Closed), Some(RoundEnding::Expired), Some(RoundEnding::Cancelled)];
    for (number, ending) in (1..=8).zip(endings.into_iter().cycle()) {
        let open = round(&alice, number);
        open_round(&backend.store, &open).await;
        if let Some(ending) = ending {
            let end = ended(&open, ending, Outcome::Failed, replicas());
            close_round(&backend.store, &open, &end).await;
        }
    }
    let listed = async |filter: RoundFilter| {
        let rounds =
            backend.store.rounds().list(&Behalf::from(&alice), &alice, &filter).await.unwrap();
        let number = |id: &RoundId| (1..=8).find(|n| round(&alice, *n).id == *id).unwrap();
        rounds.iter().map(|round| number(&round.open.id)).collect::<Vec<u32>>()
    };
    for (state, expected) in [
        (RoundStatus::Open, [5, 1]),
        (RoundStatus::Closed, [6, 2]),
        (RoundStatus::Expired, [7, 3]),
        (RoundStatus::Cancelled, [8, 4]),
    ] {
        let of_state = RoundFilter { state: Some(state), ..newest(10) };
        assert_eq!(listed(of_state.clone()).await, expected, "{state}");
        let kind = Some(round(&alice, 1).kind);
        assert_eq!(listed(RoundFilter { kind, ..of_state.clone() }).await, expected, "{state}");
        let outcome = Some(Outcome::Failed);
        let failed = if state == RoundStatus::Open { &[][..] } else { &expected[..] };
        assert_eq!(listed(RoundFilter { outcome, ..of_state.clone() }).await, failed, "{state}");
        let both = RoundFilter { kind, outcome, ..of_state.clone() };
        assert_eq!(listed(both).await, failed, "{state}");
        let since = Some(round(&alice, 5).opened_at);
        assert_eq!(
            listed(RoundFilter { since, ..of_state }).await,
            expected[..1].iter().copied().filter(|n| 4 < *n).collect::<Vec<_>>(),
            "{state}"
        );
    }
    let (since, until) = (Some(round(&alice, 3).opened_at), Some(round(&alice, 6).opened_at));
    let between = RoundFilter { since, until, ..newest(10) };
    assert_eq!(listed(between.clone()).await, [5, 4, 3]);
    // A page of a list that ends at a time starts at whichever comes first.
    for (number, expected) in [(7, &[5, 4, 3][..]), (5, &[4, 3])] {
        let before = Some(round(&alice, number).id);
        assert_eq!(listed(RoundFilter { before, ..between.clone() }).await, expected);
    }
}

pub(crate) async fn the_newest_rounds_are_counted(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    for number in 1..=5 {
        open_round(&backend.store, &round(&alice, number)).await;
    }
    let ended = round(&alice, 2);
    close_round(&backend.store, &ended, &closing(&ended)).await;
    let counted = async |of: &AccountId, filter: RoundCount| {
        backend.store.rounds().count(&Behalf::from(of), of, &filter).await.unwrap()
    };
    let all = RoundCount { state: None, updated_since: None, among: 100 };
    assert_eq!(counted(&alice, all.clone()).await, 5);
    assert_eq!(counted(&bob, all.clone()).await, 0);
    assert_eq!(counted(&alice, RoundCount { among: 3, ..all.clone() }).await, 3);
    let state = Some(RoundStatus::Closed);
    assert_eq!(counted(&alice, RoundCount { state, ..all.clone() }).await, 1);
    let updated_since = Some(round(&alice, 4).opened_at);
    let open = Some(RoundStatus::Open);
    assert_eq!(counted(&alice, RoundCount { state: open, updated_since, ..all }).await, 2);
}

pub(crate) async fn many_concurrent_rounds_are_all_stored(backend: &Backend) {
    const ROUNDS: u32 = 300;
    let alice = account("alice");
    let walks = (0..ROUNDS).map(async |number| {
        let open = round(&alice, number);
        open_round(&backend.store, &open).await;
        close_round(&backend.store, &open, &closing(&open)).await
    });
    let closed = join_all(walks).await;
    assert!(closed.iter().all(|closed| *closed == WriteOutcome::Done(RoundCharge::Own)));
    let listed =
        backend.store.rounds().list(&Behalf::from(&alice), &alice, &newest(1_000)).await.unwrap();
    assert_eq!(listed.len(), usize::try_from(ROUNDS).unwrap());
    let checks = (0..ROUNDS).map(async |number| {
        let open = round(&alice, number);
        assert_eq!(read(backend, &open).await.closing, Some(closing(&open)));
    });
    join_all(checks).await;
}

pub(crate) async fn two_concurrent_closes_have_one_winner(backend: &Backend) {
    let second = backend.second().await;
    let alice = account("alice");
    for number in 0..20 {
        let open = round(&alice, number);
        open_round(&backend.store, &open).await;
        let ours = closing(&open);
        let theirs = ended(&open, RoundEnding::Expired, Outcome::Failed, replicas());
        let behalf = Behalf::from(&alice);
        let (one, other) = tokio::join!(
            backend.store.rounds().close(&behalf, &open, &ours),
            second.rounds().close(&behalf, &open, &theirs)
        );
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_ne!(one, other, "one of two closes holds");
        let kept = if one == WriteOutcome::Done(RoundCharge::Own) { ours } else { theirs };
        assert_eq!(read(backend, &open).await.closing, Some(kept));
    }
    second.close().await;
}

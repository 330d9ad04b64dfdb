//! The books between this node and its peers.

use futures::future::join_all;
use jurat_core::{
    id::AccountId,
    peer::{
        PeerId,
        book::{BookSide, PeerBooking, PeerBookingRecord, PeerBooks},
    },
    round::{OpenRound, RoundClosing, RoundEnding, TaskCallTicket},
};
use jurat_store::{
    Behalf, PeerBookingsQuery, RoundCharge, RoundErasure, RoundLost, Store, StoreErrorKind,
    WriteOutcome,
};

use super::peers::{id, plain, put, remove};
use crate::{
    backend::Backend,
    samples::{
        account, at, close_round, closing, costing, find_round, grant, holding, open_round, round,
    },
};

/// This node.
fn us() -> PeerId {
    PeerId::of_key(&[0; 32])
}

fn owed(peer: u8, execution_id: &str, price_micros: u64) -> PeerBooking {
    PeerBooking {
        peer: id(peer),
        side: BookSide::Owed,
        origin: us(),
        execution_id: execution_id.to_owned(),
        price_micros,
    }
}

fn earned(peer: u8, execution_id: &str, price_micros: u64) -> PeerBooking {
    PeerBooking {
        side: BookSide::Earned,
        origin: id(peer),
        ..owed(peer, execution_id, price_micros)
    }
}

fn booking(open: &OpenRound, bookings: &[PeerBooking]) -> RoundClosing {
    RoundClosing { bookings: bookings.to_vec(), ..closing(open) }
}

/// Opens a round and closes it with bookings.
async fn booked(store: &Store, open: &OpenRound, bookings: &[PeerBooking]) -> RoundClosing {
    open_round(store, open).await;
    let end = booking(open, bookings);
    assert_eq!(close_round(store, open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    end
}

async fn books(store: &Store, peer: u8) -> PeerBooks {
    store.peers().books(&Behalf::Platform, &id(peer)).await.unwrap()
}

async fn bookings(store: &Store, peer: u8) -> Vec<PeerBookingRecord> {
    let query = PeerBookingsQuery { peer: id(peer), before: None, limit: 100 };
    store.peers().bookings(&Behalf::Platform, &query).await.unwrap()
}

/// A booking of this account.
pub(crate) async fn with_everything(store: &Store, whose: &AccountId) {
    let open = round(whose, 7_000);
    booked(store, &open, &[owed(1, whose.as_str(), 5)]).await;
}

pub(crate) async fn the_books_add_up(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    assert_eq!(books(store, 1).await, PeerBooks::default());
    let open = round(&alice, 1);
    let end = booked(store, &open, &[owed(1, "x", 5), owed(2, "y", 7), earned(1, "x", 11)]).await;
    booked(store, &round(&alice, 2), &[owed(1, "z", 0), earned(1, "y", 13)]).await;
    booked(store, &round(&id(1).account(), 3), &[earned(1, "z", 17)]).await;
    let expected = PeerBooks { earned_jobs: 3, earned_micros: 41, owed_jobs: 2, owed_micros: 5 };
    assert_eq!(books(store, 1).await, expected);
    let expected = PeerBooks { owed_jobs: 1, owed_micros: 7, ..PeerBooks::default() };
    assert_eq!(books(store, 2).await, expected);
    assert_eq!(books(store, 3).await, PeerBooks::default());
    let [found] = &bookings(store, 2).await[..] else { panic!() };
    let expected = PeerBookingRecord {
        booking: owed(2, "y", 7),
        account: alice.clone(),
        round: open.id.clone(),
        booked_at: end.closed_at,
    };
    assert_eq!(*found, expected);
    // They are not a part of the round.
    let kept = find_round(store, &alice, &open.id).await.unwrap().closing.unwrap();
    assert_eq!(kept, RoundClosing { bookings: Vec::new(), ..end });
}

pub(crate) async fn bookings_are_listed_newest_first_in_pages(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for (number, bookings) in [
        (2, vec![owed(1, "c", 1), earned(1, "d", 1)]),
        (1, vec![owed(1, "a", 1), owed(1, "b", 1), owed(2, "e", 1)]),
        (3, vec![earned(1, "a", 1)]),
    ] {
        booked(store, &round(&alice, number), &bookings).await;
    }
    let all = bookings(store, 1).await;
    let names: Vec<&str> = all.iter().map(|it| it.booking.execution_id.as_str()).collect();
    assert_eq!(names, ["a", "c", "d", "b", "a"]);
    for limit in 1..=5 {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let query = PeerBookingsQuery { peer: id(1), before, limit };
            let page = store.peers().bookings(&Behalf::Platform, &query).await.unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.position());
            assert!(page.len() <= usize::try_from(limit).unwrap());
            found.extend(page);
        }
        assert_eq!(found, all, "{limit} in a page");
    }
}

pub(crate) async fn a_job_is_booked_once(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    booked(store, &round(&alice, 1), &[owed(1, "x", 5)]).await;
    // Two rounds of one account or of two, and the second with a new job beside the known one.
    booked(store, &round(&alice, 2), &[owed(1, "x", 6), owed(1, "y", 7)]).await;
    booked(store, &round(&bob, 3), &[owed(1, "x", 8), owed(1, "x", 9)]).await;
    let expected = PeerBooks { owed_jobs: 2, owed_micros: 12, ..PeerBooks::default() };
    assert_eq!(books(store, 1).await, expected);
    assert_eq!(bookings(store, 1).await[1].booking, owed(1, "x", 5), "the first one counts");
    // The same name is another job on the other side, of another peer or of another origin.
    let foreign = PeerBooking { origin: id(9), ..owed(1, "x", 3) };
    booked(store, &round(&bob, 4), &[earned(1, "x", 1), owed(2, "x", 2), foreign]).await;
    let expected = PeerBooks { earned_jobs: 1, earned_micros: 1, owed_jobs: 3, owed_micros: 15 };
    assert_eq!(books(store, 1).await, expected);
    assert_eq!(books(store, 2).await.owed_micros, 2);
}

pub(crate) async fn concurrent_rounds_book_a_job_once(backend: &Backend) {
    let (store, second) = (&*backend.store, backend.second().await);
    let alice = account("alice");
    let rounds: Vec<OpenRound> = (1..=8).map(|number| round(&alice, number)).collect();
    for open in &rounds {
        open_round(store, open).await;
    }
    // In both orders, which must not make the rounds wait for each other.
    let closes = rounds.iter().enumerate().map(async |(number, open)| {
        let mut jobs = [owed(1, "x", 5), owed(1, "y", 5), earned(2, "x", 5)];
        if number % 2 == 0 {
            jobs.reverse();
        }
        let node = if number % 3 == 0 { store } else { &*second };
        close_round(node, open, &booking(open, &jobs)).await
    });
    for outcome in join_all(closes).await {
        assert_eq!(outcome, WriteOutcome::Done(RoundCharge::Own));
    }
    let expected = PeerBooks { owed_jobs: 2, owed_micros: 10, ..PeerBooks::default() };
    assert_eq!(books(store, 1).await, expected);
    assert_eq!(books(store, 2).await.earned_jobs, 1);
    second.close().await;
}

pub(crate) async fn a_close_that_does_not_end_the_round_books_nothing(backend: &Backend) {
    let store = &*backend.store;
    let open = round(&account("alice"), 1);
    open_round(store, &open).await;
    let fenced = OpenRound { lease_token: open.lease_token + 1, ..open.clone() };
    let end = booking(&open, &[owed(1, "x", 5)]);
    assert_eq!(close_round(store, &fenced, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(books(store, 1).await, PeerBooks::default());
    // A close that fails is rolled back with its bookings.
    let mut broken = end.clone();
    broken.replicas[2].index = 0;
    let behalf = Behalf::from(&open.account);
    let error = store.rounds().close(&behalf, &open, &broken).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(books(store, 1).await, PeerBooks::default());
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    assert_eq!(books(store, 1).await.owed_jobs, 1);
    let late = booking(&open, &[owed(1, "late", 5)]);
    assert_eq!(close_round(store, &open, &late).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(books(store, 1).await.owed_jobs, 1);
}

pub(crate) async fn a_booking_that_fails_leaves_the_round_open(backend: &Backend) {
    let store = &*backend.store;
    let open = round(&account("alice"), 1);
    open_round(store, &open).await;
    backend.tamper("alter table peer_bookings rename to gone").await.unwrap();
    let end = booking(&open, &[owed(1, "x", 5)]);
    let behalf = Behalf::from(&open.account);
    store.rounds().close(&behalf, &open, &end).await.unwrap_err();
    assert_eq!(find_round(store, &open.account, &open.id).await.unwrap().closing, None);
    // A round without bookings does not touch the books.
    let other = round(&account("alice"), 2);
    booked(store, &other, &[]).await;
    backend.tamper("alter table gone rename to peer_bookings").await.unwrap();
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    assert_eq!(books(store, 1).await.owed_jobs, 1);
}

pub(crate) async fn a_round_that_was_paid_before_books_nothing(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&alice, 1_000), None).await.unwrap();
    for (number, charge) in [(1, RoundCharge::Own), (2, RoundCharge::PaidBefore)] {
        let (task_id, execution_id) = ("t1".to_owned(), "exec-1".to_owned());
        let step = Some(TaskCallTicket { task_id, execution_id, vote: None });
        let open = OpenRound { step, ..holding(round(&alice, number), 40, true) };
        open_round(store, &open).await;
        let bookings = vec![owed(1, &format!("x{number}"), 5)];
        let end = RoundClosing { bookings, ..costing(&open, RoundEnding::Closed, 15) };
        assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(charge));
    }
    let [found] = &bookings(store, 1).await[..] else { panic!() };
    assert_eq!(found.booking.execution_id, "x1");
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn bookings_outlive_their_round_and_their_peer(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    put(store, &plain(1)).await;
    let open = round(&alice, 1);
    booked(store, &open, &[owed(1, "x", 5)]).await;
    let erasure = RoundErasure { account: alice.clone(), round: open.id.clone(), at: at(900) };
    store.storage().erase_round(&Behalf::from(&alice), &erasure, None).await.unwrap();
    remove(store, &id(1)).await;
    backend.tamper("delete from replicas").await.unwrap();
    assert_eq!(books(store, 1).await.owed_micros, 5);
    for sql in ["update peer_bookings set price_micros = 0", "delete from peer_bookings"] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.contains("bookings are append-only"), "{sql}: {refusal}");
    }
    assert_eq!(books(store, 1).await.owed_micros, 5);
}

pub(crate) async fn another_account_sees_no_bookings(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    with_everything(store, &alice).await;
    with_everything(store, &bob).await;
    assert_eq!(books(store, 1).await.owed_jobs, 2);
    // Only PostgreSQL hides them; nobody but the installation asks for the books.
    if backend.is_postgres() {
        let query = PeerBookingsQuery { peer: id(1), before: None, limit: 10 };
        let seen = store.peers().bookings(&Behalf::from(&alice), &query).await.unwrap();
        let accounts: Vec<AccountId> = seen.into_iter().map(|it| it.account).collect();
        assert_eq!(accounts, [alice]);
    }
}

//! Credit: granted, held, captured and released, and suspended accounts.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::join_all;
use jurat_core::{
    account::ledger::{AccountState, Balance, CreditHold, Movement, Transfer, settle},
    id::AccountId,
    idempotency::SavedAnswer,
    round::{OpenRound, RoundEnding},
    time::Timestamp,
};
use jurat_store::{
    Behalf, CreditGrant, CreditGrantRefusal, IdempotencyAnswer, IdempotencyRecord, NotFound,
    RoundCharge, RoundLost, RoundOpenRefusal, RoundOpening, Spending, Store, Suspension,
    TakeoverScope, WriteOutcome,
};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use crate::{
    backend::Backend,
    samples::{
        abandoned, account, at, claim, close_round, costing, expiry, find_round, grant, holding,
        key, open_round, page, round,
    },
};

pub(super) async fn member(store: &Store, name: &str, micros: i64) -> AccountId {
    let account = account(name);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    if micros != 0 {
        give(store, &grant(&account, micros)).await;
    }
    account
}

async fn give(store: &Store, grant: &CreditGrant) -> WriteOutcome<Balance, CreditGrantRefusal> {
    store.ledger().grant(&Behalf::Platform, grant, None).await.unwrap()
}

pub(super) async fn spending(store: &Store, account: &AccountId, since: Timestamp) -> Spending {
    store.ledger().spending(&Behalf::from(account), account, &since).await.unwrap()
}

async fn suspend(store: &Store, suspension: &Suspension) -> WriteOutcome<AccountState, NotFound> {
    store.accounts().suspend(&Behalf::Platform, suspension, None).await.unwrap()
}

pub(super) async fn balance(store: &Store, account: &AccountId) -> Balance {
    store.accounts().get(&Behalf::Platform, account).await.unwrap().unwrap().balance
}

pub(super) async fn lines(store: &Store, account: &AccountId) -> Vec<Transfer> {
    store.ledger().transfers(&Behalf::from(account), account, None, 1_000).await.unwrap()
}

pub(super) async fn sound(store: &Store) {
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

fn suspension(account: &AccountId, since: Option<i64>) -> Suspension {
    Suspension { account: account.clone(), since: since.map(at) }
}

pub(crate) async fn credit_is_granted_and_taken_back(backend: &Backend) {
    let store = &*backend.store;
    let unknown = give(store, &grant(&account("nobody"), 5)).await;
    assert_eq!(unknown, WriteOutcome::Refused(CreditGrantRefusal::UnknownAccount));
    let alice = member(store, "alice", 0).await;
    assert_eq!(balance(store, &alice).await, Balance::default());
    let had = Balance { granted: 100, available: 100, ..Balance::default() };
    assert_eq!(give(store, &grant(&alice, 100)).await, WriteOutcome::Done(had));
    let too_much = give(store, &grant(&alice, -101)).await;
    assert_eq!(too_much, WriteOutcome::Refused(CreditGrantRefusal::TooMuch(had)));
    let left = Balance { granted: 30, available: 30, ..Balance::default() };
    assert_eq!(give(store, &grant(&alice, -70)).await, WriteOutcome::Done(left));
    let nothing = member(store, "bob", 0).await;
    let refused = give(store, &grant(&nothing, -1)).await;
    assert_eq!(refused, WriteOutcome::Refused(CreditGrantRefusal::TooMuch(Balance::default())));
    let written = lines(store, &alice).await;
    let shown: Vec<_> = written.iter().map(|it| (it.movement, it.micros)).collect();
    assert_eq!(shown, [(Movement::Grant, -70), (Movement::Grant, 100)]);
    assert_eq!(written[0].note.as_deref(), Some("a gift"));
    assert_eq!(lines(store, &nothing).await, []);
    sound(store).await;
}

pub(crate) async fn a_round_holds_credit_and_its_end_settles_it(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(round(&alice, 1), 40, true);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!(find_round(store, &alice, &open.id).await.unwrap().open.hold, open.hold);
    let during = Balance { granted: 100, available: 60, held: 40, spent: 0 };
    assert_eq!(balance(store, &alice).await, during);
    sound(store).await;
    let end = costing(&open, RoundEnding::Closed, 15);
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let after = Balance { granted: 100, available: 85, held: 0, spent: 15 };
    assert_eq!(balance(store, &alice).await, after);
    // The second end is lost, and settles nothing.
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(balance(store, &alice).await, after);
    let written = lines(store, &alice).await;
    let shown: Vec<_> = written.iter().map(|it| (it.movement, it.micros, it.at)).collect();
    let closed_at = end.closed_at;
    assert_eq!(
        shown,
        [
            (Movement::Release, 25, closed_at),
            (Movement::Capture, 15, closed_at),
            (Movement::Hold, 40, open.opened_at),
            (Movement::Grant, 100, at(3)),
        ]
    );
    assert!(written[..3].iter().all(|it| it.round.as_ref() == Some(&open.id)));
    assert!(written.is_sorted_by(|newer, older| newer.id > older.id));
    let behind = store
        .ledger()
        .transfers(&Behalf::from(&alice), &alice, Some(&written[1].id), 1)
        .await
        .unwrap();
    assert_eq!(behind, written[2..3]);
    sound(store).await;
}

pub(crate) async fn nothing_is_written_if_no_credit_moves(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let movements = async || {
        let written = lines(store, &alice).await;
        written.into_iter().map(|it| it.movement).collect::<Vec<_>>()
    };
    for (number, hold, cost, expected) in [
        (1, None, 5, &[][..]),
        (2, Some(0), 5, &[][..]),
        (3, Some(10), 0, &[Movement::Release, Movement::Hold][..]),
        (4, Some(10), 99, &[Movement::Capture, Movement::Hold][..]),
    ] {
        let before = movements().await.len();
        let plain = round(&alice, number);
        let open = hold.map_or(plain.clone(), |micros| holding(plain, micros, true));
        open_round(store, &open).await;
        close_round(store, &open, &costing(&open, RoundEnding::Closed, cost)).await;
        let after = movements().await;
        assert_eq!(after[..after.len() - before], *expected, "{hold:?}");
    }
    sound(store).await;
}

pub(crate) async fn an_account_without_credit_opens_no_paid_round(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 39).await;
    let open = holding(round(&alice, 1), 40, true);
    let once = once(&alice, "key", IdempotencyAnswer::Round);
    let refused =
        store.rounds().open(&Behalf::from(&open.account), &open, Some(&once)).await.unwrap();
    assert_eq!(
        refused,
        WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros: 39 })
    );
    assert_eq!(find_round(store, &alice, &open.id).await, None);
    assert_eq!(store.idempotency().get(&Behalf::from(&alice), &alice, "key").await.unwrap(), None);
    assert_eq!(lines(store, &alice).await.len(), 1);
    let poor = holding(round(&account("poor"), 1), 1, true);
    let refused = open_round(store, &poor).await;
    assert_eq!(refused, WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros: 0 }));
    assert_eq!(lines(store, &poor.account).await, []);
    // Credit that is granted later is enough for the same round.
    give(store, &grant(&alice, 1)).await;
    assert_eq!(
        store.rounds().open(&Behalf::from(&open.account), &open, Some(&once)).await.unwrap(),
        WriteOutcome::Done(RoundOpening::Whole)
    );
    assert_eq!(
        store.rounds().open(&Behalf::from(&open.account), &open, Some(&once)).await.unwrap(),
        WriteOutcome::Repeated
    );
    assert_eq!(balance(store, &alice).await.held, 40);
    sound(store).await;
}

pub(crate) async fn an_unmetered_account_may_go_below_zero(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 0).await;
    let open = holding(round(&alice, 1), 40, false);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    let during = Balance { granted: 0, available: -40, held: 40, spent: 0 };
    assert_eq!(balance(store, &alice).await, during);
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 15)).await;
    let after = Balance { granted: 0, available: -15, held: 0, spent: 15 };
    assert_eq!(balance(store, &alice).await, after);
    sound(store).await;
}

pub(crate) async fn an_expired_round_releases_its_unused_credit(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(abandoned(&alice, 1), 40, true);
    open_round(store, &open).await;
    let taken = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(taken.hold, open.hold);
    // The late node captures nothing.
    let late = costing(&open, RoundEnding::Closed, 40);
    assert_eq!(close_round(store, &open, &late).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(balance(store, &alice).await.held, 40);
    let mut end = expiry(&taken);
    for replica in &mut end.replicas {
        replica.cost_micros = 0;
    }
    assert_eq!(close_round(store, &taken, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let after = Balance { granted: 100, available: 100, held: 0, spent: 0 };
    assert_eq!(balance(store, &alice).await, after);
    sound(store).await;
}

pub(crate) async fn spending_is_counted_since_a_time(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 1_000).await;
    for (number, cost) in [(1, 10), (2, 20), (3, 0), (4, 40)] {
        let open = holding(round(&alice, number), 50, true);
        open_round(store, &open).await;
        close_round(store, &open, &costing(&open, RoundEnding::Closed, cost)).await;
    }
    let since = async |millis| spending(store, &alice, at(millis)).await;
    assert_eq!(since(0).await, Spending { micros: 70, rounds: 3 });
    assert_eq!(since(2_250).await, Spending { micros: 60, rounds: 2 });
    assert_eq!(since(4_251).await, Spending::default());
    let nobody = store
        .ledger()
        .spending(&Behalf::from(&account("bob")), &account("bob"), &at(0))
        .await
        .unwrap();
    assert_eq!(nobody, Spending::default());
}

pub(crate) async fn accounts_are_listed_and_suspended(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 7).await;
    for name in ["carol", "bob"] {
        member(store, name, 0).await;
    }
    store.keys().put(&Behalf::Platform, &key("k1", &alice)).await.unwrap();
    let listed = async |after, limit| {
        let accounts = store.accounts().list(&Behalf::Platform, &page(after, limit)).await.unwrap();
        accounts.into_iter().map(|it| it.account.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 2).await, ["acct_alice", "acct_bob"]);
    assert_eq!(listed(Some("acct_bob"), 2).await, ["acct_carol"]);
    assert_eq!(store.accounts().get(&Behalf::Platform, &account("nobody")).await.unwrap(), None);

    let suspend = async |since| {
        store.accounts().suspend(&Behalf::Platform, &suspension(&alice, since), None).await
    };
    for (since, expected) in [(Some(5), Some(5)), (Some(9), Some(5)), (None, None)] {
        let done = suspend(since).await.unwrap();
        let state = store.accounts().get(&Behalf::Platform, &alice).await.unwrap().unwrap();
        assert_eq!(done, WriteOutcome::Done(state.clone()));
        assert_eq!((state.suspended_at, state.balance.available), (expected.map(at), 7));
        let known = store.keys().get(&Behalf::Platform, "k1").await.unwrap().unwrap();
        assert_eq!(known.suspended, expected.is_some());
    }
    let unknown = store
        .accounts()
        .suspend(&Behalf::Platform, &suspension(&account("nobody"), None), None)
        .await;
    assert_eq!(unknown.unwrap(), WriteOutcome::Refused(NotFound));
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

pub(crate) async fn a_grant_under_a_key_happens_once(backend: &Backend) {
    let store = &*backend.store;
    let (alice, admin) = (member(store, "alice", 0).await, account("admin"));
    let saved = |text: String| SavedAnswer { tag: 201, text };
    let of_balance = IdempotencyAnswer::of(move |it: &Balance| saved(it.available.to_string()));
    let key = once(&admin, "grant", of_balance);
    assert!(matches!(
        store.ledger().grant(&Behalf::Platform, &grant(&alice, 9), Some(&key)).await.unwrap(),
        WriteOutcome::Done(_)
    ));
    let again =
        store.ledger().grant(&Behalf::Platform, &grant(&alice, 9), Some(&key)).await.unwrap();
    assert_eq!(again, WriteOutcome::Repeated);
    assert_eq!(balance(store, &alice).await.available, 9);
    let found =
        store.idempotency().get(&Behalf::from(&admin), &admin, "grant").await.unwrap().unwrap();
    assert_eq!(found.answer, Some(saved("9".to_owned())));
    let of_account = IdempotencyAnswer::of(move |it: &AccountState| saved(it.account.to_string()));
    let key = once(&admin, "suspend", of_account);
    store
        .accounts()
        .suspend(&Behalf::Platform, &suspension(&alice, Some(5)), Some(&key))
        .await
        .unwrap();
    suspend(store, &suspension(&alice, None)).await;
    let again = store
        .accounts()
        .suspend(&Behalf::Platform, &suspension(&alice, Some(5)), Some(&key))
        .await
        .unwrap();
    assert_eq!(again, WriteOutcome::Repeated);
    assert_eq!(
        store.accounts().get(&Behalf::Platform, &alice).await.unwrap().unwrap().suspended_at,
        None
    );
    // What is refused leaves its key free.
    let key = once(&admin, "refused", IdempotencyAnswer::Known(saved(String::new())));
    store.ledger().grant(&Behalf::Platform, &grant(&alice, -99), Some(&key)).await.unwrap();
    store
        .ledger()
        .grant(&Behalf::Platform, &grant(&account("nobody"), 1), Some(&key))
        .await
        .unwrap();
    assert_eq!(
        store.idempotency().get(&Behalf::from(&admin), &admin, "refused").await.unwrap(),
        None
    );
}

pub(crate) async fn transfers_cannot_be_changed_or_removed(backend: &Backend) {
    let alice = member(&backend.store, "alice", 9).await;
    for sql in ["update credit_transfers set micros = 90", "delete from credit_transfers"] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.contains("transfers are append-only"), "{sql}: {refusal}");
    }
    for sql in [
        "update credit_balances set available = 90",
        "update credit_balances set held = -1, available = 10",
        "update credit_balances set spent = -1, available = 10",
        // No account owes more than the difference of one call.
        "update credit_balances set may_owe = 5, available = -6, spent = 15",
    ] {
        let refusal = backend.tamper(sql).await.unwrap_err();
        assert!(refusal.to_lowercase().contains("check constraint"), "{sql}: {refusal}");
    }
    assert_eq!(balance(&backend.store, &alice).await.available, 9);
}

pub(crate) async fn a_changed_ledger_is_found(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(round(&alice, 1), 40, true);
    open_round(store, &open).await;
    sound(store).await;
    let id = open.id.to_string();
    for (change, back, what) in [
        (
            "update rounds set most_micros = 900, held_micros = 1",
            "update rounds set most_micros = 40, held_micros = 40",
            "the ledger lines do not match the round",
        ),
        (
            "update credit_balances set granted = granted + 1, available = available + 1",
            "update credit_balances set granted = granted - 1, available = available - 1",
            "`acct_alice`: the balance does not match its ledger lines",
        ),
        (
            "update credit_balances set account_id = 'acct_bob'",
            "update credit_balances set account_id = 'acct_alice'",
            "`acct_alice`: there are ledger lines but no balance",
        ),
        (
            "update rounds set state = 'closed'",
            "update rounds set state = 'open'",
            "the ledger lines do not match the round",
        ),
        (
            "update rounds set held_micros = 41",
            "update rounds set held_micros = 40",
            "the ledger lines do not match the round",
        ),
        (
            "insert into rounds select 'acct_carol', id, kind, state, node_id, lease_token, \
             lease_until, request_digest, policy_id, policy_hash, disagreement, traces, seats, \
             opened_at, deadline_at, closed_at, outcome, verdict, agreement_bp, confidence_bp, \
             consensus, receipt_id, cancel_requested_at, run, held_micros, is_limited, erased_at, day_cap_micros, \
             step, most_micros, sent_micros, verifier_id, pruned_at \
             from rounds",
            "delete from rounds where account_id = 'acct_carol'",
            "the round is open, but its hold is not in the ledger",
        ),
    ] {
        backend.tamper(change).await.unwrap();
        let found = store.ledger().faults(&Behalf::Platform).await.unwrap();
        assert!(found.iter().any(|fault| fault.contains(what)), "{change}: {found:?}");
        let named = [id.as_str(), "acct_"].iter().any(|name| found[0].contains(name));
        assert!(named, "{found:?}");
        backend.tamper(back).await.unwrap();
        sound(store).await;
    }
}

pub(crate) async fn many_concurrent_rounds_never_hold_more_than_the_credit(backend: &Backend) {
    let second = backend.second().await;
    let alice = member(&backend.store, "alice", 155).await;
    let opens = (0..60).map(async |number| {
        let store = if number % 2 == 0 { &backend.store } else { &second };
        let open = holding(round(&alice, number), 10, true);
        (open_round(store, &open).await, open)
    });
    let (opened, refused): (Vec<_>, Vec<_>) = join_all(opens)
        .await
        .into_iter()
        .partition(|(opened, _)| *opened == WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!((opened.len(), refused.len()), (15, 45));
    let is_overdrawn = |opened: &WriteOutcome<RoundOpening, RoundOpenRefusal>| matches!(opened, WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros }) if (0..155).contains(available_micros));
    assert!(refused.iter().all(|(opened, _)| is_overdrawn(opened)));
    let during = Balance { granted: 155, available: 5, held: 150, spent: 0 };
    assert_eq!(balance(&backend.store, &alice).await, during);
    // Both nodes end all of them, and each of them ends once.
    let closes = opened.iter().flat_map(|(_, open)| [(&backend.store, open), (&second, open)]);
    let closes = closes.map(async |(store, open): (&Arc<Store>, &OpenRound)| {
        close_round(store, open, &costing(open, RoundEnding::Closed, 7)).await
    });
    let closed = join_all(closes).await;
    assert_eq!(
        closed.iter().filter(|closed| **closed == WriteOutcome::Done(RoundCharge::Own)).count(),
        15
    );
    let after = Balance { granted: 155, available: 50, held: 0, spent: 105 };
    assert_eq!(balance(&backend.store, &alice).await, after);
    sound(&second).await;
    second.close().await;
}

/// An action on the ledger of one of a few accounts.
#[derive(Debug, Clone)]
enum Step {
    Grant(usize, i64),
    Open(usize, i64, bool),
    /// One of the rounds that are or were open, with its cost.
    End(usize, RoundEnding, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ending = prop::sample::select(RoundEnding::ALL);
    let step = prop_oneof![
        (0_usize..3, -60_i64..120).prop_map(|(who, micros)| Step::Grant(who, micros)),
        (0_usize..3, 0_i64..50, any::<bool>())
            .prop_map(|(who, held, is)| Step::Open(who, held, is)),
        (any::<usize>(), ending, 0_u64..70).prop_map(|(at, how, cost)| Step::End(at, how, cost)),
    ];
    prop::collection::vec(step, 40)
}

pub(crate) async fn any_sequence_of_operations_matches_the_model(backend: &Backend) {
    let store = &*backend.store;
    let mut runner = TestRunner::deterministic();
    let mut number = 0;
    for turn in 0..6 {
        let mut accounts = Vec::new();
        for who in 0..3 {
            accounts.push(member(store, &format!("t{turn}a{who}"), 0).await);
        }
        let mut model: BTreeMap<AccountId, Balance> = BTreeMap::new();
        let mut rounds: Vec<(OpenRound, bool)> = Vec::new();
        for step in steps().new_tree(&mut runner).unwrap().current() {
            number += 1;
            walk(store, (&step, number), &accounts, (&mut model, &mut rounds)).await;
            for account in &accounts {
                let expected = model.get(account).copied().unwrap_or_default();
                assert_eq!(balance(store, account).await, expected, "{step:?}");
                assert!(expected.is_whole());
            }
        }
        sound(store).await;
    }
}

type World<'a> = (&'a mut BTreeMap<AccountId, Balance>, &'a mut Vec<(OpenRound, bool)>);

/// Applies the step to the store and to the model.
async fn walk(
    store: &Store,
    (step, number): (&Step, u32),
    accounts: &[AccountId],
    (model, rounds): World<'_>,
) {
    match step {
        Step::Grant(who, micros) => {
            let known = model.entry(accounts[*who].clone()).or_default();
            let granted = give(store, &grant(&accounts[*who], *micros)).await;
            if *micros < 0 && known.available < -*micros {
                assert_eq!(granted, WriteOutcome::Refused(CreditGrantRefusal::TooMuch(*known)));
            } else {
                *known = known.after(Movement::Grant, *micros);
                assert_eq!(granted, WriteOutcome::Done(*known));
            }
        }
        Step::Open(who, micros, is_limited) => {
            let known = model.entry(accounts[*who].clone()).or_default();
            let open = holding(round(&accounts[*who], number), *micros, *is_limited);
            let opened = open_round(store, &open).await;
            if *is_limited && 0 < *micros && known.available < *micros {
                let available_micros = known.available;
                assert_eq!(
                    opened,
                    WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros })
                );
            } else {
                assert_eq!(opened, WriteOutcome::Done(RoundOpening::Whole));
                *known = known.after(Movement::Hold, *micros);
                rounds.push((open, true));
            }
        }
        Step::End(..) if rounds.is_empty() => {}
        Step::End(at, ending, cost) => {
            let at = at % rounds.len();
            let (open, is_open) = &mut rounds[at];
            let end = costing(open, *ending, *cost);
            let closed = close_round(store, open, &end).await;
            assert_eq!(
                closed,
                if *is_open {
                    WriteOutcome::Done(RoundCharge::Own)
                } else {
                    WriteOutcome::Refused(RoundLost)
                }
            );
            if std::mem::replace(is_open, false) {
                let (captured, released) =
                    settle(&open.hold.unwrap(), i64::try_from(*cost).unwrap());
                let known = model.entry(open.account.clone()).or_default();
                let after = known.after(Movement::Capture, captured);
                *known = after.after(Movement::Release, released);
            }
        }
    }
}

pub(crate) async fn another_account_sees_no_credit(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (member(store, "alice", 100).await, member(store, "bob", 0).await);
    let open = holding(round(&alice, 1), 40, true);
    open_round(store, &open).await;
    assert_eq!(balance(store, &bob).await, Balance::default());
    assert_eq!(lines(store, &bob).await, []);
    // The hold of a round with the same id belongs to another account.
    let his = holding(round(&bob, 1), 40, true);
    assert_eq!(his.id, open.id);
    let refused = open_round(store, &his).await;
    assert_eq!(refused, WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros: 0 }));
    let stolen = OpenRound { account: bob.clone(), ..open.clone() };
    let end = costing(&stolen, RoundEnding::Closed, 40);
    assert_eq!(close_round(store, &stolen, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(balance(store, &alice).await.held, 40);
    sound(store).await;
}

/// The round with an estimate of what it costs.
pub(super) fn judged(
    open: OpenRound,
    micros: i64,
    most_micros: i64,
    least_micros: i64,
) -> OpenRound {
    let open = holding(open, micros, true);
    let hold = open.hold.map(|hold| CreditHold { most_micros, least_micros, ..hold });
    OpenRound { hold, ..open }
}

pub(crate) async fn a_small_balance_is_spent_and_the_next_grant_pays_the_debt(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 25).await;
    // The cost is unknown, so the whole balance is held.
    let mut open = judged(round(&alice, 1), 90, 90, 4);
    let opened = open_round(store, &open).await;
    assert_eq!(opened, WriteOutcome::Done(RoundOpening::WithLess { held_micros: 25 }));
    let during = Balance { granted: 25, available: 0, held: 25, spent: 0 };
    assert_eq!(balance(store, &alice).await, during);
    open.hold.as_mut().unwrap().micros = 25;
    let stored = find_round(store, &alice, &open.id).await.unwrap().open.hold.unwrap();
    assert_eq!((stored.micros, stored.most_micros), (25, 90));
    sound(store).await;
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 10)).await;
    let open = judged(round(&alice, 2), 10, 90, 4);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    // It costs more than it holds: the rest is taken from what is left, and beyond.
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 33)).await;
    let owes = Balance { granted: 25, available: -18, held: 0, spent: 43 };
    assert_eq!(balance(store, &alice).await, owes);
    let shown: Vec<_> =
        lines(store, &alice).await.iter().map(|it| (it.movement, it.micros)).collect();
    assert_eq!(shown[..2], [(Movement::Release, -23), (Movement::Capture, 33)]);
    sound(store).await;
    let open = judged(round(&alice, 3), 10, 90, 4);
    let refused = open_round(store, &open).await;
    assert_eq!(
        refused,
        WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros: -18 })
    );
    // The next grant pays what is owed first.
    give(store, &grant(&alice, 20)).await;
    assert_eq!(balance(store, &alice).await.available, 2);
    let refused = open_round(store, &open).await;
    assert_eq!(refused, WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros: 2 }));
    give(store, &grant(&alice, 2)).await;
    let opened = open_round(store, &open).await;
    assert_eq!(opened, WriteOutcome::Done(RoundOpening::WithLess { held_micros: 4 }));
    sound(store).await;
}

pub(crate) async fn calls_that_the_credit_does_not_cover_run_one_at_a_time_on_all_nodes(
    backend: &Backend,
) {
    let second = backend.second().await;
    let stores = [&backend.store, &second];
    let alice = member(&backend.store, "alice", 250).await;
    let mut number = 0;
    let mut owed = 0;
    loop {
        number += 100;
        let opens = (0..40).map(async |at| {
            let open = judged(round(&alice, number + at), 10, 100, 5);
            let store = stores[usize::try_from(at % 2).unwrap()];
            (open_round(store, &open).await, open)
        });
        let opens = join_all(opens).await;
        sound(&second).await;
        let available = balance(&backend.store, &alice).await.available;
        let mut under_way: Vec<OpenRound> = Vec::new();
        for (opened, mut open) in opens {
            match opened {
                WriteOutcome::Done(RoundOpening::Whole) => under_way.push(open),
                WriteOutcome::Done(RoundOpening::WithLess { held_micros }) => {
                    open.hold.as_mut().unwrap().micros = held_micros;
                    under_way.push(open);
                }
                WriteOutcome::Refused(RoundOpenRefusal::InTurn) => {
                    assert!(!under_way.is_empty() || 0 < available);
                }
                WriteOutcome::Refused(RoundOpenRefusal::Overdrawn { available_micros }) => {
                    assert!(available_micros < 5);
                }
                WriteOutcome::Repeated
                | WriteOutcome::Refused(
                    RoundOpenRefusal::VerifierGone | RoundOpenRefusal::DaySpent,
                ) => panic!("{opened:?}"),
            }
        }
        if under_way.is_empty() {
            break;
        }
        let at_risk: i64 = under_way.iter().map(|open| open.hold.unwrap().at_risk()).sum();
        assert!(under_way.len() == 1 || at_risk <= available, "{} {available}", under_way.len());
        // All of them cost their maximum.
        for (at, open) in under_way.iter().enumerate() {
            let end = costing(open, RoundEnding::Closed, 100);
            assert_eq!(
                stores[at % 2]
                    .rounds()
                    .close(&Behalf::from(&open.account), open, &end)
                    .await
                    .unwrap(),
                WriteOutcome::Done(RoundCharge::Own)
            );
        }
        owed = balance(&backend.store, &alice).await.available;
        sound(&second).await;
    }
    // The credit covers two and a half of them, so the third is owed in part and no fourth starts.
    assert_eq!(owed, -50);
    second.close().await;
}

pub(crate) async fn credit_reserved_for_calls_cannot_be_taken_back(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 250).await;
    for number in 1..3 {
        let open = judged(round(&alice, number), 10, 100, 5);
        assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    }
    let too_much = give(store, &grant(&alice, -51)).await;
    assert!(
        matches!(too_much, WriteOutcome::Refused(CreditGrantRefusal::TooMuch(_))),
        "{too_much:?}"
    );
    let done = give(store, &grant(&alice, -50)).await;
    assert!(matches!(done, WriteOutcome::Done(_)), "{done:?}");
    sound(store).await;
}

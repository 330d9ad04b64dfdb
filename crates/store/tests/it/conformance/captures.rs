//! The cost of an execution is captured once, however many rounds carry it out.

use futures::future::join_all;
use jurat_core::{
    account::ledger::{Balance, Movement},
    id::AccountId,
    round::{OpenRound, RoundClosing, RoundEnding, TaskCallTicket, consensus::Outcome},
};
use jurat_store::{RoundCloseOutcome, RoundOpenOutcome, Store, TakeoverScope};

use crate::{
    backend::Backend,
    samples::{abandoned, account, at, claim, costing, expiry, grant, holding, round},
};

const HELD: i64 = 40;
const COST: i64 = 15;

async fn member(store: &dyn Store, name: &str) -> AccountId {
    let account = account(name);
    store.account_ensure(&account, at(0)).await.unwrap();
    store.credit_grant(&grant(&account, 1_000), None).await.unwrap();
    account
}

/// A round of a task call with a hold.
fn of_step(open: OpenRound, execution_id: &str) -> OpenRound {
    let (task_id, execution_id) = ("t1".to_owned(), execution_id.to_owned());
    let step = Some(TaskCallTicket { task_id, execution_id, vote: None });
    OpenRound { step, ..holding(open, HELD, true) }
}

fn answered(open: &OpenRound) -> RoundClosing {
    costing(open, RoundEnding::Closed, COST.unsigned_abs())
}

async fn opened(store: &dyn Store, open: &OpenRound) {
    assert_eq!(store.round_open(open, None).await.unwrap(), RoundOpenOutcome::Opened);
}

async fn balance(store: &dyn Store, account: &AccountId) -> Balance {
    let balance = store.account_get(account).await.unwrap().unwrap().balance;
    assert!(balance.is_whole());
    balance
}

async fn captures(store: &dyn Store, account: &AccountId) -> Vec<i64> {
    let lines = store.credit_transfers(account, None, 1_000).await.unwrap();
    let captured = lines.iter().filter(|it| it.movement == Movement::Capture);
    captured.map(|it| it.micros).collect()
}

/// The cost of a round's replicas, as it is read back.
async fn shown_cost(store: &dyn Store, open: &OpenRound) -> i64 {
    let round = store.round_get(&open.account, &open.id).await.unwrap().unwrap();
    jurat_core::verifier::run::cost(&round.closing.unwrap().replicas)
}

async fn sound(store: &dyn Store) {
    assert_eq!(store.credit_check().await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn the_first_of_two_rounds_of_an_execution_is_paid(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let (slow, quick) = (of_step(round(&alice, 1), "exec-1"), of_step(round(&alice, 2), "exec-1"));
    opened(store, &slow).await;
    opened(store, &quick).await;
    assert_eq!(balance(store, &alice).await.held, 2 * HELD);
    let end = answered(&quick);
    assert_eq!(store.round_close(&quick, &end).await.unwrap(), RoundCloseOutcome::Closed);
    // The node of the first wakes up, and its answer is recorded as well.
    let late = answered(&slow);
    assert_eq!(store.round_close(&slow, &late).await.unwrap(), RoundCloseOutcome::PaidBefore);
    let after = Balance { granted: 1_000, available: 1_000 - COST, held: 0, spent: COST };
    assert_eq!(balance(store, &alice).await, after);
    assert_eq!(captures(store, &alice).await, [COST]);
    assert_eq!(shown_cost(store, &quick).await, COST);
    assert_eq!(shown_cost(store, &slow).await, 0, "a round shows what was paid for it");
    let kept = store.round_get(&alice, &slow.id).await.unwrap().unwrap().closing.unwrap();
    assert_eq!(kept, late.unpaid(), "the entry and all else are as they were");
    // A retry after a lost reply changes nothing, whichever round it is for.
    assert_eq!(store.round_close(&quick, &end).await.unwrap(), RoundCloseOutcome::Lost);
    assert_eq!(store.round_close(&slow, &late).await.unwrap(), RoundCloseOutcome::Lost);
    assert_eq!(balance(store, &alice).await, after);
    sound(store).await;
}

pub(crate) async fn a_free_round_leaves_the_capture_to_the_next(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let failed = of_step(round(&alice, 1), "exec-1");
    opened(store, &failed).await;
    let end = costing(&failed, RoundEnding::Closed, 0);
    assert_eq!(store.round_close(&failed, &end).await.unwrap(), RoundCloseOutcome::Closed);
    let left = of_step(abandoned(&alice, 2), "exec-1");
    opened(store, &left).await;
    let taken =
        store.round_take_over(&claim("second", TakeoverScope::LeaseOver)).await.unwrap().remove(0);
    assert_eq!(
        store.round_close(&taken, &expiry(&taken).unpaid()).await.unwrap(),
        RoundCloseOutcome::Closed
    );
    // The node that was presumed dead is refused, and captures nothing.
    assert_eq!(store.round_close(&left, &answered(&left)).await.unwrap(), RoundCloseOutcome::Lost);
    assert_eq!(captures(store, &alice).await, [] as [i64; 0]);
    let last = of_step(round(&alice, 3), "exec-1");
    opened(store, &last).await;
    assert_eq!(
        store.round_close(&last, &answered(&last)).await.unwrap(),
        RoundCloseOutcome::Closed
    );
    assert_eq!(captures(store, &alice).await, [COST]);
    assert_eq!(balance(store, &alice).await.held, 0);
    sound(store).await;
}

pub(crate) async fn many_concurrent_closes_capture_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let rounds: Vec<OpenRound> =
        (1..=8).map(|number| of_step(round(&alice, number), "exec-1")).collect();
    for open in &rounds {
        opened(store, open).await;
    }
    let second = backend.second().await;
    // Each is tried on two nodes, like a retry after a lost reply.
    let tries = rounds.iter().map(|it| (store, it)).chain(rounds.iter().map(|it| (&*second, it)));
    let closes = tries.map(async |(node, open)| node.round_close(open, &answered(open)).await);
    let ended: Vec<RoundCloseOutcome> =
        join_all(closes).await.into_iter().map(Result::unwrap).collect();
    second.close().await;
    let count = |how: RoundCloseOutcome| ended.iter().filter(|it| **it == how).count();
    assert_eq!(count(RoundCloseOutcome::Closed), 1, "{ended:?}");
    assert_eq!(
        (count(RoundCloseOutcome::PaidBefore), count(RoundCloseOutcome::Lost)),
        (7, 8),
        "{ended:?}"
    );
    assert_eq!(captures(store, &alice).await, [COST]);
    assert_eq!(balance(store, &alice).await.held, 0);
    sound(store).await;
}

pub(crate) async fn executions_and_accounts_are_paid_separately(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (member(store, "alice").await, member(store, "bob").await);
    for (number, of, execution) in
        [(1, &alice, "exec-1"), (2, &bob, "exec-1"), (3, &alice, "exec-2")]
    {
        let open = of_step(round(of, number), execution);
        opened(store, &open).await;
        assert_eq!(
            store.round_close(&open, &answered(&open)).await.unwrap(),
            RoundCloseOutcome::Closed
        );
    }
    assert_eq!(captures(store, &alice).await, [COST, COST]);
    assert_eq!(captures(store, &bob).await, [COST]);
    sound(store).await;
}

pub(crate) async fn the_first_answer_to_a_step_is_found(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (member(store, "alice").await, member(store, "bob").await);
    let found = async |execution_id: &str| {
        let round = store.round_of_task_call(&alice, execution_id).await.unwrap();
        round.map(|it| it.open.id)
    };
    let (failed, under_way) =
        (of_step(round(&alice, 1), "exec-1"), of_step(round(&alice, 2), "exec-1"));
    let (first, second) =
        (of_step(round(&alice, 3), "exec-1"), of_step(round(&alice, 4), "exec-1"));
    let (stopped, other) = (of_step(round(&alice, 5), "exec-1"), of_step(round(&bob, 6), "exec-1"));
    for open in [&failed, &under_way, &first, &second, &stopped, &other] {
        opened(store, open).await;
    }
    let mut nothing = costing(&failed, RoundEnding::Closed, 0);
    nothing.consensus.outcome = Outcome::Failed;
    store.round_close(&failed, &nothing).await.unwrap();
    store.round_close(&stopped, &costing(&stopped, RoundEnding::Cancelled, 0)).await.unwrap();
    store.round_close(&other, &answered(&other)).await.unwrap();
    assert_eq!(found("exec-1").await, None, "nobody answered it for this account");
    store.round_close(&first, &answered(&first)).await.unwrap();
    store.round_close(&second, &answered(&second)).await.unwrap();
    assert_eq!(found("exec-1").await, Some(first.id));
    assert_eq!(found("exec-2").await, None);
}

pub(crate) async fn an_execution_captured_twice_is_found(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let rounds = [of_step(round(&alice, 1), "exec-1"), of_step(round(&alice, 2), "exec-1")];
    for open in &rounds {
        opened(store, open).await;
        store.round_close(open, &answered(open)).await.unwrap();
        // Like a program that does not know such a row.
        backend.tamper("delete from execution_captures").await.unwrap();
        if open.id == rounds[0].id {
            sound(store).await;
        }
    }
    let found = store.credit_check().await.unwrap();
    assert_eq!(found, ["`exec-1`: the execution was captured more than once"]);
    let lost = "insert into execution_captures values ('acct_alice', 'exec-2', 'round-2', 1)";
    backend.tamper(lost).await.unwrap();
    let found = store.credit_check().await.unwrap();
    assert!(found.iter().any(|it| it.starts_with("`exec-2`: ")), "{found:?}");
}

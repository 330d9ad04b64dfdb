//! The cost of an execution is captured once, however many rounds carry it out.

use futures::future::join_all;
use jurat_core::{
    account::ledger::{Balance, Movement},
    id::AccountId,
    round::{OpenRound, RoundClosing, RoundEnding, TaskCallTicket, consensus::Outcome},
};
use jurat_store::{
    Behalf, RoundCharge, RoundLost, RoundOpening, Store, TakeoverScope, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{
        abandoned, account, at, claim, close_round, costing, expiry, find_round, grant, holding,
        open_round, round,
    },
};

const HELD: i64 = 40;
const COST: i64 = 15;

async fn member(store: &Store, name: &str) -> AccountId {
    let account = account(name);
    store.accounts().ensure(&Behalf::Platform, &account, &at(0)).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&account, 1_000), None).await.unwrap();
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

async fn opened(store: &Store, open: &OpenRound) {
    assert_eq!(open_round(store, open).await, WriteOutcome::Done(RoundOpening::Whole));
}

async fn balance(store: &Store, account: &AccountId) -> Balance {
    let balance = store.accounts().get(&Behalf::Platform, account).await.unwrap().unwrap().balance;
    assert!(balance.is_whole());
    balance
}

async fn captures(store: &Store, account: &AccountId) -> Vec<i64> {
    let lines =
        store.ledger().transfers(&Behalf::from(account), account, None, 1_000).await.unwrap();
    let captured = lines.iter().filter(|it| it.movement == Movement::Capture);
    captured.map(|it| it.micros).collect()
}

/// What the replicas of a round cost, as it is read back.
async fn shown_cost(store: &Store, open: &OpenRound) -> i64 {
    let round = find_round(store, &open.account, &open.id).await.unwrap();
    jurat_core::verifier::run::cost(&round.closing.unwrap().replicas)
}

async fn sound(store: &Store) {
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn the_first_of_two_rounds_of_an_execution_is_paid(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let (slow, quick) = (of_step(round(&alice, 1), "exec-1"), of_step(round(&alice, 2), "exec-1"));
    opened(store, &slow).await;
    opened(store, &quick).await;
    assert_eq!(balance(store, &alice).await.held, 2 * HELD);
    let end = answered(&quick);
    assert_eq!(close_round(store, &quick, &end).await, WriteOutcome::Done(RoundCharge::Own));
    // The node of the first wakes up, and its answer is on record as well.
    let late = answered(&slow);
    assert_eq!(close_round(store, &slow, &late).await, WriteOutcome::Done(RoundCharge::PaidBefore));
    let after = Balance { granted: 1_000, available: 1_000 - COST, held: 0, spent: COST };
    assert_eq!(balance(store, &alice).await, after);
    assert_eq!(captures(store, &alice).await, [COST]);
    assert_eq!(shown_cost(store, &quick).await, COST);
    assert_eq!(shown_cost(store, &slow).await, 0, "a round shows what was paid for it");
    let kept = find_round(store, &alice, &slow.id).await.unwrap().closing.unwrap();
    assert_eq!(kept, late.unpaid(), "the entry and all else are as they were");
    // A try whose answer was lost changes nothing, whichever round it is of.
    assert_eq!(close_round(store, &quick, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(close_round(store, &slow, &late).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(balance(store, &alice).await, after);
    sound(store).await;
}

pub(crate) async fn a_free_round_leaves_the_capture_to_the_next(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let failed = of_step(round(&alice, 1), "exec-1");
    opened(store, &failed).await;
    let end = costing(&failed, RoundEnding::Closed, 0);
    assert_eq!(close_round(store, &failed, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let left = of_step(abandoned(&alice, 2), "exec-1");
    opened(store, &left).await;
    let taken = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(
        close_round(store, &taken, &expiry(&taken).unpaid()).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    // The node that was taken for dead is refused, and captures nothing by that.
    assert_eq!(close_round(store, &left, &answered(&left)).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(captures(store, &alice).await, [] as [i64; 0]);
    let last = of_step(round(&alice, 3), "exec-1");
    opened(store, &last).await;
    assert_eq!(
        close_round(store, &last, &answered(&last)).await,
        WriteOutcome::Done(RoundCharge::Own)
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
    let closes = tries.map(async |(node, open)| {
        node.rounds().close(&Behalf::from(&open.account), open, &answered(open)).await
    });
    let ended: Vec<WriteOutcome<RoundCharge, RoundLost>> =
        join_all(closes).await.into_iter().map(Result::unwrap).collect();
    second.close().await;
    let count =
        |how: WriteOutcome<RoundCharge, RoundLost>| ended.iter().filter(|it| **it == how).count();
    assert_eq!(count(WriteOutcome::Done(RoundCharge::Own)), 1, "{ended:?}");
    assert_eq!(
        (
            count(WriteOutcome::Done(RoundCharge::PaidBefore)),
            count(WriteOutcome::Refused(RoundLost))
        ),
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
            close_round(store, &open, &answered(&open)).await,
            WriteOutcome::Done(RoundCharge::Own)
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
        let round =
            store.rounds().of_task_call(&Behalf::from(&alice), &alice, execution_id).await.unwrap();
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
    close_round(store, &failed, &nothing).await;
    close_round(store, &stopped, &costing(&stopped, RoundEnding::Cancelled, 0)).await;
    close_round(store, &other, &answered(&other)).await;
    assert_eq!(found("exec-1").await, None, "nobody answered it for this account");
    close_round(store, &first, &answered(&first)).await;
    close_round(store, &second, &answered(&second)).await;
    assert_eq!(found("exec-1").await, Some(first.id));
    assert_eq!(found("exec-2").await, None);
}

pub(crate) async fn an_execution_captured_twice_is_found(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice").await;
    let rounds = [of_step(round(&alice, 1), "exec-1"), of_step(round(&alice, 2), "exec-1")];
    for open in &rounds {
        opened(store, open).await;
        close_round(store, open, &answered(open)).await;
        // As a program would that knows of no such row.
        backend.tamper("delete from execution_captures").await.unwrap();
        if open.id == rounds[0].id {
            sound(store).await;
        }
    }
    let found = store.ledger().faults(&Behalf::Platform).await.unwrap();
    assert_eq!(found, ["`exec-1`: the execution was captured more than once"]);
    let lost = "insert into execution_captures values ('acct_alice', 'exec-2', 'round-2', 1)";
    backend.tamper(lost).await.unwrap();
    let found = store.ledger().faults(&Behalf::Platform).await.unwrap();
    assert!(found.iter().any(|it| it.starts_with("`exec-2`: ")), "{found:?}");
}

//! Visitors: a little credit each month, and one daily limit for all of them.

use futures::future::join_all;
use jurat_core::{
    account::{
        AccountKind, AccountName,
        ledger::{Balance, CreditHold},
    },
    id::AccountId,
    round::{OpenRound, RoundEnding},
    time::Timestamp,
};
use jurat_store::{
    Behalf, CostCorrection, CreditGrant, RoundCharge, RoundOpenRefusal, RoundOpening, Store,
    TakeoverScope, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{abandoned, account, at, claim, close_round, costing, holding, open_round, round},
};

const DAY: i64 = 86_400_000_000;
const CAP: i64 = 105;

async fn admitted(store: &Store, name: &str, micros: i64, at: Timestamp) -> AccountId {
    let account = account(name);
    let behalf = Behalf::Account(account.clone());
    let monthly = CreditGrant { account: account.clone(), micros, note: None, at };
    store.templates().admit_visitor(&behalf, &monthly).await.unwrap();
    account
}

async fn balance(store: &Store, account: &AccountId) -> Balance {
    store.accounts().get(&Behalf::Platform, account).await.unwrap().unwrap().balance
}

fn capped(open: OpenRound, micros: i64) -> OpenRound {
    let hold = CreditHold {
        micros,
        most_micros: micros,
        least_micros: micros,
        is_limited: true,
        day_cap_micros: Some(CAP),
    };
    OpenRound { hold: Some(hold), ..open }
}

pub(crate) async fn a_visitor_gets_credit_once_a_month(backend: &Backend) {
    let store = &*backend.store;
    let may = Timestamp::from_micros(130 * DAY);
    let anon = admitted(store, "anon1", 50, may).await;
    let name = AccountName::Id(anon.clone());
    let profile = store.people().profile(&Behalf::Platform, &name, &may).await.unwrap();
    assert_eq!(profile.unwrap().kind, AccountKind::Anonymous);
    assert_eq!(balance(store, &anon).await.available, 50);
    admitted(store, "anon1", 50, Timestamp::from_micros(131 * DAY)).await;
    assert_eq!(balance(store, &anon).await.available, 50);
    let open = capped(round(&anon, 1), 30);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    let end = costing(&open, RoundEnding::Closed, 20);
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    admitted(store, "anon1", 50, Timestamp::from_micros(132 * DAY)).await;
    assert_eq!(balance(store, &anon).await.available, 30, "what is spent in a month is spent");
    // The next month restores the amount, and no more than that.
    admitted(store, "anon1", 50, Timestamp::from_micros(160 * DAY)).await;
    let expected = Balance { granted: 70, available: 50, held: 0, spent: 20 };
    assert_eq!(balance(store, &anon).await, expected);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn two_concurrent_first_requests_grant_the_credit_once(backend: &Backend) {
    let store = &*backend.store;
    join_all((0..8).map(|_| admitted(store, "anon1", 50, at(5)))).await;
    assert_eq!(balance(store, &account("anon1")).await.granted, 50);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn all_visitors_share_one_daily_limit(backend: &Backend) {
    let store = &*backend.store;
    let mut opens = Vec::new();
    for number in 0..40 {
        let anon = admitted(store, &format!("anon{}", number % 4), 1_000, at(1)).await;
        opens.push(capped(round(&anon, number), 10));
    }
    let outcomes = opens
        .iter()
        .map(async |open| store.rounds().open(&Behalf::from(&open.account), open, None).await);
    let outcomes = join_all(outcomes).await;
    let outcomes: Vec<WriteOutcome<RoundOpening, RoundOpenRefusal>> =
        outcomes.into_iter().map(Result::unwrap).collect();
    let opened: Vec<&OpenRound> = outcomes
        .iter()
        .zip(&opens)
        .filter(|(outcome, _)| **outcome == WriteOutcome::Done(RoundOpening::Whole))
        .map(|(_, open)| open)
        .collect();
    // Ten rounds of ten fit below 105, and never an eleventh.
    assert_eq!(opened.len(), 10);
    assert_eq!(
        outcomes
            .iter()
            .filter(|it| **it == WriteOutcome::Refused(RoundOpenRefusal::DaySpent))
            .count(),
        30
    );
    // Nothing of those who were refused is left behind.
    let held: i64 = join_all(
        (0..4).map(|n| async move { balance(store, &account(&format!("anon{n}"))).await.held }),
    )
    .await
    .iter()
    .sum();
    assert_eq!(held, 100);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    // What a round does not cost is there for others again: four cost 1 each, so 36 are free.
    let ends = opened[..4].iter().map(|open| async move {
        close_round(store, open, &costing(open, RoundEnding::Closed, 1)).await
    });
    assert!(join_all(ends).await.iter().all(|it| *it == WriteOutcome::Done(RoundCharge::Own)));
    let again = join_all((100..110).map(|number| async move {
        let anon = account(&format!("anon{}", number % 4));
        store
            .rounds()
            .open(
                &Behalf::from(&capped(round(&anon, number), 10).account),
                &capped(round(&anon, number), 10),
                None,
            )
            .await
            .unwrap()
    }));
    let fit =
        again.await.iter().filter(|it| **it == WriteOutcome::Done(RoundOpening::Whole)).count();
    // 60 reserved, 4 spent, 105 allowed.
    assert_eq!(fit, 4);
    // A caller with a key is not counted.
    let member = admitted(store, "member", 1_000, at(1)).await;
    let keyed = holding(round(&member, 200), 500, true);
    assert_eq!(open_round(store, &keyed).await, WriteOutcome::Done(RoundOpening::Whole));
}

pub(crate) async fn the_next_day_has_a_cap_of_its_own(backend: &Backend) {
    let store = &*backend.store;
    let anon = admitted(store, "anon1", 10_000, at(1)).await;
    let first = capped(round(&anon, 1), 100);
    assert_eq!(open_round(store, &first).await, WriteOutcome::Done(RoundOpening::Whole));
    let second = capped(round(&anon, 2), 10);
    assert_eq!(open_round(store, &second).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
    let opened_at = Timestamp::from_micros(first.opened_at.micros() + DAY);
    let next = OpenRound { opened_at, ..capped(round(&anon, 3), 100) };
    assert_eq!(open_round(store, &next).await, WriteOutcome::Done(RoundOpening::Whole));
    // What ends late gives back to the day that it began in.
    close_round(store, &first, &costing(&first, RoundEnding::Closed, 0)).await;
    assert_eq!(open_round(store, &second).await, WriteOutcome::Done(RoundOpening::Whole));
    let later = OpenRound { opened_at, ..capped(round(&anon, 4), 10) };
    assert_eq!(open_round(store, &later).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
}

pub(crate) async fn an_abandoned_round_releases_its_hold(backend: &Backend) {
    let store = &*backend.store;
    let anon = admitted(store, "anon1", 1_000, at(1)).await;
    let left = capped(abandoned(&anon, 1), 100);
    assert_eq!(open_round(store, &left).await, WriteOutcome::Done(RoundOpening::Whole));
    let claimed = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap();
    assert_eq!(claimed[0].hold, left.hold);
    let end = costing(&claimed[0], RoundEnding::Expired, 0);
    assert_eq!(
        store.rounds().close(&Behalf::from(&claimed[0].account), &claimed[0], &end).await.unwrap(),
        WriteOutcome::Done(RoundCharge::Own)
    );
    let next = capped(round(&anon, 2), 100);
    assert_eq!(open_round(store, &next).await, WriteOutcome::Done(RoundOpening::Whole));
}

pub(crate) async fn the_daily_limit_is_spent_exactly(backend: &Backend) {
    let store = &*backend.store;
    let anon = admitted(store, "anon1", 1_000, at(1)).await;
    let open = async |number, micros| {
        store
            .rounds()
            .open(
                &Behalf::from(&capped(round(&anon, number), micros).account),
                &capped(round(&anon, number), micros),
                None,
            )
            .await
            .unwrap()
    };
    assert_eq!(open(1, CAP + 1).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
    assert_eq!(open(2, CAP - 5).await, WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!(open(3, 6).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
    assert_eq!(open(4, 5).await, WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!(open(5, 1).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
}

/// A call with a likely cost of 10 and this maximum.
fn risky(open: OpenRound, most_micros: i64) -> OpenRound {
    let open = capped(open, 10);
    let hold = open.hold.map(|hold| CreditHold { most_micros, least_micros: 1, ..hold });
    OpenRound { hold, ..open }
}

pub(crate) async fn the_daily_limit_reserves_the_maximum_cost_of_a_call(backend: &Backend) {
    let store = &*backend.store;
    let (one, other) = (
        admitted(store, "anon1", 1_000, at(1)).await,
        admitted(store, "anon2", 1_000, at(1)).await,
    );
    let open = risky(round(&one, 1), 100);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    let next = risky(round(&other, 2), 6);
    assert_eq!(open_round(store, &next).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
    // It cost more than it held, and what it did not cost of the most is there for others.
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 60)).await;
    let all = risky(round(&other, 3), CAP - 60);
    assert_eq!(open_round(store, &all).await, WriteOutcome::Done(RoundOpening::Whole));
    let last = risky(round(&one, 4), 11);
    assert_eq!(open_round(store, &last).await, WriteOutcome::Refused(RoundOpenRefusal::DaySpent));
    // Of what is reported afterwards, the day takes no more than is left of it.
    let behalf = Behalf::Account(one.clone());
    let correction = |micros| CostCorrection {
        account: one.clone(),
        round: open.id.clone(),
        run: None,
        micros,
        is_limited: true,
        day_cap_micros: Some(CAP),
        opened_at: open.opened_at,
        at: at(9_000),
    };
    let corrected = async |micros| {
        store.judge_calls().correct_cost(&behalf, &correction(micros), None).await.unwrap()
    };
    assert_eq!(corrected(1).await, WriteOutcome::Done(0));
    assert_eq!(corrected(-20).await, WriteOutcome::Done(-20));
    assert_eq!(open_round(store, &last).await, WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!(corrected(10).await, WriteOutcome::Done(0));
    assert_eq!(corrected(9).await, WriteOutcome::Done(9));
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

pub(crate) async fn the_debt_of_a_visitor_is_paid_from_the_next_grant(backend: &Backend) {
    let store = &*backend.store;
    let anon = admitted(store, "anon1", 50, Timestamp::from_micros(130 * DAY)).await;
    let open = risky(round(&anon, 1), 80);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 70)).await;
    assert_eq!(balance(store, &anon).await.available, -20);
    admitted(store, "anon1", 50, Timestamp::from_micros(160 * DAY)).await;
    let expected = Balance { granted: 100, available: 30, held: 0, spent: 70 };
    assert_eq!(balance(store, &anon).await, expected);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

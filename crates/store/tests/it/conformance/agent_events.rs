//! Agent events.

use std::collections::BTreeSet;

use futures::future::join_all;
use jurat_core::{
    id::AccountId,
    list::ListPosition,
    task::agent_event::{
        AgentEventAddition, AgentEventFilter, AgentEventRecord, Delivery, EventDirection,
        NewAgentEvent,
    },
};
use jurat_store::{
    AgentEventAdd, AgentEventOutcome, AgentEventPruning, AgentEventTake, Behalf, NotLeaseHolder,
    Store, TooManyPending, WriteOutcome,
};
use serde_json::json;

use super::{tasks::told, workflows::behalf};
use crate::{
    backend::Backend,
    samples::{account, at},
};

async fn added(store: &Store, whose: &AccountId, event: &NewAgentEvent, millis: i64) -> bool {
    let add = AgentEventAdd {
        account: whose.clone(),
        event: event.clone(),
        at: at(millis),
        most_pending: 1_000,
    };
    match store.agent_events().add(&behalf(whose), &add, None).await.unwrap() {
        WriteOutcome::Done(added) => {
            // Everybody gets the first event under the key.
            assert_eq!(added.record.event.dedupe_key, event.dedupe_key);
            assert!(!added.is_new || added.record.event == *event);
            added.is_new
        }
        other => panic!("{other:?}"),
    }
}

fn due(now: i64, until: i64) -> AgentEventTake {
    let (without, without_accounts) = (Vec::new(), Vec::new());
    AgentEventTake { now: at(now), until: at(until), limit: 4, without, without_accounts }
}

async fn taken(store: &Store, take: &AgentEventTake) -> Vec<AgentEventRecord> {
    store.agent_events().take_due(&Behalf::Platform, take).await.unwrap()
}

async fn get(store: &Store, whose: &AccountId, id: &str) -> Option<AgentEventRecord> {
    store.agent_events().get(&behalf(whose), whose, id).await.unwrap()
}

pub(crate) async fn an_event_with_a_key_is_added_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let first = told("first", Some("same"));
    assert!(added(store, &alice, &first, 10).await);
    let found = get(store, &alice, "first").await.unwrap();
    assert_eq!((&found.event, found.state, found.attempts), (&first, Delivery::Pending, 0));
    assert!(!added(store, &alice, &told("second", Some("same")), 11).await);
    assert!(!added(store, &alice, &first, 12).await);
    // Another executor, another direction, another account and no key are other events.
    let two = NewAgentEvent { executor: "two".to_owned(), ..told("third", Some("same")) };
    assert!(added(store, &alice, &two, 13).await);
    let inbound = NewAgentEvent {
        direction: EventDirection::In,
        next_at: None,
        ..told("fourth", Some("same"))
    };
    assert!(added(store, &alice, &inbound, 14).await);
    assert!(added(store, &account("bob"), &told("first", Some("same")), 15).await);
    assert!(added(store, &alice, &told("fifth", None), 16).await);
    assert!(added(store, &alice, &told("sixth", None), 17).await);
}

pub(crate) async fn an_event_is_sent_by_one_node_until_its_lease_ends(backend: &Backend) {
    const EVENTS: usize = 30;
    let store = &*backend.store;
    let second = backend.second().await;
    for number in 0..EVENTS {
        let owner = account(if number % 2 == 0 { "alice" } else { "bob" });
        added(store, &owner, &told(&format!("e-{number}"), None), 10).await;
    }
    let take = due(50, 90);
    let turns = (0..10).map(|turn| {
        let store = if turn % 2 == 0 { store } else { &*second };
        let take = take.clone();
        async move { taken(store, &take).await }
    });
    let mut all: Vec<AgentEventRecord> = join_all(turns).await.into_iter().flatten().collect();
    all.extend(taken(&second, &AgentEventTake { limit: 100, ..take.clone() }).await);
    let distinct: BTreeSet<_> = all.iter().map(|it| it.event.id.clone()).collect();
    assert_eq!((all.len(), distinct.len()), (EVENTS, EVENTS));
    assert!(all.iter().all(|it| it.attempts == 1 && it.event.next_at == Some(at(90))));
    let next = store.agent_events().next_due(&Behalf::Platform).await.unwrap();
    assert_eq!(next, Some(at(90)));
    second.close().await;
}

pub(crate) async fn executors_and_accounts_at_their_limit_are_left_out(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for (number, executor) in ["one", "two", "two-b", "three", "one"].into_iter().enumerate() {
        let event =
            NewAgentEvent { executor: executor.to_owned(), ..told(&format!("e-{number}"), None) };
        added(store, &alice, &event, 10).await;
    }
    let names = |events: Vec<AgentEventRecord>| {
        events.into_iter().map(|it| it.event.executor).collect::<BTreeSet<_>>()
    };
    let without = ["one", "two"].map(str::to_owned).to_vec();
    let take = AgentEventTake { limit: 9, without, ..due(50, 90) };
    let others = ["three", "two-b"].map(str::to_owned);
    assert_eq!(names(taken(store, &take).await), BTreeSet::from(others));
    let rest = AgentEventTake { without: Vec::new(), ..take };
    // An executor may have the name of an account.
    let of_bob = NewAgentEvent { executor: alice.to_string(), ..told("e-9", None) };
    added(store, &account("bob"), &of_bob, 10).await;
    let busy = AgentEventTake { without_accounts: vec![alice.to_string()], ..rest.clone() };
    assert_eq!(names(taken(store, &busy).await), BTreeSet::from([alice.to_string()]));
    assert_eq!(taken(store, &rest).await.len(), 3);
}

pub(crate) async fn a_late_delivery_outcome_is_not_recorded(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &alice, &told("e", None), 10).await;
    let take = due(50, 90);
    assert_eq!(taken(store, &take).await.len(), 1);
    let again = due(95, 200);
    assert_eq!(taken(store, &again).await[0].attempts, 2);
    let outcome = |attempt, state| AgentEventOutcome {
        account: alice.clone(),
        id: "e".to_owned(),
        attempt,
        state,
        next_at: None,
        decision: Some(json!({"action": "accept_result", "route": "noop"})),
        last_error: Some("slow".to_owned()),
        at: at(100),
    };
    let (whose, agent_events) = (behalf(&alice), store.agent_events());
    let late = agent_events.note(&whose, &outcome(1, Delivery::Failed), None).await.unwrap();
    assert_eq!(late, WriteOutcome::Refused(NotLeaseHolder));
    assert_eq!(get(store, &alice, "e").await.unwrap().state, Delivery::Pending);
    let noted = agent_events.note(&whose, &outcome(2, Delivery::Acked), None).await.unwrap();
    assert_eq!(noted, WriteOutcome::Done(()));
    let found = get(store, &alice, "e").await.unwrap();
    assert_eq!((found.state, found.event.next_at), (Delivery::Acked, None));
    assert_eq!(found.decision, outcome(2, Delivery::Acked).decision);
    assert_eq!((found.last_error.as_deref(), found.updated_at), (Some("slow"), at(100)));
    assert_eq!(agent_events.next_due(&Behalf::Platform).await.unwrap(), None);
    // What was decided stays when the next word says nothing of it.
    let done = AgentEventOutcome { decision: None, ..outcome(2, Delivery::Completed) };
    agent_events.note(&whose, &done, None).await.unwrap();
    assert!(get(store, &alice, "e").await.unwrap().decision.is_some());
}

pub(crate) async fn events_of_agents_are_listed_by_every_filter(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for number in 0..8_i64 {
        let executor = if number % 2 == 0 { "one" } else { "two" };
        let id = format!("e-{number}");
        let event = NewAgentEvent { executor: executor.to_owned(), ..told(&id, None) };
        added(store, &alice, &event, 100 + number / 2).await;
        if number < 4 {
            let outcome = AgentEventOutcome {
                account: alice.clone(),
                id,
                attempt: 0,
                state: Delivery::Failed,
                next_at: None,
                decision: None,
                last_error: None,
                at: at(200),
            };
            store.agent_events().note(&behalf(&alice), &outcome, None).await.unwrap();
        }
    }
    added(store, &account("bob"), &told("e-9", None), 999).await;
    let walked = async |executor: Option<&str>, state| {
        let mut filter = AgentEventFilter {
            state,
            executor: executor.map(str::to_owned),
            needs_review: None,
            before: None,
            limit: 3,
        };
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = store.agent_events().page(&behalf(&alice), &alice, &filter).await.unwrap();
            let Some(last) = page.last() else { return found };
            let id = last.event.id.clone();
            filter.before = Some(ListPosition { created_at: last.created_at, id });
            found.extend(page.into_iter().map(|line| line.event.id));
        }
    };
    let all = ["e-7", "e-6", "e-5", "e-4", "e-3", "e-2", "e-1", "e-0"];
    assert_eq!(walked(None, None).await, all);
    assert_eq!(walked(Some("one"), None).await, ["e-6", "e-4", "e-2", "e-0"]);
    assert_eq!(walked(None, Some(Delivery::Failed)).await, ["e-3", "e-2", "e-1", "e-0"]);
    assert_eq!(walked(Some("two"), Some(Delivery::Pending)).await, ["e-7", "e-5"]);
}

pub(crate) async fn the_events_waiting_for_an_executor_are_limited(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    let add = async |whose: &AccountId, event: NewAgentEvent| {
        let add = AgentEventAdd { account: whose.clone(), event, at: at(10), most_pending: 2 };
        store.agent_events().add(&behalf(whose), &add, None).await.unwrap()
    };
    let is_added =
        |it: WriteOutcome<AgentEventAddition, TooManyPending>| matches!(it, WriteOutcome::Done(_));
    assert!(is_added(add(&alice, told("a", Some("k"))).await));
    assert!(is_added(add(&alice, told("b", None)).await));
    assert_eq!(add(&alice, told("c", None)).await, WriteOutcome::Refused(TooManyPending));
    assert_eq!(get(store, &alice, "c").await, None);
    // A known event, one for another executor, and one of another account take no slot here.
    let WriteOutcome::Done(again) = add(&alice, told("d", Some("k"))).await else { panic!() };
    assert_eq!((again.is_new, again.record.event.id.as_str()), (false, "a"));
    let other = NewAgentEvent { executor: "two".to_owned(), ..told("e", None) };
    assert!(is_added(add(&alice, other).await));
    assert!(is_added(add(&account("bob"), told("f", None)).await));
    let (whose, agent_events) = (behalf(&alice), store.agent_events());
    let executor = told("a", None).executor;
    assert_eq!(agent_events.pending(&whose, &alice, &executor, &9).await.unwrap(), 2);
    assert_eq!(agent_events.pending(&whose, &alice, &executor, &1).await.unwrap(), 1);
    // Whatever is told no more makes room.
    noted(store, &alice, "b", Delivery::Acked).await;
    assert!(is_added(add(&alice, told("c", None)).await));
}

/// Notes what became of an event that nobody took.
pub(crate) async fn noted(store: &Store, whose: &AccountId, id: &str, state: Delivery) {
    let outcome = AgentEventOutcome {
        account: whose.clone(),
        id: id.to_owned(),
        attempt: 0,
        state,
        next_at: None,
        decision: (state == Delivery::Completed)
            .then(|| json!({"action": "human_review", "payload": {"action": "reply"}})),
        last_error: None,
        at: at(200),
    };
    store.agent_events().note(&behalf(whose), &outcome, None).await.unwrap();
}

pub(crate) async fn old_events_are_pruned_and_pending_ones_stay(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    for (whose, id, millis) in [
        (&alice, "a", 10),
        (&alice, "b", 11),
        (&alice, "c", 12),
        (&alice, "d", 90),
        (&bob, "e", 10),
    ] {
        added(store, whose, &told(id, Some(id)), millis).await;
        if id != "c" {
            noted(store, whose, id, Delivery::Acked).await;
        }
    }
    let agent_events = store.agent_events();
    let after =
        async |text: &str| agent_events.account_after(&Behalf::Platform, text).await.unwrap();
    assert_eq!(after("").await, Some(alice.clone()));
    assert_eq!(after(alice.as_str()).await, Some(bob.clone()));
    assert_eq!(after(bob.as_str()).await, None);
    let pruning = AgentEventPruning { account: alice.clone(), before: at(50), limit: 1 };
    for (gone, left) in [(1, 3), (1, 2), (0, 2)] {
        let pruned = agent_events.prune(&Behalf::Platform, &pruning).await.unwrap();
        assert_eq!(pruned, gone);
        let ids = ["a", "b", "c", "d"].map(|id| get(store, &alice, id));
        assert_eq!(join_all(ids).await.iter().flatten().count(), left);
    }
    assert!(get(store, &alice, "c").await.is_some(), "somebody is still to be told of it");
    assert!(get(store, &bob, "e").await.is_some(), "it is of another account");
    // Its key is free again.
    assert!(added(store, &alice, &told("f", Some("a")), 95).await);
}

pub(crate) async fn events_for_human_review_are_found(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for (id, state) in
        [("a", Delivery::Completed), ("b", Delivery::Acked), ("c", Delivery::Completed)]
    {
        let executor = if id == "c" { "two" } else { "one" }.to_owned();
        added(store, &alice, &NewAgentEvent { executor, ..told(id, None) }, 10).await;
        noted(store, &alice, id, state).await;
    }
    let found = async |needs_review, executor: Option<&str>, state| {
        let filter = AgentEventFilter {
            state,
            executor: executor.map(str::to_owned),
            needs_review: Some(needs_review),
            before: None,
            limit: 9,
        };
        let page = store.agent_events().page(&behalf(&alice), &alice, &filter).await.unwrap();
        page.into_iter().map(|it| it.event.id).collect::<Vec<_>>()
    };
    assert_eq!(found(true, None, None).await, ["c", "a"]);
    assert_eq!(found(false, None, None).await, ["b"]);
    assert_eq!(found(true, Some("one"), None).await, ["a"]);
    assert_eq!(found(true, None, Some(Delivery::Completed)).await, ["c", "a"]);
    assert_eq!(found(true, Some("two"), Some(Delivery::Completed)).await, ["c"]);
    assert!(found(true, Some("two"), Some(Delivery::Acked)).await.is_empty());
}

//! Events to agents and from them.

use std::collections::BTreeSet;

use futures::future::join_all;
use jurat_core::{
    agent_event::{Delivery, Direction},
    id::AccountId,
};
use jurat_store::{
    AgentEvent, AgentEventAdd, AgentEventFilter, AgentEventOutcome, AgentEventTake, Behalf,
    NewAgentEvent, NotHeld, Position, Store, Written,
};
use serde_json::json;

use super::{tasks::told, workflows::behalf};
use crate::{
    backend::Backend,
    samples::{account, at},
};

async fn added(store: &dyn Store, whose: &AccountId, event: &NewAgentEvent, millis: i64) -> bool {
    let add = AgentEventAdd { account: whose.clone(), event: event.clone(), at: at(millis) };
    match store.tasks().agent_event_add(&behalf(whose), &add, None).await.unwrap() {
        Written::Done(added) => {
            // The first one under the key is what everybody gets.
            assert_eq!(added.record.event.dedupe_key, event.dedupe_key);
            assert!(!added.is_new || added.record.event == *event);
            added.is_new
        }
        other => panic!("{other:?}"),
    }
}

async fn taken(store: &dyn Store, take: &AgentEventTake) -> Vec<AgentEvent> {
    match store.tasks().agent_event_take(&Behalf::Platform, take, None).await.unwrap() {
        Written::Done(events) => events,
        other => panic!("{other:?}"),
    }
}

async fn get(store: &dyn Store, whose: &AccountId, id: &str) -> Option<AgentEvent> {
    store.tasks().agent_event_get(&behalf(whose), whose, id).await.unwrap()
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
    let inbound =
        NewAgentEvent { direction: Direction::In, next_at: None, ..told("fourth", Some("same")) };
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
    let take = AgentEventTake { now: at(50), until: at(90), limit: 4, without: Vec::new() };
    let turns = (0..10).map(|turn| {
        let store = if turn % 2 == 0 { store } else { &*second };
        let take = take.clone();
        async move { taken(store, &take).await }
    });
    let mut all: Vec<AgentEvent> = join_all(turns).await.into_iter().flatten().collect();
    all.extend(taken(&*second, &AgentEventTake { limit: 100, ..take.clone() }).await);
    let distinct: BTreeSet<_> = all.iter().map(|it| it.event.id.clone()).collect();
    assert_eq!((all.len(), distinct.len()), (EVENTS, EVENTS));
    assert!(all.iter().all(|it| it.attempts == 1 && it.event.next_at == Some(at(90))));
    let next = store.tasks().agent_event_next(&Behalf::Platform).await.unwrap();
    assert_eq!(next, Some(at(90)));
    second.close().await;
}

pub(crate) async fn executors_that_have_enough_are_left_out(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    for (number, executor) in ["one", "two", "two-b", "three", "one"].into_iter().enumerate() {
        let event =
            NewAgentEvent { executor: executor.to_owned(), ..told(&format!("e-{number}"), None) };
        added(store, &alice, &event, 10).await;
    }
    let names = |events: Vec<AgentEvent>| {
        events.into_iter().map(|it| it.event.executor).collect::<BTreeSet<_>>()
    };
    let without = ["one", "two"].map(str::to_owned).to_vec();
    let take = AgentEventTake { now: at(50), until: at(90), limit: 9, without };
    let others = ["three", "two-b"].map(str::to_owned);
    assert_eq!(names(taken(store, &take).await), BTreeSet::from(others));
    let rest = taken(store, &AgentEventTake { without: Vec::new(), ..take }).await;
    assert_eq!(rest.len(), 3);
}

pub(crate) async fn the_word_of_a_late_sender_is_not_noted(backend: &Backend) {
    let store = &*backend.store;
    let alice = account("alice");
    added(store, &alice, &told("e", None), 10).await;
    let take = AgentEventTake { now: at(50), until: at(90), limit: 4, without: Vec::new() };
    assert_eq!(taken(store, &take).await.len(), 1);
    let again = AgentEventTake { now: at(95), until: at(200), limit: 4, without: Vec::new() };
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
    let (whose, tasks) = (behalf(&alice), store.tasks());
    let late = tasks.agent_event_note(&whose, &outcome(1, Delivery::Failed), None).await.unwrap();
    assert_eq!(late, Written::Refused(NotHeld));
    assert_eq!(get(store, &alice, "e").await.unwrap().state, Delivery::Pending);
    let noted = tasks.agent_event_note(&whose, &outcome(2, Delivery::Acked), None).await.unwrap();
    assert_eq!(noted, Written::Done(()));
    let found = get(store, &alice, "e").await.unwrap();
    assert_eq!((found.state, found.event.next_at), (Delivery::Acked, None));
    assert_eq!(found.decision, outcome(2, Delivery::Acked).decision);
    assert_eq!((found.last_error.as_deref(), found.updated_at), (Some("slow"), at(100)));
    assert_eq!(tasks.agent_event_next(&Behalf::Platform).await.unwrap(), None);
    // What was decided stays when the next word says nothing of it.
    let done = AgentEventOutcome { decision: None, ..outcome(2, Delivery::Completed) };
    tasks.agent_event_note(&whose, &done, None).await.unwrap();
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
            store.tasks().agent_event_note(&behalf(&alice), &outcome, None).await.unwrap();
        }
    }
    added(store, &account("bob"), &told("e-9", None), 999).await;
    let walked = async |executor: Option<&str>, state| {
        let mut filter = AgentEventFilter {
            account: alice.clone(),
            state,
            executor: executor.map(str::to_owned),
            before: None,
            limit: 3,
        };
        let mut found: Vec<String> = Vec::new();
        loop {
            let page = store.tasks().agent_event_page(&behalf(&alice), &filter).await.unwrap();
            let Some(last) = page.last() else { return found };
            let id = last.event.id.clone();
            filter.before = Some(Position { created_at: last.created_at, id });
            found.extend(page.into_iter().map(|line| line.event.id));
        }
    };
    let all = ["e-7", "e-6", "e-5", "e-4", "e-3", "e-2", "e-1", "e-0"];
    assert_eq!(walked(None, None).await, all);
    assert_eq!(walked(Some("one"), None).await, ["e-6", "e-4", "e-2", "e-0"]);
    assert_eq!(walked(None, Some(Delivery::Failed)).await, ["e-3", "e-2", "e-1", "e-0"]);
    assert_eq!(walked(Some("two"), Some(Delivery::Pending)).await, ["e-7", "e-5"]);
}

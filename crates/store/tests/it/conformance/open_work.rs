//! Open work in the whole installation.

use jurat_core::{
    agent_run::AgentRunStatus,
    task::{TaskPhase, agent_event::Delivery},
};
use jurat_store::{Behalf, QueueDepth};

use super::{agent_events, agent_runs, tasks};
use crate::{
    backend::Backend,
    samples::{account, at},
};

pub(crate) async fn open_work_is_counted_across_accounts(backend: &Backend) {
    let store = &*backend.store;
    let (alice, bob) = (account("alice"), account("bob"));
    let platform = Behalf::Platform;
    let empty = store.open_work().counts(&platform).await.unwrap();
    assert_eq!(empty, jurat_store::OpenWorkCounts::default());
    for whose in [&alice, &bob] {
        // A claimed task with a waiting event, and a run with one step.
        tasks::with_everything(store, whose).await;
        agent_runs::with_everything(store, whose).await;
    }
    let counts = store.open_work().counts(&platform).await.unwrap();
    assert_eq!(counts.tasks, [(TaskPhase::Claimed, 2)]);
    assert_eq!(counts.runs, [(AgentRunStatus::Queued, 2)]);
    assert_eq!((counts.queued.count, counts.leased, counts.workers), (2, QueueDepth::default(), 0));
    assert_eq!(counts.events, QueueDepth { count: 2, first: Some(at(20)) });
    agent_events::noted(store, &bob, "first", Delivery::Failed).await;
    let counts = store.open_work().counts(&platform).await.unwrap();
    assert_eq!(counts.events.count, 1);
    let given_up = async |whose, since| {
        store.open_work().given_up(&platform, whose, &at(since), &9).await.unwrap()
    };
    assert_eq!((given_up(&bob, 0).await, given_up(&bob, 21).await), (1, 0));
    assert_eq!(given_up(&alice, 0).await, 0);
    let overdue = async |before, limit: u32| {
        let found = store.open_work().overdue(&platform, &at(before), &limit).await.unwrap();
        found.into_iter().map(|it| it.key.account).collect::<Vec<_>>()
    };
    assert_eq!(overdue(1_000_000_000, 9).await.len(), 2);
    assert_eq!(overdue(1_000_000_000, 1).await.len(), 1);
    assert!(overdue(0, 9).await.is_empty());
}

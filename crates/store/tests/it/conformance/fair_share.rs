//! Taking due tasks if there are too few slots.

use std::collections::BTreeMap;

use jurat_core::{
    id::AccountId,
    task::{TakenTasks, TaskKey, TaskPhase, TaskTake},
};
use jurat_store::{Behalf, Store, TaskSubmit};

use super::tasks::{key, new_task, submitted};
use crate::{
    backend::Backend,
    samples::{account, at},
};

fn take(limit: u32) -> TaskTake {
    let (now, until) = (at(10_000), at(20_000));
    TaskTake { now, until, limit, in_flight: BTreeMap::new(), after: None }
}

async fn taken(store: &Store, take: &TaskTake) -> TakenTasks {
    store.tasks().take_due(&Behalf::Platform, take).await.unwrap()
}

/// So many tasks of an account, due one after the other from a time on.
async fn flood(store: &Store, owner: &AccountId, count: i64, from: i64) {
    for number in 0..count {
        submitted(store, &new_task(owner, &format!("t-{number:03}"), from + number)).await;
    }
}

fn keys(all: &[(&AccountId, &str)]) -> Vec<TaskKey> {
    all.iter().map(|(account, id)| key(account, id)).collect()
}

pub(crate) async fn accounts_share_scarce_slots_fairly(backend: &Backend) {
    let store = &*backend.store;
    let (many, few) = (account("many"), account("few"));
    flood(store, &many, 40, 100).await;
    flood(store, &few, 3, 5_000).await;
    let first = taken(store, &take(3)).await;
    assert_eq!(first.tasks, keys(&[(&many, "t-000"), (&few, "t-000"), (&many, "t-001")]));
    assert!(first.some_wait);
    // The account with fewer tasks in progress comes first.
    let under_way = BTreeMap::from([(many.clone(), 2), (few.clone(), 1)]);
    let second = taken(store, &TaskTake { in_flight: under_way, ..take(2) }).await;
    assert_eq!(second.tasks, keys(&[(&few, "t-001"), (&many, "t-002")]));
    let under_way = BTreeMap::from([(many.clone(), 3)]);
    let third = taken(store, &TaskTake { in_flight: under_way, ..take(2) }).await;
    assert_eq!(third.tasks, keys(&[(&few, "t-002"), (&many, "t-003")]));
}

pub(crate) async fn no_account_gets_every_slot(backend: &Backend) {
    let store = &*backend.store;
    let many = account("many");
    flood(store, &many, 20, 100).await;
    let first = taken(store, &take(16)).await;
    assert_eq!((first.tasks.len(), first.some_wait), (14, true));
    let under_way = BTreeMap::from([(many.clone(), 14)]);
    let full = taken(store, &TaskTake { in_flight: under_way, ..take(2) }).await;
    assert_eq!((full.tasks.len(), full.some_wait), (0, true));
    // All due tasks have a slot, so none waits.
    let rest = taken(store, &take(16)).await;
    assert_eq!((rest.tasks.len(), rest.some_wait), (6, false));
}

pub(crate) async fn every_account_is_considered_soon(backend: &Backend) {
    let store = &*backend.store;
    flood(store, &account("aaa"), 100, 100).await;
    let others: Vec<AccountId> = (0..40).map(|it| account(&format!("b{it:02}"))).collect();
    for other in &others {
        flood(store, other, 1, 5_000).await;
    }
    let first = taken(store, &take(64)).await;
    assert!(first.looked_to.is_some());
    let second = taken(store, &TaskTake { after: first.looked_to.clone(), ..take(64) }).await;
    // It starts again with the first.
    assert_eq!(second.looked_to, None);
    let all: Vec<&TaskKey> = first.tasks.iter().chain(&second.tasks).collect();
    for other in &others {
        assert!(all.contains(&&key(other, "t-000")), "{other}");
    }
}

pub(crate) async fn waiting_tasks_are_found_behind_tasks_in_progress(backend: &Backend) {
    let store = &*backend.store;
    let (many, busy) = (account("many"), account("busy"));
    flood(store, &many, 20, 100).await;
    for number in 0..80 {
        let mut begun = new_task(&busy, &format!("begun-{number}"), number);
        begun.state.phase = TaskPhase::Claimed;
        submitted(store, &TaskSubmit { due_at: Some(at(50_000)), ..begun }).await;
    }
    submitted(store, &new_task(&busy, "new", 5_000)).await;
    let both = taken(store, &take(2)).await;
    assert_eq!(both.tasks, keys(&[(&many, "t-000"), (&busy, "new")]));
}

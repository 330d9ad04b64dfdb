//! Executors and sessions.

use jurat_core::executor::Executor;
use jurat_store::{
    Behalf, ExecutorAddRefusal, NotFound, SessionAddRefusal, StoreErrorKind, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{executor, page, session, unwell, well},
};

pub(crate) async fn an_executor_reads_back_as_it_was_added(backend: &Backend) {
    let store = &backend.store;
    let mut full = executor("full");
    full.token_env = Some("TOKEN".to_owned());
    full.agent_events_url = Some("https://example.org/events".to_owned());
    full.probe = Some(well(5));
    let bare = executor("bare");
    assert_eq!(
        store.executors().add(&Behalf::Platform, &full, None, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.executors().add(&Behalf::Platform, &bare, None, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(store.executors().get(&Behalf::Platform, "full").await.unwrap(), Some(full));
    assert_eq!(store.executors().get(&Behalf::Platform, "bare").await.unwrap(), Some(bare));
    assert_eq!(store.executors().get(&Behalf::Platform, "other").await.unwrap(), None);
}

pub(crate) async fn a_name_is_taken_only_once(backend: &Backend) {
    let store = &backend.store;
    let first = executor("e1");
    store.executors().add(&Behalf::Platform, &first, None, None).await.unwrap();
    let again = Executor { url: "http://elsewhere".to_owned(), ..executor("e1") };
    let lane = session("s1", "e1");
    assert_eq!(
        store.executors().add(&Behalf::Platform, &again, Some(&lane), None).await.unwrap(),
        WriteOutcome::Refused(ExecutorAddRefusal::ExecutorExists)
    );
    assert_eq!(store.executors().get(&Behalf::Platform, "e1").await.unwrap(), Some(first));
    assert_eq!(store.sessions().get(&Behalf::Platform, "s1").await.unwrap(), None);
}

pub(crate) async fn an_executor_and_its_session_are_added_together_or_not_at_all(
    backend: &Backend,
) {
    let store = &backend.store;
    let lane = session("s1", "e1");
    assert_eq!(
        store.executors().add(&Behalf::Platform, &executor("e1"), Some(&lane), None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(store.sessions().get(&Behalf::Platform, "s1").await.unwrap(), Some(lane));
    let version = store.sessions().pool_version(&Behalf::Platform).await.unwrap();
    let taken = session("s1", "e2");
    let added = store
        .executors()
        .add(&Behalf::Platform, &executor("e2"), Some(&taken), None)
        .await
        .unwrap();
    assert_eq!(added, WriteOutcome::Refused(ExecutorAddRefusal::SessionExists));
    assert_eq!(store.executors().get(&Behalf::Platform, "e2").await.unwrap(), None);
    assert_eq!(
        store.sessions().get(&Behalf::Platform, "s1").await.unwrap().unwrap().executor,
        "e1"
    );
    assert_eq!(store.sessions().pool_version(&Behalf::Platform).await.unwrap(), version);
}

pub(crate) async fn a_session_of_another_executor_adds_nothing(backend: &Backend) {
    let store = &backend.store;
    let stray = session("s1", "nobody");
    let error = store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&stray), None)
        .await
        .unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Conflict);
    assert_eq!(store.executors().get(&Behalf::Platform, "e1").await.unwrap(), None);
    assert_eq!(store.sessions().pool_version(&Behalf::Platform).await.unwrap(), 0);
}

pub(crate) async fn executors_are_listed_by_name_in_pages(backend: &Backend) {
    let store = &backend.store;
    // By bytes, whatever the collation of the database.
    let ordered = ["B", "a", "a-b", "aB", "a_b", "ab", "é"];
    for name in ["ab", "é", "a_b", "B", "aB", "a", "a-b"] {
        store.executors().add(&Behalf::Platform, &executor(name), None, None).await.unwrap();
    }
    let names = async |after, limit| {
        let listed = store.executors().list(&Behalf::Platform, &page(after, limit)).await.unwrap();
        listed.into_iter().map(|executor| executor.name).collect::<Vec<_>>()
    };
    assert_eq!(names(None, 100).await, ordered);
    assert_eq!(names(None, 3).await, ordered[..3]);
    assert_eq!(names(Some("a-b"), 3).await, ordered[3..6]);
    assert_eq!(names(Some("ab"), 3).await, ordered[6..]);
    assert_eq!(names(Some("é"), 3).await, Vec::<String>::new());
}

pub(crate) async fn a_probe_is_kept_and_does_not_change_the_pool(backend: &Backend) {
    let store = &backend.store;
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    let version = store.sessions().pool_version(&Behalf::Platform).await.unwrap();
    for probe in [well(10), unwell(20)] {
        assert!(store.executors().set_probe(&Behalf::Platform, "e1", &probe).await.unwrap());
        assert_eq!(
            store.executors().get(&Behalf::Platform, "e1").await.unwrap().unwrap().probe,
            Some(probe)
        );
    }
    assert!(!store.executors().set_probe(&Behalf::Platform, "e2", &well(30)).await.unwrap());
    assert_eq!(store.sessions().pool_version(&Behalf::Platform).await.unwrap(), version);
}

pub(crate) async fn removing_an_executor_removes_its_sessions(backend: &Backend) {
    let store = &backend.store;
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s2", "e1")), None)
        .await
        .unwrap();
    store.sessions().add(&Behalf::Platform, &session("s1", "e1"), None).await.unwrap();
    store
        .executors()
        .add(&Behalf::Platform, &executor("e2"), Some(&session("s3", "e2")), None)
        .await
        .unwrap();
    let removed = store.executors().remove(&Behalf::Platform, "e1", None).await.unwrap();
    assert_eq!(removed, WriteOutcome::Done(vec!["s1".to_owned(), "s2".to_owned()]));
    assert_eq!(store.executors().get(&Behalf::Platform, "e1").await.unwrap(), None);
    let left = store.sessions().list(&Behalf::Platform, &page(None, 10)).await.unwrap();
    assert_eq!(left, [session("s3", "e2")]);
    let version = store.sessions().pool_version(&Behalf::Platform).await.unwrap();
    assert_eq!(
        store.executors().remove(&Behalf::Platform, "e1", None).await.unwrap(),
        WriteOutcome::Refused(NotFound)
    );
    assert_eq!(store.sessions().pool_version(&Behalf::Platform).await.unwrap(), version);
}

pub(crate) async fn a_session_reads_back_as_it_was_added(backend: &Backend) {
    let store = &backend.store;
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    let full = session("s1", "e1");
    let mut bare = session("s2", "e1");
    bare.tier = None;
    bare.labels.clear();
    bare.task_types.clear();
    bare.reliability_permille = None;
    bare.price_micros = 0;
    for lane in [full, bare] {
        assert_eq!(
            store.sessions().add(&Behalf::Platform, &lane, None).await.unwrap(),
            WriteOutcome::Done(())
        );
        assert_eq!(store.sessions().get(&Behalf::Platform, &lane.id).await.unwrap(), Some(lane));
    }
    assert_eq!(store.sessions().get(&Behalf::Platform, "s3").await.unwrap(), None);
}

pub(crate) async fn a_session_needs_an_executor_and_a_free_name(backend: &Backend) {
    let store = &backend.store;
    let lane = session("s1", "e1");
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &lane, None).await.unwrap(),
        WriteOutcome::Refused(SessionAddRefusal::ExecutorUnknown)
    );
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &lane, None).await.unwrap(),
        WriteOutcome::Done(())
    );
    let version = store.sessions().pool_version(&Behalf::Platform).await.unwrap();
    let mut again = lane.clone();
    again.price_micros = 9;
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &again, None).await.unwrap(),
        WriteOutcome::Refused(SessionAddRefusal::Exists)
    );
    assert_eq!(store.sessions().get(&Behalf::Platform, "s1").await.unwrap(), Some(lane));
    assert_eq!(store.sessions().pool_version(&Behalf::Platform).await.unwrap(), version);
}

pub(crate) async fn sessions_are_listed_by_identifier_in_pages(backend: &Backend) {
    let store = &backend.store;
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    for id in ["203", "201", "202"] {
        store.sessions().add(&Behalf::Platform, &session(id, "e1"), None).await.unwrap();
    }
    let first = store.sessions().list(&Behalf::Platform, &page(None, 2)).await.unwrap();
    assert_eq!(first, [session("201", "e1"), session("202", "e1")]);
    let rest = store.sessions().list(&Behalf::Platform, &page(Some("202"), 2)).await.unwrap();
    assert_eq!(rest, [session("203", "e1")]);
}

pub(crate) async fn a_session_is_removed_once(backend: &Backend) {
    let store = &backend.store;
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    assert_eq!(
        store.sessions().remove(&Behalf::Platform, "s1", None).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.sessions().remove(&Behalf::Platform, "s1", None).await.unwrap(),
        WriteOutcome::Refused(NotFound)
    );
    assert_eq!(store.sessions().get(&Behalf::Platform, "s1").await.unwrap(), None);
    assert!(store.executors().get(&Behalf::Platform, "e1").await.unwrap().is_some());
}

pub(crate) async fn the_pool_holds_everything(backend: &Backend) {
    let store = &backend.store;
    assert!(store.sessions().pool(&Behalf::Platform).await.unwrap().executors.is_empty());
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    store.executors().add(&Behalf::Platform, &executor("e2"), None, None).await.unwrap();
    store.executors().set_probe(&Behalf::Platform, "e2", &well(5)).await.unwrap();
    let pool = store.sessions().pool(&Behalf::Platform).await.unwrap();
    let names: Vec<&String> = pool.executors.keys().collect();
    assert_eq!(names, ["e1", "e2"]);
    assert_eq!(pool.executors["e2"].probe, Some(well(5)));
    assert_eq!(pool.sessions["s1"], session("s1", "e1"));
}

pub(crate) async fn every_change_of_the_pool_raises_its_version(backend: &Backend) {
    let store = &backend.store;
    let mut versions = vec![store.sessions().pool_version(&Behalf::Platform).await.unwrap()];
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    versions.push(store.sessions().pool_version(&Behalf::Platform).await.unwrap());
    store.sessions().add(&Behalf::Platform, &session("s1", "e1"), None).await.unwrap();
    versions.push(store.sessions().pool_version(&Behalf::Platform).await.unwrap());
    store.sessions().remove(&Behalf::Platform, "s1", None).await.unwrap();
    versions.push(store.sessions().pool_version(&Behalf::Platform).await.unwrap());
    store.executors().remove(&Behalf::Platform, "e1", None).await.unwrap();
    // What one node changes, another sees.
    let second = backend.second().await;
    versions.push(second.sessions().pool_version(&Behalf::Platform).await.unwrap());
    second.close().await;
    assert_eq!(versions, [0, 1, 2, 3, 4]);
}

pub(crate) async fn two_nodes_cannot_add_the_same_executor(backend: &Backend) {
    let second = backend.second().await;
    let (first_lane, second_lane) = (session("s1", "e1"), session("s2", "e1"));
    let name = executor("e1");
    let (one, other) = tokio::join!(
        backend.store.executors().add(&Behalf::Platform, &name, Some(&first_lane), None),
        second.executors().add(&Behalf::Platform, &name, Some(&second_lane), None),
    );
    let mut added = [one.unwrap(), other.unwrap()];
    added.sort_by_key(|added| *added != WriteOutcome::Done(()));
    assert_eq!(
        added,
        [WriteOutcome::Done(()), WriteOutcome::Refused(ExecutorAddRefusal::ExecutorExists)]
    );
    assert_eq!(second.sessions().list(&Behalf::Platform, &page(None, 10)).await.unwrap().len(), 1);
    assert_eq!(second.sessions().pool_version(&Behalf::Platform).await.unwrap(), 1);
    second.close().await;
}

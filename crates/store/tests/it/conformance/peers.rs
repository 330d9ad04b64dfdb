//! Peers, their invitations, and executors of other nodes.

use futures::future::join_all;
use jurat_core::{
    account::{AccountKind, AccountName},
    executor::Executor,
    peer::{
        Peer, PeerId, PeerStanding,
        invitation::PeerInvitation,
        scope::{NodeScope, RemoteTarget},
        terms::PeerTerms,
    },
};
use jurat_store::{
    Behalf, NotFound, PeerInvitationRefusal, PeerInvitationUse, Store, StoreErrorKind, WriteOutcome,
};

use crate::{
    backend::Backend,
    samples::{at, executor, page, session},
};

pub(super) fn id(number: u8) -> PeerId {
    PeerId::of_key(&[number; 32])
}

pub(super) fn plain(number: u8) -> Peer {
    Peer {
        id: id(number),
        name: None,
        standing: PeerStanding::Trusted,
        direct: Vec::new(),
        relays: Vec::new(),
        network: None,
        terms: PeerTerms::default(),
        added_at: at(10),
        changed_at: at(10),
    }
}

/// Terms that differ from the default in every part.
fn strict() -> PeerTerms {
    PeerTerms {
        works_for: false,
        hires: false,
        requests_per_minute: 1,
        concurrent_jobs: u32::MAX,
        payload_bytes: u64::MAX,
        most_price_micros: Some(7),
        task_types: ["review".to_owned(), "a \"quoted\" \u{e9}".to_owned()].into(),
    }
}

pub(super) async fn put(store: &Store, peer: &Peer) {
    let outcome = store.peers().put(&Behalf::Platform, peer, None).await.unwrap();
    assert_eq!(outcome, WriteOutcome::Done(()));
}

async fn get(store: &Store, id: &PeerId) -> Option<Peer> {
    store.peers().get(&Behalf::Platform, id).await.unwrap()
}

pub(super) async fn remove(store: &Store, id: &PeerId) -> WriteOutcome<(), NotFound> {
    store.peers().remove(&Behalf::Platform, id, None).await.unwrap()
}

async fn pool_version(store: &Store) -> i64 {
    store.sessions().pool_version(&Behalf::Platform).await.unwrap()
}

pub(crate) async fn a_peer_reads_back_as_it_was_put(backend: &Backend) {
    let store = &*backend.store;
    let full = Peer {
        name: Some("Lab \u{e9}".to_owned()),
        standing: PeerStanding::Blocked,
        direct: vec!["10.0.0.1:4433".to_owned(), "[::1]:4433".to_owned()],
        relays: vec!["https://relay.example.org".to_owned()],
        network: Some("lab".to_owned()),
        terms: strict(),
        ..plain(1)
    };
    put(store, &full).await;
    put(store, &plain(2)).await;
    assert_eq!(get(store, &full.id).await, Some(full.clone()));
    assert_eq!(get(store, &id(2)).await, Some(plain(2)));
    assert_eq!(get(store, &id(3)).await, None);
    // It is replaced as a whole, and stays as old as it is.
    let changed = Peer { added_at: at(20), changed_at: at(20), ..plain(1) };
    put(store, &changed).await;
    let expected = Peer { added_at: at(10), ..changed };
    assert_eq!(get(store, &full.id).await, Some(expected));
    assert_eq!(get(store, &id(2)).await, Some(plain(2)));
}

pub(crate) async fn a_peer_has_an_account_that_outlives_it(backend: &Backend) {
    let store = &*backend.store;
    let peer = plain(1);
    put(store, &peer).await;
    put(store, &Peer { changed_at: at(20), ..plain(1) }).await;
    let account = store.accounts().get(&Behalf::Platform, &peer.account()).await.unwrap().unwrap();
    assert_eq!((account.account, account.created_at), (peer.account(), at(10)));
    assert_eq!(remove(store, &peer.id).await, WriteOutcome::Done(()));
    assert_eq!(get(store, &peer.id).await, None);
    assert_eq!(remove(store, &peer.id).await, WriteOutcome::Refused(NotFound));
    let name = AccountName::Id(peer.account());
    let profile = store.people().profile(&Behalf::Platform, &name, &at(30)).await.unwrap();
    assert_eq!(profile.unwrap().kind, AccountKind::Peer);
}

pub(crate) async fn peers_are_listed_by_identity_in_pages(backend: &Backend) {
    let store = &*backend.store;
    for number in [3, 1, 255, 10] {
        put(store, &plain(number)).await;
    }
    let listed = async |after: Option<&PeerId>, limit| {
        let page = page(after.map(PeerId::as_str), limit);
        let found = store.peers().list(&Behalf::Platform, &page).await.unwrap();
        found.into_iter().map(|peer| peer.id).collect::<Vec<_>>()
    };
    let all = [1, 3, 10, 255].map(id);
    assert_eq!(listed(None, 10).await, all);
    assert_eq!(listed(None, 2).await, all[..2]);
    assert_eq!(listed(Some(&all[1]), 10).await, all[2..]);
    assert_eq!(listed(Some(&all[3]), 10).await, []);
}

pub(crate) async fn every_change_of_a_peer_changes_the_pool(backend: &Backend) {
    let store = &*backend.store;
    invite(store, &invitation("s")).await;
    let before = pool_version(store).await;
    put(store, &plain(1)).await;
    assert_eq!(pool_version(store).await, before + 1);
    assert!(matches!(accept(store, "s", 2).await, WriteOutcome::Done(_)));
    assert_eq!(pool_version(store).await, before + 2);
    remove(store, &id(1)).await;
    assert_eq!(pool_version(store).await, before + 3);
    // A refusal changes nothing.
    remove(store, &id(1)).await;
    accept(store, "s", 3).await;
    accept(store, "other", 3).await;
    assert_eq!(pool_version(store).await, before + 3);
}

fn invitation(secret_digest: &str) -> PeerInvitation {
    PeerInvitation {
        secret_digest: secret_digest.to_owned(),
        terms: strict(),
        name: Some("invited".to_owned()),
        created_at: at(10),
        expires_at: at(100),
        used_by: None,
    }
}

async fn invite(store: &Store, invitation: &PeerInvitation) {
    let outcome = store.peers().invite(&Behalf::Platform, invitation, None).await.unwrap();
    assert_eq!(outcome, WriteOutcome::Done(()));
}

fn by(secret_digest: &str, number: u8, millis: i64) -> PeerInvitationUse {
    PeerInvitationUse {
        secret_digest: secret_digest.to_owned(),
        peer: id(number),
        direct: vec!["10.0.0.1:4433".to_owned()],
        relays: vec!["relay".to_owned()],
        network: Some("lab".to_owned()),
        now: at(millis),
    }
}

async fn accept_by(
    store: &Store,
    used: &PeerInvitationUse,
) -> WriteOutcome<Peer, PeerInvitationRefusal> {
    store.peers().accept_invitation(&Behalf::Platform, used, None).await.unwrap()
}

async fn accept(
    store: &Store,
    secret_digest: &str,
    number: u8,
) -> WriteOutcome<Peer, PeerInvitationRefusal> {
    accept_by(store, &by(secret_digest, number, 50)).await
}

async fn invited(store: &Store, secret_digest: &str) -> Option<PeerInvitation> {
    store.peers().invitation(&Behalf::Platform, secret_digest).await.unwrap()
}

fn refused(why: PeerInvitationRefusal) -> WriteOutcome<Peer, PeerInvitationRefusal> {
    WriteOutcome::Refused(why)
}

pub(crate) async fn an_invitation_admits_one_node(backend: &Backend) {
    let store = &*backend.store;
    let (first, other) = (invitation("first"), invitation("other"));
    for it in [&first, &other] {
        invite(store, it).await;
    }
    assert_eq!(invited(store, "first").await, Some(first.clone()));
    let expected = Peer {
        name: Some("invited".to_owned()),
        direct: vec!["10.0.0.1:4433".to_owned()],
        relays: vec!["relay".to_owned()],
        network: Some("lab".to_owned()),
        terms: strict(),
        added_at: at(50),
        changed_at: at(50),
        ..plain(1)
    };
    assert_eq!(accept(store, "first", 1).await, WriteOutcome::Done(expected.clone()));
    assert_eq!(get(store, &id(1)).await, Some(expected.clone()));
    let used = PeerInvitation { used_by: Some(id(1)), ..first };
    assert_eq!(invited(store, "first").await, Some(used.clone()));
    let account = store.accounts().get(&Behalf::Platform, &id(1).account()).await.unwrap();
    assert!(account.is_some());
    // Another node may not use it, and the same one may repeat it, even later.
    assert_eq!(accept(store, "first", 2).await, refused(PeerInvitationRefusal::Used));
    assert_eq!(get(store, &id(2)).await, None);
    assert_eq!(accept_by(store, &by("first", 1, 500)).await, WriteOutcome::Done(expected));
    // The operator's later changes stay.
    let changed = Peer { added_at: at(50), changed_at: at(60), ..plain(1) };
    put(store, &changed).await;
    assert_eq!(accept(store, "first", 1).await, WriteOutcome::Done(changed.clone()));
    assert_eq!(get(store, &id(1)).await, Some(changed));
    // Whoever was removed does not come back with it.
    remove(store, &id(1)).await;
    assert_eq!(accept(store, "first", 1).await, refused(PeerInvitationRefusal::Used));
    assert_eq!(get(store, &id(1)).await, None);
    assert_eq!(invited(store, "first").await, Some(used));
    assert_eq!(invited(store, "other").await, Some(other));
}

pub(crate) async fn an_invitation_ends_and_is_pruned(backend: &Backend) {
    let store = &*backend.store;
    for (name, expires_at) in [("a", 100), ("b", 200), ("c", 300)] {
        let expires_at = at(expires_at);
        invite(store, &PeerInvitation { expires_at, ..invitation(name) }).await;
    }
    assert_eq!(accept(store, "unknown", 1).await, refused(PeerInvitationRefusal::Unknown));
    let late = by("a", 1, 100);
    assert_eq!(accept_by(store, &late).await, refused(PeerInvitationRefusal::Expired));
    assert_eq!(get(store, &id(1)).await, None);
    assert_eq!(invited(store, "a").await.unwrap().used_by, None);
    let in_time = by("b", 1, 199);
    assert!(matches!(accept_by(store, &in_time).await, WriteOutcome::Done(_)));
    let prune = async |before, limit| {
        store.peers().prune_invitations(&Behalf::Platform, &at(before), &limit).await.unwrap()
    };
    assert_eq!(prune(100, 10).await, 0, "none has ended before that");
    assert_eq!(prune(300, 1).await, 1, "no more than asked for");
    assert_eq!(invited(store, "a").await, None, "the oldest goes first");
    assert_eq!(prune(300, 10).await, 1);
    assert_eq!(invited(store, "b").await, None, "used ones go as well");
    assert!(invited(store, "c").await.is_some());
    assert!(get(store, &id(1)).await.is_some(), "its peer stays");
}

pub(crate) async fn an_invitation_does_not_unblock_a_peer(backend: &Backend) {
    let store = &*backend.store;
    let blocked = Peer { standing: PeerStanding::Blocked, ..plain(1) };
    put(store, &blocked).await;
    invite(store, &invitation("s")).await;
    assert_eq!(accept(store, "s", 1).await, refused(PeerInvitationRefusal::Blocked));
    assert_eq!(get(store, &id(1)).await, Some(blocked));
    assert_eq!(invited(store, "s").await.unwrap().used_by, None);
    // Neither does one that it used before.
    assert!(matches!(accept(store, "s", 2).await, WriteOutcome::Done(_)));
    put(store, &Peer { standing: PeerStanding::Blocked, ..plain(2) }).await;
    assert_eq!(accept(store, "s", 2).await, refused(PeerInvitationRefusal::Blocked));
    assert_eq!(get(store, &id(2)).await.unwrap().standing, PeerStanding::Blocked);
}

pub(crate) async fn a_known_peer_gets_the_terms_of_its_invitation(backend: &Backend) {
    let store = &*backend.store;
    put(store, &Peer { name: Some("known".to_owned()), ..plain(1) }).await;
    invite(store, &PeerInvitation { name: None, ..invitation("s") }).await;
    let WriteOutcome::Done(found) = accept(store, "s", 1).await else { panic!() };
    assert_eq!((found.name.as_deref(), &found.terms), (Some("known"), &strict()));
    assert_eq!((found.added_at, found.changed_at), (at(10), at(50)));
    assert_eq!(get(store, &id(1)).await, Some(found));
}

pub(crate) async fn two_concurrent_nodes_use_an_invitation_once(backend: &Backend) {
    let (store, second) = (&*backend.store, backend.second().await);
    invite(store, &invitation("s")).await;
    let tries = (1..=8).map(|number| {
        let node = if number % 2 == 0 { store } else { &*second };
        accept(node, "s", number)
    });
    let outcomes = join_all(tries).await;
    let admitted = outcomes.iter().filter(|it| matches!(it, WriteOutcome::Done(_))).count();
    let used = outcomes.iter().filter(|it| **it == refused(PeerInvitationRefusal::Used)).count();
    assert_eq!((admitted, used), (1, 7), "{outcomes:?}");
    let peers = store.peers().list(&Behalf::Platform, &page(None, 10)).await.unwrap();
    assert_eq!(invited(store, "s").await.unwrap().used_by, Some(peers[0].id.clone()));
    assert_eq!(peers.len(), 1);
    second.close().await;
}

pub(crate) async fn an_executor_of_another_node_reads_back(backend: &Backend) {
    let store = &*backend.store;
    let scopes = [
        None,
        Some(NodeScope::Global),
        Some(NodeScope::Region("eu-west.1".to_owned())),
        Some(NodeScope::Group("Lab_A".to_owned())),
        Some(NodeScope::Node(id(2))),
    ];
    let mut all = vec![executor("local")];
    for (number, scope) in scopes.into_iter().enumerate() {
        for node in [None, Some(id(1))] {
            let name = format!("e{number}{}", if node.is_some() { "n" } else { "" });
            let remote = Some(RemoteTarget { node, scope: scope.clone() });
            all.push(Executor { remote, ..executor(&name) });
        }
    }
    for one in &all {
        let lane = session(&format!("s-{}", one.name), &one.name);
        let added = store.executors().add(&Behalf::Platform, one, Some(&lane), None).await.unwrap();
        assert_eq!(added, WriteOutcome::Done(()));
        let found = store.executors().get(&Behalf::Platform, &one.name).await.unwrap();
        assert_eq!(found.as_ref(), Some(one));
    }
    let pool = store.sessions().pool(&Behalf::Platform).await.unwrap();
    let pooled: Vec<Executor> = pool.executors.into_values().collect();
    all.sort_by(|left, right| left.name.cmp(&right.name));
    assert_eq!(pooled, all);
    backend.tamper("update executors set scope = 'zone:eu' where name = 'e1'").await.unwrap();
    let error = store.executors().get(&Behalf::Platform, "e1").await.unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Corrupt { .. }), "{error:?}");
}

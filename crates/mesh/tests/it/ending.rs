//! Nodes that end, start again, or move.

use std::time::Duration;

use futures::{FutureExt as _, future};
use jurat_mesh::{MeshCallError, MeshLimits};

use crate::node::{answer, ask, echoed, next, node, node_with, with_echo};

#[tokio::test]
async fn a_peer_that_started_again_elsewhere_is_asked_there() {
    let (client, _) = node(1).await;
    let (before, mut requests) = node(2).await;
    let old = before.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &old)).await, Ok(echoed()));
    before.close().await;
    let (after, mut requests) = node(2).await;
    let new = after.address();
    assert_ne!(new, old);
    assert_eq!(with_echo(&mut requests, ask(&client, &new)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_peer_that_vanished_is_noticed_and_asked_elsewhere() {
    let limits = MeshLimits { idle_timeout: Duration::from_secs(1), ..MeshLimits::default() };
    let (client, _) = node_with(1, limits).await;
    let (before, mut requests) = node(2).await;
    let old = before.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &old)).await, Ok(echoed()));
    drop((before, requests));
    let (after, mut requests) = node(2).await;
    let reason = "the peer no longer answers".to_owned();
    assert_eq!(ask(&client, &after.address()).await, Err(MeshCallError::Disconnected { reason }));
    assert_eq!(with_echo(&mut requests, ask(&client, &after.address())).await, Ok(echoed()));
}

#[tokio::test]
async fn a_peer_that_is_known_to_have_moved_is_asked_elsewhere_at_once() {
    let (client, _) = node(1).await;
    let (before, mut requests) = node(2).await;
    let old = before.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &old)).await, Ok(echoed()));
    drop((before, requests));
    let (after, mut requests) = node(2).await;
    client.disconnect(&after.id()).unwrap();
    assert_eq!(with_echo(&mut requests, ask(&client, &after.address())).await, Ok(echoed()));
}

#[tokio::test]
async fn a_request_that_was_not_sent_yet_is_sent_on_another_connection() {
    let limits = MeshLimits { streams_per_connection: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (client, _) = node(1).await;
    let to = server.address();
    // The second waits until the peer takes another stream.
    let calls = future::join(ask(&client, &to), ask(&client, &to));
    let serving = async {
        let first = next(&mut requests).await;
        server.disconnect(&client.id()).unwrap();
        first.reply.abandoned().await;
        answer(next(&mut requests).await).await;
    };
    let ((first, second), ()) = tokio::join!(calls, serving);
    let reason = "the peer closed the connection".to_owned();
    assert_eq!(first, Err(MeshCallError::Disconnected { reason }));
    assert_eq!(second, Ok(echoed()));
}

#[tokio::test]
async fn a_node_that_closes_says_so() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let closing = async {
        let request = next(&mut requests).await;
        server.close().await;
        request.reply.abandoned().await;
    };
    let (reply, ()) = tokio::join!(ask(&client, &to), closing);
    let reason = "the peer is closing".to_owned();
    assert_eq!(reply, Err(MeshCallError::Disconnected { reason }));
    assert!(requests.next().await.is_none());
}

#[tokio::test]
async fn a_closed_mesh_asks_nobody() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    client.close().await;
    let reason = "the mesh is closed".to_owned();
    assert_eq!(ask(&client, &to).await, Err(MeshCallError::Unreachable { reason }));
}

#[tokio::test]
async fn a_mesh_that_is_dropped_ends() {
    let (mesh, mut requests) = node(1).await;
    let clone = mesh.clone();
    drop(mesh);
    assert!(requests.next().now_or_never().is_none());
    drop(clone);
    assert!(requests.next().await.is_none());
}

//! Limits: what is over them waits or is sent away.

use futures::{FutureExt as _, future::join_all};
use jurat_mesh::{Mesh, MeshCallError, MeshError, MeshLimits};

use crate::node::{
    LONG, MOST_BODY, answer, ask, during, echoed, message, next, node, node_with, settings,
    with_echo,
};

#[tokio::test]
async fn a_connection_too_many_is_sent_away() {
    let limits = MeshLimits { connections: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let ((first, _), (second, _)) = (node(1).await, node(3).await);
    let to = server.address();
    let call = ask(&first, &to);
    let serving = async {
        let request = next(&mut requests).await;
        let reason = "the peer has no room for another connection".to_owned();
        assert_eq!(ask(&second, &to).await, Err(MeshCallError::Unreachable { reason }));
        answer(request).await;
    };
    let (reply, ()) = tokio::join!(call, serving);
    assert_eq!(reply, Ok(echoed()));
}

#[tokio::test]
async fn a_connection_that_is_not_used_makes_room() {
    let limits = MeshLimits { connections: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let to = server.address();
    let ((first, _), (second, _)) = (node(1).await, node(3).await);
    for client in [&first, &second, &first] {
        assert_eq!(with_echo(&mut requests, ask(client, &to)).await, Ok(echoed()));
    }
}

#[tokio::test]
async fn a_node_that_uses_all_connections_makes_no_other() {
    let limits = MeshLimits { connections: 1, ..MeshLimits::default() };
    let (client, _) = node_with(1, limits).await;
    let ((first, mut of_first), (second, mut of_second)) = (node(2).await, node(3).await);
    let (to_first, to_second) = (first.address(), second.address());
    let serving = async {
        let request = next(&mut of_first).await;
        let reason = "all 1 connections are in use".to_owned();
        assert_eq!(ask(&client, &to_second).await, Err(MeshCallError::Unreachable { reason }));
        answer(request).await;
    };
    let (reply, ()) = tokio::join!(ask(&client, &to_first), serving);
    assert_eq!(reply, Ok(echoed()));
    assert_eq!(with_echo(&mut of_second, ask(&client, &to_second)).await, Ok(echoed()));
}

#[tokio::test]
async fn streams_over_the_limit_and_a_full_queue_wait() {
    let limits =
        MeshLimits { streams_per_connection: 3, queued_requests: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let calls = (0..20)
        .map(|index| client.request(&to, message(&index.to_string(), "body"), LONG, MOST_BODY));
    let work = async {
        // As many as may be open come, and no other before one of them is answered.
        let mut open = Vec::new();
        while open.len() < 3 {
            open.push(next(&mut requests).await);
        }
        assert!(requests.next().now_or_never().is_none());
        join_all(open.into_iter().map(answer)).await;
        crate::node::echo(&mut requests).await
    };
    tokio::select! {
        biased;
        replies = join_all(calls) => {
            for (index, reply) in replies.into_iter().enumerate() {
                assert_eq!(reply, Ok(message(&index.to_string(), "body")));
            }
        }
        never = work => match never {},
    }
}

#[tokio::test]
async fn bodies_that_nobody_reads_do_not_hold_up_other_streams() {
    let (server, mut requests) = node(2).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let unread = (0..63).map(|_| {
        let large = message("large", vec![0; 1024 * 1024]);
        client.request(&to, large, LONG, MOST_BODY)
    });
    let work = async {
        let mut waiting = Vec::new();
        while waiting.len() < 63 {
            waiting.push(next(&mut requests).await);
        }
        assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    };
    let unread = join_all(unread).map(|_| Ok(message("all ended", "")));
    during(unread, work).await;
}

#[tokio::test]
async fn limits_that_cannot_be_kept_are_refused() {
    let usual = MeshLimits::default();
    for limits in [
        MeshLimits { connections: 0, ..usual },
        MeshLimits { streams_per_connection: 0, ..usual },
        MeshLimits { queued_requests: 0, ..usual },
        MeshLimits { queued_requests: usize::MAX, ..usual },
        MeshLimits { head_bytes: usize::MAX, ..usual },
        MeshLimits { idle_timeout: std::time::Duration::ZERO, ..usual },
    ] {
        let error = Mesh::bind(settings(1, limits)).await.unwrap_err();
        assert!(matches!(error, MeshError::Limit { .. }), "{error}");
    }
}

//! Requests and their replies.

use futures::future::join_all;
use jurat_mesh::{BodyError, MeshCallError, MeshLimits, NodeAddress};

use crate::node::{
    LONG, MOST_BODY, SHORT, answer, ask, during, echoed, message, next, node, node_with, with_echo,
};

#[tokio::test]
async fn a_request_is_answered() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let call = client.request(&to, message("head", "body"), LONG, MOST_BODY);
    let serving = async {
        let mut request = next(&mut requests).await;
        assert_eq!(request.peer, client.id());
        assert_eq!((request.head.as_slice(), request.body_bytes), (b"head".as_slice(), 4));
        assert_eq!(request.body(4).await.unwrap(), "body");
        assert_eq!(request.body(4).await, Err(BodyError::AlreadyRead));
        request.reply.send(message("well", "done")).await
    };
    let (reply, sent) = tokio::join!(call, serving);
    assert_eq!(reply, Ok(message("well", "done")));
    assert_eq!(sent, Ok(()));
}

#[tokio::test]
async fn a_message_may_be_empty() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let call = client.request(&to, message("", ""), LONG, 0);
    assert_eq!(with_echo(&mut requests, call).await, Ok(message("", "")));
}

#[tokio::test]
async fn a_large_body_arrives_whole() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let body: Vec<u8> = (0..8 * 1024 * 1024_u32).map(|it| it.to_le_bytes()[0]).collect();
    let call = client.request(&to, message("large", body.clone()), LONG, MOST_BODY);
    let reply = with_echo(&mut requests, call).await.unwrap();
    assert!(reply.body == body);
}

#[tokio::test]
async fn requests_share_a_connection_and_are_answered_in_any_order() {
    let (client, _) = node(1).await;
    let limits = MeshLimits { connections: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let to = server.address();
    let calls = (0..16).map(|index| {
        let request = message(&format!("request {index}"), "body");
        client.request(&to, request, LONG, MOST_BODY)
    });
    let serving = async {
        let mut waiting = Vec::new();
        while waiting.len() < 16 {
            waiting.push(next(&mut requests).await);
        }
        join_all(waiting.into_iter().rev().map(answer)).await;
    };
    let (replies, ()) = tokio::join!(join_all(calls), serving);
    for (index, reply) in replies.into_iter().enumerate() {
        assert_eq!(reply, Ok(message(&format!("request {index}"), "body")));
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_the_connection_goes_on() {
    let (client, _) = node(1).await;
    let limits = MeshLimits { connections: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let to = server.address();
    let large = message("large", vec![0; 4 * 1024 * 1024]);
    let refusing = async {
        let mut request = next(&mut requests).await;
        let error = request.body(10).await.unwrap_err();
        assert_eq!(error, BodyError::TooLarge { limit: 10, announced: 4 * 1024 * 1024 });
        request.reply.send(message("too large", "")).await
    };
    let (reply, sent) = tokio::join!(client.request(&to, large, LONG, MOST_BODY), refusing);
    assert_eq!(reply, Ok(message("too large", "")));
    assert_eq!(sent, Ok(()));
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_reply_over_the_limit_is_not_read() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let call = client.request(&to, message("", vec![0; 100]), LONG, 99);
    let reply = with_echo(&mut requests, call).await;
    assert_eq!(reply, Err(MeshCallError::TooLarge { limit: 99 }));
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_head_over_the_limit_is_not_sent() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let large = message(&"x".repeat(64 * 1024 + 1), "");
    let call = client.request(&to, large, LONG, MOST_BODY);
    assert_eq!(call.await, Err(MeshCallError::TooLarge { limit: 64 * 1024 }));
    let largest = message(&"x".repeat(64 * 1024), "");
    let call = client.request(&to, largest.clone(), LONG, MOST_BODY);
    assert_eq!(with_echo(&mut requests, call).await, Ok(largest));
}

#[tokio::test]
async fn a_request_that_nobody_answers_runs_into_its_deadline() {
    let (client, _) = node(1).await;
    let (server, _requests) = node(2).await;
    let to = server.address();
    let reply = client.request(&to, message("", ""), SHORT, MOST_BODY).await;
    assert_eq!(reply, Err(MeshCallError::Timeout));
}

#[tokio::test]
async fn a_request_that_is_dropped_unanswered_ends_at_once() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let serving = async { drop(next(&mut requests).await) };
    let (reply, ()) = tokio::join!(ask(&client, &to), serving);
    let reason = "the peer gave no answer".to_owned();
    assert_eq!(reply, Err(MeshCallError::Disconnected { reason }));
}

#[tokio::test]
async fn the_server_sees_that_a_caller_gave_up() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let request = during(ask(&client, &to), next(&mut requests)).await;
    request.reply.abandoned().await;
    let sent = request.reply.send(message("late", "")).await;
    let reason = "the peer cancelled the exchange".to_owned();
    assert_eq!(sent, Err(MeshCallError::Disconnected { reason }));
}

#[tokio::test]
async fn the_server_sees_that_a_caller_gave_up_in_the_middle_of_its_body() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let large = message("large", vec![0; 4 * 1024 * 1024]);
    let call = client.request(&to, large, LONG, MOST_BODY);
    let mut request = during(call, next(&mut requests)).await;
    assert_eq!(request.body(MOST_BODY).await, Err(BodyError::Abandoned));
}

#[tokio::test]
async fn a_peer_without_an_address_is_asked_over_the_connection_that_it_made() {
    let (client, mut of_client) = node(1).await;
    let (server, mut of_server) = node(2).await;
    let to = server.address();
    assert_eq!(with_echo(&mut of_server, ask(&client, &to)).await, Ok(echoed()));
    let back = NodeAddress { id: client.id(), direct: Vec::new(), relays: Vec::new() };
    assert_eq!(with_echo(&mut of_client, ask(&server, &back)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_node_that_cannot_be_reached_is_named_as_such() {
    let (client, _) = node(1).await;
    let (other, _) = node(2).await;
    let nowhere = NodeAddress { id: other.id(), direct: Vec::new(), relays: Vec::new() };
    for to in [nowhere, client.address(), NodeAddress { id: "x".into(), ..other.address() }] {
        let error = ask(&client, &to).await.unwrap_err();
        assert!(matches!(error, MeshCallError::Unreachable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_node_that_says_nothing_is_given_up() {
    let limits = MeshLimits { handshake_timeout: SHORT, ..MeshLimits::default() };
    let (client, _) = node_with(1, limits).await;
    let (other, _) = node(2).await;
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = NodeAddress { direct: vec![silent.local_addr().unwrap()], ..other.address() };
    // All wait for the same attempt, not each for one of its own.
    let calls = (0..100).map(|_| client.request(&to, message("", ""), 20 * SHORT, MOST_BODY));
    let reason = "the peer did not answer in time".to_owned();
    for reply in join_all(calls).await {
        assert_eq!(reply, Err(MeshCallError::Unreachable { reason: reason.clone() }));
    }
}

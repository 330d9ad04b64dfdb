//! Who may ask, and what a peer sees that may not.

use futures::FutureExt as _;
use iroh::endpoint::{ConnectionError, VarInt};
use jurat_mesh::{Mesh, MeshCallError, MeshLimits, NodeAddress};

use crate::node::{
    ask, connect, during, echoed, next, node, refuse_all, settings, stranger, with_echo,
};

const NOT_ADMITTED: VarInt = VarInt::from_u32(1);

#[tokio::test]
async fn nobody_is_admitted_until_there_is_a_gate() {
    let (client, _) = node(1).await;
    let (server, mut requests) = Mesh::bind(settings(2, MeshLimits::default())).await.unwrap();
    assert_eq!(ask(&client, &server.address()).await, Err(MeshCallError::Refused));
    assert!(requests.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_refused_peer_is_told_and_its_requests_are_not_seen() {
    let (client, _) = node(1).await;
    let (friend, _) = node(3).await;
    let (server, mut requests) = node(2).await;
    let (to, refused) = (server.address(), client.id());
    server.set_gate(std::sync::Arc::new(move |peer| {
        if peer == refused { jurat_mesh::MeshGate::Refuse } else { jurat_mesh::MeshGate::Admit }
    }));
    for _ in 0..3 {
        assert_eq!(ask(&client, &to).await, Err(MeshCallError::Refused));
    }
    let request = during(ask(&friend, &to), next(&mut requests)).await;
    assert_eq!(request.peer, friend.id());
    assert!(requests.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_refused_peer_is_sent_away_before_it_says_anything() {
    let (server, _requests) = node(2).await;
    refuse_all(&server);
    let peer = stranger().await;
    let ended = connect(&peer, &server.address()).await.closed().await;
    let ConnectionError::ApplicationClosed(close) = ended else { panic!("{ended}") };
    assert_eq!(close.error_code, NOT_ADMITTED);
}

#[tokio::test]
async fn a_peer_that_is_blocked_loses_its_connection() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    let blocking = async {
        let request = next(&mut requests).await;
        refuse_all(&server);
        server.disconnect(&client.id()).unwrap();
        request.reply.abandoned().await;
    };
    let (reply, ()) = tokio::join!(ask(&client, &to), blocking);
    assert_eq!(reply, Err(MeshCallError::Refused));
    assert_eq!(ask(&client, &to).await, Err(MeshCallError::Refused));
    assert!(requests.next().now_or_never().is_none());
}

#[tokio::test]
async fn the_gate_is_asked_for_every_stream() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    refuse_all(&server);
    assert_eq!(ask(&client, &to).await, Err(MeshCallError::Refused));
    assert!(requests.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_node_that_refuses_a_peer_still_gets_its_own_answers() {
    let (client, mut of_client) = node(1).await;
    let (server, mut of_server) = node(2).await;
    let to = server.address();
    assert_eq!(with_echo(&mut of_server, ask(&client, &to)).await, Ok(echoed()));
    refuse_all(&client);
    let back = NodeAddress { id: client.id(), direct: Vec::new(), relays: Vec::new() };
    let asking_back = async {
        let request = next(&mut of_server).await;
        assert_eq!(ask(&server, &back).await, Err(MeshCallError::Refused));
        crate::node::answer(request).await;
    };
    let (reply, ()) = tokio::join!(ask(&client, &to), asking_back);
    assert_eq!(reply, Ok(echoed()));
    assert!(of_client.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_peer_that_is_disconnected_may_come_back_if_it_is_admitted() {
    let (client, _) = node(1).await;
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let disconnecting = async {
        let request = next(&mut requests).await;
        assert!(server.is_connected(&client.id()));
        server.disconnect(&client.id()).unwrap();
        assert!(!server.is_connected(&client.id()));
        request.reply.abandoned().await;
    };
    let (reply, ()) = tokio::join!(ask(&client, &to), disconnecting);
    let reason = "the peer closed the connection".to_owned();
    assert_eq!(reply, Err(MeshCallError::Disconnected { reason }));
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    assert!(server.disconnect("nobody").is_err());
}

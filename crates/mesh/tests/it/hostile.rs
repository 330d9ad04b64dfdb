//! Peers that do not keep to the protocol: each harms itself, and others go on.

use std::time::Duration;

use iroh::endpoint::{Connection, ReadError, ReadExactError, RecvStream, VarInt};
use jurat_mesh::{MeshCallError, MeshLimits};
use tokio::net::UdpSocket;

use crate::node::{
    ALPN, SHORT, ask, connect, during, echoed, endpoint_addr, message, next, node, node_with,
    stranger, with_echo,
};

/// Enough for whoever does its part.
const ENOUGH: Duration = Duration::from_secs(1);
const CANCELLED: VarInt = VarInt::from_u32(16);
const BAD_HEAD: VarInt = VarInt::from_u32(18);
const LATE: VarInt = VarInt::from_u32(19);

/// The code with which a stream is ended.
async fn reset_of(recv: &mut RecvStream) -> VarInt {
    match recv.read_exact(&mut [0; 1]).await {
        Err(ReadExactError::ReadError(ReadError::Reset(code))) => code,
        other => panic!("{other:?}"),
    }
}

/// Sends what is no head, and waits for the answer.
async fn answered(connection: &Connection) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0xff; 4]).await.unwrap();
    assert_eq!(reset_of(&mut recv).await, BAD_HEAD);
}

#[tokio::test]
async fn a_stream_that_stalls_in_its_head_is_ended_and_others_go_on() {
    let limits = MeshLimits { head_timeout: ENOUGH, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let slow = stranger().await;
    let connection = connect(&slow, &to).await;
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0, 0]).await.unwrap();
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    assert_eq!(with_echo(&mut requests, reset_of(&mut recv)).await, LATE);
}

#[tokio::test]
async fn a_head_that_is_too_long_or_cut_off_ends_its_stream_only() {
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let peer = stranger().await;
    let connection = connect(&peer, &to).await;
    let too_long = (64 * 1024 + 1_u32).to_be_bytes().to_vec();
    let endless = u32::MAX.to_be_bytes().to_vec();
    for bytes in [too_long, endless, vec![], vec![0, 0, 0], vec![0, 0, 0, 9, 1], vec![0; 11]] {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&bytes).await.unwrap();
        send.finish().unwrap();
        assert_eq!(reset_of(&mut recv).await, BAD_HEAD, "{bytes:?}");
    }
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0; 12]).await.unwrap();
    assert_eq!(next(&mut requests).await.head, b"");
}

#[tokio::test]
async fn a_body_that_is_not_as_announced_is_an_error() {
    let (server, mut requests) = node(2).await;
    let to = server.address();
    let peer = stranger().await;
    let connection = connect(&peer, &to).await;
    for sent in ["short", "longer than it is said to be"] {
        let (mut send, _recv) = connection.open_bi().await.unwrap();
        send.write_all(&[0; 4]).await.unwrap();
        send.write_all(&10_u64.to_be_bytes()).await.unwrap();
        send.write_all(sent.as_bytes()).await.unwrap();
        send.finish().unwrap();
        let mut request = next(&mut requests).await;
        assert_eq!(request.body_bytes, 10);
        assert_eq!(request.body(100).await, Err(jurat_mesh::BodyError::Malformed));
    }
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0; 4]).await.unwrap();
    send.write_all(&[0xff; 8]).await.unwrap();
    let error = next(&mut requests).await.body(usize::MAX - 1).await.unwrap_err();
    assert!(matches!(error, jurat_mesh::BodyError::TooLarge { announced: u64::MAX, .. }));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let limits = MeshLimits { transfer_timeout: SHORT, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let peer = stranger().await;
    let connection = connect(&peer, &server.address()).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]).await.unwrap();
    let error = next(&mut requests).await.body(100).await.unwrap_err();
    assert_eq!(error, jurat_mesh::BodyError::Timeout);
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_in_a_loop_change_nothing() {
    let (server, mut requests) = node(2).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let peer = stranger().await;
    let connection = connect(&peer, &to).await;
    let flood = async {
        for _ in 0..2_000 {
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            send.write_all(&[0]).await.unwrap();
            send.reset(CANCELLED).unwrap();
            recv.stop(CANCELLED).unwrap();
        }
    };
    with_echo(&mut requests, flood).await;
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_request_that_was_given_up_while_it_waited_is_not_served() {
    let (server, mut requests) = node(2).await;
    let peer = stranger().await;
    let connection = connect(&peer, &server.address()).await;
    let (mut given_up, mut reply) = connection.open_bi().await.unwrap();
    given_up.write_all(&[0; 12]).await.unwrap();
    // What the server answers by itself shows that it has seen everything before.
    answered(&connection).await;
    given_up.reset(CANCELLED).unwrap();
    reply.stop(CANCELLED).unwrap();
    answered(&connection).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(b"\0\0\0\x04next\0\0\0\0\0\0\0\0").await.unwrap();
    assert_eq!(next(&mut requests).await.head, b"next");
}

#[tokio::test]
async fn a_request_that_was_given_up_before_a_full_queue_frees_its_stream() {
    let limits =
        MeshLimits { streams_per_connection: 2, queued_requests: 1, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (first, second) = (stranger().await, stranger().await);
    let (filling, waiting) =
        (connect(&first, &server.address()).await, connect(&second, &server.address()).await);
    let (mut send, _recv) = filling.open_bi().await.unwrap();
    send.write_all(&[0; 12]).await.unwrap();
    answered(&filling).await;
    let (mut given_up, mut reply) = waiting.open_bi().await.unwrap();
    given_up.write_all(&[0; 12]).await.unwrap();
    answered(&waiting).await;
    given_up.reset(CANCELLED).unwrap();
    reply.stop(CANCELLED).unwrap();
    // Two at a time, while the queue is as full as before.
    let _both = (waiting.open_bi().await.unwrap(), waiting.open_bi().await.unwrap());
    assert_eq!(next(&mut requests).await.peer, first.id().to_string());
}

#[tokio::test]
async fn a_peer_that_never_reads_its_reply_does_not_hold_it_forever() {
    let limits = MeshLimits { transfer_timeout: ENOUGH, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let peer = stranger().await;
    let connection = connect(&peer, &to).await;
    let (mut send, _recv) = connection.open_bi().await.unwrap();
    send.write_all(&[0; 12]).await.unwrap();
    let request = next(&mut requests).await;
    let sent = request.reply.send(message("", vec![0; 8 * 1024 * 1024])).await;
    assert_eq!(sent, Err(MeshCallError::Timeout));
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
}

#[tokio::test]
async fn another_protocol_and_garbage_are_not_listened_to() {
    let (server, mut requests) = node(2).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let peer = stranger().await;
    peer.connect(endpoint_addr(&to), b"other/1").await.unwrap_err();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for length in 0..200_u8 {
        // Some of it looks like the beginning of a connection.
        let garbage: Vec<u8> = (0..length).map(|it| it.wrapping_mul(37) | 0xc0).collect();
        socket.send_to(&garbage, to.direct[0]).await.unwrap();
    }
    assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
}

#[tokio::test]
async fn a_peer_that_connects_again_and_again_replaces_its_own_connections() {
    let limits = MeshLimits { connections: 4, ..MeshLimits::default() };
    let (server, mut requests) = node_with(2, limits).await;
    let (client, _) = node(1).await;
    let to = server.address();
    let peer = stranger().await;
    let mut open = Vec::new();
    for _ in 0..20 {
        let connection = peer.connect(endpoint_addr(&to), ALPN).await.unwrap();
        let (mut send, recv) = connection.open_bi().await.unwrap();
        send.write_all(&[0; 12]).await.unwrap();
        open.push((connection, send, recv, next(&mut requests).await));
    }
    let alive = open.iter().filter(|(connection, ..)| connection.close_reason().is_none());
    assert!(alive.count() <= 3);
    let request = during(ask(&client, &to), next(&mut requests)).await;
    assert_eq!(request.peer, client.id());
}

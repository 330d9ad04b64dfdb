//! The server of a fake: accepts connections, records requests, and follows the behaviour.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::behaviour::{AnswerPace, Behaviour, FakeHealth};
use super::fault::ExecutorFault;
use super::http::ClientConnection;
use super::{FakeExecutorState, InstalledBehaviour, ReceivedCall};

/// What happens to the connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterRequest {
    KeepAlive,
    /// The fake closes it, as its behaviour says.
    Close,
    /// The client closed it before a complete answer.
    Abandoned,
}

pub(super) async fn accept(listener: TcpListener, shared: Arc<FakeExecutorState>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Ended connections are dropped, so that a long test does not collect them.
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, Arc::clone(&shared)));
    }
}

async fn converse(stream: TcpStream, shared: Arc<FakeExecutorState>) {
    // An answer is sent in one piece, so a failure here would only cost speed.
    let _ = stream.set_nodelay(true);
    let mut connection = ClientConnection::new(stream);
    loop {
        let call = match connection.request().await {
            Ok(Some(call)) => call,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let _ = connection.reply_json(400, &json!({ "error": "unreadable_request" })).await;
                return;
            }
            Ok(None) | Err(_) => return,
        };
        // The behaviour is taken before the call is recorded, so that a test which waits for the
        // call and then sets another behaviour changes the next call and not this one.
        let installed = shared.current();
        shared.record(&call);
        let next =
            answer(&mut connection, &call, &installed).await.unwrap_or(AfterRequest::Abandoned);
        if next == AfterRequest::Abandoned {
            shared.abandoned.send_modify(|count| *count += 1);
        }
        if next != AfterRequest::KeepAlive || call.header("connection") == Some("close") {
            return;
        }
    }
}

async fn answer(
    connection: &mut ClientConnection,
    call: &ReceivedCall,
    installed: &InstalledBehaviour,
) -> io::Result<AfterRequest> {
    let behaviour = &installed.behaviour;
    match (call.method.as_str(), call.endpoint()) {
        ("GET", "health") => health(connection, behaviour.health).await,
        ("GET", "capabilities") => capabilities(connection, behaviour).await,
        ("POST", "execute" | "verify") => {
            if wait(connection, installed).await == AfterRequest::Abandoned {
                return Ok(AfterRequest::Abandoned);
            }
            work(connection, call, behaviour).await
        }
        ("POST", "agent-events") => told(connection, call, behaviour).await,
        _ => {
            connection.reply_json(404, &json!({ "error": "not_found" })).await?;
            Ok(AfterRequest::KeepAlive)
        }
    }
}

async fn health(connection: &mut ClientConnection, health: FakeHealth) -> io::Result<AfterRequest> {
    match health {
        FakeHealth::Healthy => connection.reply_json(200, &json!({ "status": "ok" })).await?,
        FakeHealth::Status(status) => {
            connection.reply_json(status, &json!({ "status": "unwell" })).await?;
        }
        FakeHealth::HangsUp => return Ok(AfterRequest::Close),
        FakeHealth::Hangs => return ExecutorFault::Hangs.commit(connection, "").await,
    }
    Ok(AfterRequest::KeepAlive)
}

async fn capabilities(
    connection: &mut ClientConnection,
    behaviour: &Behaviour,
) -> io::Result<AfterRequest> {
    let body = behaviour.capabilities_json();
    if let Some(fault) = &behaviour.capabilities_fault {
        return fault.commit(connection, &body.to_string()).await;
    }
    connection.reply_json(200, &body).await?;
    Ok(AfterRequest::KeepAlive)
}

/// Waits for the gate, if there is one, unless the client leaves first.
async fn wait(connection: &mut ClientConnection, installed: &InstalledBehaviour) -> AfterRequest {
    let gate = match &installed.behaviour.pace {
        AnswerPace::AtOnce => return AfterRequest::KeepAlive,
        AnswerPace::Gated => &installed.own_gate,
        AnswerPace::Late(gate) => gate,
    };
    tokio::select! {
        () = gate.opened() => AfterRequest::KeepAlive,
        () = connection.closed() => AfterRequest::Abandoned,
    }
}

async fn told(
    connection: &mut ClientConnection,
    call: &ReceivedCall,
    behaviour: &Behaviour,
) -> io::Result<AfterRequest> {
    if let Some(fault) = &behaviour.events_fault {
        return fault.commit(connection, "").await;
    }
    let (status, body) = behaviour.when_told(&call.body["event"]["event_type"]);
    connection.reply_json(status, &body).await?;
    Ok(AfterRequest::KeepAlive)
}

async fn work(
    connection: &mut ClientConnection,
    call: &ReceivedCall,
    behaviour: &Behaviour,
) -> io::Result<AfterRequest> {
    let (status, body) = match call.endpoint() {
        "execute" => behaviour.answer.to_execute(),
        _ => behaviour.answer.to_verify(&call.body, &behaviour.capabilities),
    };
    if let Some(fault) = &behaviour.fault {
        return fault.commit(connection, &body.to_string()).await;
    }
    connection.reply_json(status, &body).await?;
    Ok(AfterRequest::KeepAlive)
}

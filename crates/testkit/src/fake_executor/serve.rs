//! The server of a fake: takes connections, records requests, and does as the behaviour says.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::behaviour::{Behaviour, Health, Pace};
use super::fault::Fault;
use super::http::Connection;
use super::{Call, Installed, Shared};

/// What becomes of the connection after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    KeepAlive,
    /// The fake closes it, as it meant to.
    Close,
    /// The client closed it before it had a whole answer.
    Abandoned,
}

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Those that ended are let go, so that a long test does not collect them.
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, Arc::clone(&shared)));
    }
}

async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // An answer goes out in one piece, so a failure here would only cost speed.
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    loop {
        let call = match connection.request().await {
            Ok(Some(call)) => call,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let _ = connection.reply_json(400, &json!({ "error": "unreadable_request" })).await;
                return;
            }
            Ok(None) | Err(_) => return,
        };
        // The behaviour is taken before the call shows, so that a test which waits for the call
        // and then sets another behaviour changes the next call and not this one.
        let installed = shared.current();
        shared.record(&call);
        let next = answer(&mut connection, &call, &installed).await.unwrap_or(Next::Abandoned);
        if next == Next::Abandoned {
            shared.abandoned.send_modify(|count| *count += 1);
        }
        if next != Next::KeepAlive || call.header("connection") == Some("close") {
            return;
        }
    }
}

async fn answer(
    connection: &mut Connection,
    call: &Call,
    installed: &Installed,
) -> io::Result<Next> {
    let behaviour = &installed.behaviour;
    match (call.method.as_str(), call.endpoint()) {
        ("GET", "health") => health(connection, behaviour.health).await,
        ("GET", "capabilities") => capabilities(connection, behaviour).await,
        ("POST", "execute" | "verify") => {
            if wait(connection, installed).await == Next::Abandoned {
                return Ok(Next::Abandoned);
            }
            work(connection, call, behaviour).await
        }
        ("POST", "agent-events") => told(connection, call, behaviour).await,
        _ => {
            connection.reply_json(404, &json!({ "error": "not_found" })).await?;
            Ok(Next::KeepAlive)
        }
    }
}

async fn health(connection: &mut Connection, health: Health) -> io::Result<Next> {
    match health {
        Health::Well => connection.reply_json(200, &json!({ "status": "ok" })).await?,
        Health::Status(status) => {
            connection.reply_json(status, &json!({ "status": "unwell" })).await?;
        }
        Health::HangsUp => return Ok(Next::Close),
        Health::Hangs => return Fault::Hangs.commit(connection, "").await,
    }
    Ok(Next::KeepAlive)
}

async fn capabilities(connection: &mut Connection, behaviour: &Behaviour) -> io::Result<Next> {
    let body = behaviour.capabilities_json();
    if let Some(fault) = &behaviour.capabilities_fault {
        return fault.commit(connection, &body.to_string()).await;
    }
    connection.reply_json(200, &body).await?;
    Ok(Next::KeepAlive)
}

/// Waits for the gate, if there is one, unless the client goes first.
async fn wait(connection: &mut Connection, installed: &Installed) -> Next {
    let gate = match &installed.behaviour.pace {
        Pace::AtOnce => return Next::KeepAlive,
        Pace::Gated => &installed.own_gate,
        Pace::Late(gate) => gate,
    };
    tokio::select! {
        () = gate.opened() => Next::KeepAlive,
        () = connection.closed() => Next::Abandoned,
    }
}

async fn told(connection: &mut Connection, call: &Call, behaviour: &Behaviour) -> io::Result<Next> {
    if let Some(fault) = &behaviour.events_fault {
        return fault.commit(connection, "").await;
    }
    let (status, body) = behaviour.when_told(&call.body["event"]["event_type"]);
    connection.reply_json(status, &body).await?;
    Ok(Next::KeepAlive)
}

async fn work(connection: &mut Connection, call: &Call, behaviour: &Behaviour) -> io::Result<Next> {
    let (status, body) = match call.endpoint() {
        "execute" => behaviour.answer.to_execute(),
        _ => behaviour.answer.to_verify(&call.body, &behaviour.capabilities),
    };
    if let Some(fault) = &behaviour.fault {
        return fault.commit(connection, &body.to_string()).await;
    }
    connection.reply_json(status, &body).await?;
    Ok(Next::KeepAlive)
}

//! The server and its sessions as prompt-oriented clients see them.

use std::borrow::Cow;

use jurat_core::executor::session::SessionStanding;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::session_id;

const ABOUT: &str = "Delegates prompts, judges results and checks claims with several independent executors, and returns one answer with its agreement and confidence.";
const NOT_CREATED: &str = "This session exists already; the operator adds sessions.";

/// The state of the server.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerNode {
    /// `ok`.
    #[schema(example = "ok")]
    pub status: Cow<'static, str>,
    /// `pong`.
    #[schema(example = "pong")]
    pub message: Cow<'static, str>,
    /// `Jurat`.
    #[schema(example = "Jurat")]
    pub name: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub description: Cow<'static, str>,
    /// Number of sessions.
    pub sessions: usize,
    /// Number of sessions that can answer now.
    pub miners: usize,
}

/// The sessions as miners.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerMiners<'a> {
    pub miners: Vec<PeerMiner<'a>>,
    pub count: usize,
}

/// A session as a miner.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerMiner<'a> {
    /// The session.
    pub miner_id: Cow<'a, str>,
    /// Alias of `miner_id`.
    pub address: Cow<'a, str>,
    #[schema(value_type = Value)]
    pub session_id: Value,
    /// `online`, or `offline` if its executor cannot be asked now.
    #[schema(example = "online")]
    pub status: Cow<'static, str>,
    /// The model that its executor declares; null if it is not known.
    #[schema(required = true)]
    pub model: Option<Cow<'a, str>>,
}

/// A session.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerSession<'a> {
    #[schema(value_type = Value)]
    pub session_id: Value,
    /// Alias of `session_id`.
    #[schema(value_type = Value)]
    pub id: Value,
    /// `active`, or `inactive` if no executor can be asked now.
    #[schema(example = "active")]
    pub status: Cow<'static, str>,
    /// The model that its executor declares; null if it is not known.
    #[schema(required = true)]
    pub model: Option<Cow<'a, str>>,
    /// The sessions that answer for it: itself, and those with its name as a label; all for 0.
    pub miners: Vec<Cow<'a, str>>,
}

/// Every session.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerSessions<'a> {
    pub sessions: Vec<PeerSession<'a>>,
}

/// A session for a client that asks for a new one.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerCreated {
    #[schema(value_type = Value)]
    pub session_id: Value,
    /// Alias of `session_id`.
    #[schema(value_type = Value)]
    pub id: Value,
    /// `ready`.
    #[schema(example = "ready")]
    pub status: Cow<'static, str>,
    /// Always false.
    pub created: bool,
    pub message: Cow<'static, str>,
}

/// The state of a server with these sessions.
pub fn node(directory: &[SessionStanding]) -> PeerNode {
    PeerNode {
        status: Cow::Borrowed("ok"),
        message: Cow::Borrowed("pong"),
        name: Cow::Borrowed("Jurat"),
        version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
        description: Cow::Borrowed(ABOUT),
        sessions: directory.len(),
        miners: directory.iter().filter(|it| it.standing.is_ok()).count(),
    }
}

/// The sessions as miners.
pub fn miners(directory: &[SessionStanding]) -> PeerMiners<'static> {
    let one = |it: &'_ SessionStanding| PeerMiner {
        miner_id: Cow::Owned(it.session.id.clone()),
        address: Cow::Owned(it.session.id.clone()),
        session_id: session_id(Some(&it.session.id)),
        status: Cow::Borrowed(if it.standing.is_ok() { "online" } else { "offline" }),
        model: model(it).map(|model| Cow::Owned(model.into_owned())),
    };
    PeerMiners { miners: directory.iter().map(one).collect(), count: directory.len() }
}

/// The sessions that answer for a session or a label, the session itself first.
pub fn group<'a>(directory: &'a [SessionStanding], name: &str) -> Vec<&'a SessionStanding> {
    let named = directory.iter().filter(|it| it.session.id == name);
    let labelled =
        directory.iter().filter(|it| it.session.id != name && it.session.labels.contains(name));
    named.chain(labelled).collect()
}

/// A session or a label, with the sessions that answer for it; without a name, any session.
pub fn session<'a>(name: Option<&str>, group: &[&'a SessionStanding]) -> PeerSession<'a> {
    let live = group.iter().find(|it| it.standing.is_ok());
    let id = session_id(name);
    PeerSession {
        session_id: id.clone(),
        id,
        status: Cow::Borrowed(if live.is_some() { "active" } else { "inactive" }),
        model: live.and_then(|it| model(it)),
        miners: group.iter().map(|it| Cow::from(&it.session.id)).collect(),
    }
}

/// Every session, with the sessions that answer for it.
pub fn sessions(directory: &[SessionStanding]) -> PeerSessions<'_> {
    let one =
        |it: &SessionStanding| session(Some(&it.session.id), &group(directory, &it.session.id));
    PeerSessions { sessions: directory.iter().map(one).collect() }
}

/// An existing session for a client that asks for a new one.
pub fn created(name: &str) -> PeerCreated {
    let id = session_id(Some(name));
    PeerCreated {
        session_id: id.clone(),
        id,
        status: Cow::Borrowed("ready"),
        created: false,
        message: Cow::Borrowed(NOT_CREATED),
    }
}

fn model(entry: &SessionStanding) -> Option<Cow<'_, str>> {
    entry.standing.as_ref().ok().map(|it| Cow::from(&it.model_id))
}

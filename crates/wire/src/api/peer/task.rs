//! Rounds as prompt-oriented clients see them: tasks with one result for each session.

use std::borrow::Cow;

use jurat_core::round::{OpenRound, Round, RoundSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{opened_s, session_id, task_id, text_of};
use crate::api::{
    consensus_reply::{ReplicaBody, RoundReply},
    kit::words::Kind,
};

/// The status of a task in progress.
const ASSIGNED: u8 = 2;
/// The status of a task that has ended, which clients wait for.
const DONE: u8 = 4;

/// A task: a round, with the text of each session.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PeerTask<'a> {
    /// The id of the round as a number in decimal digits.
    pub task_id: String,
    /// Alias of `task_id`.
    pub id: String,
    /// The session in the path.
    #[schema(value_type = Value)]
    pub session_id: Value,
    /// 2 while it is in progress, 4 when it has ended.
    pub status: u8,
    /// Seconds since 1970.
    pub created_at: u64,
    /// Seconds since 1970; 0 while it is in progress.
    pub finished_at: u64,
    /// The sessions that were asked.
    pub assigned_miners: Vec<Cow<'a, str>>,
    /// Left out in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = PeerTaskResults)]
    pub results: Option<PeerTaskResults>,
    pub kind: Kind,
    /// The request in one line; null if it is not stored.
    #[schema(required = true)]
    pub prompt: Option<Cow<'a, str>>,
    pub round_id: Cow<'a, str>,
}

/// The tasks of a session, newest first; or a task.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PeerTasks<'a> {
    List(Vec<PeerTask<'a>>),
    Task(Box<PeerTask<'a>>),
}

/// The texts of a task, and the sessions that they come from, in the same order.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
pub struct PeerTaskResults {
    pub data: Vec<String>,
    pub miners: Vec<String>,
}

/// A round as a task, with its results.
pub fn task<'a>(round: &'a Round, session: Option<&str>) -> PeerTask<'a> {
    let closed_at = round.closing.as_ref().map(|closing| closing.closed_at.millis());
    let mut task = line(&round.open, closed_at, session);
    let replicas = match RoundReply::of(round) {
        None => Vec::new(),
        Some(RoundReply::Delegate(reply)) => reply.replicas,
        Some(RoundReply::Verdict(reply)) => reply.replicas,
    };
    let mut results = PeerTaskResults::default();
    for replica in replicas {
        if let Some(text) = result_text(&replica) {
            results.data.push(text);
            results.miners.push(replica.session_id.into_owned());
        }
    }
    task.results = Some(results);
    task
}

/// A round as a task in a list.
pub fn task_line<'a>(round: &'a RoundSummary, session: Option<&str>) -> PeerTask<'a> {
    let closed_at = round.closing.as_ref().map(|closing| closing.closed_at.millis());
    line(&round.open, closed_at, session)
}

fn line<'a>(open: &'a OpenRound, closed_at: Option<i64>, session: Option<&str>) -> PeerTask<'a> {
    let id = task_id(open.id.as_str());
    PeerTask {
        task_id: id.clone(),
        id,
        session_id: session_id(session),
        status: if closed_at.is_some() { DONE } else { ASSIGNED },
        created_at: opened_s(open.id.as_str()),
        finished_at: closed_at.unwrap_or_default().unsigned_abs() / 1_000,
        assigned_miners: open.seats.iter().map(|seat| Cow::from(&seat.session_id)).collect(),
        results: None,
        kind: Kind(open.kind),
        prompt: open.kept.asked.as_ref().map(|asked| Cow::from(&asked.line)),
        round_id: Cow::from(open.id.as_str()),
    }
}

/// The text of a replica that answered: its output, or its verdict.
fn result_text(replica: &ReplicaBody<'_>) -> Option<String> {
    if replica.error.is_some() {
        return None;
    }
    let verdict = replica.verdict.map(|label| label.0.as_str().to_owned());
    replica.output.as_deref().map(text_of).or(verdict)
}

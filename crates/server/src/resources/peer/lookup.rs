//! Finds the sessions and the rounds that prompt-oriented clients name.

use jurat_core::{
    account::caller::Caller,
    code::ProblemCode,
    executor::session::SessionStanding,
    id::RoundId,
    round::{Round, RoundFilter, RoundSummary},
};
use jurat_engine::Engine;
use jurat_wire::{
    api::peer::{node::group, reply::PeerReplyKind},
    problem::Problem,
};
use serde_json::Value;

use crate::request::encode::engine_problem;

/// The largest pool of a request.
const LARGEST_POOL: usize = 100;
/// More rounds than an account opens in a millisecond.
const MOST_AT_ONCE: u32 = 1_000;

/// The sessions for a request: those that answer for the name, or all.
pub(super) fn pool<'a>(directory: &'a [SessionStanding], name: Option<&'a str>) -> Vec<&'a str> {
    let Some(name) = name else { return Vec::new() };
    let found = group(directory, name);
    if found.is_empty() {
        // Version 3 says that there is no such session.
        return vec![name];
    }
    found.into_iter().map(|it| it.session.id.as_str()).take(LARGEST_POOL).collect()
}

/// How many replicas a request has that does not say so: the usual number, or fewer if fewer
/// sessions can answer.
pub(super) fn replicas(
    directory: &[SessionStanding],
    pool: &[&str],
    kind: PeerReplyKind,
    usual: u8,
) -> u8 {
    let task_type = match kind {
        PeerReplyKind::Completion | PeerReplyKind::Chat | PeerReplyKind::Delegate => {
            Some("delegate")
        }
        PeerReplyKind::Validate => None,
        PeerReplyKind::Factcheck => Some("factcheck"),
    };
    let is_able = |it: &&SessionStanding| {
        let is_in_pool = pool.is_empty() || pool.contains(&it.session.id.as_str());
        let takes = |known: &jurat_core::executor::Capabilities| {
            task_type.is_none_or(|wanted| known.takes_task_type(it.session.task_type(wanted)))
        };
        is_in_pool && it.standing.as_ref().is_ok_and(takes)
    };
    let able = directory.iter().filter(is_able).count();
    [5, 3].into_iter().find(|count| *count <= usual && usize::from(*count) <= able).unwrap_or(1)
}

/// A round of the caller by the id of its task: a number, or the id of the round.
pub(super) async fn task(engine: &Engine, caller: &Caller, text: &str) -> Result<Round, Problem> {
    if let Ok(id) = RoundId::parse(text) {
        return show(engine, caller, &id).await;
    }
    let number: Option<u64> = text.parse().ok();
    let opened_at = number.and_then(RoundId::opened_at).ok_or_else(|| unknown("task", text))?;
    let query = RoundFilter {
        since: Some(opened_at),
        until: Some(opened_at.plus_millis(1)),
        limit: MOST_AT_ONCE,
        ..RoundFilter::default()
    };
    let found = engine.round_list(caller, query).await.map_err(|error| engine_problem(&error))?;
    let has_number = |round: &&RoundSummary| round.open.id.number() == number;
    let mut found = found.iter().filter(has_number).map(|round| &round.open.id);
    match (found.next(), found.next()) {
        (Some(id), None) => show(engine, caller, id).await,
        (Some(id), Some(other)) => {
            let detail = format!("`{text}` matches two rounds; use `{id}` or `{other}`");
            Err(Problem::new(ProblemCode::Conflict, detail))
        }
        (None, _) => Err(unknown("task", text)),
    }
}

async fn show(engine: &Engine, caller: &Caller, id: &RoundId) -> Result<Round, Problem> {
    engine.round_show(caller, id).await.map_err(|error| engine_problem(&error))
}

/// The prompt of a round, if its request is stored.
pub(super) fn prompt(round: &Round) -> Option<String> {
    let request = round.open.kept.asked.as_ref()?.request.as_deref()?;
    let request: Value = serde_json::from_str(request).ok()?;
    request["objective"].as_str().map(str::to_owned)
}

/// The problem for an unknown name.
pub(super) fn unknown(what: &str, name: &str) -> Problem {
    let name: String = name.chars().take(80).collect();
    Problem::new(ProblemCode::NotFound, format!("there is no {what} `{name}`"))
}

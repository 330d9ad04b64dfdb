//! Waits for the end of a round and reports its progress.

use std::{future::pending, pin::pin, time::Duration};

use jurat_core::{account::caller::Scope, code::ProblemCode, id::RoundId, round::Round};
use jurat_engine::{EngineError, RoundProgress};
use jurat_wire::problem::Problem;
use tokio::{sync::mpsc::UnboundedReceiver, time::timeout_at};

use super::cancel::Departure;
use crate::{operation::ToolCall, request::encode};

/// The longest that a call takes, in seconds: common clients give up after a minute.
pub(crate) const LONGEST_CALL_S: u64 = 45;

/// A round in progress.
pub(crate) struct WatchedRound {
    pub(crate) id: RoundId,
    pub(crate) progress: UnboundedReceiver<RoundProgress>,
    /// Number of replicas that are asked.
    pub(crate) replicas: usize,
}

/// The end of a watch.
pub(crate) enum WatchEnd<T> {
    Ended(T),
    /// The round goes on, and the caller can follow it.
    StillOpen(Box<Round>),
}

/// A begun round. Until it is open it has no id that a call could return, so a call whose time is
/// up gives it up; nothing is begun for a caller who has left.
pub(crate) async fn begun<T>(
    call: &ToolCall<'_>,
    beginning: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, Problem> {
    tokio::select! {
        biased;
        begun = beginning => begun.map_err(|error| encode::engine_problem(&error)),
        () = time_is_up(call) => Err(Problem::new(
            ProblemCode::Overloaded,
            format!("the round could not begin within {LONGEST_CALL_S} seconds, so it was given up and no executor was called; `list_rounds` shows it if it began at the last moment"),
        )),
        _ = call.signals.departed() => Err(cancelled()),
    }
}

/// The result of a round, or the round itself if it takes too long for one call. If the caller
/// gives up before that, the round is cancelled.
pub(crate) async fn until_end<T>(
    call: &mut ToolCall<'_>,
    mut watched: WatchedRound,
    ending: impl Future<Output = T>,
) -> Result<WatchEnd<T>, Problem> {
    let mut ending = pin!(ending);
    let mut time_up = pin!(time_is_up(&*call));
    loop {
        tokio::select! {
            biased;
            Some(step) = watched.progress.recv() => {
                tell(call, &step, watched.replicas).await;
            }
            ended = &mut ending => {
                // The last steps and the end may arrive at the same time.
                while let Ok(step) = watched.progress.try_recv() {
                    tell(call, &step, watched.replicas).await;
                }
                return Ok(WatchEnd::Ended(ended));
            }
            () = &mut time_up => {
                let round = call.engine.round_show(call.caller, &watched.id).await;
                let round = round.map_err(|error| encode::engine_problem(&error))?;
                return Ok(match round.closing {
                    None => WatchEnd::StillOpen(Box::new(round)),
                    // It ended just now.
                    Some(_) => WatchEnd::Ended(ending.await),
                });
            }
            departure = call.signals.departed() => {
                if departure == Departure::Cancelled {
                    cancel_round(call, &watched.id).await;
                }
                return Err(cancelled());
            }
        }
    }
}

/// Resolves when a call must be answered. The time counts from its arrival, so a round that waited
/// before it began has less of it. A key that cannot read rounds could not use the id of one, so
/// its calls wait for the end.
fn time_is_up(call: &ToolCall<'_>) -> impl Future<Output = ()> + use<> {
    let until = call.arrived + Duration::from_secs(LONGEST_CALL_S);
    let can_follow = call.caller.may(Scope::RoundsRead);
    async move {
        if !can_follow {
            pending::<()>().await;
        }
        let _elapsed = timeout_at(until, pending::<()>()).await;
    }
}

async fn tell(call: &mut ToolCall<'_>, step: &RoundProgress, replicas: usize) {
    if call.progress.is_wanted() {
        call.progress.tell(2 * replicas + 1, said(step, replicas)).await;
    }
}

async fn cancel_round(call: &ToolCall<'_>, round: &RoundId) {
    if let Err(error) = call.engine.round_cancel(call.caller, round).await {
        tracing::debug!(%error, "could not cancel a round");
    }
}

/// A placeholder for the answer that is not sent; no client reads it.
pub(crate) fn cancelled() -> Problem {
    Problem::new(ProblemCode::Conflict, "the caller cancelled the request")
}

fn said(step: &RoundProgress, of: usize) -> String {
    match step {
        RoundProgress::ReplicaStarted { index, seat, .. } => {
            format!("calling replica {} of {of} in session `{}`", index + 1, seat.session_id)
        }
        RoundProgress::ReplicaDone { replica, .. } => {
            let (number, label) = (replica.index + 1, replica.answer.label());
            format!(
                "replica {number} of {of} finished in session `{}`: {label}",
                replica.session_id
            )
        }
        RoundProgress::Decided { closing, .. } => {
            let consensus = &closing.consensus;
            format!("decided: {}, agreement {}", consensus.outcome, consensus.agreement)
        }
    }
}

//! Waits for the end of a round and reports its progress.

use std::{future::pending, pin::pin, time::Duration};

use jurat_core::{account::caller::Scope, code::ProblemCode, id::RoundId, round::Round};
use jurat_engine::RoundProgress;
use jurat_wire::problem::Problem;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{Instant, timeout_at},
};

use crate::{operation::ToolCall, request::encode};

/// The longest that a call takes, in seconds: common clients give up after a minute.
pub(crate) const LONGEST_CALL_S: u64 = 45;

/// A round in progress.
pub(crate) struct WatchedRound {
    pub(crate) progress: UnboundedReceiver<RoundProgress>,
    /// Number of replicas that are asked.
    pub(crate) replicas: usize,
    /// Known from the round's first step on, if not earlier.
    pub(crate) round: Option<RoundId>,
}

/// The end of a watch.
pub(crate) enum WatchEnd<T> {
    Ended(T),
    /// The round goes on, and the caller can follow it.
    StillOpen(Box<Round>),
}

/// The result of a round, or the round itself if it takes too long for one call. If the caller
/// leaves before that, the round is cancelled.
pub(crate) async fn until_end<T>(
    call: &mut ToolCall<'_>,
    mut watched: WatchedRound,
    ending: impl Future<Output = T>,
) -> Result<WatchEnd<T>, Problem> {
    let mut ending = pin!(ending);
    let time_up = Instant::now() + Duration::from_secs(LONGEST_CALL_S);
    // A key that cannot read rounds could not use the id of one.
    let can_follow = call.caller.may(Scope::RoundsRead);
    loop {
        let is_left_open = can_follow && watched.round.is_some();
        tokio::select! {
            biased;
            Some(step) = watched.progress.recv() => {
                watched.round.get_or_insert_with(|| of(&step).clone());
                tell(call, &step, watched.replicas).await;
            }
            ended = &mut ending => {
                // The last steps and the end may arrive at the same time.
                while let Ok(step) = watched.progress.try_recv() {
                    tell(call, &step, watched.replicas).await;
                }
                return Ok(WatchEnd::Ended(ended));
            }
            _elapsed = timeout_at(time_up, pending::<()>()), if is_left_open => {
                let Some(id) = &watched.round else { continue };
                let round = call.engine.round_show(call.caller, id).await;
                let round = round.map_err(|error| encode::engine_problem(&error))?;
                return Ok(match round.closing {
                    None => WatchEnd::StillOpen(Box::new(round)),
                    // It ended just now.
                    Some(_) => WatchEnd::Ended(ending.await),
                });
            }
            () = call.gone.cancelled() => {
                if let Some(round) = &watched.round {
                    cancel_round(call, round).await;
                }
                return Err(cancelled());
            }
        }
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

const fn of(step: &RoundProgress) -> &RoundId {
    match step {
        RoundProgress::ReplicaStarted { round, .. }
        | RoundProgress::ReplicaDone { round, .. }
        | RoundProgress::Decided { round, .. } => round,
    }
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

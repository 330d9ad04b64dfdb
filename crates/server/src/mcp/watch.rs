//! Waits for the end of a round and reports its progress.

use std::pin::pin;

use jurat_core::{code::ProblemCode, id::RoundId};
use jurat_engine::RoundProgress;
use jurat_wire::problem::Problem;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::operation::ToolCall;

/// A round in progress.
pub(crate) struct WatchedRound {
    pub(crate) progress: UnboundedReceiver<RoundProgress>,
    /// Number of replicas that are asked.
    pub(crate) replicas: usize,
    /// Known from the round's first step on, if not earlier.
    pub(crate) round: Option<RoundId>,
}

/// The result of a round. If the caller leaves, the round is cancelled, because no other caller
/// could receive its answer over this surface.
pub(crate) async fn until_end<T>(
    call: &mut ToolCall<'_>,
    mut watched: WatchedRound,
    ending: impl Future<Output = T>,
) -> Result<T, Problem> {
    let mut ending = pin!(ending);
    loop {
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
                return Ok(ended);
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

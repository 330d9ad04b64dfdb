//! Waits for the end of a round and tells of its steps.

use std::pin::pin;

use jurat_core::{code::Code, id::RoundId};
use jurat_engine::Progress;
use jurat_wire::problem::Problem;
use tokio::sync::mpsc::UnboundedReceiver;

use super::call::Call;

/// A round under way.
pub(super) struct Watched {
    pub(super) progress: UnboundedReceiver<Progress>,
    /// How many are asked.
    pub(super) replicas: usize,
    /// Known from its first step on, if not before.
    pub(super) round: Option<RoundId>,
}

/// What a round comes to. Who leaves calls it off: nobody else could ever receive its answer over
/// this surface.
pub(super) async fn until_end<T>(
    call: &mut Call<'_>,
    mut watched: Watched,
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
                // The last steps and the end may come in the same moment.
                while let Ok(step) = watched.progress.try_recv() {
                    tell(call, &step, watched.replicas).await;
                }
                return Ok(ended);
            }
            () = call.gone.cancelled() => {
                if let Some(round) = &watched.round {
                    call_off(call, round).await;
                }
                return Err(called_off());
            }
        }
    }
}

async fn tell(call: &mut Call<'_>, step: &Progress, replicas: usize) {
    if call.progress.is_wanted() {
        call.progress.tell(2 * replicas + 1, said(step, replicas)).await;
    }
}

async fn call_off(call: &Call<'_>, round: &RoundId) {
    if let Err(error) = call.engine.round_cancel(call.caller, round).await {
        tracing::debug!(%error, "could not cancel a round");
    }
}

/// Nobody reads it; it stands in for the answer that is not sent.
pub(super) fn called_off() -> Problem {
    Problem::new(Code::Conflict, "the caller cancelled the request")
}

const fn of(step: &Progress) -> &RoundId {
    match step {
        Progress::ReplicaStarted { round, .. }
        | Progress::ReplicaDone { round, .. }
        | Progress::Decided { round, .. } => round,
    }
}

fn said(step: &Progress, of: usize) -> String {
    match step {
        Progress::ReplicaStarted { index, seat, .. } => {
            format!("calling replica {} of {of} in session `{}`", index + 1, seat.session_id)
        }
        Progress::ReplicaDone { replica, .. } => {
            let (number, label) = (replica.index + 1, replica.answer.label());
            format!(
                "replica {number} of {of} finished in session `{}`: {label}",
                replica.session_id
            )
        }
        Progress::Decided { closing, .. } => {
            let consensus = &closing.consensus;
            format!("decided: {}, agreement {}", consensus.outcome, consensus.agreement)
        }
    }
}

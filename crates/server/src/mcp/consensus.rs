//! The tools `delegate`, `validate` and `factcheck`.

use std::pin::pin;

use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{code::Code, id::RoundId, job::Job, round::Round};
use jurat_engine::{Begun, EngineError, Progress, Watcher};
use jurat_wire::{api::consensus_request, problem::Problem};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use super::call::Call;
use crate::{encode::engine_problem, http::reply_with};

pub(super) fn delegate(call: Call<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::delegate).boxed()
}

pub(super) fn validate(call: Call<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::validate).boxed()
}

pub(super) fn factcheck(call: Call<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::factcheck).boxed()
}

async fn run(
    mut call: Call<'_>,
    decode: fn(&Value) -> Result<Job, Problem>,
) -> Result<Value, Problem> {
    let problem = |error: EngineError| engine_problem(&error);
    call.engine.admit().map_err(problem)?;
    let job = decode(call.arguments)?;
    let (watcher, progress) = if call.progress.is_wanted() {
        let (watcher, progress) = Watcher::new();
        (watcher, Some(progress))
    } else {
        (Watcher::nobody(), None)
    };
    let beginning = call.engine.round_begin(call.caller, job, watcher, None);
    let begun = call.gone.run_until_cancelled(beginning).await.ok_or_else(called_off)?;
    let ended = watched(&mut call, begun.map_err(problem)?, progress).await?;
    reply_with(ended, |reply| json!(reply))
}

/// Waits for the end of a round and tells of its steps. Who leaves calls it off: nobody else could
/// ever receive its answer over this surface.
async fn watched(
    call: &mut Call<'_>,
    begun: Begun,
    mut progress: Option<UnboundedReceiver<Progress>>,
) -> Result<Result<Round, EngineError>, Problem> {
    let id = begun.round.open.id.clone();
    let replicas = begun.round.open.seats.len();
    let mut ended = pin!(begun.ended());
    loop {
        let next = async {
            match &mut progress {
                Some(progress) => progress.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            Some(step) = next => call.progress.tell(2 * replicas + 1, said(&step, replicas)).await,
            ended = &mut ended => return Ok(ended),
            () = call.gone.cancelled() => {
                call_off(call, &id).await;
                return Err(called_off());
            }
        }
    }
}

async fn call_off(call: &Call<'_>, id: &RoundId) {
    if let Err(error) = call.engine.round_cancel(call.caller, id).await {
        tracing::debug!(%error, "a round was not called off");
    }
}

/// Nobody reads it; it stands in for the answer that is not sent.
fn called_off() -> Problem {
    Problem::new(Code::Conflict, "the caller wants no answer any more")
}

fn said(step: &Progress, of: usize) -> String {
    match step {
        Progress::ReplicaStarted { index, seat, .. } => {
            format!("replica {} of {of} is asked in session `{}`", index + 1, seat.session_id)
        }
        Progress::ReplicaDone { replica, .. } => {
            let (number, label) = (replica.index + 1, replica.answer.label());
            format!("replica {number} of {of} is done in session `{}`: {label}", replica.session_id)
        }
        Progress::Decided { closing, .. } => {
            let consensus = &closing.consensus;
            format!("decided: {}, agreement {}", consensus.outcome, consensus.agreement)
        }
    }
}

//! The tools `delegate`, `validate` and `factcheck`.

use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::round::job::Job;
use jurat_engine::{EngineError, RoundWatcher};
use jurat_wire::{api::consensus_request, problem::Problem};
use serde_json::{Value, json};

use super::{
    call::ToolCall,
    watch::{WatchedRound, cancelled, until_end},
};
use crate::{request::encode::engine_problem, resources::reply_with};

pub(super) fn delegate(call: ToolCall<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::delegate).boxed()
}

pub(super) fn validate(call: ToolCall<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::validate).boxed()
}

pub(super) fn factcheck(call: ToolCall<'_>) -> BoxFuture<'_, Result<Value, Problem>> {
    run(call, consensus_request::factcheck).boxed()
}

async fn run(
    mut call: ToolCall<'_>,
    decode: fn(&Value) -> Result<Job, Problem>,
) -> Result<Value, Problem> {
    let problem = |error: EngineError| engine_problem(&error);
    call.engine.admit(call.caller).map_err(problem)?;
    let job = decode(call.arguments)?;
    let (watcher, progress) = RoundWatcher::new();
    let beginning = call.engine.round_begin(call.caller, job, watcher, None);
    let begun = call.gone.run_until_cancelled(beginning).await.ok_or_else(cancelled)?;
    let begun = begun.map_err(problem)?;
    let open = &begun.round.open;
    let watched =
        WatchedRound { progress, replicas: open.seats.len(), round: Some(open.id.clone()) };
    let ended = Box::pin(until_end(&mut call, watched, begun.wait())).await?;
    reply_with(ended, |reply| json!(reply))
}

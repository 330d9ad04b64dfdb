//! `/v1/prune`.

use axum::{Extension, extract::State};
use jurat_core::account::caller::Caller;
use jurat_engine::Engine;
use jurat_wire::api::prune::{self, PrunedBody};

use crate::request::{
    decode::MaybeJson,
    encode::{self, HandlerResult},
};

/// Removes what is old. Doing it again removes what became old since, so that it needs no key of
/// its own to be repeated.
pub(super) async fn prune(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let dry_run = prune::decode(&body)?;
    let report = engine.prune(&caller, dry_run).await?;
    let pruned = report.pruned;
    Ok(encode::ok(&PrunedBody {
        dry_run,
        accounts: report.accounts,
        idempotency_answers: pruned.answers,
        rounds: pruned.rounds,
        tasks: pruned.tasks,
        runs: pruned.runs,
        agent_events: pruned.agent_events,
    }))
}

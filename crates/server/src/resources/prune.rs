//! `/v1/prune`.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
};
use jurat_engine::Engine;
use jurat_wire::api::prune::{self, PruneRequest, PrunedBody};

use crate::{
    operation::{Operation, example},
    request::{
        decode::MaybeJson,
        encode::{self, HandlerResult},
    },
    resources::OPERATIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![prune_operation()]
}

fn prune_operation() -> Operation {
    let text = "Removes data that is older than the settings under `storage`, `agent_events` and `webhooks` allow, which the server also does regularly: replies stored under idempotency keys, the content of rounds, events of ended tasks and runs, events to executors, and webhook deliveries. Decisions and the ledger are never removed.";
    Operation::post("/v1/prune", "prune", prune)
        .tag(OPERATIONS)
        .summary("Remove old data")
        .text(text)
        .scope(Scope::Admin)
        .takes::<PruneRequest>([("plain", example(include_str!("prune/prune_request.json")))])
        .or_nothing()
        .answers::<PrunedBody>(
            200,
            "How much was removed, or would be.",
            example(include_str!("prune/prune.json")),
        )
        .refuses([ProblemCode::ValidationError])
}

/// Removes old data. A repeated request removes only data that became old since, so it needs no
/// idempotency key.
async fn prune(
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
        webhook_deliveries: pruned.webhook_deliveries,
    }))
}

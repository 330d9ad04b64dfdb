//! `jurat prune`.

pub(crate) mod args;

use serde_json::json;

use super::CommandContext;
use crate::{
    args::PruneArgs,
    client::ApiCall,
    output::table::{fields, said},
};

pub(super) async fn run(context: &CommandContext, args: &PruneArgs) -> anyhow::Result<u8> {
    let body = json!({ "dry_run": args.dry_run });
    let reply = context.send(ApiCall::post("/v1/prune".to_owned(), body)).await?;
    context.out.reply(&reply, |_| {
        let rows = [
            ("accounts", "accounts"),
            ("idempotency replies", "idempotency_answers"),
            ("rounds (texts)", "rounds"),
            ("tasks (events)", "tasks"),
            ("runs (events)", "runs"),
            ("agent events", "agent_events"),
        ];
        let rows = rows.map(|(name, member)| (name, said(&reply.value[member])));
        fields(&rows)
    })?;
    if args.dry_run {
        context.out.note("dry run: nothing was deleted");
    }
    Ok(0)
}

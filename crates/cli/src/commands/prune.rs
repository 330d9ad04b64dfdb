//! `jurat prune`.

use serde_json::json;

use super::Context;
use crate::{
    args::Prune,
    client::Call,
    output::table::{fields, said},
};

pub(super) async fn run(context: &Context, args: &Prune) -> anyhow::Result<u8> {
    let body = json!({ "dry_run": args.dry_run });
    let reply = context.send(Call::post("/v1/prune".to_owned(), body)).await?;
    context.out.reply(&reply, |_| {
        let rows = [
            ("accounts", "accounts"),
            ("answers under idempotency keys", "idempotency_answers"),
            ("rounds whose texts went", "rounds"),
            ("tasks whose events went", "tasks"),
            ("runs whose events went", "runs"),
            ("events to executors", "agent_events"),
        ];
        let rows = rows.map(|(name, member)| (name, said(&reply.value[member])));
        fields(&rows)
    })?;
    if args.dry_run {
        context.out.note("nothing was removed: this was a dry run");
    }
    Ok(0)
}

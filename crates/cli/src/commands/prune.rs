//! `jurat prune`.

pub(crate) mod args;

use jurat_client::node;

use super::CommandContext;
use crate::{
    args::PruneArgs,
    output::table::{fields, said},
};

pub(super) async fn run(context: &CommandContext, args: &PruneArgs) -> anyhow::Result<u8> {
    let reply = context.send(node::prune(args.dry_run)).await?;
    let pruned = &reply.value;
    context.out.reply(&reply, |_| {
        fields(&[
            ("accounts", said(&pruned.accounts)),
            ("idempotency replies", said(&pruned.idempotency_answers)),
            ("rounds (texts)", said(&pruned.rounds)),
            ("tasks (events)", said(&pruned.tasks)),
            ("runs (events)", said(&pruned.runs)),
            ("agent events", said(&pruned.agent_events)),
            ("webhook deliveries", said(&pruned.webhook_deliveries)),
        ])
    })?;
    if args.dry_run {
        context.out.note("dry run: nothing was deleted");
    }
    Ok(0)
}

//! `jurat rounds`.

pub(crate) mod args;
pub(crate) mod show;

use comfy_table::Cell;
use jurat_client::rounds::{self, RoundListQuery};
use jurat_wire::api::rounds::RoundBody;

use self::show::RoundView;
use super::{CommandContext, to_the_second};
use crate::{
    args::{ListRoundsArgs, RoundsCommand},
    output::{
        Output, shortened,
        table::{cell, fields, said, table, word},
    },
};

/// Maximum length of a printed request; `--json` prints it in full.
const WIDEST_REQUEST: usize = 4_000;

pub(super) async fn run(context: &CommandContext, command: RoundsCommand) -> anyhow::Result<u8> {
    match command {
        RoundsCommand::List(args) => list(context, args).await?,
        RoundsCommand::Show { id, wait } => {
            let reply = context.send(rounds::show(&id, wait)).await?;
            context.out.reply(&reply, |out| shown(out, &reply.value))?;
        }
        RoundsCommand::Cancel { id } => {
            let reply = context.send(rounds::cancel(&id)).await?;
            context.out.reply(&reply, |out| shown(out, &reply.value))?;
        }
        RoundsCommand::Erase { id } => {
            let reply = context.send(rounds::erase(&id)).await?;
            context.out.reply(&reply, |_| {
                let (round, at) = (said(&reply.value.round_id), said(&reply.value.erased_at));
                format!("erased the question and the answers of {round} at {at}")
            })?;
        }
    }
    Ok(0)
}

async fn list(context: &CommandContext, args: ListRoundsArgs) -> anyhow::Result<()> {
    let filter = RoundListQuery {
        kind: args.kind,
        outcome: args.outcome,
        state: args.state,
        since: args.since,
        until: args.until,
    };
    let is_filtered = filter != RoundListQuery::default();
    let reply = context.list(rounds::list(&filter), args.list).await?;
    let rows = reply.value.items.iter().map(|round| {
        vec![
            cell(&round.round_id),
            cell(&round.kind),
            word(&round.state),
            word(&round.verdict),
            // A round that is open, or was ended by a crash, has no outcome.
            round.outcome.as_ref().map_or_else(|| word(&round.state), word),
            Cell::new(percent(round.agreement)),
            Cell::new(percent(round.confidence)),
            cell(&to_the_second(round.opened_at)),
            cell(&round.asked),
        ]
    });
    let header = [
        "round",
        "kind",
        "state",
        "verdict",
        "outcome",
        "agreement",
        "confidence",
        "opened",
        "asked",
    ];
    context.out.reply(&reply, |out| table(out, &header, rows.collect()))?;
    let when_empty = if is_filtered {
        "no rounds match"
    } else {
        "no rounds yet: try `jurat validate --claim '2 + 2 = 4'`"
    };
    context.note_page(&reply.value, when_empty);
    Ok(())
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// The request, or the reason why it is missing.
fn asked(round: &RoundBody<'_>) -> String {
    if let Some(at) = &round.erased_at {
        return format!("erased at {}", said(at));
    }
    match (&round.request, &round.asked) {
        (Some(request), _) => shortened(&request.to_string(), WIDEST_REQUEST),
        (None, Some(asked)) => said(asked),
        (None, None) => "not stored".to_owned(),
    }
}

pub(super) fn shown(out: Output, round: &RoundBody<'_>) -> String {
    let head = fields(&[
        ("round", said(&round.round_id)),
        ("kind", said(&round.kind)),
        ("asked", asked(round)),
        ("state", said(&round.state)),
        ("policy", said(&round.policy_id)),
        ("sessions", said(&round.sessions)),
        ("opened", said(&round.opened_at)),
        ("closed", said(&round.closed_at)),
    ]);
    // An open round has no result yet.
    if round.state.0.is_none() {
        return head;
    }
    format!("{head}\n{}", show::reply(out, &RoundView::from(round)))
}

//! `jurat rounds`.

pub(crate) mod args;
pub(crate) mod show;

use comfy_table::Cell;
use serde_json::{Value, json};

use super::{CommandContext, items};
use crate::{
    args::{ListRoundsArgs, RoundsCommand},
    client::{ApiCall, path, query},
    output::{
        Output, shortened,
        table::{cell, fields, said, table, word},
    },
};

const ROUTE: &str = "/v1/rounds";
/// `--json` has more.
const WIDEST_REQUEST: usize = 4_000;

pub(super) async fn run(context: &CommandContext, command: RoundsCommand) -> anyhow::Result<u8> {
    match command {
        RoundsCommand::List(args) => list(context, args).await?,
        RoundsCommand::Show { id, wait } => {
            let wait = [("wait", wait.map(|seconds| seconds.to_string()))];
            let reply = context.send(ApiCall::get(query(&path(ROUTE, &[&id]), &wait))).await?;
            context.out.reply(&reply, |out| shown(out, &reply.value))?;
        }
        RoundsCommand::Cancel { id } => {
            let call = ApiCall::post(path(ROUTE, &[&id, "cancel"]), json!({}));
            let reply = context.send(call).await?;
            context.out.reply(&reply, |out| shown(out, &reply.value))?;
        }
        RoundsCommand::Erase { id } => {
            let reply = context.send(ApiCall::delete(path(ROUTE, &[&id, "payload"]))).await?;
            context.out.reply(&reply, |_| {
                let (round, at) = (said(&reply.value["round_id"]), &reply.value["erased_at"]);
                format!("erased the question and the answers of {round} at {}", said(at))
            })?;
        }
    }
    Ok(0)
}

async fn list(context: &CommandContext, args: ListRoundsArgs) -> anyhow::Result<()> {
    let filters = [
        ("kind", args.kind),
        ("outcome", args.outcome),
        ("state", args.state),
        ("since", args.since),
        ("until", args.until),
    ];
    let is_filtered = filters.iter().any(|(_, value)| value.is_some());
    let reply = context.list(ROUTE, &filters, args.list).await?;
    let rows = items(&reply.value).iter().map(|item| {
        vec![
            cell(&item["round_id"]),
            cell(&item["kind"]),
            word(&item["state"]),
            word(&item["verdict"]),
            // A round that has not ended, or only by a crash, has no other.
            word(if item["outcome"].is_null() { &item["state"] } else { &item["outcome"] }),
            Cell::new(percent(&item["agreement"])),
            Cell::new(percent(&item["confidence"])),
            cell(&json!(to_the_second(&item["opened_at"]))),
            cell(&item["asked"]),
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

/// A time as people write it. All times are UTC.
pub(super) fn to_the_second(time: &Value) -> Option<String> {
    let (day, clock) = time.as_str()?.split_once('T')?;
    Some(format!("{day} {}", clock.split(['.', 'Z']).next()?))
}

fn percent(share: &Value) -> String {
    share.as_f64().map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// The whole request, or why there is none.
fn asked(body: &Value) -> String {
    if let Some(at) = body.get("erased_at") {
        return format!("erased at {}", said(at));
    }
    match body.get("request") {
        Some(request) => shortened(&request.to_string(), WIDEST_REQUEST),
        None if body["asked"].is_null() => "not stored".to_owned(),
        None => said(&body["asked"]),
    }
}

pub(super) fn shown(out: Output, body: &Value) -> String {
    let head = fields(&[
        ("round", said(&body["round_id"])),
        ("kind", said(&body["kind"])),
        ("asked", asked(body)),
        ("state", said(&body["state"])),
        ("policy", said(&body["policy_id"])),
        ("sessions", said(&body["sessions"])),
        ("opened", said(&body["opened_at"])),
        ("closed", said(&body["closed_at"])),
    ]);
    if body["state"] == "open" { head } else { format!("{head}\n{}", show::reply(out, body)) }
}

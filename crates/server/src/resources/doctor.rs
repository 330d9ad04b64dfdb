//! `/v1/doctor`.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::{AccountId, RoundId},
};
use jurat_engine::{Engine, EntryCheckQuery};
use jurat_wire::api::doctor::{self, CheckedEntries, CheckupBody};
use serde_json::json;

use crate::{
    operation::{Operation, example, parameters},
    request::{
        cursor,
        encode::{self, HandlerResult},
        page::{ListQuery, wrong},
    },
    resources::OPERATIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![show_operation(), entries_operation()]
}

/// Maximum number of decisions on a page. A page is checked quickly, and a full check has many
/// pages.
pub(crate) const MOST_ENTRIES: u32 = 1_000;

fn show_operation() -> Operation {
    let text = "Checks the whole store, looks for stuck tasks, runs, agent events and webhooks, and probes every executor, so it may take a while. `jurat doctor` shows the same, plus checks of its own machine.";
    Operation::get("/v1/doctor", "doctor", show)
        .tag(OPERATIONS)
        .summary("Check the installation")
        .text(text)
        .scope(Scope::Admin)
        .answers::<CheckupBody<'_>>(200, "The result.", example(include_str!("doctor/doctor.json")))
}

async fn show(State(engine): State<Engine>, Extension(caller): Extension<Caller>) -> HandlerResult {
    let diagnosis = engine.doctor(&caller).await?;
    Ok(encode::ok(&doctor::body(&diagnosis.findings, diagnosis.ended_rounds)))
}

fn entries_operation() -> Operation {
    let text =
        "Recomputes the decision entries of ended rounds of all accounts from the stored data.";
    Operation::get("/v1/doctor/entries", "doctor_entries", entries)
        .tag(OPERATIONS)
        .summary("Check recorded decisions")
        .text(text)
        .scope(Scope::Admin)
        .with(parameters::of_entries())
        .answers::<CheckedEntries<'_>>(
            200,
            "The checked decisions.",
            json!({ "checked": 3, "problems": [], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

async fn entries(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery<MOST_ENTRIES>,
) -> HandlerResult {
    query.only(&["newest"])?;
    let (since, after) = match (&query.cursor, query.filters.get("newest")) {
        (Some(_), Some(_)) => Err(wrong("newest", "is already part of the cursor; leave it out"))?,
        (Some(_), None) => {
            let position = query.position()?.and_then(position);
            let (since, after) = position.ok_or_else(cursor::refused)?;
            (since, Some(after))
        }
        (None, Some(newest)) => {
            let newest = newest.parse().ok().filter(|newest| 0 < *newest);
            let newest = newest.ok_or_else(|| wrong("newest", "must be a whole number above 0"))?;
            (engine.doctor_since(&caller, newest).await?, None)
        }
        (None, None) => (None, None),
    };
    let wanted = EntryCheckQuery { after, since: since.clone(), limit: query.limit };
    let checked = engine.doctor_entries(&caller, wanted).await?;
    let problems = checked
        .faults
        .iter()
        .map(|it| doctor::problem(&it.account, &it.round, &it.fault))
        .collect();
    let next = checked.next.map(|(account, round)| {
        let since = since.as_ref().map_or_else(String::new, ToString::to_string);
        cursor::write(&[account.to_string(), round.to_string(), since])
    });
    Ok(encode::ok(&doctor::entries(checked.checked, problems, next)))
}

/// The oldest round of the check, unless it starts at the first one, and the last round checked.
fn position(
    [account, round, since]: [String; 3],
) -> Option<(Option<RoundId>, (AccountId, RoundId))> {
    let after = (AccountId::parse(&account).ok()?, RoundId::parse(&round).ok()?);
    let since = match since.as_str() {
        "" => None,
        since => Some(RoundId::parse(since).ok()?),
    };
    Some((since, after))
}

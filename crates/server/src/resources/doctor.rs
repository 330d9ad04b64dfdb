//! `/v1/doctor`.

use axum::{Extension, extract::State};
use jurat_core::account::caller::Caller;
use jurat_engine::{Engine, EntryCheckQuery};
use jurat_wire::api::doctor::{self, CheckupCursor};
use serde_json::Value;

use crate::request::encode::{self, HandlerResult};
use crate::request::page::{ListQuery, wrong};

/// A page is quickly checked, and a walk has many.
pub(crate) const MOST_ENTRIES: u32 = 1_000;

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    let diagnosis = engine.doctor(&caller).await?;
    Ok(encode::ok(&doctor::body(&diagnosis.findings, diagnosis.ended_rounds)))
}

pub(super) async fn entries(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery<MOST_ENTRIES>,
) -> HandlerResult {
    query.only(&["newest"])?;
    let (since, after) = match (&query.cursor, query.filters.get("newest")) {
        (Some(_), Some(_)) => Err(wrong("newest", "is already part of the cursor; leave it out"))?,
        (Some(cursor), None) => {
            let cursor = CheckupCursor::parse(cursor);
            let cursor = cursor.ok_or_else(|| wrong("cursor", "was not returned by a list"))?;
            (cursor.since, Some(cursor.after))
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
    let problems: Vec<Value> = checked
        .faults
        .iter()
        .map(|it| doctor::problem(&it.account, &it.round, &it.fault))
        .collect();
    let next = checked.next.map(|after| CheckupCursor { since, after });
    Ok(encode::ok(&doctor::entries(checked.checked, &problems, next.as_ref())))
}

//! `/v1/doctor`.

use axum::{Extension, extract::State};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EntriesQuery};
use jurat_wire::api::doctor::{self, Cursor};
use serde_json::Value;

use super::page::{ListQuery, wrong};
use crate::encode::{self, Answer};

/// A page is quickly checked, and a walk has many.
pub(crate) const MOST_ENTRIES: u32 = 1_000;

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> Answer {
    let diagnosis = engine.doctor(&caller).await?;
    Ok(encode::ok(&doctor::body(&diagnosis.findings, diagnosis.ended_rounds)))
}

pub(super) async fn entries(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery<MOST_ENTRIES>,
) -> Answer {
    query.only(&["newest"])?;
    let (since, after) = match (&query.cursor, query.filters.get("newest")) {
        (Some(_), Some(_)) => Err(wrong("newest", "is already part of the cursor; leave it out"))?,
        (Some(cursor), None) => {
            let cursor = Cursor::parse(cursor);
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
    let wanted = EntriesQuery { after, since: since.clone(), limit: query.limit };
    let checked = engine.doctor_entries(&caller, wanted).await?;
    let problems: Vec<Value> = checked
        .faults
        .iter()
        .map(|it| doctor::problem(&it.account, &it.round, &it.fault))
        .collect();
    let next = checked.next.map(|after| Cursor { since, after });
    Ok(encode::ok(&doctor::entries(checked.checked, &problems, next.as_ref())))
}

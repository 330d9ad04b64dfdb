//! `/v1/me`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::account::{AccountProfile, caller::Caller};
use jurat_engine::Engine;
use jurat_wire::api::{
    credits::{self, UsageMonth},
    kit::page::PageBody,
    people,
};
use serde_json::{Value, json};

use crate::request::page::ListQuery;
use crate::request::{
    decode::Json,
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    let me = engine.me_show(&caller).await?;
    Ok(encode::ok(&credits::me(&me.key, &me.profile, me.is_suspended)))
}

pub(super) async fn usage(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    let usage = engine.usage_show(&caller).await?;
    let month = UsageMonth {
        since: usage.since,
        until: usage.until,
        used_micros: usage.spent.micros,
        charged_rounds: usage.spent.rounds,
    };
    Ok(encode::ok(&credits::usage(usage.balance, usage.is_metered, month)))
}

pub(super) async fn transfers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let (before, limit) = (query.position()?, query.with_one_more());
    let mut found = engine.transfer_list(&caller, before.as_deref(), limit).await?;
    let next = query.cut_opaque(&mut found, |line| line.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::transfer), next.as_deref())))
}

pub(super) async fn claim(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let handle = people::decode_handle(&body)?;
    let keyed = idempotency.write_for("handle_claim", &body, StatusCode::OK, claimed);
    let done = engine.handle_claim(&caller, &handle, keyed).await?;
    Ok(idempotency::reply(done, |profile| encode::ok(&claimed(profile))))
}

pub(super) async fn rename(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let handle = people::decode_handle(&body)?;
    let keyed = idempotency.write_for("handle_rename", &body, StatusCode::OK, claimed);
    let done = engine.handle_rename(&caller, &handle, keyed).await?;
    Ok(idempotency::reply(done, |profile| encode::ok(&claimed(profile))))
}

fn claimed(profile: &AccountProfile) -> Value {
    json!(people::claimed(profile))
}

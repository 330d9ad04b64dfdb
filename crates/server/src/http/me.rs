//! `/v1/me`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{account::Profile, caller::Caller};
use jurat_engine::Engine;
use jurat_wire::api::{
    credits::{self, Month},
    page::Page,
    people,
};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{
    decode::Json,
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> Answer {
    let me = engine.me_show(&caller).await?;
    Ok(encode::ok(&credits::me(&me.key, &me.profile, me.is_suspended)))
}

pub(super) async fn usage(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> Answer {
    let usage = engine.usage_show(&caller).await?;
    let month = Month {
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
) -> Answer {
    query.only(&[])?;
    let (before, limit) = (query.place()?, query.with_one_more());
    let mut found = engine.transfer_list(&caller, before.as_deref(), limit).await?;
    let next = query.cut_sealed(&mut found, |line| line.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(credits::transfer), next.as_deref())))
}

pub(super) async fn claim(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let handle = people::decode_handle(&body)?;
    let keyed = repeatable.keyed("handle_claim", &body, StatusCode::OK, claimed);
    let done = engine.handle_claim(&caller, handle, keyed).await?;
    Ok(once::reply(done, |profile| encode::ok(&claimed(profile))))
}

pub(super) async fn rename(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let handle = people::decode_handle(&body)?;
    let keyed = repeatable.keyed("handle_rename", &body, StatusCode::OK, claimed);
    let done = engine.handle_rename(&caller, handle, keyed).await?;
    Ok(once::reply(done, |profile| encode::ok(&claimed(profile))))
}

fn claimed(profile: &Profile) -> Value {
    json!(people::claimed(profile))
}

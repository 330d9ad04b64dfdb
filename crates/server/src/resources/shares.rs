//! `/v1/shares`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::Caller,
    workflow::share::{Share, ShareAction},
};
use jurat_engine::{Engine, ShareFilter};
use jurat_wire::api::{kit::page::PageBody, shares};
use serde_json::{Value, json};

use crate::request::page::ListQuery;
use crate::request::{
    decode::{MaybeJson, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["state"])?;
    let filter = ShareFilter {
        state: shares::state(query.filters.get("state"))?,
        before: query.position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.share_list(&caller, filter).await?;
    let next = query.cut_opaque(&mut found, |share| share.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(shares::share), next.as_deref())))
}

pub(super) async fn accept(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_accept", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Accept, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

pub(super) async fn decline(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_decline", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Decline, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

pub(super) async fn block(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    shares::decode_answer(&body)?;
    let keyed = idempotency.write_for("share_block", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareAction::Block, keyed).await?;
    Ok(idempotency::reply(done, |share| encode::ok(&shown(share))))
}

fn shown(share: &Share) -> Value {
    json!(shares::share(share))
}

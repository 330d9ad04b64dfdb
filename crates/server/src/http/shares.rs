//! `/v1/shares`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    caller::Caller,
    share::{Share, ShareVerb},
};
use jurat_engine::{Engine, ShareFilter};
use jurat_wire::api::{page::Page, shares};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{
    decode::{MaybeJson, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&["state"])?;
    let filter = ShareFilter {
        state: shares::state(query.filters.get("state"))?,
        before: query.place()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.share_list(&caller, filter).await?;
    let next = query.cut_sealed(&mut found, |share| share.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(shares::share), next.as_deref())))
}

pub(super) async fn accept(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    shares::decode_answer(&body)?;
    let keyed = repeatable.keyed("share_accept", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareVerb::Accept, keyed).await?;
    Ok(once::reply(done, |share| encode::ok(&shown(share))))
}

pub(super) async fn decline(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    shares::decode_answer(&body)?;
    let keyed = repeatable.keyed("share_decline", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareVerb::Decline, keyed).await?;
    Ok(once::reply(done, |share| encode::ok(&shown(share))))
}

pub(super) async fn block(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> Answer {
    shares::decode_answer(&body)?;
    let keyed = repeatable.keyed("share_block", &Value::Null, StatusCode::OK, shown);
    let done = engine.share_answer(&caller, &id, ShareVerb::Block, keyed).await?;
    Ok(once::reply(done, |share| encode::ok(&shown(share))))
}

fn shown(share: &Share) -> Value {
    json!(shares::share(share))
}

//! `/v1/accounts`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{caller::Caller, ledger::AccountState},
    list::ListPage,
};
use jurat_engine::{Engine, IdempotentWrite, NewCreditGrant};
use jurat_wire::api::{credits, kit::page::PageBody};
use serde_json::{Value, json};

use crate::request::page::ListQuery;
use crate::request::{
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.position()?, limit: query.with_one_more() };
    let mut found = engine.account_list(&caller, &wanted).await?;
    let next = query.cut_opaque(&mut found, |state| state.account.to_string());
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::account), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let state = engine.account_show(&caller, &id).await?;
    Ok(encode::ok(&credits::account(&state)))
}

/// The lines of the ledger of one account.
pub(super) async fn transfers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let (before, limit) = (query.position()?, query.with_one_more());
    let mut found = engine.account_transfers(&caller, &id, before.as_deref(), limit).await?;
    let next = query.cut_opaque(&mut found, |line| line.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::transfer), next.as_deref())))
}

pub(super) async fn grant(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    Json(body): Json,
) -> HandlerResult {
    let (micros, note) = credits::decode_grant(&body)?;
    let (account, why) = (id.clone(), note.clone());
    let answer =
        move |balance: &_| json!(credits::grant(&account, micros, why.as_deref(), balance));
    let keyed = idempotency.write_for("credit_grant", &body, StatusCode::CREATED, answer.clone());
    let done = engine.credit_grant(&caller, &id, NewCreditGrant { micros, note }, keyed).await?;
    Ok(idempotency::reply(done, |balance| encode::created(&answer(balance))))
}

pub(super) async fn suspend(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let keyed = idempotent_write(idempotency, "account_suspend");
    let done = engine.account_suspend(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |state| encode::ok(&credits::account(state))))
}

pub(super) async fn resume(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let keyed = idempotent_write(idempotency, "account_resume");
    let done = engine.account_resume(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |state| encode::ok(&credits::account(state))))
}

fn idempotent_write(
    idempotency: Idempotency,
    operation: &'static str,
) -> Option<IdempotentWrite<AccountState>> {
    let answer = |state: &AccountState| json!(credits::account(state));
    idempotency.write_for(operation, &Value::Null, StatusCode::OK, answer)
}

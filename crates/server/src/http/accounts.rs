//! `/v1/accounts`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{caller::Caller, ledger::AccountState};
use jurat_engine::{Engine, EnginePage, Keyed, NewGrant};
use jurat_wire::api::{credits, page::Page};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{
    decode::{Json, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = EnginePage { after: query.place()?, limit: query.with_one_more() };
    let mut found = engine.account_list(&caller, &wanted).await?;
    let next = query.cut_sealed(&mut found, |state| state.account.to_string());
    Ok(encode::ok(&Page::new(found.iter().map(credits::account), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> Answer {
    let state = engine.account_show(&caller, &id).await?;
    Ok(encode::ok(&credits::account(&state)))
}

/// The lines of the ledger of one account.
pub(super) async fn transfers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let (before, limit) = (query.place()?, query.with_one_more());
    let mut found = engine.account_transfers(&caller, &id, before.as_deref(), limit).await?;
    let next = query.cut_sealed(&mut found, |line| line.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(credits::transfer), next.as_deref())))
}

pub(super) async fn grant(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
    Json(body): Json,
) -> Answer {
    let (micros, note) = credits::decode_grant(&body)?;
    let (account, why) = (id.clone(), note.clone());
    let answer =
        move |balance: &_| json!(credits::grant(&account, micros, why.as_deref(), balance));
    let keyed = repeatable.keyed("credit_grant", &body, StatusCode::CREATED, answer.clone());
    let done = engine.credit_grant(&caller, &id, NewGrant { micros, note }, keyed).await?;
    Ok(once::reply(done, |balance| encode::created(&answer(balance))))
}

pub(super) async fn suspend(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
) -> Answer {
    let keyed = keyed(repeatable, "account_suspend");
    let done = engine.account_suspend(&caller, &id, keyed).await?;
    Ok(once::reply(done, |state| encode::ok(&credits::account(state))))
}

pub(super) async fn resume(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
) -> Answer {
    let keyed = keyed(repeatable, "account_resume");
    let done = engine.account_resume(&caller, &id, keyed).await?;
    Ok(once::reply(done, |state| encode::ok(&credits::account(state))))
}

fn keyed(repeatable: Repeatable, operation: &'static str) -> Option<Keyed<AccountState>> {
    let answer = |state: &AccountState| json!(credits::account(state));
    repeatable.keyed(operation, &Value::Null, StatusCode::OK, answer)
}

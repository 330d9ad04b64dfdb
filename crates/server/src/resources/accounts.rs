//! `/v1/accounts`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{
        caller::{Caller, Scope},
        ledger::AccountState,
    },
    code::ProblemCode,
    list::ListPage,
};
use jurat_engine::{Engine, IdempotentWrite, NewCreditGrant};
use jurat_wire::api::{
    credits::{self, AccountBody, GrantBody, GrantRequest, TransferBody},
    kit::page::PageBody,
};
use serde_json::{Value, json};

use crate::{
    operation::{
        Operation, example,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::ListQuery,
    },
    resources::CREDITS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        list_operation(),
        show_operation(),
        transfers_operation(),
        grant_operation(),
        suspend_operation(),
        resume_operation(),
    ]
}

const ACCOUNT: PathParameter = PathParameter::new("id", "The id of an account.", "acct_team");

fn list_operation() -> Operation {
    Operation::get("/v1/accounts", "account_list", list)
        .tag(CREDITS)
        .summary("List accounts")
        .text("All accounts, by id, with their credit.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, AccountBody<'_>>>(
            200,
            "A page of accounts.",
            example(include_str!("accounts/account_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut found = engine.account_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |state| [state.account.to_string()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::account), next.as_deref())))
}

fn show_operation() -> Operation {
    Operation::get("/v1/accounts/{id}", "account_show", show)
        .tag(CREDITS)
        .summary("Show an account")
        .text("An account, with its credit.")
        .in_path([ACCOUNT])
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(
            200,
            "The account.",
            example(include_str!("accounts/account.json")),
        )
        .refuses([ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let state = engine.account_show(&caller, &id).await?;
    Ok(encode::ok(&credits::account(&state)))
}

fn transfers_operation() -> Operation {
    let text = "The lines of the ledger of an account, newest first. They never change.";
    Operation::get("/v1/accounts/{id}/transfers", "account_transfers", transfers)
        .tag(CREDITS)
        .summary("List credit transfers of an account")
        .text(text)
        .in_path([ACCOUNT])
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            example(include_str!("accounts/transfer_list.json")),
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

/// The ledger entries of one account.
async fn transfers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let (before, limit) = (query.text_position()?, query.with_one_more());
    let mut found = engine.account_transfers(&caller, &id, before.as_deref(), limit).await?;
    let next = query.cut(&mut found, |line| [line.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::transfer), next.as_deref())))
}

fn grant_operation() -> Operation {
    let text = "Grants credit to an account. A negative amount takes credit back, but no more than is available.";
    Operation::post("/v1/accounts/{id}/grants", "credit_grant", grant)
        .tag(CREDITS)
        .summary("Grant credit")
        .text(text)
        .in_path([ACCOUNT])
        .scope(Scope::Admin)
        .takes::<GrantRequest>([(
            "plain",
            example(include_str!("accounts/credit_grant_request.json")),
        )])
        .answers::<GrantBody<'_>>(
            201,
            "The account's credit.",
            example(include_str!("accounts/credit_grant.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
        .refuses_when(
            ProblemCode::ValidationError,
            "a field is invalid, or more is taken back than is available",
        )
}

async fn grant(
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

fn suspend_operation() -> Operation {
    let text = "Suspends an account: paid work is refused until it is resumed. Rounds in progress continue. Suspending again has no effect. The operator's account cannot be suspended.";
    Operation::post("/v1/accounts/{id}/suspend", "account_suspend", suspend)
        .tag(CREDITS)
        .summary("Suspend an account")
        .text(text)
        .in_path([ACCOUNT])
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(
            200,
            "The account.",
            example(include_str!("accounts/account_suspended.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
        .refuses_when(ProblemCode::Conflict, "the operator's account cannot be suspended")
}

async fn suspend(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let keyed = idempotent_write(idempotency, "account_suspend");
    let done = engine.account_suspend(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |state| encode::ok(&credits::account(state))))
}

fn resume_operation() -> Operation {
    Operation::post("/v1/accounts/{id}/resume", "account_resume", resume)
        .tag(CREDITS)
        .summary("Resume an account")
        .text("Ends the suspension of an account.")
        .in_path([ACCOUNT])
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(
            200,
            "The account.",
            example(include_str!("accounts/account.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

async fn resume(
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

//! `/v1/me`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::{
        AccountProfile,
        caller::{Caller, Scope},
    },
    code::ProblemCode,
};
use jurat_engine::Engine;
use jurat_wire::api::{
    credits::{self, AccountUsageBody, MeBody, TransferBody, UsageMonth},
    kit::page::PageBody,
    people::{self, ClaimedHandle, HandleRequest},
};
use serde_json::{Value, json};

use crate::{
    operation::{Operation, Tool, example, parameters},
    request::{
        decode::Json,
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::ListQuery,
    },
    resources::{CREDITS, PEOPLE},
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        claim_operation(),
        rename_operation(),
        show_operation(),
        usage_operation(),
        transfers_operation(),
    ]
}

fn show_operation() -> Operation {
    Operation::get("/v1/me", "me_show", show)
        .tag(CREDITS)
        .summary("Show the caller")
        .text("The account and the key of the request. Any key is accepted.")
        .answers::<MeBody<'_>>(200, "The caller.", example(include_str!("me/me.json")))
}

async fn show(State(engine): State<Engine>, Extension(caller): Extension<Caller>) -> HandlerResult {
    let me = engine.me_show(&caller).await?;
    Ok(encode::ok(&credits::me(&me.key, &me.profile, me.is_suspended)))
}

fn usage_operation() -> Operation {
    let text = "The account's credit, the credit held for rounds in progress, and this month's usage. Any key of the account is accepted.";
    Operation::get("/v1/me/usage", "usage_show", usage)
        .tag(CREDITS)
        .summary("Show the account's credit")
        .text(text)
        .answers::<AccountUsageBody>(200, "The credit.", example(include_str!("me/usage.json")))
        .tool(
            Tool::reads(
                "get_usage",
                "Show the account's credit",
                "Returns the account's credit and this month's usage.",
            )
            .scopes(&[Scope::UsageRead])
            .ignores_unknown(),
        )
}

async fn usage(
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

fn transfers_operation() -> Operation {
    let text = "The lines of the account's ledger, newest first. They never change.";
    Operation::get("/v1/me/transfers", "transfer_list", transfers)
        .tag(CREDITS)
        .summary("List credit transfers")
        .text(text)
        .scope(Scope::UsageRead)
        .with(parameters::of_list())
        .answers::<PageBody<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            example(include_str!("accounts/transfer_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
}

async fn transfers(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let (before, limit) = (query.text_position()?, query.with_one_more());
    let mut found = engine.transfer_list(&caller, before.as_deref(), limit).await?;
    let next = query.cut(&mut found, |line| [line.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(credits::transfer), next.as_deref())))
}

fn claim_operation() -> Operation {
    let text = "Gives the account its first handle, which is its public name. Users and teams share one set of handles.";
    Operation::patch("/v1/me", "handle_claim", claim)
        .tag(PEOPLE)
        .summary("Claim a handle")
        .text(text)
        .scope(Scope::AccountWrite)
        .takes::<HandleRequest>([("plain", json!({ "handle": "ann" }))])
        .answers::<ClaimedHandle<'_>>(
            200,
            "The handle.",
            json!({ "handle": "ann", "claimed_at": AT }),
        )
        .idempotent()
        .refuses([
            ProblemCode::HandleInvalid,
            ProblemCode::HandleTaken,
            ProblemCode::HandleReserved,
            ProblemCode::HandleAlreadyClaimed,
        ])
        .tool(Tool::adds(
            "claim_handle",
            "Claim a handle",
            "Gives the account its first handle, which is its public name.",
        ))
}

async fn claim(
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

fn rename_operation() -> Operation {
    let text = "Changes the account's handle; the old one redirects for 90 days. A handle must be kept for 90 days and can change at most three times a year.";
    let about = "Changes the account's handle; the old one redirects for 90 days. At most three changes per year.";
    Operation::post("/v1/me/rename-handle", "handle_rename", rename)
        .tag(PEOPLE)
        .summary("Change the handle")
        .text(text)
        .scope(Scope::AccountWrite)
        .takes::<HandleRequest>([("plain", json!({ "handle": "anna" }))])
        .answers::<ClaimedHandle<'_>>(
            200,
            "The handle.",
            json!({ "handle": "anna", "claimed_at": AT }),
        )
        .idempotent()
        .refuses([
            ProblemCode::HandleInvalid,
            ProblemCode::HandleTaken,
            ProblemCode::HandleReserved,
            ProblemCode::HandleNotClaimed,
            ProblemCode::HandleRenameTooSoon,
            ProblemCode::HandleRenameLimitExceeded,
        ])
        .tool(Tool::adds("rename_handle", "Change the handle", about))
}

async fn rename(
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

const AT: &str = "2026-09-21T14:13:20Z";

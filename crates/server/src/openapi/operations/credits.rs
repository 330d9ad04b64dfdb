//! What the operations on accounts and credit are for.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    credits::{AccountBody, AccountUsageBody, GrantBody, GrantRequest, MeBody, TransferBody},
    kit::page::PageBody,
};

use super::CREDITS;
use crate::openapi::{description::OperationDescription, examples, parameters};

pub(super) fn me_show() -> OperationDescription {
    let text = "The account and the key of the request. Any key is accepted.";
    OperationDescription::new(CREDITS, "Show the caller", text).answers::<MeBody<'_>>(
        200,
        "The caller.",
        examples::of("me"),
    )
}

pub(super) fn usage_show() -> OperationDescription {
    let text = "The account's credit, the credit held for rounds in progress, and this month's usage. Any key of the account is accepted.";
    OperationDescription::new(CREDITS, "Show the account's credit", text)
        .answers::<AccountUsageBody>(200, "The credit.", examples::of("usage"))
}

pub(super) fn transfer_list() -> OperationDescription {
    let text = "The lines of the account's ledger, newest first. They never change.";
    OperationDescription::new(CREDITS, "List credit transfers", text)
        .scope(Scope::UsageRead)
        .with(parameters::of_list())
        .answers::<PageBody<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            examples::of("transfer_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

pub(super) fn account_transfers() -> OperationDescription {
    let text = "The lines of the ledger of an account, newest first. They never change.";
    OperationDescription::new(CREDITS, "List credit transfers of an account", text)
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            examples::of("transfer_list"),
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

pub(super) fn account_list() -> OperationDescription {
    OperationDescription::new(CREDITS, "List accounts", "All accounts, by id, with their credit.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, AccountBody<'_>>>(
            200,
            "A page of accounts.",
            examples::of("account_list"),
        )
        .refuses([ProblemCode::ValidationError])
}

pub(super) fn account_show() -> OperationDescription {
    OperationDescription::new(CREDITS, "Show an account", "An account, with its credit.")
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account"))
        .refuses([ProblemCode::NotFound])
}

pub(super) fn credit_grant() -> OperationDescription {
    let text = "Grants credit to an account. A negative amount takes credit back, but no more than is available.";
    OperationDescription::new(CREDITS, "Grant credit", text)
        .scope(Scope::Admin)
        .takes::<GrantRequest>([("plain", examples::of("credit_grant_request"))])
        .answers::<GrantBody<'_>>(201, "The account's credit.", examples::of("credit_grant"))
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

pub(super) fn account_suspend() -> OperationDescription {
    let text = "Suspends an account: paid work is refused until it is resumed. Rounds in progress continue. Suspending again has no effect. The operator's account cannot be suspended.";
    OperationDescription::new(CREDITS, "Suspend an account", text)
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account_suspended"))
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

pub(super) fn account_resume() -> OperationDescription {
    OperationDescription::new(CREDITS, "Resume an account", "Ends the suspension of an account.")
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account"))
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

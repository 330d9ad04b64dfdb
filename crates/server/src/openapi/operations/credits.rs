//! What the operations on accounts and credit are for.

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::api::{
    credits::{AccountBody, GrantBody, GrantRequest, MeBody, TransferBody, UsageBody},
    page::Page,
};

use super::CREDITS;
use crate::openapi::{description::Description, examples, parameters};

pub(super) fn me_show() -> Description {
    let text = "The account and the key of the request. Any key is accepted.";
    Description::new(CREDITS, "Show the caller", text).answers::<MeBody<'_>>(
        200,
        "The caller.",
        examples::of("me"),
    )
}

pub(super) fn usage_show() -> Description {
    let text = "The account's credit, the credit held for rounds in progress, and this month's usage. Any key of the account is accepted.";
    Description::new(CREDITS, "Show the account's credit", text).answers::<UsageBody>(
        200,
        "The credit.",
        examples::of("usage"),
    )
}

pub(super) fn transfer_list() -> Description {
    let text = "The lines of the account's ledger, newest first. They never change.";
    Description::new(CREDITS, "List credit transfers", text)
        .scope(Scope::UsageRead)
        .with(parameters::of_list())
        .answers::<Page<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            examples::of("transfer_list"),
        )
        .refuses([Code::ValidationError])
}

pub(super) fn account_transfers() -> Description {
    let text = "The lines of the ledger of an account, newest first. They never change.";
    Description::new(CREDITS, "List credit transfers of an account", text)
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<Page<'_, TransferBody<'_>>>(
            200,
            "A page of lines.",
            examples::of("transfer_list"),
        )
        .refuses([Code::ValidationError, Code::NotFound])
}

pub(super) fn account_list() -> Description {
    Description::new(CREDITS, "List accounts", "All accounts, by id, with their credit.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<Page<'_, AccountBody<'_>>>(
            200,
            "A page of accounts.",
            examples::of("account_list"),
        )
        .refuses([Code::ValidationError])
}

pub(super) fn account_show() -> Description {
    Description::new(CREDITS, "Show an account", "An account, with its credit.")
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account"))
        .refuses([Code::NotFound])
}

pub(super) fn credit_grant() -> Description {
    let text = "Grants credit to an account. A negative amount takes credit back, but no more than is available.";
    Description::new(CREDITS, "Grant credit", text)
        .scope(Scope::Admin)
        .takes::<GrantRequest>([("plain", examples::of("credit_grant_request"))])
        .answers::<GrantBody<'_>>(201, "The account's credit.", examples::of("credit_grant"))
        .repeatable()
        .refuses([Code::ValidationError, Code::NotFound])
}

pub(super) fn account_suspend() -> Description {
    let text = "Suspends an account: paid work is refused until it is resumed. Rounds in progress continue. Suspending again has no effect. The operator's account cannot be suspended.";
    Description::new(CREDITS, "Suspend an account", text)
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account_suspended"))
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

pub(super) fn account_resume() -> Description {
    Description::new(CREDITS, "Resume an account", "Ends the suspension of an account.")
        .scope(Scope::Admin)
        .answers::<AccountBody<'_>>(200, "The account.", examples::of("account"))
        .repeatable()
        .refuses([Code::NotFound])
}

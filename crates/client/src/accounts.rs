//! `/v1/accounts`: the accounts of a server, for its operator.

use jurat_wire::api::credits::{AccountBody, GrantBody, GrantDraft, TransferBody};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/accounts";

pub fn list() -> Call<Page<AccountBody<'static>>> {
    Call::get(ROUTE)
}

pub fn grant(account: &str, grant: &GrantDraft) -> Call<GrantBody<'static>> {
    Call::post(path(ROUTE, &[account, "grants"]), grant)
}

pub fn transfers(account: &str) -> Call<Page<TransferBody<'static>>> {
    Call::get(path(ROUTE, &[account, "transfers"]))
}

pub fn suspend(account: &str) -> Call<AccountBody<'static>> {
    Call::post_empty(path(ROUTE, &[account, "suspend"]))
}

pub fn resume(account: &str) -> Call<AccountBody<'static>> {
    Call::post_empty(path(ROUTE, &[account, "resume"]))
}

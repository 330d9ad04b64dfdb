//! `/v1/accounts`: the accounts of a server, for its operator.

use jurat_wire::api::credits::{AccountBody, GrantBody, TransferBody};
use serde_json::json;

use crate::call::{Call, Page, members, path};

const ROUTE: &str = "/v1/accounts";

pub fn list() -> Call<Page<AccountBody<'static>>> {
    Call::get(ROUTE)
}

pub fn grant(account: &str, amount_usd: &str, note: Option<&str>) -> Call<GrantBody<'static>> {
    let body = members([("amount_usd", json!(amount_usd)), ("note", json!(note))]);
    Call::post(path(ROUTE, &[account, "grants"]), &body)
}

pub fn transfers(account: &str) -> Call<Page<TransferBody<'static>>> {
    Call::get(path(ROUTE, &[account, "transfers"]))
}

pub fn suspend(account: &str) -> Call<AccountBody<'static>> {
    Call::post(path(ROUTE, &[account, "suspend"]), &json!({}))
}

pub fn resume(account: &str) -> Call<AccountBody<'static>> {
    Call::post(path(ROUTE, &[account, "resume"]), &json!({}))
}

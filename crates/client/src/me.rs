//! `/v1/me`: the caller's own account.

use jurat_wire::api::{
    credits::{AccountUsageBody, MeBody, TransferBody},
    people::ClaimedHandle,
};
use serde_json::json;

use crate::call::{Call, Page};

const ROUTE: &str = "/v1/me";

pub fn show() -> Call<MeBody<'static>> {
    Call::get(ROUTE)
}

pub fn usage() -> Call<AccountUsageBody> {
    Call::get("/v1/me/usage")
}

pub fn transfers() -> Call<Page<TransferBody<'static>>> {
    Call::get("/v1/me/transfers")
}

pub fn claim_handle(handle: &str) -> Call<ClaimedHandle<'static>> {
    Call::patch(ROUTE, &json!({ "handle": handle }))
}

pub fn rename_handle(handle: &str) -> Call<ClaimedHandle<'static>> {
    Call::post("/v1/me/rename-handle", &json!({ "handle": handle }))
}

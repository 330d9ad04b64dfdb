//! `/v1/me`: the caller's own account.

use jurat_wire::api::{
    credits::{AccountUsageBody, MeBody, TransferBody},
    people::{ClaimedHandle, HandleDraft},
};

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
    Call::patch(ROUTE, &HandleDraft { handle: handle.to_owned() })
}

pub fn rename_handle(handle: &str) -> Call<ClaimedHandle<'static>> {
    Call::post("/v1/me/rename-handle", &HandleDraft { handle: handle.to_owned() })
}

//! `/v1/sessions`.

use jurat_wire::api::{sessions::SessionBody, status::RemovalBody};
use serde_json::Value;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/sessions";

pub fn add(session: &Value) -> Call<SessionBody<'static>> {
    Call::post(ROUTE, session)
}

pub fn list() -> Call<Page<SessionBody<'static>>> {
    Call::get(ROUTE)
}

pub fn show(id: &str) -> Call<SessionBody<'static>> {
    Call::get(path(ROUTE, &[id]))
}

pub fn remove(id: &str) -> Call<RemovalBody<'static>> {
    Call::delete(path(ROUTE, &[id]))
}

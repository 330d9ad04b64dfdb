//! `/v1/sessions`.

use jurat_wire::api::{
    sessions::{AddSessionDraft, SessionBody},
    status::RemovalBody,
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/sessions";

pub fn add(session: &AddSessionDraft) -> Call<SessionBody<'static>> {
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

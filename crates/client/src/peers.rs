//! `/v1/peers`.

use jurat_wire::api::nodes::{
    PeerBody, PeerBookingBody, PeerOffersBody, PeerStatementBody, TrustNodeDraft,
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/peers";

pub fn list() -> Call<Page<PeerBody<'static>>> {
    Call::get(ROUTE)
}

pub fn show(id: &str) -> Call<PeerBody<'static>> {
    Call::get(path(ROUTE, &[id]))
}

pub fn trust(id: &str, peer: &TrustNodeDraft) -> Call<PeerBody<'static>> {
    Call::put(path(ROUTE, &[id]), peer)
}

pub fn block(id: &str) -> Call<PeerBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "block"]))
}

pub fn remove(id: &str) -> Call<()> {
    Call::delete(path(ROUTE, &[id]))
}

pub fn offers(id: &str) -> Call<PeerOffersBody<'static>> {
    Call::get(path(ROUTE, &[id, "offers"]))
}

pub fn bookings(id: &str) -> Call<Page<PeerBookingBody<'static>>> {
    Call::get(path(ROUTE, &[id, "bookings"]))
}

pub fn statement(id: &str) -> Call<PeerStatementBody<'static>> {
    Call::get(path(ROUTE, &[id, "statement"]))
}

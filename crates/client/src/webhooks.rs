//! `/v1/webhooks`.

use jurat_wire::api::webhooks::{
    AddWebhookDraft, ChangeWebhookDraft, RotateWebhookDraft, WebhookBody, WebhookDeliveryBody,
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/webhooks";

pub fn add(webhook: &AddWebhookDraft) -> Call<WebhookBody> {
    Call::post(ROUTE, webhook)
}

pub fn list() -> Call<Page<WebhookBody>> {
    Call::get(ROUTE)
}

pub fn show(id: &str) -> Call<WebhookBody> {
    Call::get(path(ROUTE, &[id]))
}

pub fn change(id: &str, change: &ChangeWebhookDraft) -> Call<WebhookBody> {
    Call::patch(path(ROUTE, &[id]), change)
}

pub fn remove(id: &str) -> Call<()> {
    Call::delete(path(ROUTE, &[id]))
}

pub fn rotate(id: &str, grace_seconds: Option<u64>) -> Call<WebhookBody> {
    Call::post(path(ROUTE, &[id, "rotate"]), &RotateWebhookDraft { grace_seconds })
}

pub fn test(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "test"]))
}

pub fn deliveries(id: &str, state: Option<&str>) -> Call<Page<WebhookDeliveryBody<'static>>> {
    Call::get(path(ROUTE, &[id, "deliveries"])).query("state", state)
}

pub fn delivery(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::get(path(ROUTE, &["deliveries", id]))
}

pub fn replay(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::post_empty(path(ROUTE, &["deliveries", id, "replay"]))
}

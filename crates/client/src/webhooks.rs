//! `/v1/webhooks`.

use jurat_wire::api::webhooks::{WebhookBody, WebhookDeliveryBody};
use serde_json::{Value, json};

use crate::call::{Call, Page, members, path};

const ROUTE: &str = "/v1/webhooks";

pub fn add(webhook: &Value) -> Call<WebhookBody> {
    Call::post(ROUTE, webhook)
}

pub fn list() -> Call<Page<WebhookBody>> {
    Call::get(ROUTE)
}

pub fn show(id: &str) -> Call<WebhookBody> {
    Call::get(path(ROUTE, &[id]))
}

pub fn change(id: &str, change: &Value) -> Call<WebhookBody> {
    Call::patch(path(ROUTE, &[id]), change)
}

pub fn remove(id: &str) -> Call<()> {
    Call::delete(path(ROUTE, &[id]))
}

pub fn rotate(id: &str, grace_seconds: Option<u64>) -> Call<WebhookBody> {
    let body = members([("grace_seconds", json!(grace_seconds))]);
    Call::post(path(ROUTE, &[id, "rotate"]), &body)
}

pub fn test(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::post(path(ROUTE, &[id, "test"]), &json!({}))
}

pub fn deliveries(id: &str, state: Option<&str>) -> Call<Page<WebhookDeliveryBody<'static>>> {
    Call::get(path(ROUTE, &[id, "deliveries"])).query("state", state)
}

pub fn delivery(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::get(path(ROUTE, &["deliveries", id]))
}

pub fn replay(id: &str) -> Call<WebhookDeliveryBody<'static>> {
    Call::post(path(ROUTE, &["deliveries", id, "replay"]), &json!({}))
}

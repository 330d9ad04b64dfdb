//! The deliveries to a webhook.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    webhook::{WebhookDeliveryFilter, WebhookDeliveryState},
};
use jurat_engine::Engine;
use jurat_wire::{
    api::{kit::page::PageBody, webhooks::WebhookDeliveryBody},
    problem::Problem,
};
use serde_json::{Value, json};

use super::{AT, ID, WEBHOOK};
use crate::{
    mcp::render,
    operation::{
        Operation, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        cursor,
        decode::PathText,
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::WEBHOOKS,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![list_operation(), show_operation(), replay_operation()]
}

const DELIVERY_ID: &str = "dlv_5f0c2a3b9e7d41c8a6b0d3e2f1a4c597_01K5PB5KG0ZV3ZC2Q4R8T6M1NE";
const DELIVERY: PathParameter =
    PathParameter::new("id", "The id of a webhook delivery.", DELIVERY_ID);

fn list_operation() -> Operation {
    let page = json!({ "items": [line_example()], "next_cursor": null });
    let about = "Lists deliveries to a webhook, newest first, with the status of the last answer.";
    Operation::get("/v1/webhooks/{id}/deliveries", "webhook_deliveries", list)
        .tag(WEBHOOKS)
        .summary("List the deliveries to a webhook")
        .text("The deliveries to a webhook, newest first, without their content.")
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .with(parameters::of_list())
        .with(parameters::of_webhook_deliveries())
        .answers::<PageBody<'_, WebhookDeliveryBody<'_>>>(200, "A page of deliveries.", page)
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .tool(
            Tool::reads("list_webhook_deliveries", "List webhook deliveries", about)
                .path("webhook_id", "The id of a webhook.")
                .query(&["limit", "cursor", "state"])
                .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: ListQuery,
) -> HandlerResult {
    let filter = filter_of(&query, id)?;
    let mut found = engine.webhook_deliveries(&caller, &filter).await?;
    let next = query.cut(&mut found, |it| cursor::by_time(it.created_at, &it.id));
    let lines = found.iter().map(WebhookDeliveryBody::line);
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

fn filter_of(query: &ListQuery, webhook: String) -> Result<WebhookDeliveryFilter, Problem> {
    query.only(&["state"])?;
    let state = query.filters.get("state").map(|text| {
        let known: Vec<&str> = WebhookDeliveryState::ALL.iter().map(|it| it.as_str()).collect();
        let reason = format!("must be one of {}", known.join(", "));
        text.parse().map_err(|()| wrong("state", &reason))
    });
    Ok(WebhookDeliveryFilter {
        webhook,
        state: state.transpose()?,
        before: query.time_position()?,
        limit: query.with_one_more(),
    })
}

fn show_operation() -> Operation {
    let text = "One delivery with the body that is sent and the beginning of the last answer. The key needs the scope that reads the event.";
    Operation::get("/v1/webhooks/deliveries/{id}", "webhook_delivery_show", show)
        .tag(WEBHOOKS)
        .summary("Show a webhook delivery")
        .text(text)
        .in_path([DELIVERY])
        .scope(Scope::AccountWrite)
        .answers::<WebhookDeliveryBody<'_>>(200, "The delivery.", whole_example())
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.webhook_delivery_show(&caller, &id).await?;
    Ok(encode::ok(&WebhookDeliveryBody::whole(&found)))
}

fn replay_operation() -> Operation {
    let text = "Sends an event again that was delivered or has failed, with the same `webhook-id`, and with retries as for a new one.";
    let about = "Sends a webhook event again that was delivered or has failed.";
    Operation::post("/v1/webhooks/deliveries/{id}/replay", "webhook_replay", replay)
        .tag(WEBHOOKS)
        .summary("Replay a webhook delivery")
        .text(text)
        .in_path([DELIVERY])
        .scope(Scope::AccountWrite)
        .answers::<WebhookDeliveryBody<'_>>(200, "The waiting delivery.", line_example())
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound, ProblemCode::RateLimited])
        .refuses_when(ProblemCode::Conflict, "it is waiting, or its webhook is disabled")
        .tool(
            Tool::changes("replay_webhook_delivery", "Replay a webhook delivery", about)
                .path("delivery_id", "The id of a webhook delivery."),
        )
}

async fn replay(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let keyed = idempotency.write_for("webhook_replay", &Value::Null, StatusCode::OK, |it| {
        json!(WebhookDeliveryBody::line(it))
    });
    let done = engine.webhook_replay(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&WebhookDeliveryBody::line(it))))
}

fn line_example() -> Value {
    json!({
        "id": DELIVERY_ID,
        "webhook_id": ID,
        "event_id": "evt_5f0c2a3b9e7d41c8a6b0d3e2f1a4c597",
        "event_type": "webhook.test",
        "state": "pending",
        "attempts": 0,
        "next_attempt_at": AT,
        "status": null,
        "last_error": null,
        "created_at": AT,
        "updated_at": AT,
    })
}

pub(super) fn whole_example() -> Value {
    let mut delivery = line_example();
    delivery["event"] = json!({
        "type": "webhook.test",
        "timestamp": "2026-09-21T14:13:20.000Z",
        "data": { "webhook_id": ID },
    });
    delivery
}

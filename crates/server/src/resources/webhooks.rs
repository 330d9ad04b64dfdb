//! `/v1/webhooks`.

mod deliveries;

use axum::{
    Extension,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    list::ListPage,
    webhook::{Webhook, WebhookDelivery},
};
use jurat_engine::{Engine, IssuedWebhook};
use jurat_wire::api::{
    kit::page::PageBody,
    webhooks::{
        self, AddWebhookRequest, ChangeWebhookRequest, RotateWebhookRequest, WebhookBody,
        WebhookDeliveryBody,
    },
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, MaybeJson, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters},
    },
    resources::WEBHOOKS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    let mut all = vec![
        add_operation(),
        list_operation(),
        show_operation(),
        change_operation(),
        remove_operation(),
        rotate_operation(),
        test_operation(),
    ];
    all.extend(deliveries::operations());
    all
}

const ID: &str = "whk_01K5PB5KG0ZV3ZC2Q4R8T6M1NE";
const WEBHOOK: PathParameter = PathParameter::new("id", "The id of a webhook.", ID);

fn add_operation() -> Operation {
    let text = "Adds an address that receives the events of the account, signed by the Standard Webhooks scheme. Only this reply and that of a rotation contain the signing secret. The address must be public and begin with `https://`, unless the operator allows a private range. A webhook receives only events that the key could read. Events are delivered at least once, under a stable `webhook-id`; a failed delivery is retried for about three days.";
    let request =
        json!({ "url": "https://example.com/jurat", "events": ["round.decided", "task.failed"] });
    Operation::post("/v1/webhooks", "webhook_add", add)
        .tag(WEBHOOKS)
        .summary("Add a webhook")
        .text(text)
        .scope(Scope::AccountWrite)
        .takes::<AddWebhookRequest>([("plain", request)])
        .answers::<WebhookBody>(201, "The webhook with its secret, shown once.", issued_example())
        .and_header("Cache-Control", "`no-store`.")
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotSupported])
        .refuses_when(ProblemCode::Conflict, "the account has as many webhooks as it may have")
        .refuses_when(
            ProblemCode::Forbidden,
            "the key lacks the scope, or cannot read one of the events",
        )
}

async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let new = webhooks::decode_add(&body)?;
    let keyed = idempotency.write_for("webhook_add", &body, StatusCode::CREATED, without_secret);
    let done = engine.webhook_add(&caller, new, keyed).await?;
    Ok(idempotency::reply(done, issued))
}

fn list_operation() -> Operation {
    let page = json!({ "items": [webhook_example()], "next_cursor": null });
    let about = "Lists the addresses that receive the account's events, with their state.";
    Operation::get("/v1/webhooks", "webhook_list", list)
        .tag(WEBHOOKS)
        .summary("List webhooks")
        .text("The webhooks of the account, in order of creation, without their secrets.")
        .scope(Scope::AccountWrite)
        .with(parameters::of_list())
        .answers::<PageBody<'_, WebhookBody>>(200, "A page of webhooks.", page)
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_webhooks", "List webhooks", about)
                .query(&["limit", "cursor"])
                .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let page = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut found = engine.webhook_list(&caller, &page).await?;
    let next = query.cut(&mut found, |webhook| [webhook.id.clone()]);
    let lines = found.iter().map(WebhookBody::new);
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

fn show_operation() -> Operation {
    Operation::get("/v1/webhooks/{id}", "webhook_show", show)
        .tag(WEBHOOKS)
        .summary("Show a webhook")
        .text("A webhook with its state, without its secret.")
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .answers::<WebhookBody>(200, "The webhook.", webhook_example())
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.webhook_show(&caller, &id).await?;
    Ok(encode::ok(&WebhookBody::new(&found)))
}

fn change_operation() -> Operation {
    let text = "Enables or disables a webhook, or changes its events or its description. Disabling it ends the deliveries that wait; they can be replayed. To change the address, add another webhook.";
    Operation::patch("/v1/webhooks/{id}", "webhook_change", change)
        .tag(WEBHOOKS)
        .summary("Change a webhook")
        .text(text)
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .takes::<ChangeWebhookRequest>([("plain", json!({ "is_enabled": true }))])
        .answers::<WebhookBody>(200, "The webhook.", webhook_example())
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn change(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    Json(body): Json,
) -> HandlerResult {
    let change = webhooks::decode_change(&body)?;
    let keyed = idempotency.write_for("webhook_change", &body, StatusCode::OK, without_secret);
    let done = engine.webhook_change(&caller, &id, change, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&WebhookBody::new(it))))
}

fn remove_operation() -> Operation {
    Operation::delete("/v1/webhooks/{id}", "webhook_remove", remove)
        .tag(WEBHOOKS)
        .summary("Remove a webhook")
        .text("Removes a webhook with its deliveries.")
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .answers_nothing(204, "It is removed.")
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let (status, nothing) = (StatusCode::NO_CONTENT, Value::Null);
    let keyed = idempotency.write_for("webhook_remove", &nothing, status, |()| Value::Null);
    let done = engine.webhook_remove(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |()| StatusCode::NO_CONTENT.into_response()))
}

fn rotate_operation() -> Operation {
    let text = "Replaces the signing secret. Until the grace period ends, deliveries carry a signature of each secret, so that a receiver can change over at any time.";
    Operation::post("/v1/webhooks/{id}/rotate", "webhook_rotate", rotate)
        .tag(WEBHOOKS)
        .summary("Rotate the secret of a webhook")
        .text(text)
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .takes::<RotateWebhookRequest>([("plain", json!({ "grace_seconds": 3600 }))])
        .or_nothing()
        .answers::<WebhookBody>(201, "The webhook with its secret, shown once.", rotated_example())
        .and_header("Cache-Control", "`no-store`.")
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn rotate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let grace_ms = webhooks::decode_rotate(&body)?;
    let keyed = idempotency.write_for("webhook_rotate", &body, StatusCode::CREATED, without_secret);
    let done = engine.webhook_rotate(&caller, &id, grace_ms, keyed).await?;
    Ok(idempotency::reply(done, issued))
}

fn test_operation() -> Operation {
    let text = "Sends an event of type `webhook.test` to a webhook, whatever events it wants. The reply is the waiting delivery; read it again to see the answer.";
    Operation::post("/v1/webhooks/{id}/test", "webhook_test", test)
        .tag(WEBHOOKS)
        .summary("Test a webhook")
        .text(text)
        .in_path([WEBHOOK])
        .scope(Scope::AccountWrite)
        .answers::<WebhookDeliveryBody<'_>>(
            201,
            "The delivery of the test.",
            deliveries::whole_example(),
        )
        .idempotent()
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound, ProblemCode::RateLimited])
        .refuses_when(ProblemCode::Conflict, "the webhook is disabled")
}

async fn test(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let (status, nothing) = (StatusCode::CREATED, Value::Null);
    let keyed = idempotency.write_for("webhook_test", &nothing, status, sent);
    let done = engine.webhook_test(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::created(&sent(it))))
}

fn sent(delivery: &WebhookDelivery) -> Value {
    json!(WebhookDeliveryBody::whole(delivery))
}

/// The reply that is stored for repeated requests, without the secret.
fn without_secret(webhook: &Webhook) -> Value {
    json!(WebhookBody::new(webhook))
}

fn issued(IssuedWebhook { webhook, secret }: &IssuedWebhook) -> Response {
    let mut response = encode::created(&WebhookBody::issued(webhook, secret));
    // A secret that is shown once must not reappear from a cache.
    let no_store = HeaderValue::from_static("no-store");
    response.headers_mut().insert(header::CACHE_CONTROL, no_store);
    response
}

const AT: &str = "2026-09-21T14:13:20Z";

fn webhook_example() -> Value {
    json!({
        "id": ID,
        "url": "https://example.com/jurat",
        "description": null,
        "events": ["round.decided", "task.failed"],
        "state": "enabled",
        "disabled_reason": null,
        "disabled_at": null,
        "failing_since": null,
        "previous_secret_until": null,
        "created_at": AT,
        "updated_at": AT,
    })
}

fn issued_example() -> Value {
    let mut webhook = webhook_example();
    webhook["secret"] = json!("whsec_c2VjcmV0IG9mIHRoZSBkb2N1bWVudGF0aW9uLi4uLi4=");
    webhook
}

fn rotated_example() -> Value {
    let mut webhook = issued_example();
    webhook["previous_secret_until"] = json!("2026-09-21T15:13:20Z");
    webhook
}

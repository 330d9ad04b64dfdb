//! The resource `/v1/webhooks`: addresses that receive the events of an account.

use std::{borrow::Cow, collections::BTreeSet};

use jurat_core::{
    code::ProblemCode,
    webhook::{
        NewWebhook, Webhook, WebhookChange, WebhookDelivery, WebhookEventType, WebhookEvents,
        WebhookSecret, WebhookState,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::{
    json::short,
    request::{
        self, FieldFault, request, text, values,
        values::{PlainText, Whole, list_of, text_of, texts_of},
    },
    time::Time,
    words,
};
use crate::problem::Problem;

const LONGEST_URL: usize = 2_048;
const LONGEST_DESCRIPTION: usize = 256;
const LONGEST_GRACE_S: u64 = 30 * 86_400;
const DEFAULT_GRACE_S: u64 = 86_400;

request! {
    /// A webhook to add.
    pub strict struct AddWebhookRequest, draft AddWebhookDraft {
        /// Public HTTPS address that receives the events. Private addresses are refused, unless the
        /// operator allows them.
        url: WebhookUrl,
        /// Types of events to send; by default all of them, including those of later versions. The key
        /// needs the scopes that read these events.
        events: Option<WebhookEventList>,
        description: Option<PlainText<LONGEST_DESCRIPTION>>,
    }

    /// A change to a webhook; fields that are left out stay as they are.
    pub strict struct ChangeWebhookRequest, draft ChangeWebhookDraft {
        /// Enable or disable the webhook. Enabling it forgets its failures.
        is_enabled: Option<bool>,
        /// Types of events to send.
        events: Option<WebhookEventList>,
        description: Option<PlainText<LONGEST_DESCRIPTION>>,
    }

    /// How to rotate the secret of a webhook.
    pub strict struct RotateWebhookRequest, draft RotateWebhookDraft {
        /// How long deliveries are signed with the previous secret, too; defaults to one day.
        grace_seconds: Option<Whole<0, LONGEST_GRACE_S>>,
    }
}

values! {
    /// The address of a webhook; the server checks where it leads.
    pub struct WebhookUrl(String): text().max_length(Some(LONGEST_URL)) => url;

    /// At least one type of event.
    pub struct WebhookEventList(BTreeSet<WebhookEventType> as Vec<String>):
        list_of::<words::WebhookEventType>().min_items(Some(1))
        => event_list, with words::WebhookEventType;
}

/// A webhook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Webhook)]
pub struct WebhookBody {
    pub id: String,
    pub url: String,
    #[schema(required = true)]
    pub description: Option<String>,
    /// Types of events that it receives; null for all.
    #[schema(required = true)]
    pub events: Option<Vec<words::WebhookEventType>>,
    pub state: words::WebhookState,
    /// Why it is disabled.
    #[schema(required = true)]
    pub disabled_reason: Option<String>,
    #[schema(required = true)]
    pub disabled_at: Option<Time>,
    /// First failure after the last success; null while deliveries succeed.
    #[schema(required = true)]
    pub failing_since: Option<Time>,
    /// How long deliveries are signed with the previous secret, too.
    #[schema(required = true)]
    pub previous_secret_until: Option<Time>,
    pub created_at: Time,
    pub updated_at: Time,
    /// The signing secret, only in the reply that creates it: to adding a webhook or rotating its
    /// secret, and not if that is repeated with its idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub secret: Option<String>,
}

/// A delivery of an event to a webhook.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub struct WebhookDeliveryBody<'a> {
    pub id: Cow<'a, str>,
    pub webhook_id: Cow<'a, str>,
    /// The value of the header `webhook-id`: the same on every attempt.
    pub event_id: Cow<'a, str>,
    pub event_type: words::WebhookEventType,
    pub state: words::WebhookDeliveryState,
    /// Number of attempts.
    pub attempts: u32,
    /// When the next attempt is due; null if there is none.
    #[schema(required = true)]
    pub next_attempt_at: Option<Time>,
    /// Status of the last answer.
    #[schema(required = true)]
    pub status: Option<u16>,
    /// Why the last attempt failed.
    #[schema(required = true)]
    pub last_error: Option<Cow<'a, str>>,
    pub created_at: Time,
    pub updated_at: Time,
    /// The beginning of the last answer; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub reply: Option<Cow<'a, str>>,
    /// The body as it is sent; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    pub event: Option<Value>,
}

impl WebhookBody {
    /// A webhook without its secret.
    pub fn new(webhook: &Webhook) -> Self {
        let disabled = webhook.disabled.as_ref();
        let events = match &webhook.events {
            WebhookEvents::All => None,
            WebhookEvents::Only(types) => {
                Some(types.iter().copied().map(words::WebhookEventType).collect())
            }
        };
        Self {
            id: webhook.id.clone(),
            url: webhook.url.clone(),
            description: webhook.description.clone(),
            events,
            state: words::WebhookState(webhook.state),
            disabled_reason: disabled.map(|it| it.reason.clone()),
            disabled_at: disabled.map(|it| Time(it.at)),
            failing_since: webhook.failing_since.map(Time),
            previous_secret_until: webhook.previous_secret_until.map(Time),
            created_at: Time(webhook.created_at),
            updated_at: Time(webhook.updated_at),
            secret: None,
        }
    }

    /// A webhook with its new secret.
    pub fn issued(webhook: &Webhook, secret: &WebhookSecret) -> Self {
        Self { secret: Some(secret.reveal().to_owned()), ..Self::new(webhook) }
    }
}

impl<'a> WebhookDeliveryBody<'a> {
    /// A delivery as lists show it.
    pub fn line(delivery: &'a WebhookDelivery) -> Self {
        Self {
            id: Cow::Borrowed(&delivery.id),
            webhook_id: Cow::Borrowed(&delivery.webhook),
            event_id: Cow::Borrowed(&delivery.event_id),
            event_type: words::WebhookEventType(delivery.event_type),
            state: words::WebhookDeliveryState(delivery.state),
            attempts: delivery.attempts,
            next_attempt_at: delivery.next_at.map(Time),
            status: delivery.status,
            last_error: delivery.last_error.as_deref().map(Cow::Borrowed),
            created_at: Time(delivery.created_at),
            updated_at: Time(delivery.updated_at),
            reply: None,
            event: None,
        }
    }

    /// A delivery with its content and the answer to it.
    pub fn whole(delivery: &'a WebhookDelivery) -> Self {
        Self {
            reply: delivery.reply.as_deref().map(Cow::Borrowed),
            event: serde_json::from_str(&delivery.body).ok(),
            ..Self::line(delivery)
        }
    }
}

/// Reads a webhook to add.
pub fn decode_add(body: &Value) -> Result<NewWebhook, Problem> {
    let new: AddWebhookRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(NewWebhook {
        url: new.url.0,
        description: new.description.map(|it| it.0),
        events: new.events.map_or(WebhookEvents::All, |it| WebhookEvents::Only(it.0)),
    })
}

/// Reads a change to a webhook.
pub fn decode_change(body: &Value) -> Result<WebhookChange, Problem> {
    let change: ChangeWebhookRequest = request::read(body, ProblemCode::ValidationError)?;
    let state =
        |is_enabled| if is_enabled { WebhookState::Enabled } else { WebhookState::Disabled };
    Ok(WebhookChange {
        description: change.description.map(|it| it.0),
        events: change.events.map(|it| WebhookEvents::Only(it.0)),
        state: change.is_enabled.map(state),
    })
}

/// Reads how long the previous secret signs, in milliseconds.
pub fn decode_rotate(body: &Value) -> Result<u64, Problem> {
    let order: RotateWebhookRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(order.grace_seconds.map_or(DEFAULT_GRACE_S, |it| it.0) * 1_000)
}

fn url(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    if LONGEST_URL < text.chars().count() {
        return Err(format!("must have at most {LONGEST_URL} characters").into());
    }
    Ok(text.to_owned())
}

fn event_list(value: &Value) -> Result<BTreeSet<WebhookEventType>, FieldFault> {
    let wrong = |what: &str| -> FieldFault {
        let known: Vec<&str> = WebhookEventType::ALL.iter().map(|it| it.as_str()).collect();
        format!("{what}; known are {}", known.join(", ")).into()
    };
    let types: BTreeSet<WebhookEventType> = texts_of(value)?
        .into_iter()
        .map(|word| word.parse().map_err(|()| wrong(&format!("has no `{}`", short(word)))))
        .collect::<Result<_, _>>()?;
    if types.is_empty() { Err(wrong("must name at least one type")) } else { Ok(types) }
}

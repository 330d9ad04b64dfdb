//! Defines webhooks and deliveries as they are stored and listed.

use std::fmt;

use super::{WebhookDeliveryState, WebhookEventType, WebhookEvents, WebhookScheme, WebhookState};
use crate::{id::AccountId, list::ListPosition, time::Timestamp};

/// The secret that signs deliveries, or the token that accompanies them.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

/// The secret of a webhook, and the one before it, which also signs until a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSecrets {
    pub current: WebhookSecret,
    pub previous: Option<(WebhookSecret, Timestamp)>,
}

impl WebhookSecrets {
    /// The secrets that sign now, the current one first.
    pub fn live(&self, now: Timestamp) -> Vec<&WebhookSecret> {
        let previous = self.previous.as_ref().filter(|(_, until)| now < *until);
        [Some(&self.current), previous.map(|(secret, _)| secret)].into_iter().flatten().collect()
    }
}

/// A webhook to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    pub url: String,
    pub description: Option<String>,
    pub events: WebhookEvents,
}

/// A webhook as its account sees it, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    pub account: AccountId,
    pub id: String,
    pub url: String,
    pub description: Option<String>,
    pub events: WebhookEvents,
    /// The round or task that it is about; `None` for everything in the account.
    pub subject: Option<String>,
    pub scheme: WebhookScheme,
    pub state: WebhookState,
    pub disabled: Option<DisabledWebhook>,
    /// The first failure after the last success.
    pub failing_since: Option<Timestamp>,
    /// How long the previous secret signs, too.
    pub previous_secret_until: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// When and why a webhook was disabled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledWebhook {
    pub at: Timestamp,
    pub reason: String,
}

/// A change to a webhook; absent parts stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookChange {
    pub description: Option<String>,
    pub events: Option<WebhookEvents>,
    pub state: Option<WebhookState>,
}

/// The delivery of one event to one webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDelivery {
    pub account: AccountId,
    pub id: String,
    pub webhook: String,
    /// Stays the same on every attempt, and is the same for every webhook of the account.
    pub event_id: String,
    pub event_type: WebhookEventType,
    /// The round, task or other object that it is about.
    pub subject: Option<String>,
    /// The JSON that is sent.
    pub body: String,
    pub state: WebhookDeliveryState,
    /// The number of attempts; it also fences the outcome of an attempt.
    pub attempts: u32,
    /// The attempts before the delivery was replayed.
    pub attempts_before: u32,
    pub next_at: Option<Timestamp>,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// The beginning of the last answer, for its account only.
    pub reply: Option<String>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Selects deliveries for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookDeliveryFilter {
    pub webhook: String,
    pub state: Option<WebhookDeliveryState>,
    /// Starts after this delivery, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}

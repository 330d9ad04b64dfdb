//! Webhooks: the addresses of an account that receive its events, by the Standard Webhooks scheme.

mod deliver;
mod notice;
mod pace;
mod push;
mod request;
mod sender;
mod waits;

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::WebhookId,
    list::ListPage,
    webhook::{
        NewWebhook, Webhook, WebhookChange, WebhookDelivery, WebhookDeliveryFilter, WebhookEvent,
        WebhookEvents, WebhookScheme, WebhookSecret, WebhookState, is_push_id,
    },
};
use jurat_store::{
    NotFound, TooManyWebhooks, WebhookAdd, WebhookKey, WebhookReplay, WebhookRotation, WebhookSend,
    WebhookSendRefusal, WebhookUpdate,
};

pub(crate) use self::sender::WebhookSender;
pub use self::sender::WebhookSettings;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, LimitExceeded,
    access::{behalf_of, require_scope},
};

/// The form of a secret; the rest is base64.
const SECRET: &str = "whsec_";

/// How webhooks are delivered, and how many an account may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookTerms {
    /// How long a receiver may take to answer.
    pub timeout: Duration,
    /// Webhooks of an account; more are refused.
    pub per_account: u32,
    /// Deliveries of an account per minute and node; more wait.
    pub deliveries_per_minute: u32,
    /// How long a webhook may fail before it is disabled.
    pub disable_after: Duration,
    /// How long a delivery is kept after it has ended.
    pub keep: Duration,
}

impl Default for WebhookTerms {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            per_account: 10,
            deliveries_per_minute: 600,
            disable_after: Duration::from_hours(5 * 24),
            keep: Duration::from_hours(30 * 24),
        }
    }
}

/// A webhook with its new secret, which is shown once.
#[derive(Debug, Clone)]
pub struct IssuedWebhook {
    pub webhook: Webhook,
    pub secret: WebhookSecret,
}

impl Engine {
    /// Adds a webhook to the caller's account.
    pub async fn webhook_add(
        &self,
        caller: &Caller,
        new: NewWebhook,
        keyed: Option<IdempotentWrite<Webhook>>,
    ) -> Result<IdempotentOutcome<IssuedWebhook>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        require_events(caller, &new.events)?;
        self.check_webhook_url(&new.url)?;
        let (at, secret) = (self.inner.clock.now(), self.new_webhook_secret());
        let webhook = Webhook {
            account: caller.account().clone(),
            id: WebhookId::new(at, self.inner.clock.bits()).to_string(),
            url: new.url,
            description: new.description,
            events: new.events,
            subject: None,
            scheme: WebhookScheme::Standard,
            state: WebhookState::Enabled,
            disabled: None,
            failing_since: None,
            previous_secret_until: None,
            created_at: at,
            updated_at: at,
        };
        let most = self.inner.webhooks.terms().per_account;
        let add = WebhookAdd { webhook, secret: secret.clone(), most };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Rows, async |once| {
                let writing = webhooks.add(&behalf, &add, once);
                self.inner.metrics.write("webhook_add", writing).await
            })
            .await?;
        let done = written.map_err(|TooManyWebhooks| {
            EngineError::Conflict(format!(
                "the account has {most} webhooks, which is the limit; remove one first"
            ))
        })?;
        Ok(issued(done, secret))
    }

    /// The webhooks of the caller's account, in order of creation.
    pub async fn webhook_list(
        &self,
        caller: &Caller,
        page: &ListPage,
    ) -> Result<Vec<Webhook>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let webhooks = self.inner.store.webhooks();
        Ok(webhooks.list(&behalf_of(caller), caller.account(), page).await?)
    }

    pub async fn webhook_show(&self, caller: &Caller, id: &str) -> Result<Webhook, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let webhooks = self.inner.store.webhooks();
        let webhook = key(caller, id)?;
        let found = webhooks.get(&behalf_of(caller), caller.account(), &webhook.id).await?;
        found.ok_or_else(|| unknown(id))
    }

    /// Changes a webhook. Enabling it again forgets its failures.
    pub async fn webhook_change(
        &self,
        caller: &Caller,
        id: &str,
        change: WebhookChange,
        keyed: Option<IdempotentWrite<Webhook>>,
    ) -> Result<IdempotentOutcome<Webhook>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        if let Some(events) = &change.events {
            require_events(caller, events)?;
        }
        let update = WebhookUpdate { key: key(caller, id)?, change, at: self.inner.clock.now() };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Note, async |once| {
                let writing = webhooks.change(&behalf, &update, once);
                self.inner.metrics.write("webhook_change", writing).await
            })
            .await?;
        written.map_err(|NotFound| unknown(id))
    }

    /// Replaces the secret of a webhook. The previous one signs, too, for a while.
    pub async fn webhook_rotate(
        &self,
        caller: &Caller,
        id: &str,
        grace_ms: u64,
        keyed: Option<IdempotentWrite<Webhook>>,
    ) -> Result<IdempotentOutcome<IssuedWebhook>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let (at, secret) = (self.inner.clock.now(), self.new_webhook_secret());
        let rotation = WebhookRotation {
            key: key(caller, id)?,
            secret: secret.clone(),
            previous_until: at.plus_millis(grace_ms),
            at,
        };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Note, async |once| {
                let writing = webhooks.rotate(&behalf, &rotation, once);
                self.inner.metrics.write("webhook_rotate", writing).await
            })
            .await?;
        Ok(issued(written.map_err(|NotFound| unknown(id))?, secret))
    }

    /// Removes a webhook with its deliveries.
    pub async fn webhook_remove(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<()>>,
    ) -> Result<IdempotentOutcome<()>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let removed = key(caller, id)?;
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Less, async |once| {
                let writing = webhooks.remove(&behalf, &removed, once);
                self.inner.metrics.write("webhook_remove", writing).await
            })
            .await?;
        written.map_err(|NotFound| unknown(id))
    }

    /// Sends a test event to a webhook.
    pub async fn webhook_test(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<WebhookDelivery>>,
    ) -> Result<IdempotentOutcome<WebhookDelivery>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let (at, bits) = (self.inner.clock.now(), self.inner.clock.bits());
        let event = WebhookEvent::of_test(caller.account(), id, bits, at);
        let send = WebhookSend { key: key(caller, id)?, event, at };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Rows, async |once| {
                let writing = webhooks.send(&behalf, &send, once);
                self.inner.metrics.write("webhook_test", writing).await
            })
            .await?;
        let done = written.map_err(|refused| send_refusal(refused, || unknown(id)))?;
        self.inner.webhooks.wake().notify_one();
        Ok(done)
    }

    /// The deliveries to a webhook, newest first.
    pub async fn webhook_deliveries(
        &self,
        caller: &Caller,
        filter: &WebhookDeliveryFilter,
    ) -> Result<Vec<WebhookDelivery>, EngineError> {
        self.webhook_show(caller, &filter.webhook).await?;
        let webhooks = self.inner.store.webhooks();
        Ok(webhooks.deliveries(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// One delivery with its content, which needs the scope to read what it tells.
    pub async fn webhook_delivery_show(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<WebhookDelivery, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let webhooks = self.inner.store.webhooks();
        let found = webhooks.delivery(&behalf_of(caller), caller.account(), id).await?;
        let found = found.ok_or_else(|| unknown_delivery(id))?;
        require_scope(caller, found.event_type.scope())?;
        Ok(found)
    }

    /// Sends an event again that was delivered or has failed, under the same `webhook-id`.
    pub async fn webhook_replay(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<WebhookDelivery>>,
    ) -> Result<IdempotentOutcome<WebhookDelivery>, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let (account, at) = (caller.account().clone(), self.inner.clock.now());
        let replay = WebhookReplay { account, delivery: id.to_owned(), at };
        let (webhooks, behalf) = (self.inner.store.webhooks(), behalf_of(caller));
        let written = self
            .write_idempotent(caller, keyed.as_ref(), Leaves::Note, async |once| {
                let writing = webhooks.replay(&behalf, &replay, once);
                self.inner.metrics.write("webhook_replay", writing).await
            })
            .await?;
        let done = written.map_err(|refused| send_refusal(refused, || unknown_delivery(id)))?;
        self.inner.webhooks.wake().notify_one();
        Ok(done)
    }

    fn check_webhook_url(&self, url: &str) -> Result<(), EngineError> {
        let Some(client) = self.inner.webhooks.client() else {
            let reason = "TLS is not available on this server, so it cannot send webhooks";
            return Err(EngineError::refused(ProblemCode::NotSupported, reason));
        };
        client.check_post(url).map_err(|refused| EngineError::invalid("url", refused.to_string()))
    }

    fn new_webhook_secret(&self) -> WebhookSecret {
        let clock = &self.inner.clock;
        let bytes = [clock.bits().to_be_bytes(), clock.bits().to_be_bytes()].concat();
        WebhookSecret::new(format!("{SECRET}{}", STANDARD.encode(bytes)))
    }
}

fn send_refusal(refused: WebhookSendRefusal, unknown: impl FnOnce() -> EngineError) -> EngineError {
    match refused {
        WebhookSendRefusal::Unknown => unknown(),
        WebhookSendRefusal::Disabled => EngineError::Conflict(
            "the webhook is disabled; enable it before sending events to it".to_owned(),
        ),
        WebhookSendRefusal::Pending => {
            EngineError::Conflict("the delivery is already waiting to be sent".to_owned())
        }
        WebhookSendRefusal::TooMany => {
            LimitExceeded::WebhookDeliveries(jurat_core::webhook::MOST_PENDING).into()
        }
    }
}

/// The key of a webhook. Push notifications belong to their tasks, and are none.
fn key(caller: &Caller, id: &str) -> Result<WebhookKey, EngineError> {
    if is_push_id(id) {
        return Err(unknown(id));
    }
    Ok(WebhookKey { account: caller.account().clone(), id: id.to_owned() })
}

fn unknown(id: &str) -> EngineError {
    EngineError::NotFound { what: "webhook", id: id.to_owned() }
}

fn unknown_delivery(id: &str) -> EngineError {
    EngineError::NotFound { what: "webhook delivery", id: id.to_owned() }
}

/// A webhook tells its receiver no more than its creator may read.
fn require_events(caller: &Caller, events: &WebhookEvents) -> Result<(), EngineError> {
    events.types().into_iter().try_for_each(|it| require_scope(caller, it.scope()))
}

fn issued(
    done: IdempotentOutcome<Webhook>,
    secret: WebhookSecret,
) -> IdempotentOutcome<IssuedWebhook> {
    match done {
        IdempotentOutcome::Now(webhook) => {
            IdempotentOutcome::Now(IssuedWebhook { webhook, secret })
        }
        IdempotentOutcome::Before(answer) => IdempotentOutcome::Before(answer),
    }
}

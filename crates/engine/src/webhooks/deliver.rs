//! Delivers due webhooks: one attempt, and what follows from its answer.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use jurat_core::{
    id::AccountId,
    time::Timestamp,
    webhook::{
        FAILURES_TO_DISABLE, Webhook, WebhookAnswer, WebhookDelivery, WebhookDeliveryState,
        WebhookSecrets, WebhookState, WebhookVerdict, after_attempt, is_disabled,
    },
};
use jurat_guard::public::{PostError, PostReply};
use jurat_store::{
    Behalf, StoreError, TakenWebhookDelivery, WebhookEffect, WebhookNoted, WebhookOutcome,
    WebhookPruning, WebhookTake, WriteOutcome,
};
use tokio::sync::Notify;

use super::{
    push::stale_before,
    request::{WebhookRequest, request},
};
use crate::{
    Engine, EngineError,
    outbox::{MessageOutbox, OutboxTake},
};

/// Deliveries that are removed in one transaction.
const PRUNED_AT_ONCE: u32 = 1_000;

/// The outbox of webhooks.
struct WebhookOutbox;

impl MessageOutbox for WebhookOutbox {
    type Message = TakenWebhookDelivery;

    const ITEMS: &'static str = "webhook deliveries";
    // A delivery is small, and mostly waits for its receiver.
    const AT_ONCE: usize = 256;
    // An account chooses its receivers, so that it can make all of them slow.
    const PER_ACCOUNT: usize = 16;
    const SHARE: usize = 8;

    fn wake(engine: &Engine) -> &Notify {
        engine.inner.webhooks.wake()
    }

    fn timeout(engine: &Engine) -> Duration {
        engine.inner.webhooks.terms().timeout
    }

    fn receiver(taken: &TakenWebhookDelivery) -> &str {
        &taken.delivery.webhook
    }

    fn account(taken: &TakenWebhookDelivery) -> &AccountId {
        &taken.delivery.account
    }

    fn next_due(engine: &Engine) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        async { engine.inner.store.webhooks().next_due(&Behalf::Platform).await }.boxed()
    }

    fn take(
        engine: &Engine,
        taking: OutboxTake,
    ) -> BoxFuture<'_, Result<Vec<TakenWebhookDelivery>, StoreError>> {
        engine.take_due_webhooks(taking).boxed()
    }

    fn deliver(engine: &Engine, taken: TakenWebhookDelivery) -> BoxFuture<'_, ()> {
        engine.deliver_webhook(taken).boxed()
    }
}

impl Engine {
    /// Delivers webhooks until this node stops.
    pub fn deliver_webhooks(&self) {
        self.deliver_outbox::<WebhookOutbox>();
    }

    async fn take_due_webhooks(
        &self,
        taking: OutboxTake,
    ) -> Result<Vec<TakenWebhookDelivery>, StoreError> {
        let OutboxTake { now, until, limit, mut without, without_accounts } = taking;
        let sender = &self.inner.webhooks;
        without.extend(without_accounts);
        without
            .extend(sender.sent.at_limit(self.inner.webhooks.terms().deliveries_per_minute, now));
        let take = WebhookTake { now, until, limit, without };
        let webhooks = self.inner.store.webhooks();
        let writing = webhooks.take_due(&Behalf::Platform, &take);
        let taken = self.inner.metrics.write("webhook_take", writing).await?;
        for it in &taken {
            sender.sent.add(&it.delivery.account, now);
        }
        if !taken.is_empty() {
            self.inner.failpoints.pass("webhook_take_after");
        }
        Ok(taken)
    }

    /// Makes one attempt, and records its outcome.
    async fn deliver_webhook(&self, taken: TakenWebhookDelivery) {
        let TakenWebhookDelivery { delivery, webhook } = taken;
        let outcome = match &webhook {
            Some((webhook, secrets)) if webhook.state == WebhookState::Enabled => {
                self.attempt_webhook(&delivery, webhook, secrets).await
            }
            Some(_) => not_sent(&delivery, "the webhook was disabled", self.inner.clock.now()),
            None => not_sent(&delivery, "the webhook was removed", self.inner.clock.now()),
        };
        let behalf = Behalf::Account(delivery.account.clone());
        let webhooks = self.inner.store.webhooks();
        let writing = webhooks.note(&behalf, &outcome, None);
        match self.inner.metrics.write("webhook_note", writing).await {
            Ok(WriteOutcome::Done(noted)) => {
                self.inner.metrics.webhooks.ended(counted(&outcome, noted));
                if noted == WebhookNoted::Disabled
                    && let Some((webhook, _)) = &webhook
                {
                    tracing::warn!(webhook.id = %webhook.id, "disabled a webhook that failed");
                    self.mail_disabled_webhook(webhook, &outcome);
                }
            }
            Ok(WriteOutcome::Refused(_) | WriteOutcome::Repeated) => {
                tracing::debug!(delivery.id = %delivery.id, "webhook delivery already taken by another node");
            }
            // It is delivered again later, under the same id.
            Err(error) => {
                tracing::warn!(error = %error, delivery.id = %delivery.id, "could not record the outcome of a webhook delivery");
            }
        }
    }

    async fn attempt_webhook(
        &self,
        delivery: &WebhookDelivery,
        webhook: &Webhook,
        secrets: &WebhookSecrets,
    ) -> WebhookOutcome {
        let sent = self.send_webhook(delivery, webhook, secrets).await;
        self.inner.failpoints.pass("webhook_send_after");
        let now = self.inner.clock.now();
        let answer = match &sent {
            Ok(reply) => WebhookAnswer::Status(reply.status.as_u16()),
            Err(_) => WebhookAnswer::Nothing,
        };
        let attempt = delivery.attempts.saturating_sub(delivery.attempts_before);
        let verdict = after_attempt(answer, attempt, now, self.inner.clock.bits());
        let (state, next_at) = match verdict {
            WebhookVerdict::Delivered => (WebhookDeliveryState::Delivered, None),
            WebhookVerdict::RetryAt(at) => (WebhookDeliveryState::Pending, Some(at)),
            WebhookVerdict::Failed | WebhookVerdict::Gone => (WebhookDeliveryState::Failed, None),
        };
        let last_error = match &sent {
            Ok(_) if state == WebhookDeliveryState::Delivered => None,
            Ok(reply) => Some(refusal_text(reply)),
            Err(error) => Some(error.to_string()),
        };
        WebhookOutcome {
            account: delivery.account.clone(),
            id: delivery.id.clone(),
            webhook: webhook.id.clone(),
            attempt: delivery.attempts,
            attempts_before: delivery.attempts_before,
            created_at: delivery.created_at,
            state,
            next_at,
            status: sent.as_ref().ok().map(|reply| reply.status.as_u16()),
            reply: sent.ok().map(|reply| excerpt_text(&reply.excerpt)),
            last_error,
            effect: self.webhook_effect(webhook, verdict, now),
            at: now,
        }
    }

    async fn send_webhook(
        &self,
        delivery: &WebhookDelivery,
        webhook: &Webhook,
        secrets: &WebhookSecrets,
    ) -> Result<PostReply, PostError> {
        let Some(client) = self.inner.webhooks.client() else {
            return Err(PostError::Unreachable { detail: "there is no TLS".to_owned() });
        };
        let sender = (webhook.scheme, secrets);
        let sent = (delivery.event_id.as_str(), delivery.body.as_str());
        let WebhookRequest { headers, body } = request(sender, sent, self.inner.clock.now());
        let body = Bytes::from(body.into_owned().into_bytes());
        let within = self.inner.webhooks.terms().timeout;
        let sent = client.post_json(&webhook.url, headers, body, within).await;
        if let Err(PostError::Unreachable { detail }) = &sent {
            tracing::debug!(webhook.id = %webhook.id, detail, "could not reach a webhook");
        }
        sent
    }

    fn webhook_effect(
        &self,
        webhook: &Webhook,
        verdict: WebhookVerdict,
        now: Timestamp,
    ) -> WebhookEffect {
        let after = self.inner.webhooks.terms().disable_after;
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        match verdict {
            WebhookVerdict::Delivered => WebhookEffect::Works,
            // A push notification belongs to its task: nobody could enable it again.
            WebhookVerdict::Gone if webhook.subject.is_some() => WebhookEffect::Remove,
            WebhookVerdict::Gone => WebhookEffect::Disable {
                reason: "the receiver answered 410 Gone".to_owned(),
                after_failures: 0,
            },
            WebhookVerdict::RetryAt(_) | WebhookVerdict::Failed => match webhook.failing_since {
                Some(since) if webhook.subject.is_none() && is_disabled(since, now, after_ms) => {
                    WebhookEffect::Disable {
                        reason: format!("every delivery has failed since {}", since.rfc3339()),
                        after_failures: FAILURES_TO_DISABLE,
                    }
                }
                Some(_) | None => WebhookEffect::Fails,
            },
        }
    }

    /// Removes old deliveries that have ended.
    pub(crate) async fn prune_webhook_deliveries(&self) -> Result<u64, EngineError> {
        let webhooks = self.inner.store.webhooks();
        let keep = self.inner.webhooks.terms().keep;
        let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
        let now = self.inner.clock.now();
        let before = Timestamp::from_micros(now.micros().saturating_sub(keep));
        let (mut after, mut pruned) = (String::new(), 0);
        while let Some(account) = webhooks.account_after(&Behalf::Platform, &after).await? {
            after = account.as_str().to_owned();
            let pruning = WebhookPruning {
                account,
                before,
                stale_pushes_before: stale_before(now),
                limit: PRUNED_AT_ONCE,
            };
            loop {
                let writing = webhooks.prune(&Behalf::Platform, &pruning);
                let gone = self.inner.metrics.write("webhook_prune", writing).await?;
                pruned += gone;
                if gone < u64::from(PRUNED_AT_ONCE) || self.is_stopping() {
                    break;
                }
            }
        }
        Ok(pruned)
    }
}

/// The outcome of a delivery whose webhook does not want it any more.
fn not_sent(delivery: &WebhookDelivery, why: &str, at: Timestamp) -> WebhookOutcome {
    WebhookOutcome {
        account: delivery.account.clone(),
        id: delivery.id.clone(),
        webhook: delivery.webhook.clone(),
        attempt: delivery.attempts,
        attempts_before: delivery.attempts_before,
        created_at: delivery.created_at,
        state: WebhookDeliveryState::Failed,
        next_at: None,
        status: delivery.status,
        reply: delivery.reply.clone(),
        last_error: Some(why.to_owned()),
        effect: WebhookEffect::Nothing,
        at,
    }
}

fn refusal_text(reply: &PostReply) -> String {
    let status = reply.status;
    if status.is_redirection() {
        return format!("the receiver answered {status}, and redirects are not followed");
    }
    format!("the receiver answered {status}")
}

/// The beginning of an answer as text, without characters that control a terminal.
fn excerpt_text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.chars().filter(|c| !c.is_control()).collect()
}

fn counted(outcome: &WebhookOutcome, noted: WebhookNoted) -> &'static str {
    match (noted, outcome.state) {
        (WebhookNoted::Disabled, _) => "disabled",
        (WebhookNoted::Recorded, WebhookDeliveryState::Delivered) => "delivered",
        (WebhookNoted::Recorded, WebhookDeliveryState::Pending) => "retried",
        (WebhookNoted::Recorded, WebhookDeliveryState::Failed) => "failed",
    }
}

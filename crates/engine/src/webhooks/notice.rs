//! Mails the owner of a webhook that was disabled.

use jurat_core::{id::uuid, webhook::Webhook};
use jurat_guard::mail::Mail;
use jurat_store::{WebhookEffect, WebhookOutcome};

use crate::Engine;

/// The mails of a day to one account: a receiver can fail, and be enabled again, at any time.
const MOST_MAILS: u32 = 5;

impl Engine {
    /// Notifies the account, if it has an address, a few times each day. An account without one
    /// sees the state of the webhook, and its other webhooks receive an event.
    pub(super) fn mail_disabled_webhook(&self, webhook: &Webhook, outcome: &WebhookOutcome) {
        let WebhookEffect::Disable { reason, .. } = &outcome.effect else { return };
        if !self.inner.webhooks.mailed.add_within(&webhook.account, MOST_MAILS, outcome.at) {
            tracing::info!(webhook.id = %webhook.id, "sent no mail about a disabled webhook: its account got enough today");
            return;
        }
        let text = format!(
            "Jurat has disabled the webhook {id}, because {reason}.\n\nIt receives no more events. Fix its receiver, and enable the webhook again:\n\n    jurat webhooks enable {id}\n\nDeliveries that failed can be sent again:\n\n    jurat webhooks deliveries {id} --state failed\n",
            id = webhook.id,
        );
        let (engine, account) = (self.clone(), webhook.account.clone());
        let id = uuid(outcome.at, self.inner.clock.bits());
        let _sending = self.inner.background.spawn(async move {
            match engine.mail_address(account.as_str()).await {
                Ok(Some(to)) => {
                    let subject = "A webhook on Jurat was disabled".to_owned();
                    engine.mail(Mail { id, to, subject, text });
                }
                Ok(None) => {}
                Err(error) => tracing::error!(error = %error, "could not mail about a webhook"),
            }
        });
    }
}

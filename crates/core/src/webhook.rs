//! Webhooks: addresses that receive the events of an account, and when a delivery is retried.

mod event;
mod push;
mod record;

use std::{collections::BTreeSet, str::FromStr};

pub use self::{
    event::WebhookEvent,
    push::{
        KEPT_MS, MOST_PER_ACCOUNT, MOST_PER_TASK, NewPush, Push, PushProof, is_push_id,
        notification, push_id, push_subject,
    },
    record::{
        DisabledWebhook, NewWebhook, Webhook, WebhookChange, WebhookDelivery,
        WebhookDeliveryFilter, WebhookSecret, WebhookSecrets,
    },
};
use crate::{account::caller::Scope, round::job::words, time::Timestamp};

words!(
    /// The type of an event.
    WebhookEventType {
        /// A round ended, and was not part of a task or a verifier run.
        RoundDecided => "round.decided",
        TaskFinalized => "task.finalized",
        /// A task ended without a decision.
        TaskFailed => "task.failed",
        VerifierRunCompleted => "verifier_run.completed",
        CreditGranted => "credit.granted",
        /// Less than a tenth of the granted credit is left.
        CreditLow => "credit.low",
        CreditExhausted => "credit.exhausted",
        TemplatePublished => "template.published",
        /// Another webhook of the account was disabled, because its deliveries failed.
        WebhookDisabled => "webhook.disabled",
        /// A test, which its owner sends to one webhook.
        WebhookTest => "webhook.test",
    }
);

impl WebhookEventType {
    /// The scope that reads what such an event tells; a webhook must not tell a key more than the
    /// API does.
    pub const fn scope(self) -> Scope {
        match self {
            Self::RoundDecided => Scope::RoundsRead,
            Self::TaskFinalized | Self::TaskFailed => Scope::TasksRead,
            Self::VerifierRunCompleted => Scope::VerifiersRead,
            Self::CreditGranted | Self::CreditLow | Self::CreditExhausted => Scope::UsageRead,
            Self::TemplatePublished => Scope::WorkflowsRead,
            Self::WebhookDisabled | Self::WebhookTest => Scope::AccountWrite,
        }
    }
}

words!(
    /// How a request shows that it comes from this installation.
    WebhookScheme {
        /// Signed as Standard Webhooks prescribes.
        Standard => "standard",
        /// With what the receiver of a push notification expects in headers.
        Token => "token",
    }
);

words!(
    /// Whether events are sent to a webhook.
    WebhookState {
        Enabled => "enabled",
        Disabled => "disabled",
    }
);

words!(
    /// The state of a delivery.
    WebhookDeliveryState {
        Pending => "pending",
        /// The receiver answered with a status from 200 to 299.
        Delivered => "delivered",
        Failed => "failed",
    }
);

/// The events that a webhook receives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookEvents {
    /// Every type, including later ones.
    All,
    Only(BTreeSet<WebhookEventType>),
}

impl WebhookEvents {
    /// The types that the webhook receives today.
    pub fn types(&self) -> Vec<WebhookEventType> {
        match self {
            Self::All => WebhookEventType::ALL.to_vec(),
            Self::Only(types) => types.iter().copied().collect(),
        }
    }
}

/// The most deliveries that wait for one webhook; further ones are recorded as failed.
pub const MOST_PENDING: u32 = 1_000;

/// The waits before each further attempt, in seconds: about three days in total.
const WAITS_S: [u64; 9] = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// How an attempt to deliver an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookAnswer {
    /// The receiver answered.
    Status(u16),
    /// The receiver was not reached, or did not answer in time.
    Nothing,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookVerdict {
    Delivered,
    RetryAt(Timestamp),
    Failed,
    /// The receiver is gone for good (410): the webhook is disabled.
    Gone,
}

/// Decides what follows an attempt; `attempt` counts from 1. The random bits spread deliveries that
/// failed together over a tenth of their wait.
pub fn after_attempt(
    answer: WebhookAnswer,
    attempt: u32,
    now: Timestamp,
    bits: u128,
) -> WebhookVerdict {
    match answer {
        WebhookAnswer::Status(200..=299) => return WebhookVerdict::Delivered,
        WebhookAnswer::Status(410) => return WebhookVerdict::Gone,
        WebhookAnswer::Status(_) | WebhookAnswer::Nothing => {}
    }
    let before = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(wait_s) = WAITS_S.get(before) else { return WebhookVerdict::Failed };
    let spread = u64::try_from(bits % 101).unwrap_or_default();
    WebhookVerdict::RetryAt(now.plus_millis(wait_s * 1_000 + wait_s * spread))
}

/// How many attempts must have failed before a webhook is disabled: a single failure before a long
/// silence says little about its receiver.
pub const FAILURES_TO_DISABLE: u32 = 5;

/// Whether a webhook that has failed since a time is disabled now.
pub fn is_disabled(failing_since: Timestamp, now: Timestamp, after_ms: u64) -> bool {
    failing_since.plus_millis(after_ms) <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn a_failed_delivery_is_retried_for_three_days() {
        let mut waits = Vec::new();
        for attempt in 1.. {
            match after_attempt(WebhookAnswer::Nothing, attempt, NOW, 0) {
                WebhookVerdict::RetryAt(at) => waits.push(at.millis_since(NOW) / 1_000),
                WebhookVerdict::Failed => break,
                WebhookVerdict::Delivered | WebhookVerdict::Gone => panic!("nobody answered"),
            }
        }
        assert_eq!(waits, WAITS_S);
        let days = waits.iter().sum::<u64>() / 86_400;
        assert_eq!(days, 3);
    }

    #[test]
    fn deliveries_that_failed_together_are_not_retried_together() {
        let at = |bits| after_attempt(WebhookAnswer::Status(503), 2, NOW, bits);
        assert_eq!(at(0), WebhookVerdict::RetryAt(NOW.plus_millis(300_000)));
        assert_eq!(at(100), WebhookVerdict::RetryAt(NOW.plus_millis(330_000)));
    }

    #[test]
    fn only_a_success_counts_and_a_receiver_that_is_gone_ends_it() {
        for status in [200, 202, 204, 299] {
            let answer = WebhookAnswer::Status(status);
            assert_eq!(after_attempt(answer, 1, NOW, 0), WebhookVerdict::Delivered);
        }
        for status in [199, 302, 400, 404, 429, 500] {
            let answer = WebhookAnswer::Status(status);
            let retried = WebhookVerdict::RetryAt(NOW.plus_millis(5_000));
            assert_eq!(after_attempt(answer, 1, NOW, 0), retried, "{status}");
        }
        assert_eq!(after_attempt(WebhookAnswer::Status(410), 1, NOW, 0), WebhookVerdict::Gone);
    }
}

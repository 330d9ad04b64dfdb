//! Turns settings into those of webhooks.

use std::time::Duration;

use jurat_engine::{WebhookSettings, WebhookTerms};

use crate::settings::{
    Settings, WEBHOOKS_ALLOW, WEBHOOKS_DELIVERIES_PER_MINUTE, WEBHOOKS_DISABLE_AFTER_HOURS,
    WEBHOOKS_KEEP_DAYS, WEBHOOKS_PER_ACCOUNT, WEBHOOKS_TIMEOUT_MS, listed, range,
};

fn terms(settings: &Settings) -> WebhookTerms {
    let number = |setting| u32::try_from(settings.count(setting)).unwrap_or(u32::MAX);
    WebhookTerms {
        timeout: Duration::from_millis(settings.count(&WEBHOOKS_TIMEOUT_MS)),
        per_account: number(&WEBHOOKS_PER_ACCOUNT),
        deliveries_per_minute: number(&WEBHOOKS_DELIVERIES_PER_MINUTE),
        disable_after: Duration::from_hours(settings.count(&WEBHOOKS_DISABLE_AFTER_HOURS)),
        keep: Duration::from_hours(settings.count(&WEBHOOKS_KEEP_DAYS).saturating_mul(24)),
    }
}

/// The values have already been checked.
pub(super) fn webhooks(settings: &Settings) -> WebhookSettings {
    let allowed = settings.text(&WEBHOOKS_ALLOW).into_iter().flat_map(listed);
    WebhookSettings {
        terms: terms(settings),
        allow: allowed.filter_map(range).collect(),
        ..WebhookSettings::default()
    }
}

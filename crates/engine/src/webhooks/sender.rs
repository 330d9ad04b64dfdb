//! Holds the client that sends webhooks, and the pace of each account.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use jurat_guard::public::{PublicClient, Range, Resolver, SystemResolver};
use tokio::sync::Notify;

use super::{WebhookTerms, pace::PeriodCounts, waits::PushWaits};

/// Where webhooks may be sent, and on which terms.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    pub terms: WebhookTerms,
    /// Private ranges that are allowed besides public addresses, even without TLS.
    pub allow: Vec<Range>,
    pub resolver: Arc<dyn Resolver>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        let terms = WebhookTerms::default();
        Self { terms, allow: Vec::new(), resolver: Arc::new(SystemResolver) }
    }
}

/// The sender of webhooks on this node.
pub(crate) struct WebhookSender {
    settings: WebhookSettings,
    /// Built with the first use; `None` if the machine has no TLS.
    client: OnceLock<Option<PublicClient>>,
    wake: Notify,
    /// Deliveries of each account in this minute.
    pub(super) sent: PeriodCounts,
    /// Mails to the owners of disabled webhooks, for each account on this day.
    pub(super) mailed: PeriodCounts,
    pub(super) waits: Arc<PushWaits>,
}

impl fmt::Debug for WebhookSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSender").finish_non_exhaustive()
    }
}

impl WebhookSender {
    pub(crate) fn new(settings: WebhookSettings) -> Self {
        Self {
            settings,
            client: OnceLock::new(),
            wake: Notify::new(),
            sent: PeriodCounts::by_minute(),
            mailed: PeriodCounts::by_day(),
            waits: Arc::default(),
        }
    }

    pub(crate) fn terms(&self) -> &WebhookTerms {
        &self.settings.terms
    }

    /// Signals that a delivery is due.
    pub(crate) fn wake(&self) -> &Notify {
        &self.wake
    }

    pub(super) fn client(&self) -> Option<&PublicClient> {
        let WebhookSettings { allow, resolver, .. } = &self.settings;
        let client = || match PublicClient::with_resolver(allow, Arc::clone(resolver)) {
            Ok(client) => Some(client),
            Err(error) => {
                tracing::error!(error = %error, "webhooks cannot be sent");
                None
            }
        };
        self.client.get_or_init(client).as_ref()
    }
}

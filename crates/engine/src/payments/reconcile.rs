//! Finishes payments that a stopped node left, and those whose settlement is not known.

use std::time::Duration;

use jurat_core::time::Timestamp;
use jurat_store::{Behalf, PaymentPruning, PaymentTake};

use crate::{Engine, EngineError, rounds::walk::seed};

const RECONCILE_EVERY: Duration = Duration::from_secs(2);
const TAKEN_AT_ONCE: u32 = 10;
const PRUNED_AT_ONCE: u32 = 200;
/// How long replies of paid requests can be fetched again.
const KEEP_MS: i64 = 7 * DAY_MS;
/// How long the record of a settled payment is kept, so that nobody is asked for it again.
const KEEP_SETTLED_MS: i64 = 400 * DAY_MS;
const DAY_MS: i64 = 24 * 3_600_000;

impl Engine {
    /// Takes payments whose settlement is due, and tries each once more. Returns their number.
    pub async fn reconcile_payments(&self) -> Result<usize, EngineError> {
        let lease_ms = self.payment_settings()?.timeouts.lease_ms();
        let mut count = 0;
        while !self.is_stopping() {
            let now = self.inner.clock.now();
            let take = PaymentTake {
                lease_token: seed(self.inner.clock.bits()),
                next_at: now.plus_millis(lease_ms),
                now,
                limit: TAKEN_AT_ONCE,
            };
            let due = self.inner.store.payments().take_due(&Behalf::Platform, &take).await?;
            if due.is_empty() {
                break;
            }
            self.inner.failpoints.pass("payment_take_after");
            count += due.len();
            // One slow answer does not hold up the others.
            let tries = due.into_iter().map(|it| self.try_settle(it, take.lease_token));
            for tried in futures::future::join_all(tries).await {
                tried?;
            }
        }
        Ok(count)
    }

    /// Removes replies of payments that were kept long enough, and payments. Returns how many
    /// changed.
    pub async fn prune_payments(&self) -> Result<u64, EngineError> {
        let now = self.inner.clock.now();
        let before = |millis| Timestamp::from_millis(now.millis() - millis);
        let pruning = PaymentPruning {
            before: before(KEEP_MS),
            settled_before: before(KEEP_SETTLED_MS),
            now,
            limit: PRUNED_AT_ONCE,
        };
        let payments = self.inner.store.payments();
        let mut count = 0;
        while !self.is_stopping() {
            let more = payments.prune(&Behalf::Platform, &pruning).await?;
            if more == 0 {
                break;
            }
            count += more;
        }
        Ok(count)
    }

    /// Starts the loop, if requests are sold.
    pub(crate) fn watch_payments(&self) {
        if !self.sells() {
            return;
        }
        let engine = self.clone();
        self.inner.background.repeat_every(RECONCILE_EVERY, move || {
            let engine = engine.clone();
            async move {
                if let Err(error) = engine.reconcile_payments().await {
                    tracing::warn!(error = %error, "could not look for unsettled payments");
                }
            }
        });
    }
}

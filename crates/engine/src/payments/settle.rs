//! One attempt to settle a payment, and its record.

use jurat_core::{
    payment::{
        record::Payment,
        state::{ChainRecord, PaymentState, SettleAttempt, SettleFacts, resolve},
    },
    time::Timestamp,
};
use jurat_store::{Behalf, PaymentEnd, PaymentUnsettled};

use super::uncharged::UnpaidReason;
use crate::{Engine, EngineError};

/// The shortest and the longest pause before the next attempt.
const SOONEST_MS: u64 = 5_000;
const LATEST_MS: u64 = 600_000;
/// After this time without a proof, an operator has to look, and an attempt a day is enough to see
/// that the operator did.
const OLD_MS: u64 = 30 * 24 * 3_600_000;
const DAILY_MS: u64 = 24 * 3_600_000;

impl Engine {
    /// Asks the facilitator to settle, asks the chain for a proof, and records what is known.
    ///
    /// Repeating it is safe: the request is always the same, and the chain accepts its nonce once.
    pub(super) async fn try_settle(
        &self,
        mut payment: Payment,
        lease_token: u64,
    ) -> Result<Payment, EngineError> {
        let attempt = self.facilitator_settle(&payment).await;
        // Remembered until it is proven: the facilitator may not say it again.
        if let SettleAttempt::Confirmed { transaction } = &attempt {
            payment.transaction = Some(transaction.clone());
        }
        self.inner.failpoints.pass("payment_record_before");
        let settings = self.payment_settings()?;
        let chain = match &settings.rpc {
            Some(_) => self.chain_record(&payment).await,
            None => ChainRecord::NoProof,
        };
        let now = self.inner.clock.now();
        // An attempt that did not leave does not count.
        let is_sent = !matches!(attempt, SettleAttempt::NotSent { .. });
        let attempts = if is_sent { payment.attempts } else { payment.attempts.saturating_sub(1) };
        let facts = SettleFacts {
            may_be_sent: 0 < attempts,
            valid_before: payment.valid_before,
            now,
            can_prove: settings.rpc.is_some(),
        };
        let (state, transaction) = resolve(&attempt, &chain, facts);
        let ended = if let Some(transaction) = transaction {
            self.record_settled(payment, transaction, now).await?
        } else {
            let unsettled = PaymentUnsettled {
                account: payment.account.clone(),
                id: payment.id.clone(),
                lease_token,
                state,
                transaction: payment.transaction.clone(),
                reason: reason(&attempt),
                attempts,
                next_at: next_at(&payment, state, now),
                now,
            };
            self.record_unsettled(payment, unsettled).await?
        };
        self.inner.failpoints.pass("payment_record_after");
        Ok(ended)
    }

    async fn record_settled(
        &self,
        payment: Payment,
        transaction: String,
        now: Timestamp,
    ) -> Result<Payment, EngineError> {
        let (account, id) = (payment.account.clone(), payment.id.clone());
        let end = PaymentEnd { account, id, transaction: transaction.clone(), now };
        let (payments, behalf) = (self.inner.store.payments(), Behalf::from(&payment.account));
        let record =
            || self.inner.metrics.write("payment_settled", payments.settled(&behalf, &end));
        // The facilitator may not say it again, so a write that fails is repeated.
        let is_first = match record().await {
            Ok(is_first) => is_first,
            Err(_) => record().await?,
        };
        if is_first {
            self.inner.metrics.payments.ended(PaymentState::Settled);
            tracing::info!(payment.digest = %payment.payment_digest, "settled a payment");
        }
        self.inner.uncharged.forget(&payment.id);
        self.inner.chain.forget(&payment.id);
        let (state, transaction) = (PaymentState::Settled, Some(transaction));
        Ok(Payment { state, transaction, updated_at: now, ..payment })
    }

    async fn record_unsettled(
        &self,
        payment: Payment,
        unsettled: PaymentUnsettled,
    ) -> Result<Payment, EngineError> {
        let payments = self.inner.store.payments();
        let behalf = Behalf::from(&payment.account);
        let writing = payments.unsettled(&behalf, &unsettled);
        if self.inner.metrics.write("payment_unsettled", writing).await? {
            self.inner.metrics.payments.ended(unsettled.state);
            if unsettled.state == PaymentState::FailedFinal {
                self.inner.chain.forget(&payment.id);
                self.note_unpaid(&payment, UnpaidReason::Final);
            } else if payment.state != PaymentState::Unknown {
                let is_named = payment.transaction.is_some();
                let reason = if is_named { UnpaidReason::Unproven } else { UnpaidReason::Unknown };
                self.note_unpaid(&payment, reason);
            }
            let (state, reason) = (unsettled.state.as_str(), unsettled.reason.as_str());
            tracing::warn!(payment.digest = %payment.payment_digest, state, reason, "a payment was not settled");
            let (state, reason) = (unsettled.state, Some(unsettled.reason));
            return Ok(Payment { state, reason, updated_at: unsettled.now, ..payment });
        }
        // Another process took it meanwhile, and may know more.
        self.inner.chain.forget(&payment.id);
        let stored = payments.get(&Behalf::Platform, &payment.id).await?;
        let stored = stored.ok_or(EngineError::Bug("a payment in progress is gone"))?;
        if stored.state == PaymentState::Settled {
            self.inner.uncharged.forget(&stored.id);
        }
        Ok(stored)
    }

    /// Counts a round as work that was not paid for.
    pub(super) fn note_unpaid(&self, payment: &Payment, reason: UnpaidReason) {
        self.inner.uncharged.note(payment, reason, self.inner.clock.steady());
    }
}

fn reason(attempt: &SettleAttempt) -> String {
    match attempt {
        SettleAttempt::Confirmed { .. } => {
            "the facilitator names a transaction that the chain does not show".to_owned()
        }
        SettleAttempt::Refused { reason }
        | SettleAttempt::Unclear { reason }
        | SettleAttempt::NotSent { reason } => reason.clone(),
    }
}

/// The pause grows with the age of the payment.
fn next_at(payment: &Payment, state: PaymentState, now: Timestamp) -> Option<Timestamp> {
    let age = now.millis_since(payment.created_at);
    let pause = if age < OLD_MS { (age / 4).clamp(SOONEST_MS, LATEST_MS) } else { DAILY_MS };
    (state == PaymentState::Unknown).then(|| now.plus_millis(pause))
}

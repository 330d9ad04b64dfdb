//! The reservation of a payment: find it on record, or check it, let the facilitator verify it, and
//! set it aside for one request.

use jurat_core::{
    code::ProblemCode,
    id::{AccountId, PaymentId},
    payment::{
        Authorization, EvmAddress, PaymentDemand, PaymentFault,
        network::PaymentNetwork,
        record::{Payment, PaymentKey},
        state::PaymentState,
    },
    time::Timestamp,
};
use jurat_store::{Behalf, NewPayment, PaymentRefusal, WriteOutcome};
use jurat_wire::x402::{
    facilitator::VerifyReply, payment::PaymentMessage, required::IdentifierRule,
};

use super::{PurchaseOrder, PurchaseOutcome, payer_account};
use crate::{Engine, EngineError, LimitExceeded};

/// How long a reservation counts as one whose request is in progress.
const YOUNG_MS: i64 = 600_000;
/// How long after the end of its authorization a payment with an unknown settlement counts as open.
const OVER_MS: i64 = 24 * 3_600_000;

/// How far a payment may be refused: with the demand, so that the payer can sign another one.
pub(super) enum Step<T> {
    Next(T),
    Stop(PurchaseOutcome),
}

impl Engine {
    /// Finds the payment, or verifies it and sets it aside for this request. A payer is never
    /// asked to pay again under a name that has a payment.
    pub(super) async fn reserve_payment(
        &self,
        order: &PurchaseOrder,
        demand: &PaymentDemand,
        message: &PaymentMessage,
    ) -> Result<Step<Payment>, EngineError> {
        let _turn = self.inner.reservations.of(message.digest()).acquire().await;
        let step = self.find_or_reserve(order, demand, message).await?;
        if let Step::Stop(PurchaseOutcome::Required(_)) = &step {
            self.require_new_name(message).await?;
        }
        Ok(step)
    }

    async fn find_or_reserve(
        &self,
        order: &PurchaseOrder,
        demand: &PaymentDemand,
        message: &PaymentMessage,
    ) -> Result<Step<Payment>, EngineError> {
        let fault = |fault: PaymentFault| {
            Ok(Step::Stop(self.refused(order, demand, fault.to_string(), None)))
        };
        // The terms may have changed since the payment was accepted, and its network with them.
        let Some(key) = key_of(message) else { return fault(PaymentFault::Network) };
        if let Some(found) = self.used(&key).await? {
            // Nonces are public on the chain, so another signature may be anybody's.
            return if found.payment_digest == message.digest() {
                same_request(found, order).map(Step::Next)
            } else {
                fault(PaymentFault::Used)
            };
        }
        self.require_name(message)?;
        if let Err(wrong) = demand.check_terms(&message.accepted, &message.authorization) {
            return fault(wrong);
        }
        let now = self.inner.clock.now();
        if let Err(wrong) = demand.check_time(&message.authorization, now) {
            return fault(wrong);
        }
        let mut refused = self.verify(order, demand, message).await?;
        if refused.is_none() && self.is_spent(&key).await {
            refused = Some(self.refused(order, demand, PaymentFault::Used.to_string(), None));
        }
        if let Some(refused) = refused {
            // A concurrent request may have settled it meanwhile; a new demand would be paid twice.
            let same = self.used(&key).await?.filter(|it| it.payment_digest == message.digest());
            return match same {
                Some(found) => same_request(found, order).map(Step::Next),
                None => Ok(Step::Stop(refused)),
            };
        }
        let account = payer_account(&key.payer);
        let caller = self.admit_payer(&account).await?;
        if let Some(found) = self.named(&account, message).await? {
            return same_request(found, order).map(Step::Next);
        }
        self.require_storage(&caller).await?;
        let payment = new_payment(self, order, demand, message, key);
        if self.insert(&payment).await? {
            return Ok(Step::Next(payment));
        }
        // A concurrent request was faster, with the same authorization or the same name.
        let same = self.used(&payment.key).await?;
        let found = match same.filter(|it| it.payment_digest == payment.payment_digest) {
            Some(found) => Some(found),
            None => self.named(&account, message).await?,
        };
        found.map_or_else(
            || fault(PaymentFault::Used),
            |found| same_request(found, order).map(Step::Next),
        )
    }

    /// Refuses a payment that its payer did not name, if names are required.
    fn require_name(&self, message: &PaymentMessage) -> Result<(), EngineError> {
        let is_required = self.payment_settings()?.identifier == IdentifierRule::Required;
        if !is_required || message.identifier.is_some() {
            return Ok(());
        }
        let problem = "is required; name the payment, and use the same name if you repeat it";
        Err(EngineError::invalid("extensions.payment-identifier.info.id", problem))
    }

    /// The payment that used an authorization.
    async fn used(&self, key: &PaymentKey) -> Result<Option<Payment>, EngineError> {
        Ok(self.inner.store.payments().of_authorization(&Behalf::Platform, key).await?)
    }

    /// Records a reservation; `false` if its authorization or its name is known.
    async fn insert(&self, payment: &Payment) -> Result<bool, EngineError> {
        let most_open = u32::try_from(self.payment_settings()?.limits.rounds).unwrap_or(u32::MAX);
        let before = |millis| Timestamp::from_millis(payment.created_at.millis() - millis);
        let new = NewPayment {
            payment: payment.clone(),
            most_open,
            young_since: before(YOUNG_MS),
            good_since: before(OVER_MS),
        };
        let (payments, behalf) = (self.inner.store.payments(), Behalf::from(&payment.account));
        self.inner.failpoints.pass("payment_reserve_before");
        let writing = payments.reserve(&behalf, &new, None);
        match self.inner.metrics.write("payment_reserve", writing).await? {
            WriteOutcome::Done(()) => {
                self.inner.failpoints.pass("payment_reserve_after");
                Ok(true)
            }
            WriteOutcome::Refused(PaymentRefusal::Known) | WriteOutcome::Repeated => Ok(false),
            WriteOutcome::Refused(PaymentRefusal::TooManyOpen) => {
                Err(LimitExceeded::Payments(most_open).into())
            }
        }
    }

    /// Refuses a name that another payment of the payer has. The payer need not be verified: that
    /// there is such a payment is all that is said.
    async fn require_new_name(&self, message: &PaymentMessage) -> Result<(), EngineError> {
        let account = payer_account(&message.authorization.from);
        let found = self.named(&account, message).await?;
        if found.is_none_or(|found| found.payment_digest == message.digest()) {
            return Ok(());
        }
        let detail = "the name of the payment belongs to another payment, which may have been settled; send that one again, or sign a new one with a new name";
        Err(EngineError::refused(ProblemCode::IdempotencyMismatch, detail))
    }

    /// The payment that the payer gave the same name to.
    async fn named(
        &self,
        account: &AccountId,
        message: &PaymentMessage,
    ) -> Result<Option<Payment>, EngineError> {
        let Some(name) = &message.identifier else { return Ok(None) };
        let behalf = Behalf::from(account);
        Ok(self.inner.store.payments().of_identifier(&behalf, account, name).await?)
    }

    /// Lets the facilitator check the signature and the balance; the outcome if it does not accept
    /// the payment.
    async fn verify(
        &self,
        order: &PurchaseOrder,
        demand: &PaymentDemand,
        message: &PaymentMessage,
    ) -> Result<Option<PurchaseOutcome>, EngineError> {
        let request = message.facilitator_request(demand, &order.resource);
        let is_ours = |payer: &EvmAddress| *payer == message.authorization.from;
        match self.facilitator_verify(&request).await {
            Some(VerifyReply::Valid { payer }) if payer.as_ref().is_none_or(is_ours) => Ok(None),
            Some(VerifyReply::Invalid { reason }) => {
                let problem = format!("{}: {reason}", PaymentFault::Refused);
                Ok(Some(self.refused(order, demand, problem, None)))
            }
            Some(VerifyReply::Valid { .. }) | None => Err(EngineError::refused(
                ProblemCode::PaymentUnavailable,
                "the facilitator did not answer whether the payment is valid; nothing was paid",
            )),
        }
    }
}

/// The authorization of a payment, on the network that it names.
fn key_of(message: &PaymentMessage) -> Option<PaymentKey> {
    let network = PaymentNetwork::named(&message.accepted.network)?;
    let Authorization { from, nonce, .. } = &message.authorization;
    let asset = network.asset().to_owned();
    Some(PaymentKey { network, asset, payer: from.clone(), nonce: nonce.clone() })
}

fn new_payment(
    engine: &Engine,
    order: &PurchaseOrder,
    demand: &PaymentDemand,
    message: &PaymentMessage,
    key: PaymentKey,
) -> Payment {
    let now = engine.inner.clock.now();
    let seconds = i64::try_from(message.authorization.valid_before).unwrap_or(i64::MAX);
    Payment {
        id: PaymentId::new(now, engine.inner.clock.bits()),
        account: payer_account(&key.payer),
        key,
        protocol: message.protocol,
        amount: demand.amount,
        request_digest: order.request_digest.clone(),
        payment_digest: message.digest(),
        identifier: message.identifier.clone(),
        state: PaymentState::Reserved,
        settle_request: message.facilitator_request(demand, &order.resource).to_string(),
        valid_before: Timestamp::from_micros(seconds.saturating_mul(1_000_000)),
        round: None,
        answer: None,
        transaction: None,
        reason: None,
        attempts: 0,
        created_at: now,
        updated_at: now,
    }
}

/// The payment, if it belongs to this request.
fn same_request(found: Payment, order: &PurchaseOrder) -> Result<Payment, EngineError> {
    if found.request_digest == order.request_digest {
        return Ok(found);
    }
    let detail = "the payment was used for another request; sign a new one, with a new name";
    Err(EngineError::refused(ProblemCode::IdempotencyMismatch, detail))
}

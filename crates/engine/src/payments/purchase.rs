//! A purchase: check the payment, set it aside, run the round, settle, and only then hand the reply
//! over.

use jurat_core::{
    account::caller::Caller,
    code::ProblemCode,
    id::{PaymentId, RoundId},
    idempotency::SavedAnswer,
    payment::{
        Authorization, PaymentDemand, PaymentFault,
        network::PaymentNetwork,
        price,
        record::{Payment, PaymentKey},
        state::PaymentState,
    },
    policy::SEMANTIC,
    round::{Round, RoundEnding},
    time::Timestamp,
};
use jurat_store::{Behalf, NewPayment, PaymentRefusal, PaymentSettling, WriteOutcome};
use jurat_wire::x402::{
    facilitator::VerifyReply, payment::PaymentMessage, required::IdentifierRule,
};

use super::{
    Delivery, PaymentRefused, PaymentSettings, PurchaseOrder, PurchaseOutcome, payer_account,
};
use crate::{
    Engine, EngineError, IdempotencyKey, LimitExceeded, RoundWatcher,
    rounds::walk::{is_abandoned, seed},
};

/// How far a payment may be refused: with the demand, so that the payer can sign another one.
enum Step<T> {
    Next(T),
    Stop(PurchaseOutcome),
}

impl Engine {
    /// Sells one round. The reply is handed over if the payment was settled; a payment whose
    /// settlement is not known leads neither to a reply nor to a new demand.
    pub async fn purchase(&self, mut order: PurchaseOrder) -> Result<PurchaseOutcome, EngineError> {
        let settings = self.payment_settings()?;
        let demand = demand(settings, &mut order)?;
        let Some(message) = order.payment.clone() else {
            let problem = "the request is paid for; it has no payment".to_owned();
            return Ok(self.refused(&order, &demand, problem, None));
        };
        let payment = match self.reserve(&order, &demand, &message).await? {
            Step::Next(payment) => payment,
            Step::Stop(outcome) => return Ok(outcome),
        };
        // One request at a time carries a payment out on this node. Another one waits here, so that
        // nothing of it is left if its caller leaves.
        let turn = self.inner.purchases.of(payment.id.clone()).acquire().await;
        // From here on, the purchase ends also if its caller leaves.
        let engine = self.clone();
        let carried = async move {
            let _turn = turn;
            engine.carry_out(payment, order, demand).await
        };
        let carried = self.inner.background.spawn(carried).await;
        carried.map_err(|_| EngineError::Bug("a purchase panicked"))?
    }

    /// Finds the payment, or verifies it and sets it aside for this request.
    async fn reserve(
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
        if let Some(refused) = self.verify(order, demand, message).await? {
            // A concurrent request may have settled it meanwhile; a new demand would be paid twice.
            let same = self.used(&key).await?.filter(|it| it.payment_digest == message.digest());
            return match same {
                Some(found) => same_request(found, order).map(Step::Next),
                None => Ok(Step::Stop(refused)),
            };
        }
        let account = payer_account(&key.payer);
        let caller = self.admit_payer(&account).await?;
        if let Some(found) = self.named(&caller, message).await? {
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
            None => self.named(&caller, message).await?,
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
        let new = NewPayment { payment: payment.clone(), most_open };
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

    /// The payment that the payer gave the same name to. The payer is verified.
    async fn named(
        &self,
        caller: &Caller,
        message: &PaymentMessage,
    ) -> Result<Option<Payment>, EngineError> {
        let Some(name) = &message.identifier else { return Ok(None) };
        let account = caller.account();
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
        match self.facilitator_verify(&request).await {
            Some(VerifyReply::Valid { payer }) if payer == message.authorization.from => Ok(None),
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

    /// Does what is left to do for a payment, in its turn.
    async fn carry_out(
        &self,
        payment: Payment,
        order: PurchaseOrder,
        demand: PaymentDemand,
    ) -> Result<PurchaseOutcome, EngineError> {
        let payment = self.stored_payment(&payment.id).await?;
        if payment.state != PaymentState::Reserved {
            return self.outcome(payment, &order, &demand);
        }
        let round = match self.paid_round(&payment, &order).await {
            Ok(round) => round,
            Err(error) => return self.unless_begun(payment, error).await,
        };
        if !is_chargeable(&round) {
            self.release_payment(&payment).await;
            let answer = (order.encoder)(round.withheld());
            return Ok(PurchaseOutcome::Delivered(Box::new(Delivery {
                answer,
                payment: None,
                is_repeated: false,
            })));
        }
        let (reserved, id) = (payment.id.clone(), round.open.id.clone());
        let answer = (order.encoder)(round);
        match self.settle_first(payment, id, answer).await? {
            Some(settled) => self.outcome(settled, &order, &demand).map(first_time),
            // Another process was faster, or gave the payment back.
            None => self.outcome(self.stored_payment(&reserved).await?, &order, &demand),
        }
    }

    async fn stored_payment(&self, id: &PaymentId) -> Result<Payment, EngineError> {
        let stored = self.inner.store.payments().get(&Behalf::Platform, id).await?;
        stored.ok_or_else(|| {
            // A concurrent request with the same payment was refused, and gave it back.
            let detail = "another request with this payment ended without a charge; send it again";
            EngineError::Conflict(detail.to_owned())
        })
    }

    /// The outcome of a payment that is on record.
    fn outcome(
        &self,
        payment: Payment,
        order: &PurchaseOrder,
        demand: &PaymentDemand,
    ) -> Result<PurchaseOutcome, EngineError> {
        if payment.state == PaymentState::FailedFinal {
            let problem = PaymentFault::Unsettled.to_string();
            return Ok(self.refused(order, demand, problem, Some(payment)));
        }
        known(payment).ok_or(EngineError::Bug("a payment has no outcome"))
    }

    /// Gives a payment back whose round could not be carried out, unless a round was begun for it:
    /// whoever began it may still settle.
    async fn unless_begun(
        &self,
        payment: Payment,
        error: EngineError,
    ) -> Result<PurchaseOutcome, EngineError> {
        let begun = self.round_of_payment(&payment).await;
        if begun.is_ok_and(|begun| begun.is_none_or(|round| is_abandoned(&round))) {
            self.release_payment(&payment).await;
            return Err(error);
        }
        tracing::info!(error = %error, "a paid round goes on without this request");
        Ok(PurchaseOutcome::Pending(payment.id))
    }

    /// The round that was begun for a payment, by whichever node.
    async fn round_of_payment(&self, payment: &Payment) -> Result<Option<Round>, EngineError> {
        let (account, behalf) = (&payment.account, Behalf::from(&payment.account));
        let key = round_key(payment);
        let found = self.inner.store.idempotency().get(&behalf, account, &key).await?;
        let Some(id) = found.and_then(|found| found.round) else { return Ok(None) };
        Ok(self.inner.store.rounds().get(&behalf, account, &id).await?)
    }

    /// Stores the reply with the intent to settle, and settles; `None` if another node does.
    async fn settle_first(
        &self,
        payment: Payment,
        round: RoundId,
        answer: SavedAnswer,
    ) -> Result<Option<Payment>, EngineError> {
        let now = self.inner.clock.now();
        let settling = PaymentSettling {
            account: payment.account.clone(),
            id: payment.id.clone(),
            round,
            answer,
            lease_token: seed(self.inner.clock.bits()),
            next_at: now.plus_millis(self.payment_settings()?.timeouts.lease_ms()),
            now,
        };
        self.inner.failpoints.pass("payment_settle_before");
        let (payments, behalf) = (self.inner.store.payments(), Behalf::from(&payment.account));
        let writing = payments.settle(&behalf, &settling);
        if !self.inner.metrics.write("payment_settle", writing).await? {
            return Ok(None);
        }
        self.inner.failpoints.pass("payment_settle_after");
        let payment = Payment {
            state: PaymentState::Settling,
            round: Some(settling.round),
            answer: Some(settling.answer),
            attempts: 1,
            ..payment
        };
        self.try_settle(payment, settling.lease_token).await.map(Some)
    }

    /// Runs the round of a purchase; repeated, it finds the same round.
    async fn paid_round(
        &self,
        payment: &Payment,
        order: &PurchaseOrder,
    ) -> Result<Round, EngineError> {
        let limits = self.payment_settings()?.limits;
        let caller = self.payer_caller(&payment.account, limits.rounds).await?;
        let once = IdempotencyKey {
            key: round_key(payment),
            operation: order.job.work.kind().as_str(),
            request_digest: order.request_digest.clone(),
        };
        let job = order.job.clone();
        let begun = self.round_begin(&caller, job, RoundWatcher::nobody(), Some(once)).await?;
        begun.wait().await
    }

    /// Gives an authorization back that was not sent to be settled.
    async fn release_payment(&self, payment: &Payment) {
        self.inner.metrics.payments.released();
        let behalf = Behalf::from(&payment.account);
        let released =
            self.inner.store.payments().release(&behalf, &payment.account, &payment.id).await;
        if let Err(error) = released {
            // It stays reserved, and a repeated request carries it out.
            tracing::warn!(error = %error, payment.id = %payment.id, "could not give a payment back");
        }
    }

    fn refused(
        &self,
        order: &PurchaseOrder,
        demand: &PaymentDemand,
        problem: String,
        failed: Option<Payment>,
    ) -> PurchaseOutcome {
        let rule =
            self.inner.payments.as_ref().map_or(IdentifierRule::Optional, |it| it.identifier);
        PurchaseOutcome::Required(Box::new(PaymentRefused {
            demand: demand.clone(),
            resource: order.resource.clone(),
            identifier: rule,
            problem,
            failed: failed.map(Box::new),
        }))
    }
}

/// The demand for a request. A request without a number of spares gets none, because they cost.
fn demand(
    settings: &PaymentSettings,
    order: &mut PurchaseOrder,
) -> Result<PaymentDemand, EngineError> {
    if order.job.policy.policy_id == SEMANTIC {
        let reason = "names a verifier, whose judge the price does not cover; use a key instead";
        return Err(EngineError::not_supported("policy", reason));
    }
    let terms = &mut order.job.terms;
    terms.spares.get_or_insert(0);
    Ok(PaymentDemand {
        network: settings.network,
        pay_to: settings.pay_to.clone(),
        amount: price(settings.price_per_replica, terms),
        work_seconds: order.job.timeout_ms.div_ceil(1_000),
    })
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

/// The idempotency key of the round that is paid for.
fn round_key(payment: &Payment) -> String {
    format!("x402:{}", payment.id)
}

/// The payment, if it belongs to this request.
fn same_request(found: Payment, order: &PurchaseOrder) -> Result<Payment, EngineError> {
    if found.request_digest == order.request_digest {
        return Ok(found);
    }
    let detail = "the payment was used for another request; sign a new one, with a new name";
    Err(EngineError::refused(ProblemCode::IdempotencyMismatch, detail))
}

/// The outcome of a payment that is on record; `None` if it failed for good.
pub(super) fn known(payment: Payment) -> Option<PurchaseOutcome> {
    match (payment.state, &payment.answer) {
        (PaymentState::FailedFinal, _) => None,
        (PaymentState::Settled, Some(answer)) => {
            let answer = answer.clone();
            let delivery = Delivery { answer, payment: Some(payment), is_repeated: true };
            Some(PurchaseOutcome::Delivered(Box::new(delivery)))
        }
        (
            PaymentState::Settled
            | PaymentState::Reserved
            | PaymentState::Settling
            | PaymentState::Unknown,
            _,
        ) => Some(PurchaseOutcome::Pending(payment.id)),
    }
}

fn first_time(outcome: PurchaseOutcome) -> PurchaseOutcome {
    match outcome {
        PurchaseOutcome::Delivered(delivery) => {
            PurchaseOutcome::Delivered(Box::new(Delivery { is_repeated: false, ..*delivery }))
        }
        other @ (PurchaseOutcome::Required(_) | PurchaseOutcome::Pending(_)) => other,
    }
}

/// Whether a round is worth its price: it ended by itself, and at least one replica has a vote.
fn is_chargeable(round: &Round) -> bool {
    round.closing.as_ref().is_some_and(|closing| {
        let has_vote = closing.consensus.groups.iter().any(Option::is_some);
        closing.ending == RoundEnding::Closed && has_vote
    })
}

//! A purchase: set the payment aside, run the round, settle, and only then hand the reply over.

use jurat_core::{
    id::{PaymentId, RoundId},
    idempotency::SavedAnswer,
    payment::{PaymentDemand, PaymentFault, price, record::Payment, seconds, state::PaymentState},
    policy::SEMANTIC,
    round::{
        Round, RoundEnding,
        replica::{FailureCode, Replica, ReplicaAnswer},
    },
};
use jurat_store::{Behalf, PaymentSettling};
use jurat_wire::x402::required::IdentifierRule;

use super::{
    Delivery, PaymentRefused, PaymentSettings, PurchaseOrder, PurchaseOutcome, reserve::Step,
    uncharged::UnpaidReason,
};
use crate::{
    Engine, EngineError, IdempotencyKey, RoundWatcher,
    rounds::walk::{is_abandoned, seed},
};

/// The minimum timeout of a paid request. Executors work for one that they cannot answer in time,
/// and nobody pays.
const LEAST_TIMEOUT_MS: u64 = 5_000;

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
        let payment = match self.reserve_payment(&order, &demand, &message).await? {
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
        if let Some(fault) = self.lapsed(&payment, &demand).await? {
            return match self.release_payment(&payment).await? {
                Some(kept) => self.outcome(kept, &order, &demand),
                None => Ok(self.refused(&order, &demand, fault.to_string(), None)),
            };
        }
        let round = match self.paid_round(&payment, &order).await {
            Ok(round) => round,
            Err(error) => {
                let kept = self.unless_begun(payment, error).await?;
                return self.outcome(kept, &order, &demand);
            }
        };
        if !is_chargeable(&round) {
            if let Some(kept) = self.release_payment(&payment).await? {
                return self.outcome(kept, &order, &demand);
            }
            self.note_unpaid(&payment, UnpaidReason::Final);
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
        known(payment)
    }

    /// Why nothing is done any more for a payment that was set aside some time ago: its
    /// authorization ends too soon. A round in progress goes on, and one that has ended is settled
    /// as long as the authorization is valid.
    async fn lapsed(
        &self,
        payment: &Payment,
        demand: &PaymentDemand,
    ) -> Result<Option<PaymentFault>, EngineError> {
        let ends = seconds(payment.valid_before);
        let Err(fault) = demand.check_end(ends, self.inner.clock.now()) else { return Ok(None) };
        let begun = self.round_of_payment(payment).await?;
        Ok(match begun.filter(|round| !is_abandoned(round)) {
            Some(round) if round.closing.is_none() || fault != PaymentFault::Expired => None,
            Some(_) | None => Some(fault),
        })
    }

    /// Gives a payment back whose round could not be carried out, unless a round was begun for it:
    /// whoever began it may still settle. Returns a payment that was not given back.
    async fn unless_begun(
        &self,
        payment: Payment,
        error: EngineError,
    ) -> Result<Payment, EngineError> {
        let begun = self.round_of_payment(&payment).await;
        if begun.is_ok_and(|begun| begun.is_none_or(|round| is_abandoned(&round))) {
            return self.release_payment(&payment).await?.ok_or(error);
        }
        tracing::info!(error = %error, "a paid round goes on without this request");
        Ok(payment)
    }

    /// Whether somebody still carries a reserved payment out. Otherwise nobody will, until its
    /// request comes again: nothing but the request can be worked on.
    pub(super) async fn is_in_progress(&self, payment: &Payment) -> Result<bool, EngineError> {
        if self.inner.purchases.in_use(&payment.id).is_some() {
            return Ok(true);
        }
        let begun = self.round_of_payment(payment).await?;
        Ok(begun.is_some_and(|round| round.closing.is_none()))
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

    /// Gives an authorization back that was not sent to be settled. Returns the payment instead if
    /// another process has sent it meanwhile: it is paid for, or will be, and a new demand would be
    /// paid twice.
    async fn release_payment(&self, payment: &Payment) -> Result<Option<Payment>, EngineError> {
        let (payments, behalf) = (self.inner.store.payments(), Behalf::from(&payment.account));
        self.inner.failpoints.pass("payment_release_before");
        let releasing = payments.release(&behalf, &payment.account, &payment.id);
        if self.inner.metrics.write("payment_release", releasing).await? {
            self.inner.metrics.payments.released();
            self.inner.failpoints.pass("payment_release_after");
            return Ok(None);
        }
        Ok(payments.get(&Behalf::Platform, &payment.id).await?)
    }

    pub(super) fn refused(
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
    let timeout_ms = order.job.timeout_ms;
    if timeout_ms < LEAST_TIMEOUT_MS {
        return Err(EngineError::invalid(
            "execution.timeout_ms",
            format!(
                "must be at least {LEAST_TIMEOUT_MS} for a paid request, and is {timeout_ms}; leave it out, or send a key"
            ),
        ));
    }
    let terms = &mut order.job.terms;
    terms.spares.get_or_insert(0);
    Ok(PaymentDemand {
        network: settings.network,
        pay_to: settings.pay_to.clone(),
        amount: price(settings.price_per_replica, terms),
        work_seconds: timeout_ms.div_ceil(1_000),
    })
}

/// The idempotency key of the round that is paid for.
fn round_key(payment: &Payment) -> String {
    format!("x402:{}", payment.id)
}

/// The outcome of a payment that is on record, without a new demand.
pub(super) fn known(payment: Payment) -> Result<PurchaseOutcome, EngineError> {
    let conflict = |detail: &str| Err(EngineError::Conflict(detail.to_owned()));
    match (payment.state, &payment.answer) {
        (PaymentState::FailedFinal, _) => conflict(
            "the payment failed and nothing was paid; send the request again without a payment",
        ),
        (PaymentState::Settled, Some(answer)) => {
            let answer = answer.clone();
            let delivery = Delivery { answer, payment: Some(payment), is_repeated: true };
            Ok(PurchaseOutcome::Delivered(Box::new(delivery)))
        }
        (PaymentState::Settled, None) => conflict(
            "the payment was settled, and its reply was removed, because replies are kept for seven days",
        ),
        (PaymentState::Reserved | PaymentState::Settling | PaymentState::Unknown, _) => {
            Ok(PurchaseOutcome::Pending(payment.id))
        }
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

/// Whether a round is worth its price: it ended by itself, and at least one replica has a vote, or
/// has an output that only the schema or the policy of the request refused. Otherwise a payer would
/// get work for nothing with a schema that refuses everything.
fn is_chargeable(round: &Round) -> bool {
    round.closing.as_ref().is_some_and(|closing| {
        let has_vote = closing.consensus.groups.iter().any(Option::is_some);
        let has_output = || closing.replicas.iter().any(is_refused_by_request);
        closing.ending == RoundEnding::Closed && (has_vote || has_output())
    })
}

fn is_refused_by_request(replica: &Replica) -> bool {
    let ReplicaAnswer::Nothing { failure, said, .. } = &replica.answer else { return false };
    replica.is_counted() && failure.code == FailureCode::InvalidOutput && said.is_some()
}

//! Calls to the facilitator. Its answers are compared with the demand and with what the payer
//! signed; nothing depends on the words of its reasons.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Uri};
use jurat_core::{
    payment::{record::Payment, state::SettleAttempt},
    strict_json,
};
use jurat_guard::client::CallError;
use jurat_wire::x402::facilitator::{SettleReply, VerifyReply, settle_reply, verify_reply};
use serde_json::Value;

use super::PaymentTimeouts;
use crate::{Engine, node::metrics::FacilitatorAnswer};

/// Facilitators answer in a few lines.
const MOST_VALUES: usize = 1_000;

impl Engine {
    /// The answer to a request to verify; `None` if there is no usable one.
    pub(super) async fn facilitator_verify(&self, request: &Value) -> Option<VerifyReply> {
        let body = Bytes::from(request.to_string());
        let replied = self.facilitator("/verify", body, |timeouts| timeouts.verify).await;
        let reply = replied.as_ref().ok().and_then(|it| verify_reply(&it.document));
        // A refusal may have a status of its own; a success has none but 2xx.
        let is_believed = |reply: &VerifyReply| {
            matches!(reply, VerifyReply::Invalid { .. })
                || replied.as_ref().is_ok_and(|it| it.is_success)
        };
        let reply = reply.filter(is_believed);
        let answer = match &reply {
            Some(VerifyReply::Valid { .. }) => FacilitatorAnswer::Yes,
            Some(VerifyReply::Invalid { .. }) => FacilitatorAnswer::No,
            None => FacilitatorAnswer::Unclear,
        };
        self.inner.metrics.payments.called("verify", answer);
        if let Err(failure) = &replied {
            tracing::warn!(reason = failure.reason, "the facilitator did not verify a payment");
        }
        reply
    }

    /// Asks the facilitator to settle. The request is the same at each attempt.
    pub(super) async fn facilitator_settle(&self, payment: &Payment) -> SettleAttempt {
        let body = Bytes::from(payment.settle_request.clone());
        let attempt = match self.facilitator("/settle", body, |timeouts| timeouts.settle).await {
            Ok(reply) => read_settled(payment, &reply),
            Err(CallFailure { reason, is_sent: true }) => {
                SettleAttempt::Unclear { reason: reason.to_owned() }
            }
            Err(CallFailure { reason, is_sent: false }) => {
                SettleAttempt::NotSent { reason: reason.to_owned() }
            }
        };
        let answer = match attempt {
            SettleAttempt::Confirmed { .. } => FacilitatorAnswer::Yes,
            SettleAttempt::Refused { .. } => FacilitatorAnswer::No,
            SettleAttempt::Unclear { .. } | SettleAttempt::NotSent { .. } => {
                FacilitatorAnswer::Unclear
            }
        };
        self.inner.metrics.payments.called("settle", answer);
        attempt
    }

    async fn facilitator(
        &self,
        path: &str,
        body: Bytes,
        timeout: fn(PaymentTimeouts) -> Duration,
    ) -> Result<FacilitatorReply, CallFailure> {
        let not_sent = |reason| CallFailure { reason, is_sent: false };
        let sent = |reason| CallFailure { reason, is_sent: true };
        let settings = self.payment_settings().map_err(|_| not_sent("payments are off"))?;
        let timeout = timeout(settings.timeouts);
        let base = settings.facilitator.to_string();
        let address = format!("{}{path}", base.trim_end_matches('/'));
        let address: Uri = address.parse().map_err(|_| not_sent("its address is wrong"))?;
        let reply = self.inner.client.post_json(&address, HeaderMap::new(), body, timeout).await;
        let reply = reply.map_err(|error| match error {
            CallError::Unreachable(_) | CallError::Tls(_) => {
                not_sent("there is no connection to the facilitator")
            }
            CallError::Timeout => sent("the facilitator did not answer in time"),
            CallError::Disconnected(_) => sent("the facilitator hung up"),
            CallError::TooLarge { .. } | CallError::Encoded { .. } | CallError::Redirect { .. } => {
                sent("the answer of the facilitator cannot be used")
            }
        })?;
        // Some facilitators refuse with a status of their own, and the same body.
        if reply.status.is_server_error() {
            return Err(sent("the facilitator failed"));
        }
        let document = strict_json::parse_within(&reply.body, MOST_VALUES)
            .map_err(|_| sent("the answer of the facilitator is not JSON"))?;
        Ok(FacilitatorReply { is_success: reply.status.is_success(), document })
    }
}

/// An answer in JSON, and whether its status is 2xx.
struct FacilitatorReply {
    is_success: bool,
    document: Value,
}

/// Why there is no answer, and whether the request may have arrived.
struct CallFailure {
    reason: &'static str,
    is_sent: bool,
}

/// Compares an answer with the payment that it is about.
fn read_settled(payment: &Payment, reply: &FacilitatorReply) -> SettleAttempt {
    let FacilitatorReply { is_success, document } = reply;
    let unclear = |reason: &str| SettleAttempt::Unclear { reason: reason.to_owned() };
    match settle_reply(document) {
        None => unclear("the answer of the facilitator has another form"),
        Some(SettleReply::Failure { reason }) => SettleAttempt::Refused { reason },
        Some(SettleReply::Success { .. }) if !is_success => {
            unclear("the facilitator says success with another status")
        }
        Some(SettleReply::Success { payer, transaction, network, amount }) => {
            if payer.is_some_and(|payer| payer != payment.key.payer) {
                return unclear("the facilitator names another payer");
            }
            if !payment.key.network.is_named(&network) {
                return unclear("the facilitator names another network");
            }
            if amount.is_some_and(|amount| amount != payment.amount.to_string()) {
                return unclear("the facilitator names another amount");
            }
            // Members of other versions that would contradict the demand.
            let differs = |name: &str, ours: &str| {
                let given = document.get(name).and_then(Value::as_str);
                given.is_some_and(|given| !given.eq_ignore_ascii_case(ours))
            };
            let pay_to = pay_to(payment).unwrap_or_default();
            if differs("payTo", &pay_to) || differs("asset", &payment.key.asset) {
                return unclear("the facilitator names another recipient or token");
            }
            SettleAttempt::Confirmed { transaction }
        }
    }
}

/// The recipient that the payer signed for.
pub(super) fn pay_to(payment: &Payment) -> Option<String> {
    let request: Value = serde_json::from_str(&payment.settle_request).ok()?;
    let to = request.pointer("/paymentPayload/payload/authorization/to")?.as_str()?;
    Some(to.to_owned())
}

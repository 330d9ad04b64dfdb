//! Requests that are paid one by one (x402), by payers without an account.
//!
//! The reply is stored before money moves, so that a payment that was settled always has its reply,
//! and a reply leaves only for a payment that was settled.

mod chain;
mod facilitator;
mod purchase;
mod reconcile;
mod reserve;
mod settle;
mod uncharged;

use std::{fmt, sync::Arc, time::Duration};

use http::Uri;
use jurat_core::{
    account::caller::Caller,
    canonical,
    id::{AccountId, PaymentId},
    idempotency::SavedAnswer,
    payment::{
        EvmAddress, PaymentDemand,
        network::PaymentNetwork,
        record::{Payment, PaymentProtocol},
        state::PaymentState,
    },
    round::{Round, job::Job},
};
use jurat_store::Behalf;
use jurat_wire::x402::{
    payment::PaymentMessage,
    required::{IdentifierRule, PaidResource},
};

pub(crate) use self::{chain::ChainMemory, uncharged::UnchargedWork};
use crate::{Engine, EngineError, RequestMemory, node::keyed_locks::KeyedLocks};

/// How payments are accepted. Without it, nothing is sold.
#[derive(Debug, Clone)]
pub struct PaymentSettings {
    pub network: PaymentNetwork,
    /// The address that is paid.
    pub pay_to: EvmAddress,
    /// The base address of the facilitator, which has `/verify` and `/settle`.
    pub facilitator: Uri,
    /// A node of the chain, which proves what was paid.
    pub rpc: Option<Uri>,
    /// In base units of the token.
    pub price_per_replica: u64,
    pub identifier: IdentifierRule,
    pub limits: PayerLimits,
    pub timeouts: PaymentTimeouts,
}

/// How long the calls of a payment may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentTimeouts {
    pub verify: Duration,
    /// A chain needs a few blocks.
    pub settle: Duration,
    /// One question to a node of the chain.
    pub rpc: Duration,
}

impl PaymentTimeouts {
    /// A verification and a question to the chain are quick, however long a settlement may take.
    #[must_use]
    pub fn of_settlement(settle: Duration) -> Self {
        let quick = settle.min(Duration::from_secs(10));
        Self { verify: quick, settle, rpc: quick }
    }

    /// How long one look at the chain may take. It goes on later where it was interrupted.
    fn look(self) -> Duration {
        self.rpc * 5
    }

    /// How long after the beginning of an attempt another process may repeat it: longer than all
    /// its calls.
    fn lease_ms(self) -> u64 {
        let calls = self.settle + self.look();
        u64::try_from((calls + Duration::from_secs(5)).as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for PaymentTimeouts {
    fn default() -> Self {
        Self::of_settlement(Duration::from_secs(45))
    }
}

/// The limits of each payer without an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayerLimits {
    /// Concurrent rounds.
    pub rounds: usize,
    /// Paid requests per minute.
    pub requests_per_minute: u32,
    /// Stored bytes.
    pub quota_bytes: u64,
    /// Rounds within ten minutes that end without a charge, or whose payment fails for good; of
    /// those who have never paid, also rounds whose settlement is not known.
    pub uncharged_rounds: u32,
    /// All such rounds of all payers together. Those who have paid before are exempt.
    pub uncharged_of_all: u32,
}

impl Default for PayerLimits {
    fn default() -> Self {
        Self {
            rounds: 8,
            requests_per_minute: 60,
            quota_bytes: 64 * 1024 * 1024,
            uncharged_rounds: 3,
            uncharged_of_all: 30,
        }
    }
}

/// The purchases in progress on this node, by payment.
pub(crate) type PurchasesInFlight = KeyedLocks<PaymentId>;

/// The reservations in progress on this node, by what the payer signed, so that a payment that
/// arrives many times at once is verified once.
pub(crate) type ReservationsInFlight = KeyedLocks<String>;

/// Turns a round into the reply to its request.
pub type RoundEncoder = Arc<dyn Fn(Round) -> SavedAnswer + Send + Sync>;

/// A request that is paid for.
pub struct PurchaseOrder {
    pub job: Job,
    pub resource: PaidResource,
    /// Identifies the request: its address and its body.
    pub request_digest: String,
    pub payment: Option<PaymentMessage>,
    pub encoder: RoundEncoder,
    /// The memory of the request, which is counted as long as the purchase needs it.
    pub memory: Option<Arc<RequestMemory>>,
}

impl fmt::Debug for PurchaseOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PurchaseOrder").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// The end of a purchase, as far as it is known.
#[derive(Debug)]
pub enum PurchaseOutcome {
    /// No payment can be accepted; nothing was paid.
    Required(Box<PaymentRefused>),
    /// Whether the payment was settled is not known yet.
    Pending(PaymentId),
    /// The reply.
    Delivered(Box<Delivery>),
}

/// The demand for a request, and why a payment was not accepted.
#[derive(Debug, Clone)]
pub struct PaymentRefused {
    pub demand: PaymentDemand,
    pub resource: PaidResource,
    pub identifier: IdentifierRule,
    pub problem: String,
    /// The payment that was tried and failed for good.
    pub failed: Option<Box<Payment>>,
}

/// The reply to a paid request.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub answer: SavedAnswer,
    /// The settled payment; `None` if nothing was charged.
    pub payment: Option<Payment>,
    /// Whether the reply was stored before this request.
    pub is_repeated: bool,
}

impl Delivery {
    /// The name of the network as a version of the protocol spells it.
    pub fn network(payment: &Payment, protocol: PaymentProtocol) -> &'static str {
        match protocol {
            PaymentProtocol::V1 => payment.key.network.as_str(),
            PaymentProtocol::V2 => payment.key.network.caip2(),
        }
    }
}

impl Engine {
    /// Whether requests can be paid for one by one.
    pub fn sells(&self) -> bool {
        self.inner.payments.is_some()
    }

    pub(crate) fn payment_settings(&self) -> Result<&PaymentSettings, EngineError> {
        self.inner
            .payments
            .as_ref()
            .ok_or_else(|| EngineError::NotFound { what: "shop", id: "x402".to_owned() })
    }

    /// The stored reply of a payment. Its identifier is secret, so that whoever has it is the
    /// payer. Replies stay available if nothing is sold any more.
    pub async fn payment_show(&self, id: &PaymentId) -> Result<PurchaseOutcome, EngineError> {
        let not_found = || EngineError::NotFound { what: "payment", id: id.to_string() };
        let found = self.inner.store.payments().get(&Behalf::Platform, id).await?;
        let payment = found.ok_or_else(not_found)?;
        if payment.state == PaymentState::Reserved && !self.is_in_progress(&payment).await? {
            let detail = "the request was interrupted and nothing was paid; send the request again with the same payment";
            return Err(EngineError::Conflict(detail.to_owned()));
        }
        purchase::known(payment)
    }

    /// The caller that a payer is: an account of its own kind, without keys.
    pub(crate) async fn admit_payer(&self, account: &AccountId) -> Result<Caller, EngineError> {
        let limits = self.payment_settings()?.limits;
        let caller = self.payer_caller(account, limits.rounds).await?;
        let now = self.inner.clock.now();
        let rate = Some(limits.requests_per_minute);
        self.inner.keys_in_use.request_of_account(account, rate, now)?;
        let (uncharged, now) = (&self.inner.uncharged, self.inner.clock.steady());
        uncharged.check(account, limits, now)?;
        if let Err(limit) = uncharged.check_new(account, limits, now) {
            let (payments, behalf) = (self.inner.store.payments(), Behalf::from(account));
            if !payments.has_paid(&behalf, account).await? {
                return Err(limit.into());
            }
        }
        Ok(caller)
    }
}

/// The account of a payer.
pub(crate) fn payer_account(payer: &EvmAddress) -> AccountId {
    let digest = canonical::sha256_hex(format!("x402 payer {payer}").as_bytes());
    let bits = digest.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok());
    AccountId::payer(bits.unwrap_or_default())
}

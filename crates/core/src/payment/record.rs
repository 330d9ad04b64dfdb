//! A payment as it is stored.

use std::str::FromStr;

use super::{EvmAddress, network::PaymentNetwork, state::PaymentState};
use crate::{
    id::{AccountId, PaymentId, RoundId},
    idempotency::SavedAnswer,
    round::job::words,
    time::Timestamp,
};

words!(
    /// The version of the protocol that a payer speaks.
    PaymentProtocol { V1 => "1", V2 => "2" }
);

impl PaymentProtocol {
    /// The number of the version.
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The authorization behind a payment. The chain accepts each once, and so does the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentKey {
    pub network: PaymentNetwork,
    pub asset: String,
    pub payer: EvmAddress,
    pub nonce: String,
}

/// A payment for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    pub id: PaymentId,
    pub account: AccountId,
    pub key: PaymentKey,
    pub protocol: PaymentProtocol,
    /// In base units of the token.
    pub amount: u64,
    /// Identifies the paid request.
    pub request_digest: String,
    /// Identifies what the payer signed, with its signature.
    pub payment_digest: String,
    /// The payer's own name for the payment.
    pub identifier: Option<String>,
    pub state: PaymentState,
    /// The JSON that asks the facilitator to settle; the same for each attempt. It is removed with
    /// the reply.
    pub settle_request: String,
    pub valid_before: Timestamp,
    pub round: Option<RoundId>,
    /// The reply to the paid request, stored before money moves.
    pub answer: Option<SavedAnswer>,
    /// The transaction of the transfer; until it is settled, the one that the facilitator named.
    pub transaction: Option<String>,
    /// Why the latest attempt to settle did not succeed.
    pub reason: Option<String>,
    /// Attempts to settle that may have reached the facilitator.
    pub attempts: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

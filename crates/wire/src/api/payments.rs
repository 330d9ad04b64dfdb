//! `/api/*/x402`: payments whose settlement is not known yet.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    consensus_reply::{DelegateReply, VerdictReply},
    v2::{DelegateReplyV2, VerdictReplyV2},
};

/// The stored reply to a paid request, in the form of the route that was paid for.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PaidReply<'a> {
    Delegate(DelegateReply<'a>),
    Verdict(VerdictReply<'a>),
    DelegateV2(DelegateReplyV2<'a>),
    VerdictV2(VerdictReplyV2<'a>),
}

/// A payment whose settlement is not known yet. Send the request again with the same payment, or
/// fetch `url`; signing another payment would pay twice.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = PaymentPending)]
pub struct PaymentPendingBody<'a> {
    /// Id of the payment, which is secret: whoever has it may fetch the reply.
    pub payment_id: Cow<'a, str>,
    /// `settlement_pending`.
    pub state: Cow<'a, str>,
    /// Seconds to wait before the next request.
    pub retry_after_s: u64,
    /// Path from which the reply can be fetched.
    pub url: Cow<'a, str>,
}

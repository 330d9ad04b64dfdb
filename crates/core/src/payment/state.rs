//! The states of a payment, and what may follow from an attempt to settle it.

use std::str::FromStr;

use crate::{round::job::words, time::Timestamp};

words!(
    /// The state of a payment.
    PaymentState {
        /// The authorization is set aside for one request, and nothing was sent to be settled.
        Reserved => "reserved",
        /// The reply is stored, and the request to settle is about to leave, or has left.
        Settling => "settling",
        /// The payment is on record, and the reply belongs to the payer.
        Settled => "settled",
        /// Nothing was paid, and nothing can be paid any more.
        FailedFinal => "failed_final",
        /// Whether it was paid is not known yet.
        Unknown => "unknown",
    }
);

/// The end of an attempt to settle, as far as the facilitator tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleAttempt {
    /// It names a transaction, and everything else in its answer is as demanded.
    Confirmed { transaction: String },
    /// It refuses, which proves nothing: facilitators also refuse after they have sent the
    /// transfer, if its receipt is late or if it was sent before.
    Refused { reason: String },
    /// No answer, an unreadable one, or one that contradicts the demand.
    Unclear { reason: String },
    /// The request never left.
    NotSent { reason: String },
}

/// What the chain says about an authorization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChainRecord {
    /// It was used for exactly the demanded transfer.
    Paid { transaction: String },
    /// It is unused in a block of this time.
    Unused { at: Timestamp },
    /// It was cancelled, or used for another transfer, in a block of the time `since`. The newest
    /// block is of the time `at`.
    Spent { since: Timestamp, at: Timestamp },
    /// The chain was not asked, did not answer, or shows something else.
    NoProof,
}

/// The facts about a payment after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleFacts {
    /// Whether any attempt may have reached the facilitator.
    pub may_be_sent: bool,
    /// From then on, the chain refuses the authorization.
    pub valid_before: Timestamp,
    /// The time of this machine, which proves nothing about the chain.
    pub now: Timestamp,
    /// Whether the chain can be asked.
    pub can_prove: bool,
}

/// How long a block may still be replaced by another one, in which an authorization is used
/// differently.
const FINALITY_MS: u64 = 120_000;

/// The next state of a payment, with its transaction if it was paid.
///
/// Money decides: a payment is settled if a transfer is proven, and failed if no transfer can have
/// happened or happen any more. Everything else stays unknown, because a payer that is asked again
/// signs another authorization, and pays twice.
pub fn resolve(
    attempt: &SettleAttempt,
    chain: &ChainRecord,
    facts: SettleFacts,
) -> (PaymentState, Option<String>) {
    let is_final = |since: Timestamp, at: Timestamp| since.plus_millis(FINALITY_MS) < at;
    let is_over = |at: Timestamp| is_final(facts.valid_before, at);
    match (chain, attempt) {
        (ChainRecord::Paid { transaction }, _) => {
            (PaymentState::Settled, Some(transaction.clone()))
        }
        (ChainRecord::Spent { since, at }, _) if is_final(*since, *at) => {
            (PaymentState::FailedFinal, None)
        }
        (ChainRecord::Unused { at }, _) if is_over(*at) => (PaymentState::FailedFinal, None),
        // Without a way to ask the chain, the word of the operator's facilitator counts.
        (ChainRecord::NoProof, SettleAttempt::Confirmed { transaction }) if !facts.can_prove => {
            (PaymentState::Settled, Some(transaction.clone()))
        }
        (ChainRecord::NoProof, SettleAttempt::NotSent { .. })
            if is_over(facts.now) && !facts.may_be_sent =>
        {
            (PaymentState::FailedFinal, None)
        }
        (ChainRecord::Unused { .. } | ChainRecord::Spent { .. } | ChainRecord::NoProof, _) => {
            (PaymentState::Unknown, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(may_be_sent: bool, is_over: bool, can_prove: bool) -> SettleFacts {
        let now = Timestamp::from_millis(1_000_000);
        let valid_before = Timestamp::from_millis(if is_over { 1_000 } else { 1_000_000 });
        SettleFacts { may_be_sent, valid_before, now, can_prove }
    }

    #[test]
    fn a_refusal_never_proves_that_nothing_was_paid() {
        let reason = || "invalid_exact_evm_nonce_already_used".to_owned();
        for attempt in [
            SettleAttempt::Refused { reason: reason() },
            SettleAttempt::Unclear { reason: reason() },
        ] {
            for is_over in [false, true] {
                for can_prove in [false, true] {
                    let facts = facts(true, is_over, can_prove);
                    let (state, _) = resolve(&attempt, &ChainRecord::NoProof, facts);
                    assert_eq!(state, PaymentState::Unknown, "{attempt:?} {facts:?}");
                }
            }
        }
    }

    #[test]
    fn only_a_request_that_never_left_fails_without_a_proof() {
        let attempt = SettleAttempt::NotSent { reason: "down".to_owned() };
        let state =
            |sent, over| resolve(&attempt, &ChainRecord::NoProof, facts(sent, over, false)).0;
        assert_eq!(state(false, true), PaymentState::FailedFinal);
        assert_eq!(state(false, false), PaymentState::Unknown);
        assert_eq!(state(true, true), PaymentState::Unknown);
    }

    #[test]
    fn the_chain_decides_if_it_can_be_asked() {
        let yes = SettleAttempt::Confirmed { transaction: "0x1".to_owned() };
        let no = SettleAttempt::Refused { reason: String::new() };
        let paid = ChainRecord::Paid { transaction: "0x2".to_owned() };
        let on = facts(true, true, true);
        assert_eq!(resolve(&no, &paid, on), (PaymentState::Settled, Some("0x2".to_owned())));
        assert_eq!(resolve(&yes, &ChainRecord::NoProof, on).0, PaymentState::Unknown);
        // The time of the chain counts, and not ours.
        let unused = |millis| ChainRecord::Unused { at: Timestamp::from_millis(millis) };
        let end = 1_000 + i64::try_from(FINALITY_MS).unwrap();
        assert_eq!(resolve(&yes, &unused(end + 1), on).0, PaymentState::FailedFinal);
        assert_eq!(resolve(&yes, &unused(end), on).0, PaymentState::Unknown);
        // A block that is not final yet can be replaced by one in which it is used for us.
        let since = Timestamp::from_millis(1_000);
        let spent = |millis| ChainRecord::Spent { since, at: Timestamp::from_millis(millis) };
        assert_eq!(resolve(&yes, &spent(end), on).0, PaymentState::Unknown);
        assert_eq!(resolve(&yes, &spent(end + 1), on).0, PaymentState::FailedFinal);
        let off = facts(true, false, false);
        assert_eq!(
            resolve(&yes, &ChainRecord::NoProof, off),
            (PaymentState::Settled, Some("0x1".to_owned()))
        );
    }
}

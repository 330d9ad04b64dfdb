//! Work that was done for payers and never paid for: a payer may cause a little of it, and all new
//! payers together somewhat more. The limits apply to this node, as those of keys do.

use std::collections::VecDeque;

use jurat_core::{
    id::{AccountId, PaymentId},
    payment::record::Payment,
    time::Timestamp,
};
use parking_lot::Mutex;

use super::PayerLimits;
use crate::LimitExceeded;

/// How long uncharged work counts.
const WINDOW_MS: u64 = 600_000;

/// Why a round counts as work that was not paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnpaidReason {
    /// It was not charged, or its payment failed for good.
    Final,
    /// Whether it was paid is not known.
    Unknown,
    /// The same, and the facilitator names a transaction, which a node of the chain that is a
    /// little late does not show yet.
    Unproven,
}

/// A round that was not paid for, or not yet.
#[derive(Debug)]
struct UnpaidRound {
    at: Timestamp,
    account: AccountId,
    payment: PaymentId,
    reason: UnpaidReason,
}

/// The rounds that were not paid for, each once, in their order.
#[derive(Debug, Default)]
pub(crate) struct UnchargedWork(Mutex<VecDeque<UnpaidRound>>);

impl UnchargedWork {
    /// Counts the round of a payment, instead of what was counted for it before.
    pub(super) fn note(&self, payment: &Payment, reason: UnpaidReason, now: Timestamp) {
        self.forget(&payment.id);
        let (account, payment) = (payment.account.clone(), payment.id.clone());
        self.recent(now).push_back(UnpaidRound { at: now, account, payment, reason });
    }

    /// No longer counts the round of a payment that was settled after all.
    pub(super) fn forget(&self, payment: &PaymentId) {
        self.0.lock().retain(|it| it.payment != *payment);
    }

    /// Refuses a payer that has caused too much of it. Settlements that are not known do not count,
    /// because they may be the facilitator's fault.
    pub(super) fn check(
        &self,
        account: &AccountId,
        limits: PayerLimits,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        self.check_own(account, &[UnpaidReason::Final], limits, now)
    }

    /// Refuses a payer that has never paid, if it or all payers together have caused too much of
    /// it. Addresses on a chain cost nothing, so a limit for each would be none.
    pub(super) fn check_new(
        &self,
        account: &AccountId,
        limits: PayerLimits,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        self.check_own(account, &[UnpaidReason::Final, UnpaidReason::Unknown], limits, now)?;
        let recent = self.recent(now);
        let wait = until_fewer(recent.iter().map(|it| it.at), limits.uncharged_of_all, now);
        wait.map_or(Ok(()), |more_in_s| Err(LimitExceeded::UnchargedOfAll { more_in_s }))
    }

    fn check_own(
        &self,
        account: &AccountId,
        reasons: &[UnpaidReason],
        limits: PayerLimits,
        now: Timestamp,
    ) -> Result<(), LimitExceeded> {
        let recent = self.recent(now);
        let own = recent.iter().filter(|it| it.account == *account && reasons.contains(&it.reason));
        let most = limits.uncharged_rounds;
        let wait = until_fewer(own.map(|it| it.at), most, now);
        wait.map_or(Ok(()), |more_in_s| Err(LimitExceeded::Uncharged { most, more_in_s }))
    }

    /// What still counts.
    fn recent(&self, now: Timestamp) -> parking_lot::MutexGuard<'_, VecDeque<UnpaidRound>> {
        let mut ended = self.0.lock();
        while ended.pop_front_if(|it| WINDOW_MS <= now.millis_since(it.at)).is_some() {}
        ended
    }
}

/// In how many seconds fewer than `most` of these count; `None` if that is so now.
fn until_fewer(
    times: impl DoubleEndedIterator<Item = Timestamp>,
    most: u32,
    now: Timestamp,
) -> Option<u64> {
    let back = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(1);
    let decisive = times.rev().nth(back)?;
    Some(WINDOW_MS.saturating_sub(now.millis_since(decisive)).div_ceil(1_000).max(1))
}

#[cfg(test)]
mod tests {
    use jurat_core::payment::{
        network::PaymentNetwork,
        record::{PaymentKey, PaymentProtocol},
        state::PaymentState,
    };

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn limits(uncharged_rounds: u32, uncharged_of_all: u32) -> PayerLimits {
        PayerLimits { uncharged_rounds, uncharged_of_all, ..PayerLimits::default() }
    }

    /// A payment of a payer; both are numbered.
    fn payment(payer: u128, number: u128) -> Payment {
        Payment {
            id: PaymentId::new(at(0), payer << 32 | number),
            account: AccountId::payer(payer),
            key: PaymentKey {
                network: PaymentNetwork::Base,
                asset: String::new(),
                payer: format!("0x{payer:040x}").parse().unwrap(),
                nonce: String::new(),
            },
            protocol: PaymentProtocol::V2,
            amount: 1,
            request_digest: String::new(),
            payment_digest: String::new(),
            identifier: None,
            state: PaymentState::Unknown,
            settle_request: String::new(),
            valid_before: at(0),
            round: None,
            answer: None,
            transaction: None,
            reason: None,
            attempts: 0,
            created_at: at(0),
            updated_at: at(0),
        }
    }

    #[test]
    fn a_payer_waits_until_its_oldest_round_no_longer_counts() {
        let work = UnchargedWork::default();
        let (alice, bob) = (AccountId::payer(1), AccountId::payer(2));
        for (number, seconds) in [(1, 0), (2, 100)] {
            work.note(&payment(1, number), UnpaidReason::Final, at(seconds));
            assert_eq!(work.check(&alice, limits(3, 9), at(seconds)), Ok(()));
        }
        work.note(&payment(1, 3), UnpaidReason::Final, at(200));
        let refused = |more_in_s| Err(LimitExceeded::Uncharged { most: 3, more_in_s });
        assert_eq!(work.check(&alice, limits(3, 9), at(200)), refused(400));
        assert_eq!(work.check(&alice, limits(3, 9), at(599)), refused(1));
        assert_eq!(work.check(&bob, limits(3, 9), at(200)), Ok(()));
        assert_eq!(work.check(&alice, limits(3, 9), at(600)), Ok(()));
    }

    #[test]
    fn all_payers_together_have_a_limit() {
        let work = UnchargedWork::default();
        let new = AccountId::payer(9);
        for (number, reason) in
            (0..).zip([UnpaidReason::Final, UnpaidReason::Unknown, UnpaidReason::Unproven])
        {
            assert_eq!(work.check_new(&new, limits(3, 3), at(10)), Ok(()));
            work.note(&payment(number, 1), reason, at(10));
        }
        let refused = Err(LimitExceeded::UnchargedOfAll { more_in_s: 600 });
        assert_eq!(work.check_new(&new, limits(3, 3), at(10)), refused);
        assert_eq!(work.check_new(&new, limits(3, 3), at(610)), Ok(()));
        assert!(work.0.lock().is_empty());
    }

    #[test]
    fn unknown_settlements_count_against_new_payers_unless_a_transaction_is_named() {
        for (reason, own, new) in [
            (UnpaidReason::Final, false, false),
            (UnpaidReason::Unknown, true, false),
            (UnpaidReason::Unproven, true, true),
        ] {
            let (work, alice) = (UnchargedWork::default(), AccountId::payer(1));
            work.note(&payment(1, 1), reason, at(0));
            assert_eq!(work.check(&alice, limits(1, 9), at(0)).is_ok(), own, "{reason:?}");
            assert_eq!(work.check_new(&alice, limits(1, 9), at(0)).is_ok(), new, "{reason:?}");
        }
    }

    #[test]
    fn a_payment_counts_once_and_not_after_it_was_settled() {
        let work = UnchargedWork::default();
        let alice = AccountId::payer(1);
        work.note(&payment(1, 1), UnpaidReason::Unknown, at(0));
        work.note(&payment(1, 1), UnpaidReason::Final, at(10));
        assert_eq!(work.check_new(&alice, limits(2, 2), at(10)), Ok(()));
        assert!(work.check(&alice, limits(1, 9), at(10)).is_err());
        work.forget(&payment(1, 2).id);
        assert!(work.check(&alice, limits(1, 9), at(10)).is_err());
        work.forget(&payment(1, 1).id);
        assert_eq!(work.check(&alice, limits(1, 1), at(10)), Ok(()));
    }
}

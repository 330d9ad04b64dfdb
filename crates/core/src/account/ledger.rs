//! Credit in whole micro-credits, which moves between the buckets of an account and is never
//! created or lost.
//!
//! One credit is one US dollar. The credit granted to an account always equals the sum of the
//! available, held and spent credit. A call that costs more than its hold takes the rest from the
//! available credit, which one call at a time may bring below zero.

use std::str::FromStr;

use crate::{
    id::{AccountId, RoundId},
    round::job::words,
    time::Timestamp,
};

/// Micro-credits per credit.
pub const MICROS: i64 = 1_000_000;

words!(
    /// A bucket that holds credit.
    CreditBucket {
        /// Outside of the account: the source of grants.
        Source => "source",
        Available => "available",
        /// Reserved for a round in progress.
        Held => "held",
        Spent => "spent",
    }
);

words!(
    /// The reason for a transfer.
    Movement {
        /// The operator granted credit, or took it back.
        Grant => "grant",
        /// A round was opened: its likely cost is set aside.
        Hold => "hold",
        /// A round ended: its cost is taken. Negative if the provider later reported less.
        Capture => "capture",
        /// A round ended: the unused part of the hold goes back. Negative if the round cost more
        /// than its hold.
        Release => "release",
    }
);

impl Movement {
    /// The bucket that the credit leaves, and the bucket that it enters.
    pub const fn buckets(self) -> (CreditBucket, CreditBucket) {
        match self {
            Self::Grant => (CreditBucket::Source, CreditBucket::Available),
            Self::Hold => (CreditBucket::Available, CreditBucket::Held),
            Self::Capture => (CreditBucket::Held, CreditBucket::Spent),
            Self::Release => (CreditBucket::Held, CreditBucket::Available),
        }
    }
}

/// One entry of the ledger. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Sorts by time within an account.
    pub id: String,
    pub movement: Movement,
    /// Negative if the operator takes a grant back, or if a round cost more than its hold or is
    /// corrected.
    pub micros: i64,
    pub round: Option<RoundId>,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// The credit of an account, by bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    pub granted: i64,
    /// Below zero for an unmetered account, and for an account whose last call cost more than it
    /// had; the next grant pays that debt first.
    pub available: i64,
    pub held: i64,
    pub spent: i64,
}

impl Balance {
    /// Whether the buckets add up to the granted credit.
    pub const fn is_whole(self) -> bool {
        self.granted == self.available + self.held + self.spent
    }

    /// The balance after one transfer.
    #[must_use]
    pub fn after(self, movement: Movement, micros: i64) -> Self {
        let mut balance = self;
        match movement {
            Movement::Grant => {
                balance.granted += micros;
                balance.available += micros;
            }
            Movement::Hold => {
                balance.available -= micros;
                balance.held += micros;
            }
            Movement::Capture => {
                balance.held -= micros;
                balance.spent += micros;
            }
            Movement::Release => {
                balance.held -= micros;
                balance.available += micros;
            }
        }
        balance
    }
}

/// The estimated cost of some work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// The likely cost, which is set aside.
    pub micros: i64,
    /// The maximum cost.
    pub most_micros: i64,
    /// The minimum cost: work does not start on an account that has less.
    pub least_micros: i64,
}

impl CostEstimate {
    /// A price that is known in advance.
    pub const fn firm(micros: i64) -> Self {
        Self { micros, most_micros: micros, least_micros: micros }
    }

    /// The estimate of both pieces of work together, saturating.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            micros: self.micros.saturating_add(more.micros),
            most_micros: self.most_micros.saturating_add(more.most_micros),
            least_micros: self.least_micros.saturating_add(more.least_micros),
        }
    }
}

/// The credit set aside when a round opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditHold {
    /// The likely cost of the round, or the whole credit of the account if that is less.
    pub micros: i64,
    /// The maximum cost of the round: no more is ever taken.
    pub most_micros: i64,
    /// The credit that the account must have for the round to start.
    pub least_micros: i64,
    /// Whether the account pays from its credit, up to the balance.
    pub is_limited: bool,
    /// For a visitor: the daily spending limit of all visitors together.
    pub day_cap_micros: Option<i64>,
}

impl CreditHold {
    /// How much the round may cost beyond its hold.
    pub const fn at_risk(&self) -> i64 {
        let beyond = self.most_micros.saturating_sub(self.micros);
        if beyond < 0 { 0 } else { beyond }
    }
}

/// Whether the credit of a limited account lets a round start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditAdmission {
    /// The round starts with this hold, and the account may end up owing this much.
    Begin { held_micros: i64, may_owe_micros: i64 },
    /// The credit does not cover the maximum cost of all calls together, so this call waits until
    /// the call in progress has ended.
    Wait,
    /// The credit is too low.
    Short,
}

/// Decides whether a round starts. `at_risk` is how much the rounds in progress may cost beyond
/// their holds.
///
/// Rounds run concurrently while the credit covers the maximum cost of all of them. Otherwise a
/// round that may cost more than its hold runs alone, so an account never owes more than the
/// difference of one round.
pub fn admit(available: i64, at_risk: i64, hold: &CreditHold) -> CreditAdmission {
    let most = hold.most_micros.max(hold.micros);
    if at_risk.saturating_add(most) <= available {
        return CreditAdmission::Begin { held_micros: hold.micros, may_owe_micros: 0 };
    }
    if 0 < at_risk {
        return CreditAdmission::Wait;
    }
    if available < hold.least_micros.max(1) {
        return CreditAdmission::Short;
    }
    let held_micros = hold.micros.min(available);
    CreditAdmission::Begin { held_micros, may_owe_micros: most.saturating_sub(available).max(0) }
}

/// Splits a hold into the captured part and the part that goes back. A cost beyond the hold is
/// taken from the available credit, so the part that goes back is negative.
pub fn settle(hold: &CreditHold, cost: i64) -> (i64, i64) {
    let held = hold.micros.max(0);
    let captured = cost.clamp(0, hold.most_micros.max(held));
    (captured, held.saturating_sub(captured))
}

/// An account as the operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountState {
    pub account: AccountId,
    pub created_at: Timestamp,
    pub suspended_at: Option<Timestamp>,
    pub balance: Balance,
}

/// Micro-credits as a decimal number of credits, with at least two decimals.
pub fn usd(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let digits = format!("{rest:06}");
    let kept = digits.trim_end_matches('0').len().max(2);
    format!("{sign}{whole}.{}", &digits[..kept])
}

/// Reads a decimal number of credits with up to six decimals; `None` for anything else.
pub fn micros(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_formed =
        !whole.is_empty() && is_number(whole) && is_number(decimals) && decimals.len() <= 6;
    if !is_formed || text.ends_with('.') {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let rest: i64 = format!("{decimals:0<6}").parse().ok()?;
    Some(sign * whole.checked_mul(MICROS)?.checked_add(rest)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn amounts_are_decimal_texts() {
        assert_eq!(usd(0), "0.00");
        assert_eq!(usd(1), "0.000001");
        assert_eq!(usd(1_500_000), "1.50");
        assert_eq!(usd(-2_250_100), "-2.2501");
        assert_eq!(micros("2.5"), Some(2_500_000));
        assert_eq!(micros("-0.000001"), Some(-1));
        assert_eq!(micros("9223372036854.775807"), Some(i64::MAX));
        for text in ["", ".", "1.", ".5", "1e3", "1.0000001", "+1", " 1", "1,5", "9223372036855"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn a_sign_comes_first_and_only_once() {
        for text in ["1.+5", "1.-5", "--1", "-+1", "-", "1-", "1.5.5"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn a_movement_changes_its_two_buckets_and_no_other() {
        let before = Balance { granted: 100, available: 70, held: 20, spent: 10 };
        let after = |granted, available, held, spent| Balance { granted, available, held, spent };
        assert_eq!(before.after(Movement::Grant, 5), after(105, 75, 20, 10));
        assert_eq!(before.after(Movement::Hold, 5), after(100, 65, 25, 10));
        assert_eq!(before.after(Movement::Capture, 5), after(100, 70, 15, 15));
        assert_eq!(before.after(Movement::Release, 5), after(100, 75, 15, 10));
    }

    #[test]
    fn a_balance_that_lost_credit_is_not_whole() {
        let whole = Balance { granted: 100, available: 65, held: 25, spent: 10 };
        assert!(whole.is_whole());
        for broken in [
            Balance { granted: 101, ..whole },
            Balance { available: 64, ..whole },
            Balance { held: 26, ..whole },
            Balance { spent: 0, ..whole },
        ] {
            assert!(!broken.is_whole(), "{broken:?}");
        }
    }

    #[test]
    fn estimates_add_up_and_stop_at_the_largest_number() {
        let judged = CostEstimate { micros: 3, most_micros: 20, least_micros: 1 };
        assert_eq!(
            CostEstimate::firm(4),
            CostEstimate { micros: 4, most_micros: 4, least_micros: 4 }
        );
        let both = CostEstimate { micros: 7, most_micros: 24, least_micros: 5 };
        assert_eq!(judged.plus(CostEstimate::firm(4)), both);
        assert_eq!(both.plus(CostEstimate::firm(i64::MAX)), CostEstimate::firm(i64::MAX));
    }

    #[test]
    fn at_risk_is_the_maximum_beyond_the_hold() {
        assert_eq!(hold(10, 30, 1).at_risk(), 20);
        assert_eq!(hold(10, 10, 10).at_risk(), 0);
        assert_eq!(hold(10, 4, 1).at_risk(), 0);
    }

    fn hold(micros: i64, most_micros: i64, least_micros: i64) -> CreditHold {
        CreditHold { micros, most_micros, least_micros, is_limited: true, day_cap_micros: None }
    }

    #[test]
    fn no_more_than_the_maximum_is_ever_taken() {
        assert_eq!(settle(&hold(10, 10, 10), 4), (4, 6));
        assert_eq!(settle(&hold(10, 10, 10), 14), (10, 0));
        assert_eq!(settle(&hold(10, 10, 10), -1), (0, 10));
        assert_eq!(settle(&hold(10, 30, 1), 14), (14, -4));
        assert_eq!(settle(&hold(10, 30, 1), 31), (30, -20));
    }

    #[test]
    fn a_round_starts_if_its_maximum_is_covered_or_if_it_runs_alone() {
        let begin =
            |held_micros, may_owe_micros| CreditAdmission::Begin { held_micros, may_owe_micros };
        let judged = hold(10, 100, 4);
        assert_eq!(admit(100, 0, &judged), begin(10, 0));
        assert_eq!(admit(190, 90, &judged), begin(10, 0));
        assert_eq!(admit(189, 90, &judged), CreditAdmission::Wait);
        assert_eq!(admit(99, 0, &judged), begin(10, 1));
        assert_eq!(admit(4, 0, &judged), begin(4, 96));
        assert_eq!(admit(3, 0, &judged), CreditAdmission::Short);
        assert_eq!(admit(0, 90, &judged), CreditAdmission::Wait);
        let free_prompt = hold(10, 100, 0);
        assert_eq!(admit(0, 0, &free_prompt), CreditAdmission::Short);
        // A known price is paid in full or not at all.
        assert_eq!(admit(10, 0, &hold(10, 10, 10)), begin(10, 0));
        assert_eq!(admit(9, 0, &hold(10, 10, 10)), CreditAdmission::Short);
    }

    /// A step of the simulated history of an account.
    #[derive(Debug, Clone)]
    enum LedgerEvent {
        Open(CreditHold),
        /// One of the rounds in progress ends at so many thousandths of its maximum cost.
        Close(usize, i64),
        Grant(i64),
        /// The operator takes credit back.
        Take(i64),
    }

    fn events() -> impl Strategy<Value = Vec<LedgerEvent>> {
        let opens = (0_i64..200, 0_i64..500, 0_i64..=100, any::<bool>()).prop_map(
            |(micros, beyond, least, is_firm)| {
                let firm = CostEstimate::firm(micros);
                let judged = CostEstimate {
                    micros,
                    most_micros: micros + beyond,
                    least_micros: micros * least / 100,
                };
                let CostEstimate { micros, most_micros, least_micros } =
                    if is_firm { firm } else { judged };
                LedgerEvent::Open(hold(micros, most_micros, least_micros))
            },
        );
        let event = prop_oneof![
            4 => opens,
            4 => (any::<usize>(), 0_i64..1_200).prop_map(|(which, part)| LedgerEvent::Close(which, part)),
            1 => (0_i64..600).prop_map(LedgerEvent::Grant),
            1 => (0_i64..600).prop_map(LedgerEvent::Take),
        ];
        proptest::collection::vec(event, 0..80)
    }

    proptest! {
        #[test]
        fn an_amount_reads_back(amount in -1_000_000_000_000_i64..1_000_000_000_000) {
            prop_assert_eq!(micros(&usd(amount)), Some(amount));
        }

        #[test]
        fn no_movement_makes_or_loses_credit(moves in proptest::collection::vec((0_usize..4, 0_i64..1_000_000), 0..60)) {
            let mut balance = Balance::default();
            for (movement, amount) in moves {
                balance = balance.after(Movement::ALL[movement], amount);
                prop_assert!(balance.is_whole());
            }
        }

        #[test]
        fn an_account_never_owes_more_than_the_difference_of_one_call(events in events()) {
            let mut balance = Balance::default();
            let mut under_way: Vec<CreditHold> = Vec::new();
            let mut widest = 0;
            for event in events {
                match event {
                    LedgerEvent::Grant(micros) => balance = balance.after(Movement::Grant, micros),
                    LedgerEvent::Take(micros) => {
                        let at_risk: i64 = under_way.iter().map(CreditHold::at_risk).sum();
                        if micros + at_risk <= balance.available {
                            balance = balance.after(Movement::Grant, -micros);
                        }
                    }
                    LedgerEvent::Open(mut hold) => {
                        let at_risk = under_way.iter().map(CreditHold::at_risk).sum();
                        let CreditAdmission::Begin { held_micros, may_owe_micros } =
                            admit(balance.available, at_risk, &hold) else { continue };
                        hold.micros = held_micros;
                        prop_assert!(may_owe_micros <= hold.at_risk());
                        widest = widest.max(may_owe_micros);
                        balance = balance.after(Movement::Hold, held_micros);
                        under_way.push(hold);
                    }
                    LedgerEvent::Close(which, part) if !under_way.is_empty() => {
                        let hold = under_way.swap_remove(which % under_way.len());
                        let (captured, released) = settle(&hold, hold.most_micros * part / 1_000);
                        prop_assert!(captured <= hold.most_micros);
                        balance = balance.after(Movement::Capture, captured);
                        balance = balance.after(Movement::Release, released);
                    }
                    LedgerEvent::Close(..) => {}
                }
                prop_assert!(balance.is_whole() && 0 <= balance.held && 0 <= balance.spent);
                prop_assert!(-widest <= balance.available, "{balance:?} owes more than {widest}");
            }
        }

        #[test]
        fn credit_that_covers_the_minimum_is_never_stranded(available in 1_i64..1_000, micros in 1_i64..500, beyond in 0_i64..500, least in 1_i64..500) {
            let least = least.min(micros);
            let admitted = admit(available, 0, &hold(micros, micros + beyond, least));
            prop_assert_eq!(matches!(admitted, CreditAdmission::Begin { .. }), least <= available);
        }
    }
}

//! Credits: whole micro-credits, moved between the places of an account, never made or lost.
//!
//! One credit is one US dollar. What an account was granted is always the sum of what it has left,
//! what is held for work under way, and what was spent. What a call costs beyond its hold is taken
//! from what is left, which one call at a time may bring below zero.

use std::str::FromStr;

use crate::{
    id::{AccountId, RoundId},
    round::job::words,
    time::Timestamp,
};

/// Micro-credits in a credit.
pub const MICROS: i64 = 1_000_000;

words!(
    /// Where credit is.
    CreditBucket {
        /// Outside of the account: where grants come from.
        Source => "source",
        Available => "available",
        /// Reserved for a round under way.
        Held => "held",
        Spent => "spent",
    }
);

words!(
    /// Why credit moved.
    Movement {
        /// The operator gave credit, or took it back.
        Grant => "grant",
        /// A round was opened: what it probably costs is set aside.
        Hold => "hold",
        /// A round ended: what it cost. Negative where the provider reported less afterwards.
        Capture => "capture",
        /// A round ended: what it did not cost goes back. Negative where it cost more than it held.
        Release => "release",
    }
);

impl Movement {
    /// From where to where credit moves.
    pub const fn buckets(self) -> (CreditBucket, CreditBucket) {
        match self {
            Self::Grant => (CreditBucket::Source, CreditBucket::Available),
            Self::Hold => (CreditBucket::Available, CreditBucket::Held),
            Self::Capture => (CreditBucket::Held, CreditBucket::Spent),
            Self::Release => (CreditBucket::Held, CreditBucket::Available),
        }
    }
}

/// One line of the ledger. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Grows with time within an account.
    pub id: String,
    pub movement: Movement,
    /// Negative where an operator takes a grant back, and where a round cost more than it held or
    /// is corrected.
    pub micros: i64,
    pub round: Option<RoundId>,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// What an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    pub granted: i64,
    /// Below zero for an account that is not metered, and for one whose last call cost more than
    /// it had: the next grant pays that first.
    pub available: i64,
    pub held: i64,
    pub spent: i64,
}

impl Balance {
    /// Whether nothing was made or lost.
    pub const fn is_whole(self) -> bool {
        self.granted == self.available + self.held + self.spent
    }

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

/// What something may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// What it probably costs, which is set aside.
    pub micros: i64,
    /// What it costs at the most.
    pub most_micros: i64,
    /// What it costs at the least: whoever has less than that does not begin it.
    pub least_micros: i64,
}

impl CostEstimate {
    /// A price that is known beforehand.
    pub const fn firm(micros: i64) -> Self {
        Self { micros, most_micros: micros, least_micros: micros }
    }

    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            micros: self.micros.saturating_add(more.micros),
            most_micros: self.most_micros.saturating_add(more.most_micros),
            least_micros: self.least_micros.saturating_add(more.least_micros),
        }
    }
}

/// What is set aside when a round opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditHold {
    /// What the round probably costs; less where the account has less.
    pub micros: i64,
    /// What it costs at the most: more is never taken.
    pub most_micros: i64,
    /// What the account must have for the round to begin.
    pub least_micros: i64,
    /// Whether the account pays from its credit and no further.
    pub is_limited: bool,
    /// For a caller without a key: what all of them together may spend in a day.
    pub day_cap_micros: Option<i64>,
}

impl CreditHold {
    /// By how much the round may cost more than it holds.
    pub const fn at_risk(&self) -> i64 {
        let beyond = self.most_micros.saturating_sub(self.micros);
        if beyond < 0 { 0 } else { beyond }
    }
}

/// Whether the credit of a limited account lets a round begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreditAdmission {
    /// It holds so much, and the account may owe so much in the end.
    Begin { held_micros: i64, may_owe_micros: i64 },
    /// The credit does not cover the most that all calls together can cost, so that this one waits
    /// until the one under way has ended.
    Wait,
    /// The credit does not pay for it.
    Short,
}

/// Decides whether a round begins. `at_risk` is by how much the rounds under way may cost more than
/// they hold.
///
/// Rounds run side by side while the credit covers the most that all of them can cost. Otherwise
/// one that may cost more than it holds runs alone, so that an account never owes more than the
/// difference of one.
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

/// How a hold ends: what is captured and what goes back. What is captured beyond the hold is
/// taken from what is available, so that what goes back is negative.
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

/// Micro-credits as a decimal text in credits, with two places at the least.
pub fn usd(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let (whole, rest) = (micros.unsigned_abs() / 1_000_000, micros.unsigned_abs() % 1_000_000);
    let digits = format!("{rest:06}");
    let kept = digits.trim_end_matches('0').len().max(2);
    format!("{sign}{whole}.{}", &digits[..kept])
}

/// Reads a decimal amount of credits with up to six places; `None` for anything else.
pub fn micros(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_formed = !whole.is_empty() && is_number(whole) && is_number(places) && places.len() <= 6;
    if !is_formed || text.ends_with('.') {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let rest: i64 = format!("{places:0<6}").parse().ok()?;
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
    fn a_sign_belongs_in_front_and_stands_once() {
        for text in ["1.+5", "1.-5", "--1", "-+1", "-", "1-", "1.5.5"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn a_movement_changes_its_two_places_and_no_other() {
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
    fn at_risk_is_the_most_beyond_the_hold() {
        assert_eq!(hold(10, 30, 1).at_risk(), 20);
        assert_eq!(hold(10, 10, 10).at_risk(), 0);
        assert_eq!(hold(10, 4, 1).at_risk(), 0);
    }

    fn hold(micros: i64, most_micros: i64, least_micros: i64) -> CreditHold {
        CreditHold { micros, most_micros, least_micros, is_limited: true, day_cap_micros: None }
    }

    #[test]
    fn more_than_the_most_is_never_taken() {
        assert_eq!(settle(&hold(10, 10, 10), 4), (4, 6));
        assert_eq!(settle(&hold(10, 10, 10), 14), (10, 0));
        assert_eq!(settle(&hold(10, 10, 10), -1), (0, 10));
        assert_eq!(settle(&hold(10, 30, 1), 14), (14, -4));
        assert_eq!(settle(&hold(10, 30, 1), 31), (30, -20));
    }

    #[test]
    fn a_round_begins_when_its_most_is_covered_or_when_it_is_alone() {
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
        // A price that is known is paid in full or not at all.
        assert_eq!(admit(10, 0, &hold(10, 10, 10)), begin(10, 0));
        assert_eq!(admit(9, 0, &hold(10, 10, 10)), CreditAdmission::Short);
    }

    /// What happens to an account.
    #[derive(Debug, Clone)]
    enum LedgerEvent {
        Open(CreditHold),
        /// One of the rounds under way ends at so many thousandths of the most that it can cost.
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
        fn credit_that_pays_for_the_least_is_never_stranded(available in 1_i64..1_000, micros in 1_i64..500, beyond in 0_i64..500, least in 1_i64..500) {
            let least = least.min(micros);
            let admitted = admit(available, 0, &hold(micros, micros + beyond, least));
            prop_assert_eq!(matches!(admitted, CreditAdmission::Begin { .. }), least <= available);
        }
    }
}

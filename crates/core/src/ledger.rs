//! Credits: whole micro-credits, moved between the places of an account, never made or lost.
//!
//! One credit is one US dollar. What an account was granted is always the sum of what it has left,
//! what is held for work under way, and what was spent.

use std::str::FromStr;

use crate::{
    id::{AccountId, RoundId},
    job::words,
    time::Timestamp,
};

/// Micro-credits in a credit.
pub const MICROS: i64 = 1_000_000;

words!(
    /// Where credit is.
    Place {
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
        /// A round was opened: the most that it can cost is set aside.
        Hold => "hold",
        /// A round ended: what it cost.
        Capture => "capture",
        /// A round ended: what it did not cost goes back.
        Release => "release",
    }
);

impl Movement {
    /// From where to where credit moves.
    pub const fn places(self) -> (Place, Place) {
        match self {
            Self::Grant => (Place::Source, Place::Available),
            Self::Hold => (Place::Available, Place::Held),
            Self::Capture => (Place::Held, Place::Spent),
            Self::Release => (Place::Held, Place::Available),
        }
    }
}

/// One line of the ledger. It never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Grows with time within an account.
    pub id: String,
    pub movement: Movement,
    /// Negative only where an operator takes a grant back.
    pub micros: i64,
    pub round: Option<RoundId>,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// What an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Balance {
    pub granted: i64,
    /// Below zero only for an account that is not metered.
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

/// What is set aside when a round opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The most that the round can cost.
    pub micros: i64,
    /// Whether the account must have as much.
    pub is_limited: bool,
    /// For a caller without a key: what all of them together may spend in a day.
    pub day_cap_micros: Option<i64>,
}

/// How a hold ends: what is captured and what goes back. More than was held is never taken.
pub fn settle(held: i64, cost: i64) -> (i64, i64) {
    let captured = cost.clamp(0, held.max(0));
    (captured, held.max(0) - captured)
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
        for text in ["", ".", "1.", ".5", "1e3", "1.0000001", "+1", " 1", "1,5", "9223372036855"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn more_than_was_held_is_never_taken() {
        assert_eq!(settle(10, 4), (4, 6));
        assert_eq!(settle(10, 14), (10, 0));
        assert_eq!(settle(10, -1), (0, 10));
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
    }
}

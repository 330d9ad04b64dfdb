//! The findings of a check-up, and the check that a recorded decision matches its round.

use serde_json::Value;

use crate::{
    canonical::digest,
    round::{
        ClosingSummary, OpenRound, RoundClosing,
        decision::{DecisionEntry, FORMAT},
    },
    time::Timestamp,
};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckupLevel {
    Ok,
    /// It works, but somebody should look at it.
    Warning,
    /// It does not work, or recorded data cannot be trusted.
    Problem,
}

impl CheckupLevel {
    /// The name of the level in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckupFinding {
    /// The checked part, in one word.
    pub check: &'static str,
    pub level: CheckupLevel,
    pub detail: String,
    /// The recommended action.
    pub advice: Option<String>,
}

impl CheckupFinding {
    /// A finding without a fault.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, level: CheckupLevel::Ok, detail: detail.into(), advice: None }
    }

    /// A finding that somebody should look at.
    pub fn warning(
        check: &'static str,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level: CheckupLevel::Warning,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }

    /// A finding of something that does not work.
    pub fn problem(
        check: &'static str,
        detail: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level: CheckupLevel::Problem,
            detail: detail.into(),
            advice: Some(advice.into()),
        }
    }
}

/// Compares the clock of another machine with ours. A small difference is normal.
pub fn clocks(whose: &str, ours: Timestamp, theirs: Timestamp) -> CheckupFinding {
    const WARNING_MS: u64 = 2_000;
    const PROBLEM_MS: u64 = 60_000;
    let apart = ours.millis_since(theirs).max(theirs.millis_since(ours));
    let seconds = apart / 1_000;
    let detail = format!("the clocks of {whose} and this machine differ by {seconds} s");
    let advice = "Synchronize both clocks with NTP.";
    if PROBLEM_MS <= apart {
        CheckupFinding::problem("clock", detail, advice)
    } else if WARNING_MS < apart {
        CheckupFinding::warning("clock", detail, advice)
    } else {
        CheckupFinding::ok(
            "clock",
            format!("the clock of {whose} agrees with this machine's clock"),
        )
    }
}

/// Lists the contradictions between the entry of a closed round and everything else stored about
/// the round; empty if they match. If the payloads were erased, their digests cannot be computed
/// again and are not compared.
pub fn faults(
    open: &OpenRound,
    closing: &RoundClosing,
    listed: &ClosingSummary,
    is_erased: bool,
) -> Vec<String> {
    let mut faults = Vec::new();
    let found = digest(closing.entry.as_bytes());
    if found != closing.receipt_id {
        faults.push(format!(
            "the digest of its entry is `{found}`, but its receipt says `{}`",
            closing.receipt_id
        ));
    }
    let Ok(mut entry) = serde_json::from_str::<DecisionEntry>(&closing.entry) else {
        faults.push("its entry cannot be read".to_owned());
        return faults;
    };
    if entry.format != FORMAT {
        // An entry of another version cannot be recomputed here.
        return faults;
    }
    let again = DecisionEntry::new(
        open,
        closing.ending,
        &closing.replicas,
        &closing.consensus,
        closing.closed_at,
    );
    if is_erased {
        forget_what_was_said(&mut entry);
    }
    faults.extend(differences(&entry, &again));
    if *listed != listing(closing, listed) {
        faults.push("its summary in lists differs from its decision".to_owned());
    }
    faults
}

fn forget_what_was_said(entry: &mut DecisionEntry) {
    entry.output_digest = None;
    for replica in &mut entry.replicas {
        replica.answer_digest = None;
        replica.result_hash = None;
    }
}

/// The expected listing. Lists round shares to four decimals.
fn listing(closing: &RoundClosing, listed: &ClosingSummary) -> ClosingSummary {
    const PLACES: f64 = 0.000_051;
    let mut expected = ClosingSummary::from(closing);
    if (expected.agreement - listed.agreement).abs() < PLACES {
        expected.agreement = listed.agreement;
    }
    if (expected.confidence - listed.confidence).abs() < PLACES {
        expected.confidence = listed.confidence;
    }
    expected
}

/// The members in which the recorded entry and the recomputed entry differ.
fn differences(entry: &DecisionEntry, stored: &DecisionEntry) -> Vec<String> {
    let members = |entry: &DecisionEntry| match serde_json::to_value(entry) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (entry, stored) = (members(entry), members(stored));
    let differs = |name: &&String| entry.get(*name) != stored.get(*name);
    entry
        .keys()
        .filter(differs)
        .map(|name| match (entry.get(name), stored.get(name)) {
            (Some(said), Some(kept)) if is_short(said) && is_short(kept) => {
                format!("its entry says `{name}` is {said}, but the store says {kept}")
            }
            _ => format!("its entry and the store differ in `{name}`"),
        })
        .collect()
}

fn is_short(value: &Value) -> bool {
    value.as_array().is_none() && value.to_string().len() <= 80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_difference_is_reported_with_its_size() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        for (theirs, level) in [
            (100, CheckupLevel::Ok),
            (102, CheckupLevel::Ok),
            (97, CheckupLevel::Warning),
            (103, CheckupLevel::Warning),
            (160, CheckupLevel::Problem),
            (0, CheckupLevel::Problem),
        ] {
            let finding = clocks("the database", at(100), at(theirs));
            assert_eq!(finding.level, level, "{}", finding.detail);
        }
    }
}

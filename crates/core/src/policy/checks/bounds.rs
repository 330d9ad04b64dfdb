//! The check `bounds`: a number within limits, or near a value.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::{CheckFailure, kind_of, read::CheckMembers};
use crate::{
    policy::{params::BindError, schema_thresholds::compare},
    reason,
    round::consensus::is_within,
};

#[derive(Debug, PartialEq)]
pub(super) struct BoundsCheck {
    limits: Vec<BoundsLimit>,
    near: Option<NearLimit>,
}

#[derive(Debug, PartialEq)]
struct BoundsLimit {
    side: BoundsOperator,
    bound: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundsOperator {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
}

const OPERATORS: [(&str, BoundsOperator); 4] = [
    ("min", BoundsOperator::AtLeast),
    ("exclusive_min", BoundsOperator::MoreThan),
    ("max", BoundsOperator::AtMost),
    ("exclusive_max", BoundsOperator::LessThan),
];

impl BoundsOperator {
    const fn holds(self, order: Ordering) -> bool {
        match self {
            Self::AtLeast => order.is_ge(),
            Self::MoreThan => order.is_gt(),
            Self::AtMost => order.is_le(),
            Self::LessThan => order.is_lt(),
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::AtLeast => "at least",
            Self::MoreThan => "more than",
            Self::AtMost => "at most",
            Self::LessThan => "less than",
        }
    }

    const fn is_lower(self) -> bool {
        matches!(self, Self::AtLeast | Self::MoreThan)
    }
}

/// A value, and how far a number may be from it.
#[derive(Debug, PartialEq)]
struct NearLimit {
    value: Number,
    /// `None` if the number must equal the value.
    tolerance: Option<f64>,
}

impl BoundsCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let known = [
            "min",
            "max",
            "exclusive_min",
            "exclusive_max",
            "value",
            "tolerance",
            "relative_tolerance",
        ];
        let terms = members.terms("bounds", &known)?;
        let number = |name| terms.optional(name, "a number", |value| value.as_number().cloned());
        let mut limits = Vec::new();
        for (name, side) in OPERATORS {
            limits.extend(number(name)?.map(|bound| BoundsLimit { side, bound }));
        }
        if !can_be_met(&limits) {
            return Err(terms.path().refuse("has limits that no number can satisfy"));
        }
        let positive = |name| terms.optional(name, "a number, 0 or more", positive);
        let (absolute, relative) = (positive("tolerance")?, positive("relative_tolerance")?);
        let near = match number("value")? {
            Some(value) => Some(NearLimit { tolerance: widest(&value, absolute, relative), value }),
            None if absolute.is_some() || relative.is_some() => {
                let problem = "has a tolerance but no `value`; add a `value`";
                return Err(terms.path().refuse(problem));
            }
            None => None,
        };
        if limits.is_empty() && near.is_none() {
            let problem = "needs a limit (min, max, exclusive_min, exclusive_max) or a `value`";
            return Err(terms.path().refuse(problem));
        }
        Ok(Self { limits, near })
    }

    pub(super) fn judge(&self, found: &Value, part: &str) -> Result<(), CheckFailure> {
        let Value::Number(number) = found else {
            let why = format!("{part} is {}, not a number.", kind_of(found));
            return Err(CheckFailure::unusable(why));
        };
        let out_of_bounds = |wanted: String| {
            let why = format!("{part} is {number}; it must be {wanted}.");
            Err(CheckFailure::new(reason::CHECK_OUT_OF_BOUNDS, why))
        };
        for BoundsLimit { side, bound } in &self.limits {
            if !compare(number, bound).is_some_and(|order| side.holds(order)) {
                return out_of_bounds(format!("{} {bound}", side.words()));
            }
        }
        match &self.near {
            Some(near) if !near.holds(number) => out_of_bounds(near.words()),
            Some(_) | None => Ok(()),
        }
    }
}

impl NearLimit {
    fn holds(&self, number: &Number) -> bool {
        let is_equal = compare(number, &self.value) == Some(Ordering::Equal);
        let is_near = || {
            let (tolerance, number) = (self.tolerance?, number.as_f64()?);
            Some(is_within(tolerance, number, self.value.as_f64()?))
        };
        is_equal || is_near().unwrap_or(false)
    }

    fn words(&self) -> String {
        match self.tolerance {
            Some(tolerance) => format!("within {tolerance} of {}", self.value),
            None => format!("{}", self.value),
        }
    }
}

fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite() && 0.0 <= *number)
}

/// The larger of the two tolerances, as a distance.
fn widest(value: &Number, absolute: Option<f64>, relative: Option<f64>) -> Option<f64> {
    let size = value.as_f64().unwrap_or_default().abs();
    let relative = relative.map(|share| share * size).filter(|distance| distance.is_finite());
    match (absolute, relative) {
        (Some(absolute), Some(relative)) => Some(absolute.max(relative)),
        (absolute, relative) => absolute.or(relative),
    }
}

/// Whether any number can satisfy every limit.
fn can_be_met(limits: &[BoundsLimit]) -> bool {
    let lower = limits.iter().filter(|limit| limit.side.is_lower());
    lower.into_iter().all(|low| {
        let mut upper = limits.iter().filter(|limit| !limit.side.is_lower());
        upper.all(|high| match compare(&low.bound, &high.bound) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => {
                low.side == BoundsOperator::AtLeast && high.side == BoundsOperator::AtMost
            }
            Some(Ordering::Greater) | None => false,
        })
    })
}

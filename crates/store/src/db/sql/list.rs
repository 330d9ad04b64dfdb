//! The lists of rounds. Each filter has a text of its own, so that it reads along an index: one
//! text for all would read every round of an account to find none.

use jurat_core::round::{RoundStatus, consensus::Outcome, job::JobKind};

use super::open_columns;
use crate::RoundFilter;

/// Outputs may be large, so a list reads no document but the seats.
macro_rules! rounds {
    () => {
        concat!(
            "select ",
            open_columns!(),
            ", rounds.state, rounds.closed_at, rounds.outcome, rounds.verdict, rounds.agreement_bp, \
             rounds.confidence_bp, rounds.receipt_id from rounds where "
        )
    };
}

/// Which part of an account's rounds, and whether only those that were closed.
macro_rules! part {
    () => {
        "rounds.account_id = $1 and rounds.id < $2 and rounds.id > $3 \
         and rounds.state = coalesce($4, rounds.state)"
    };
}

/// The newest of one kind and one outcome, along the index `rounds_by_answer`.
macro_rules! newest {
    ($kind:literal, $outcome:literal, $limit:literal) => {
        concat!(
            "select * from (",
            rounds!(),
            part!(),
            " and rounds.kind = ",
            $kind,
            " and rounds.outcome = ",
            $outcome,
            " order by rounds.id desc limit ",
            $limit,
            ") as newest"
        )
    };
}

/// The newest of each part are the newest of all.
macro_rules! merged {
    ($limit:literal: $first:expr $(, $rest:expr)*) => {
        concat!($first, $(" union all ", $rest,)* " order by id desc limit ", $limit)
    };
}

/// The parameters are the account, the rounds to stay between, the state, what else is filtered
/// by, and the limit.
const ANY: &str = concat!(rounds!(), part!(), " order by rounds.id desc limit $5");

/// Those under way have no outcome and are few in all accounts together. `coalesce` keeps the
/// databases from reading along the primary key instead of the index `rounds_open`.
const OF_KIND: &str = merged!(
    "$6":
    newest!("$5", "'agreed'", "$6"),
    newest!("$5", "'split'", "$6"),
    newest!("$5", "'abstained'", "$6"),
    newest!("$5", "'failed'", "$6"),
    concat!(
        "select * from (",
        rounds!(),
        "coalesce(rounds.account_id, '') = $1 and coalesce(rounds.id, '') < $2 \
         and coalesce(rounds.id, '') > $3 and rounds.state = coalesce($4, rounds.state) \
         and rounds.kind = $5 and rounds.state = 'open' \
         order by rounds.id desc limit $6) as under_way"
    )
);

const OF_OUTCOME: &str = merged!(
    "$6":
    newest!("'delegate'", "$5", "$6"),
    newest!("'validate'", "$5", "$6"),
    newest!("'factcheck'", "$5", "$6")
);

const OF_BOTH: &str = merged!("$7": newest!("$5", "$6", "$7"));

/// Along the index `rounds_open`; what is under way has no outcome.
const UNDER_WAY: &str = concat!(
    rounds!(),
    "coalesce(rounds.account_id, '') = $1 and coalesce(rounds.id, '') < $2 \
     and coalesce(rounds.id, '') > $3 and rounds.state = 'open' \
     and rounds.kind = coalesce($4, rounds.kind) \
     and coalesce(rounds.outcome, '') = coalesce($5, '') order by rounds.id desc limit $6"
);

/// Most rounds were closed; the index `rounds_not_closed` holds the others.
const NOT_CLOSED: &str = concat!(
    rounds!(),
    "rounds.account_id = $1 and rounds.id < $2 and rounds.id > $3 and rounds.state = $4 \
     and rounds.state in ('expired', 'cancelled') and rounds.kind = coalesce($5, rounds.kind) \
     and rounds.outcome = coalesce($6, rounds.outcome) order by rounds.id desc limit $7"
);

/// The text for a filter, and what it takes between the bounds and the limit.
pub(crate) fn round_list(filter: &RoundFilter) -> (&'static str, Vec<Option<&'static str>>) {
    let (kind, outcome) = (filter.kind.map(JobKind::as_str), filter.outcome.map(Outcome::as_str));
    let state = filter.state.map(RoundStatus::as_str);
    match filter.state {
        Some(RoundStatus::Open) => return (UNDER_WAY, vec![kind, outcome]),
        Some(RoundStatus::Expired | RoundStatus::Cancelled) => {
            return (NOT_CLOSED, vec![state, kind, outcome]);
        }
        Some(RoundStatus::Closed) | None => {}
    }
    match (kind, outcome) {
        (None, None) => (ANY, vec![state]),
        (Some(_), None) => (OF_KIND, vec![state, kind]),
        (None, Some(_)) => (OF_OUTCOME, vec![state, outcome]),
        (Some(_), Some(_)) => (OF_BOTH, vec![state, kind, outcome]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_by_one_filter_names_every_value_of_the_other() {
        for kind in JobKind::ALL {
            assert!(OF_OUTCOME.contains(&format!("rounds.kind = '{kind}'")), "{kind}");
        }
        for outcome in Outcome::ALL {
            assert!(OF_KIND.contains(&format!("rounds.outcome = '{outcome}'")), "{outcome}");
        }
    }
}

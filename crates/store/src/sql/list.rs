//! The lists of rounds. Each filter has a text of its own, so that it reads along an index: one
//! text for all would read every round of an account to find none.

use jurat_core::{consensus::Outcome, job::Kind};

use super::open_columns;

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

/// The newest of one kind and one outcome, along the index `rounds_by_answer`.
macro_rules! newest {
    ($kind:literal, $outcome:literal, $limit:literal) => {
        concat!(
            "select * from (",
            rounds!(),
            "rounds.account_id = $1 and rounds.id < $2 and rounds.kind = ",
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

/// The parameters are the account, the round to start behind, what is filtered by, and the limit.
const ANY: &str = concat!(
    rounds!(),
    "rounds.account_id = $1 and rounds.id < $2 order by rounds.id desc limit $3"
);

/// Those under way have no outcome and are few in all accounts together. `coalesce` keeps the
/// databases from reading along the primary key instead of the index `rounds_open`.
const OF_KIND: &str = merged!(
    "$4":
    newest!("$3", "'agreed'", "$4"),
    newest!("$3", "'split'", "$4"),
    newest!("$3", "'abstained'", "$4"),
    newest!("$3", "'failed'", "$4"),
    concat!(
        "select * from (",
        rounds!(),
        "coalesce(rounds.account_id, '') = $1 and coalesce(rounds.id, '') < $2 \
         and rounds.kind = $3 and rounds.state = 'open' \
         order by rounds.id desc limit $4) as under_way"
    )
);

const OF_OUTCOME: &str = merged!(
    "$4":
    newest!("'delegate'", "$3", "$4"),
    newest!("'validate'", "$3", "$4"),
    newest!("'factcheck'", "$3", "$4")
);

const OF_BOTH: &str = merged!("$5": newest!("$3", "$4", "$5"));

/// The text for a filter, and what it takes between the start and the limit.
pub(crate) fn round_list(
    kind: Option<Kind>,
    outcome: Option<Outcome>,
) -> (&'static str, Vec<&'static str>) {
    match (kind, outcome) {
        (None, None) => (ANY, Vec::new()),
        (Some(kind), None) => (OF_KIND, vec![kind.as_str()]),
        (None, Some(outcome)) => (OF_OUTCOME, vec![outcome.as_str()]),
        (Some(kind), Some(outcome)) => (OF_BOTH, vec![kind.as_str(), outcome.as_str()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_by_one_filter_names_every_value_of_the_other() {
        for kind in Kind::ALL {
            assert!(OF_OUTCOME.contains(&format!("rounds.kind = '{kind}'")), "{kind}");
        }
        for outcome in Outcome::ALL {
            assert!(OF_KIND.contains(&format!("rounds.outcome = '{outcome}'")), "{outcome}");
        }
    }
}

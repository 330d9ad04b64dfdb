//! Lists of rounds. Each filter has its own statement, so that it uses an index: one statement for
//! all filters would read every round of an account to find none.

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, RoundId},
    round::{RoundFilter, RoundStatus, RoundSummary, consensus::Outcome, job::JobKind},
    time::Timestamp,
};

use super::{
    AFTER_ALL, RoundCount,
    rows::{OPEN_COLUMNS, read_summary},
};
use crate::{
    Result,
    db::{
        row::read_number,
        tx::{SqlArg, Tx, args},
    },
};

/// Outputs may be large, so a list does not read them.
const SELECT: &str = concatcp!(
    "select ",
    OPEN_COLUMNS,
    ", rounds.state, rounds.closed_at, rounds.outcome, rounds.verdict, rounds.agreement_bp, \
     rounds.confidence_bp, rounds.receipt_id from rounds where "
);

/// Selects a range of an account's rounds, and only closed ones if `$4` says so.
const PART: &str = "\
    rounds.account_id = $1 and rounds.id < $2 and rounds.id >= $3 \
    and rounds.state = coalesce($4, rounds.state)";

// The newest rounds of one kind and one outcome, through the index `rounds_by_answer`. The newest
// of all are among the newest of each part.
const PART_OF_KIND: &str = concatcp!("select * from (", SELECT, PART, " and rounds.kind = ");
const NEWEST_6: &str = " order by rounds.id desc limit $6) as newest";

/// The parameters are the account, the two ends of the range, the state, the other filters, and the
/// limit.
const ANY: &str = concatcp!(SELECT, PART, " order by rounds.id desc limit $5");

/// Open rounds have no outcome and are few in all accounts together. `coalesce` makes the databases
/// use the index `rounds_open` instead of the primary key.
const OF_KIND: &str = concatcp!(
    PART_OF_KIND,
    "$5 and rounds.outcome = 'agreed'",
    NEWEST_6,
    " union all ",
    PART_OF_KIND,
    "$5 and rounds.outcome = 'split'",
    NEWEST_6,
    " union all ",
    PART_OF_KIND,
    "$5 and rounds.outcome = 'abstained'",
    NEWEST_6,
    " union all ",
    PART_OF_KIND,
    "$5 and rounds.outcome = 'failed'",
    NEWEST_6,
    " union all select * from (",
    SELECT,
    "coalesce(rounds.account_id, '') = $1 and coalesce(rounds.id, '') < $2 \
     and coalesce(rounds.id, '') >= $3 and rounds.state = coalesce($4, rounds.state) \
     and rounds.kind = $5 and rounds.state = 'open' \
     order by rounds.id desc limit $6) as under_way order by id desc limit $6"
);

const OF_OUTCOME: &str = concatcp!(
    PART_OF_KIND,
    "'delegate' and rounds.outcome = $5",
    NEWEST_6,
    " union all ",
    PART_OF_KIND,
    "'validate' and rounds.outcome = $5",
    NEWEST_6,
    " union all ",
    PART_OF_KIND,
    "'factcheck' and rounds.outcome = $5",
    NEWEST_6,
    " order by id desc limit $6"
);

const OF_BOTH: &str = concatcp!(
    SELECT,
    PART,
    " and rounds.kind = $5 and rounds.outcome = $6 order by rounds.id desc limit $7"
);

/// Uses the index `rounds_open`; open rounds have no outcome.
const UNDER_WAY: &str = concatcp!(
    SELECT,
    "coalesce(rounds.account_id, '') = $1 and coalesce(rounds.id, '') < $2 \
     and coalesce(rounds.id, '') >= $3 and rounds.state = 'open' \
     and rounds.kind = coalesce($4, rounds.kind) \
     and coalesce(rounds.outcome, '') = coalesce($5, '') order by rounds.id desc limit $6"
);

/// Most rounds were closed; the index `rounds_not_closed` holds the others.
const NOT_CLOSED: &str = concatcp!(
    SELECT,
    "rounds.account_id = $1 and rounds.id < $2 and rounds.id >= $3 and rounds.state = $4 \
     and rounds.state in ('expired', 'cancelled') and rounds.kind = coalesce($5, rounds.kind) \
     and rounds.outcome = coalesce($6, rounds.outcome) order by rounds.id desc limit $7"
);

/// Looks at the newest rounds only, so that the work is limited for an account with many rounds.
const COUNT: &str = "\
    select 'rounds' as name, count(*) as number from (\
    select state, coalesce(closed_at, opened_at) as updated_at, step from rounds \
    where account_id = $1 order by id desc limit $2) as newest \
    where step is null and state = coalesce($3, state) and updated_at >= $4";

/// The statement for a filter, and its arguments between the range and the limit.
fn round_list(filter: &RoundFilter) -> (&'static str, Vec<Option<&'static str>>) {
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

pub(super) async fn list(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &RoundFilter,
) -> Result<Vec<RoundSummary>> {
    let (below, from) = id_range(filter);
    let (text, words) = round_list(filter);
    let mut args = args![account, below, from];
    args.extend(words.into_iter().map(SqlArg::from));
    args.push(filter.limit.into());
    tx.all(text, args, read_summary).await
}

pub(super) async fn count(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &RoundCount,
) -> Result<u32> {
    let state = filter.state.map(RoundStatus::as_str);
    let since = filter.updated_since.map_or(0, Timestamp::micros);
    let counted = tx.first(COUNT, args![account, filter.among, state, since], read_number).await?;
    Ok(counted.and_then(|number| u32::try_from(number).ok()).unwrap_or_default())
}

/// The range of identifiers of a list, without the upper end. Identifiers begin with their time, so
/// a time can be turned into an identifier.
fn id_range(filter: &RoundFilter) -> (String, String) {
    let until = filter.until.map(|until| RoundId::new(until, 0));
    let below = filter.before.clone().into_iter().chain(until).min();
    let from = filter.since.map(|since| RoundId::new(since, 0));
    (
        below.map_or_else(|| AFTER_ALL.to_owned(), |id| id.to_string()),
        from.map(|id| id.to_string()).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup;

    const ANY: RoundFilter = RoundFilter {
        kind: None,
        outcome: None,
        state: None,
        since: None,
        until: None,
        before: None,
        limit: 10,
    };

    /// SQLite's plan for a list: one line for each table or index that it reads.
    fn plan(filter: &RoundFilter) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let (text, _) = round_list(filter);
        let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        lines.into_iter().filter(|line| line.contains(" rounds ")).collect()
    }

    #[test]
    fn no_list_reads_all_rounds_of_an_account_to_find_none() {
        const ANSWERED: &str = "SEARCH rounds USING INDEX rounds_by_answer \
            (account_id=? AND kind=? AND outcome=? AND id>? AND id<?)";
        const UNDER_WAY: &str = "SCAN rounds USING INDEX rounds_open";
        let (kind, outcome) = (Some(JobKind::Validate), Some(Outcome::Split));
        assert_eq!(plan(&RoundFilter { kind, outcome, ..ANY }), [ANSWERED]);
        assert_eq!(plan(&RoundFilter { outcome, ..ANY }), [ANSWERED; 3]);
        let of_kind = plan(&RoundFilter { kind, ..ANY });
        assert_eq!(of_kind, [ANSWERED, ANSWERED, ANSWERED, ANSWERED, UNDER_WAY]);
        assert_eq!(plan(&RoundFilter { state: Some(RoundStatus::Open), ..ANY }), [UNDER_WAY]);
        let otherwise = "SEARCH rounds USING INDEX rounds_not_closed \
            (account_id=? AND state=? AND id>? AND id<?)";
        assert_eq!(plan(&RoundFilter { state: Some(RoundStatus::Cancelled), ..ANY }), [otherwise]);
    }

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

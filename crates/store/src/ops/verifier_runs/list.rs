//! Lists of verifier runs. Each filter has its own statement, so that it uses an index.

use const_format::concatcp;
use jurat_core::{
    id::{AccountId, uuid},
    verifier::run::{VerifierRun, VerifierRunFilter, VerifierRunPurpose, VerifierRunVerdict},
};

use super::{COLUMNS, read};
use crate::{
    Result,
    db::tx::{SqlArg, Tx, args},
    ops::rounds::AFTER_ALL,
};

/// Selects a part of an account's runs. A version alone has no index: another index leads to it.
macro_rules! newest {
    ($index:literal, $limit:literal, $rest:expr) => {
        concatcp!(
            "select ",
            COLUMNS,
            " from verifier_runs",
            $index,
            " where account_id = $1 and id < $2 and id >= $3 and version = coalesce($4, version)",
            $rest,
            " order by id desc limit ",
            $limit
        )
    };
}

/// The newest of all are among the newest of each part.
macro_rules! merged {
    ($index:literal, $limit:literal: $first:expr $(, $rest:expr)*) => {
        concatcp!(
            "select * from (", newest!($index, $limit, $first), ") as newest",
            $(" union all select * from (", newest!($index, $limit, $rest), ") as newest",)*
            " order by id desc limit ", $limit
        )
    };
}

/// The list statements of one database.
struct VerifierRunQueries {
    any: &'static str,
    of_both: &'static str,
    of_verdict: &'static str,
    of_purpose: &'static str,
    of_verifier: &'static str,
    of_verifier_both: &'static str,
    of_verifier_verdict: &'static str,
    of_verifier_purpose: &'static str,
    of_version: &'static str,
}

macro_rules! lists {
    ($by_verifier:literal, $by_version:literal, $by_answer:literal, $by_verdict:literal) => {
        VerifierRunQueries {
            any: newest!("", "$5", ""),
            of_both: newest!($by_verdict, "$7", " and verdict = $5 and purpose = $6"),
            of_verdict: merged!(
                $by_verdict, "$6":
                " and verdict = $5 and purpose = 'run'",
                " and verdict = $5 and purpose = 'test'",
                " and verdict = $5 and purpose = 'attack'"
            ),
            of_purpose: merged!(
                $by_verdict, "$6":
                " and purpose = $5 and verdict = 'passed'",
                " and purpose = $5 and verdict = 'failed'",
                " and purpose = $5 and verdict = 'error'",
                " and purpose = $5 and verdict = 'running'"
            ),
            of_verifier: newest!($by_verifier, "$6", " and verifier_id = $5"),
            of_verifier_both: newest!(
                $by_answer,
                "$8",
                " and verifier_id = $5 and verdict = $6 and purpose = $7"
            ),
            of_verifier_verdict: merged!(
                $by_answer, "$7":
                " and verifier_id = $5 and verdict = $6 and purpose = 'run'",
                " and verifier_id = $5 and verdict = $6 and purpose = 'test'",
                " and verifier_id = $5 and verdict = $6 and purpose = 'attack'"
            ),
            of_verifier_purpose: merged!(
                $by_answer, "$7":
                " and verifier_id = $5 and purpose = $6 and verdict = 'passed'",
                " and verifier_id = $5 and purpose = $6 and verdict = 'failed'",
                " and verifier_id = $5 and purpose = $6 and verdict = 'error'",
                " and verifier_id = $5 and purpose = $6 and verdict = 'running'"
            ),
            of_version: concatcp!(
                "select ",
                COLUMNS,
                " from verifier_runs",
                $by_version,
                " where account_id = $1 and id < $2 and id >= $3 and version = $4 \
                 and verifier_id = $5 and verdict = coalesce($6, verdict) \
                 and purpose = coalesce($7, purpose) order by id desc limit $8"
            ),
        }
    };
}

/// PostgreSQL knows how selective a column is.
const POSTGRES: VerifierRunQueries = lists!("", "", "", "");
/// SQLite does not know that, and would use the primary key.
const SQLITE: VerifierRunQueries = lists!(
    " indexed by verifier_runs_by_verifier",
    " indexed by verifier_runs_by_version",
    " indexed by verifier_runs_by_answer",
    " indexed by verifier_runs_by_verdict"
);

impl VerifierRunQueries {
    /// The statement for a filter, and its arguments between the version and the limit.
    fn of<'a>(&self, filter: &'a VerifierRunFilter) -> (&'static str, Vec<Option<&'a str>>) {
        let verdict = filter.verdict.map(VerifierRunVerdict::as_str);
        let purpose = filter.purpose.map(VerifierRunPurpose::as_str);
        let verifier = filter.verifier_id.as_deref();
        match (verifier, verdict, purpose) {
            (Some(_), _, _) if filter.version.is_some() => {
                (self.of_version, vec![verifier, verdict, purpose])
            }
            (None, None, None) => (self.any, vec![]),
            (None, Some(_), None) => (self.of_verdict, vec![verdict]),
            (None, None, Some(_)) => (self.of_purpose, vec![purpose]),
            (None, Some(_), Some(_)) => (self.of_both, vec![verdict, purpose]),
            (Some(_), None, None) => (self.of_verifier, vec![verifier]),
            (Some(_), Some(_), None) => (self.of_verifier_verdict, vec![verifier, verdict]),
            (Some(_), None, Some(_)) => (self.of_verifier_purpose, vec![verifier, purpose]),
            (Some(_), Some(_), Some(_)) => {
                (self.of_verifier_both, vec![verifier, verdict, purpose])
            }
        }
    }
}

pub(super) async fn list(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &VerifierRunFilter,
) -> Result<Vec<VerifierRun>> {
    let (below, from) = id_range(filter);
    let queries = if tx.is_sqlite() { SQLITE } else { POSTGRES };
    let (text, words) = queries.of(filter);
    let mut args = args![account, below, from, filter.version];
    args.extend(words.into_iter().map(SqlArg::from));
    args.push(filter.limit.into());
    tx.all(text, args, read).await
}

/// The range of identifiers of a list, without the upper end. Identifiers begin with their time, so
/// a time can be turned into an identifier.
fn id_range(filter: &VerifierRunFilter) -> (String, String) {
    let until = filter.until.map_or_else(|| AFTER_ALL.to_owned(), |until| uuid(until, 0));
    let below = filter.before.as_ref().map_or(until.clone(), |before| until.min(before.clone()));
    let from = filter.since.map(|since| uuid(since, 0)).unwrap_or_default();
    (below, from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::sqlite::setup;

    const ANY: VerifierRunFilter = VerifierRunFilter {
        verifier_id: None,
        version: None,
        verdict: None,
        purpose: None,
        since: None,
        until: None,
        limit: 10,
        before: None,
    };

    /// SQLite's plan for a list: one line for each table or index that it reads.
    fn plan(filter: &VerifierRunFilter) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let (text, _) = SQLITE.of(filter);
        let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        assert!(!lines.iter().any(|line| line.contains("SCAN verifier_runs")), "{lines:?}");
        lines.into_iter().filter(|line| line.contains(" verifier_runs ")).collect()
    }

    #[test]
    fn no_list_reads_runs_that_it_does_not_show() {
        let verifier_id = Some("v".to_owned());
        let (verdict, purpose) = (Some(VerifierRunVerdict::Failed), Some(VerifierRunPurpose::Test));
        let all = "SEARCH verifier_runs USING INDEX sqlite_autoindex_verifier_runs_1 \
            (account_id=? AND id>? AND id<?)";
        assert_eq!(plan(&ANY), [all]);
        let of_verifier = VerifierRunFilter { verifier_id, ..ANY };
        let by_verifier = "SEARCH verifier_runs USING INDEX verifier_runs_by_verifier \
            (account_id=? AND verifier_id=? AND id>? AND id<?)";
        assert_eq!(plan(&of_verifier), [by_verifier]);
        let by_version = "SEARCH verifier_runs USING INDEX verifier_runs_by_version \
            (account_id=? AND verifier_id=? AND version=? AND id>? AND id<?)";
        assert_eq!(
            plan(&VerifierRunFilter { version: Some(2), ..of_verifier.clone() }),
            [by_version]
        );
        let by_answer = "SEARCH verifier_runs USING INDEX verifier_runs_by_answer \
            (account_id=? AND verifier_id=? AND verdict=? AND purpose=? AND id>? AND id<?)";
        let by_verdict = "SEARCH verifier_runs USING INDEX verifier_runs_by_verdict \
            (account_id=? AND verdict=? AND purpose=? AND id>? AND id<?)";
        for (filter, index) in [(of_verifier, by_answer), (ANY, by_verdict)] {
            let both = VerifierRunFilter { verdict, purpose, ..filter.clone() };
            assert_eq!(plan(&both), [index]);
            assert_eq!(plan(&VerifierRunFilter { verdict, ..filter.clone() }), [index; 3]);
            assert_eq!(plan(&VerifierRunFilter { purpose, ..filter }), [index; 4]);
        }
    }

    #[test]
    fn a_list_by_one_filter_names_every_value_of_the_other() {
        for text in [SQLITE.of_purpose, SQLITE.of_verifier_purpose] {
            for verdict in VerifierRunVerdict::ALL {
                assert!(text.contains(&format!("verdict = '{verdict}'")), "{verdict}");
            }
        }
        for text in [SQLITE.of_verdict, SQLITE.of_verifier_verdict] {
            for purpose in VerifierRunPurpose::ALL {
                assert!(text.contains(&format!("purpose = '{purpose}'")), "{purpose}");
            }
        }
    }
}

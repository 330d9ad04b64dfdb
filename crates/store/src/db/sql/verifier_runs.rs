//! The SQL of runs. Each filter has a text of its own, so that it reads along an index.

use jurat_core::verifier::run::{VerifierRunPurpose, VerifierRunVerdict};

use super::registry::guarded;
use crate::VerifierRunFilter;

macro_rules! run_columns {
    () => {
        "id, account_id, verifier_id, version, purpose, verdict, round_id, provenance, \
         inputs_digest, created_at, error_code, error_message, reasoning, duration_ms, cost_micros"
    };
}

guarded!(
    RUN_ADD, RUN_ADD_LOCKING, SYSTEM_RUN_ADD:
    "insert into verifier_runs (account_id, verifier_id, id, version, purpose, verdict, round_id, \
     provenance, inputs_digest, created_at)",
    "$1, $2, $3, $4, $5, 'running', $6, $7, $8, $9",
    ""
);
/// A run whose verifier was deleted meanwhile is not there any more.
pub(crate) const RUN_END: &str = "\
    update verifier_runs set verdict = $1, error_code = $2, error_message = $3, reasoning = $4, \
    duration_ms = $5, cost_micros = $6 \
    where account_id = $7 and id = $8 and verdict = 'running'";
pub(crate) const RUN_GET: &str =
    concat!("select ", run_columns!(), " from verifier_runs where account_id = $1 and id = $2");

/// Which part of an account's runs. A version alone is no index: it is looked for along another.
macro_rules! newest {
    ($index:literal, $limit:literal, $rest:expr) => {
        concat!(
            "select ",
            run_columns!(),
            " from verifier_runs",
            $index,
            " where account_id = $1 and id < $2 and id >= $3 and version = coalesce($4, version)",
            $rest,
            " order by id desc limit ",
            $limit
        )
    };
}

/// The newest of each part are the newest of all.
macro_rules! merged {
    ($index:literal, $limit:literal: $first:expr $(, $rest:expr)*) => {
        concat!(
            "select * from (", newest!($index, $limit, $first), ") as newest",
            $(" union all select * from (", newest!($index, $limit, $rest), ") as newest",)*
            " order by id desc limit ", $limit
        )
    };
}

/// The lists of one database.
pub(crate) struct VerifierRunQueries {
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
            of_version: concat!(
                "select ",
                run_columns!(),
                " from verifier_runs",
                $by_version,
                " where account_id = $1 and id < $2 and id >= $3 and version = $4 \
                 and verifier_id = $5 and verdict = coalesce($6, verdict) \
                 and purpose = coalesce($7, purpose) order by id desc limit $8"
            ),
        }
    };
}

/// PostgreSQL knows how many rows a column divides.
pub(crate) const POSTGRES: VerifierRunQueries = lists!("", "", "", "");
/// SQLite does not know, and would read along the primary key.
pub(crate) const SQLITE: VerifierRunQueries = lists!(
    " indexed by verifier_runs_by_verifier",
    " indexed by verifier_runs_by_version",
    " indexed by verifier_runs_by_answer",
    " indexed by verifier_runs_by_verdict"
);

impl VerifierRunQueries {
    /// The text for a filter, and what it takes between the version and the limit.
    pub(crate) fn of<'a>(
        &self,
        filter: &'a VerifierRunFilter,
    ) -> (&'static str, Vec<Option<&'a str>>) {
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

#[cfg(test)]
mod tests {
    use super::*;

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

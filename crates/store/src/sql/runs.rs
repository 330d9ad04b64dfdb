//! The SQL of runs. Each filter has a text of its own, so that it reads along an index.

use jurat_core::run::{Purpose, RunVerdict};

use super::registry::guarded;
use crate::RunFilter;

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
macro_rules! runs {
    ($rest:expr) => {
        concat!(
            "select ",
            run_columns!(),
            " from verifier_runs where account_id = $1 and id < $2 and id >= $3 \
             and version = coalesce($4, version)",
            $rest
        )
    };
}

macro_rules! newest {
    ($limit:literal, $rest:expr) => {
        runs!(concat!($rest, " order by id desc limit ", $limit))
    };
}

/// The newest of each part are the newest of all.
macro_rules! merged {
    ($limit:literal: $first:expr $(, $rest:expr)*) => {
        concat!(
            "select * from (", newest!($limit, $first), ") as newest",
            $(" union all select * from (", newest!($limit, $rest), ") as newest",)*
            " order by id desc limit ", $limit
        )
    };
}

const ANY: &str = newest!("$5", "");
/// Along the index `verifier_runs_by_verdict`.
const OF_BOTH: &str = newest!("$7", " and verdict = $5 and purpose = $6");
const OF_VERDICT: &str = merged!(
    "$6":
    " and verdict = $5 and purpose = 'run'",
    " and verdict = $5 and purpose = 'test'",
    " and verdict = $5 and purpose = 'attack'"
);
const OF_PURPOSE: &str = merged!(
    "$6":
    " and purpose = $5 and verdict = 'passed'",
    " and purpose = $5 and verdict = 'failed'",
    " and purpose = $5 and verdict = 'error'",
    " and purpose = $5 and verdict = 'running'"
);
/// Along the index `verifier_runs_by_verifier`.
const OF_VERIFIER: &str = newest!("$6", " and verifier_id = $5");
/// Along the index `verifier_runs_by_answer`.
const OF_VERIFIER_BOTH: &str =
    newest!("$8", " and verifier_id = $5 and verdict = $6 and purpose = $7");
const OF_VERIFIER_VERDICT: &str = merged!(
    "$7":
    " and verifier_id = $5 and verdict = $6 and purpose = 'run'",
    " and verifier_id = $5 and verdict = $6 and purpose = 'test'",
    " and verifier_id = $5 and verdict = $6 and purpose = 'attack'"
);
const OF_VERIFIER_PURPOSE: &str = merged!(
    "$7":
    " and verifier_id = $5 and purpose = $6 and verdict = 'passed'",
    " and verifier_id = $5 and purpose = $6 and verdict = 'failed'",
    " and verifier_id = $5 and purpose = $6 and verdict = 'error'",
    " and verifier_id = $5 and purpose = $6 and verdict = 'running'"
);
/// Along the index `verifier_runs_by_version`.
const OF_VERSION: &str = concat!(
    "select ",
    run_columns!(),
    " from verifier_runs where account_id = $1 and id < $2 and id >= $3 and version = $4 \
     and verifier_id = $5 and verdict = coalesce($6, verdict) and purpose = coalesce($7, purpose) \
     order by id desc limit $8"
);

/// The text for a filter, and what it takes between the version and the limit.
pub(crate) fn run_list(filter: &RunFilter) -> (&'static str, Vec<Option<&str>>) {
    let verdict = filter.verdict.map(RunVerdict::as_str);
    let purpose = filter.purpose.map(Purpose::as_str);
    let verifier = filter.verifier_id.as_deref();
    match (verifier, verdict, purpose) {
        (Some(_), _, _) if filter.version.is_some() => {
            (OF_VERSION, vec![verifier, verdict, purpose])
        }
        (None, None, None) => (ANY, vec![]),
        (None, Some(_), None) => (OF_VERDICT, vec![verdict]),
        (None, None, Some(_)) => (OF_PURPOSE, vec![purpose]),
        (None, Some(_), Some(_)) => (OF_BOTH, vec![verdict, purpose]),
        (Some(_), None, None) => (OF_VERIFIER, vec![verifier]),
        (Some(_), Some(_), None) => (OF_VERIFIER_VERDICT, vec![verifier, verdict]),
        (Some(_), None, Some(_)) => (OF_VERIFIER_PURPOSE, vec![verifier, purpose]),
        (Some(_), Some(_), Some(_)) => (OF_VERIFIER_BOTH, vec![verifier, verdict, purpose]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_by_one_filter_names_every_value_of_the_other() {
        for text in [OF_PURPOSE, OF_VERIFIER_PURPOSE] {
            for verdict in RunVerdict::ALL {
                assert!(text.contains(&format!("verdict = '{verdict}'")), "{verdict}");
            }
        }
        for text in [OF_VERDICT, OF_VERIFIER_VERDICT] {
            for purpose in Purpose::ALL {
                assert!(text.contains(&format!("purpose = '{purpose}'")), "{purpose}");
            }
        }
    }
}

//! Runs in SQLite.

use jurat_core::{id::AccountId, verifier::run::VerifierRun};
use rusqlite::{Connection, ToSql, params};

use super::{all, execute, first};
use crate::{
    Result, VerifierRunFilter,
    db::{
        rows::verifier_runs::{VerifierRunEndRow, VerifierRunRow, id_range, read_verifier_run},
        sql::verifier_runs as sql,
    },
};

/// Adds a run; `false` when its verifier is gone.
pub(super) fn add(tx: &Connection, run: &VerifierRunRow) -> Result<bool> {
    let text = if run.is_system { sql::SYSTEM_RUN_ADD } else { sql::RUN_ADD };
    let params = params![
        run.account_id,
        run.verifier_id,
        run.id,
        run.version,
        run.purpose,
        run.round_id,
        run.provenance,
        run.inputs_digest,
        run.created_at
    ];
    Ok(execute(tx, text, params)? == 1)
}

pub(super) fn end(tx: &Connection, account: &str, end: &VerifierRunEndRow) -> Result<()> {
    let params = params![
        end.verdict,
        end.error_code,
        end.error_message,
        end.reasoning,
        end.duration_ms,
        end.cost_micros,
        account,
        end.id
    ];
    execute(tx, sql::RUN_END, params).map(drop)
}

pub(super) fn get(tx: &Connection, account: &AccountId, id: &str) -> Result<Option<VerifierRun>> {
    first(tx, sql::RUN_GET, params![account.as_str(), id], |row| read_verifier_run(row))
}

pub(super) fn list(
    tx: &Connection,
    account: &AccountId,
    filter: &VerifierRunFilter,
) -> Result<Vec<VerifierRun>> {
    let (below, from) = id_range(filter);
    let (text, words) = sql::SQLITE.of(filter);
    let account = account.as_str();
    let mut params: Vec<&dyn ToSql> = vec![&account, &below, &from, &filter.version];
    params.extend(words.iter().map(|word| word as &dyn ToSql));
    params.push(&filter.limit);
    all(tx, text, params.as_slice(), |row| read_verifier_run(row))
}

#[cfg(test)]
mod tests {
    use jurat_core::verifier::run::{VerifierRunPurpose, VerifierRunVerdict};

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

    /// How SQLite finds the rows of a list: one line for each place that it reads.
    fn plan(filter: &VerifierRunFilter) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let (text, _) = sql::SQLITE.of(filter);
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
}

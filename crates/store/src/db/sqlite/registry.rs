//! Verifiers, their versions and measurements, and known verdicts in SQLite.

use jurat_core::{
    id::AccountId,
    time::Timestamp,
    verifier::{
        Verifier, VerifierSelector,
        registry::{DeployedVersion, Measurement},
        run::VerifierRunPurpose,
    },
};
use rusqlite::{Connection, params};

use super::{all, execute, first, idempotency};
use crate::{
    CachedVerdict, DeployOutcome, Result, VerdictPruning, VerifierRemoval, VerifierRemoveOutcome,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            json,
            registry::{
                DeployRow, is_system, read_cached_verdict, read_measured, read_measurement,
                read_tuned, read_verifier, tuned, verifier_gone,
            },
        },
        sql::registry::{
            self as sql, erased_answer, judged_rounds, verdicts_gone, verdicts_many, verdicts_old,
        },
        tx::{SqliteTx, at_once},
    },
    ops::{
        storage::room,
        templates::{SERVING, read_serving},
    },
};

/// The rounds in which judges of a verifier had a say, also those under way: they are scrubbed when
/// they end. What executors answered in a delegate stays.
const ERASE_ROUNDS: &str = concat!(
    "update rounds set erased_at = ?1, run = null, consensus = case when kind = 'validate' \
     then json_remove(consensus, '$.output') else consensus end where (account_id, id) in (",
    judged_rounds!("?2"),
    ")"
);
const ERASE_REPLICAS: &str = concat!(
    "update replicas set document = case when exists (select 1 from rounds \
     where rounds.account_id = replicas.account_id and rounds.id = replicas.round_id \
     and rounds.kind = 'validate') then json_set(document, '$.answer', json(",
    erased_answer!(),
    ")) else json_replace(document, '$.answer.vote.notes', json('[]'), \
     '$.answer.vote.evidence_inline', json('[]'), '$.answer.abstained.notes', json('[]'), \
     '$.answer.abstained.evidence_inline', json('[]'), '$.answer.nothing.detail', 'erased', \
     '$.answer.nothing.said.notes', json('[]'), \
     '$.answer.nothing.said.evidence_inline', json('[]')) end \
     where (account_id, round_id) in (",
    judged_rounds!("?1"),
    ")"
);

pub(super) fn deploy(
    tx: &Connection,
    row: &DeployRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<DeployOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(DeployOutcome::Repeated);
    }
    let account = row.deploy.account.as_str();
    let mut found = find(tx, account, &VerifierSelector::Name(row.deploy.name.clone()))?;
    if let (None, Some(token)) = (&found, &row.deploy.expected_token) {
        let params = params![account, row.deploy.name];
        let shared = all(tx, sql::TUNED_BY_NAME, params, |row| read_tuned(row))?;
        found = match tuned(shared, token) {
            Ok(found) => found,
            Err(refused) => return Ok(*refused),
        };
    }
    let verifier = match row.next(found) {
        Ok(verifier) => verifier,
        Err(refused) => return Ok(*refused),
    };
    let quota = row.deploy.quota_bytes;
    if let Err(full) = at_once(room(&mut SqliteTx(tx), &verifier.account, quota))? {
        return Ok(DeployOutcome::Full(full));
    }
    if verifier.current_version == 1 {
        add(tx, &verifier)?;
    } else {
        let params = params![
            verifier.description,
            verifier.current_version,
            verifier.version_token,
            verifier.updated_at.micros(),
            verifier.account.as_str(),
            verifier.id
        ];
        execute(tx, sql::VERIFIER_DEPLOYED, params)?;
    }
    let params = params![
        verifier.account.as_str(),
        verifier.id,
        verifier.current_version,
        verifier.description,
        row.config,
        row.config_hash,
        row.deploy.at.micros()
    ];
    execute(tx, sql::VERSION_ADD, params)?;
    let deployment = DeployedVersion { verifier, config_hash: row.config_hash.clone() };
    idempotency::record_answered_write(tx, idempotency, |answer| {
        answer.of_deployment(&deployment)
    })?;
    Ok(DeployOutcome::Done(deployment))
}

fn add(tx: &Connection, verifier: &Verifier) -> Result<()> {
    let params = params![
        verifier.account.as_str(),
        verifier.id,
        verifier.name,
        verifier.description,
        verifier.current_version,
        verifier.version_token,
        verifier.standing.as_str(),
        verifier.created_at.micros(),
        verifier.updated_at.micros()
    ];
    execute(tx, sql::VERIFIER_ADD, params).map(drop)
}

fn find(tx: &Connection, account: &str, which: &VerifierSelector) -> Result<Option<Verifier>> {
    let (text, key) = match which {
        VerifierSelector::Id(id) => (sql::VERIFIER_BY_ID, id),
        VerifierSelector::Name(name) => (sql::VERIFIER_BY_NAME, name),
        VerifierSelector::Of { owner, name } => {
            let params = params![account, name, owner.as_str()];
            return first(tx, sql::VERIFIER_BY_FULL_NAME, params, |row| read_verifier(row));
        }
        VerifierSelector::System(_) => return Ok(None),
    };
    first(tx, text, params![account, key], |row| read_verifier(row))
}

pub(super) fn revoke(
    tx: &Connection,
    removal: &VerifierRemoval,
    idempotency: Option<&IdempotencyRow>,
) -> Result<VerifierRemoveOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(VerifierRemoveOutcome::Repeated);
    }
    let account = removal.account.as_str();
    let Some(verifier) = find(tx, account, &removal.which)? else {
        return Ok(VerifierRemoveOutcome::Unknown);
    };
    execute(tx, sql::VERIFIER_REVOKE, params![removal.at.micros(), account, verifier.id])?;
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_verifier(&verifier))?;
    Ok(VerifierRemoveOutcome::Gone(Box::new(verifier)))
}

pub(super) fn delete(
    tx: &Connection,
    removal: &VerifierRemoval,
    idempotency: Option<&IdempotencyRow>,
) -> Result<VerifierRemoveOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(VerifierRemoveOutcome::Repeated);
    }
    let account = removal.account.as_str();
    let Some(verifier) = find(tx, account, &removal.which)? else {
        return Ok(VerifierRemoveOutcome::Unknown);
    };
    let serving = all(tx, SERVING, params![verifier.id], |row| read_serving(row))?;
    if !serving.is_empty() {
        return Ok(VerifierRemoveOutcome::Serving(serving));
    }
    execute(tx, ERASE_ROUNDS, params![removal.at.micros(), verifier.id])?;
    for text in [ERASE_REPLICAS].into_iter().chain(sql::DELETIONS_OF_ALL) {
        execute(tx, text, params![verifier.id])?;
    }
    for text in sql::DELETIONS {
        execute(tx, text, params![account, verifier.id])?;
    }
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_verifier(&verifier))?;
    Ok(VerifierRemoveOutcome::Gone(Box::new(verifier)))
}

pub(super) fn measurement_add(
    tx: &Connection,
    account: &AccountId,
    measurement: &Measurement,
) -> Result<()> {
    let is_system = is_system(&measurement.verifier_id);
    let text = if is_system { sql::SYSTEM_MEASUREMENT_ADD } else { sql::MEASUREMENT_ADD };
    let params = params![
        account.as_str(),
        measurement.verifier_id,
        measurement.id,
        measurement.version,
        measurement.purpose.as_str(),
        measurement.data_digest,
        json(&measurement.document)?,
        json(&measurement.cases)?,
        measurement.at.micros()
    ];
    if execute(tx, text, params)? == 0 { Err(verifier_gone()) } else { Ok(()) }
}

pub(super) fn measurement_get(
    tx: &Connection,
    account: &AccountId,
    (verifier_id, version): (&str, u32),
    purpose: VerifierRunPurpose,
) -> Result<Option<Measurement>> {
    let params = params![account.as_str(), verifier_id, version, purpose.as_str()];
    first(tx, sql::MEASUREMENT_GET, params, |row| read_measured(row))
}

pub(super) fn measurements(
    tx: &Connection,
    account: &AccountId,
    verifier_id: &str,
    version: u32,
) -> Result<Vec<Measurement>> {
    let params = params![account.as_str(), verifier_id, version];
    all(tx, sql::MEASUREMENTS, params, |row| read_measurement(row))
}

pub(super) fn verdict_get(
    tx: &Connection,
    account: &AccountId,
    digest: &str,
    since: Timestamp,
) -> Result<Option<CachedVerdict>> {
    let params = params![account.as_str(), digest, since.micros()];
    first(tx, sql::VERDICT_GET, params, |row| read_cached_verdict(row))
}

pub(super) fn verdict_put(
    tx: &Connection,
    account: &AccountId,
    verifier_id: &str,
    verdict: &CachedVerdict,
) -> Result<()> {
    let is_system = is_system(verifier_id);
    let text = if is_system { sql::SYSTEM_VERDICT_PUT } else { sql::VERDICT_PUT };
    let document = json(&verdict.document)?;
    let params =
        params![account.as_str(), verifier_id, verdict.digest, document, verdict.at.micros()];
    // Nothing is kept for a verifier that is gone.
    execute(tx, text, params).map(drop)
}

pub(super) fn verdicts_prune(tx: &Connection, pruning: VerdictPruning) -> Result<u64> {
    let VerdictPruning { before, most, limit } = pruning;
    let old = execute(tx, verdicts_gone!(verdicts_old!(), ""), params![before.micros(), limit])?;
    let old = u32::try_from(old).unwrap_or(u32::MAX);
    let left = limit.saturating_sub(old);
    let many = execute(tx, verdicts_gone!(verdicts_many!(), ""), params![most, left])?;
    Ok(u64::from(old).saturating_add(u64::try_from(many).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{db::sqlite::setup, ops::verifiers};

    /// How SQLite finds the rows: one line for each table that it reads.
    fn plan(text: &str) -> Vec<String> {
        let connection = setup::open_memory().unwrap();
        let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
        let reads = |line: &String| line.starts_with("SEARCH ") || line.starts_with("SCAN ");
        lines.map(Result::unwrap).filter(reads).collect()
    }

    #[test]
    fn a_list_and_a_verifier_read_no_verifiers_that_they_do_not_show() {
        let active = "SEARCH verifiers USING INDEX verifiers_active (account_id=? AND name>?)";
        let list = plan(verifiers::LIST);
        assert!(list.contains(&active.to_owned()), "{list:?}");
        assert!(!list.iter().any(|line| line.starts_with("SCAN verifiers")), "{list:?}");
        let by_name = "SEARCH verifiers USING INDEX verifiers_by_name (account_id=? AND name=?)";
        let version = "SEARCH verifier_versions USING INDEX sqlite_autoindex_verifier_versions_1 \
            (account_id=? AND verifier_id=? AND version=?)";
        let owner = "SEARCH owners USING INDEX sqlite_autoindex_accounts_1 (id=?)";
        assert_eq!(plan(verifiers::OWN_BY_NAME), [by_name, version, owner]);
    }

    #[test]
    fn old_verdicts_are_found_along_an_index() {
        let found = plan(verdicts_gone!(verdicts_old!(), ""));
        let old = "SEARCH known_verdicts USING INDEX known_verdicts_by_age (created_at<?)";
        assert!(found.contains(&old.to_owned()), "{found:?}");
        assert!(!found.iter().any(|line| line.contains("SCAN known_verdicts")), "{found:?}");
        let found = plan(verdicts_gone!(verdicts_many!(), ""));
        let by_age = "USING INDEX known_verdicts_by_age";
        assert!(found.iter().any(|line| line.contains(by_age)), "{found:?}");
    }
}

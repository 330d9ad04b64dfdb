//! Verifiers, their versions and measurements, and known verdicts in PostgreSQL.

use jurat_core::{
    account::AccountName,
    id::AccountId,
    time::Timestamp,
    verifier::{
        Verifier, VerifierSelector,
        registry::{DeployedVersion, Measurement},
        run::VerifierRunPurpose,
    },
};
use sqlx::{Connection as _, PgConnection};

use super::{LONG_STATEMENT_TIMEOUT, idempotency};
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
            self as sql, erased_answer, judged_rounds, readable, verdicts_gone, verdicts_many,
            verdicts_old, verifier_by_full_name, verifier_by_id, verifier_by_name,
        },
        tx::{PgTx, Tx as _, args},
    },
    ops::{
        storage::room,
        templates::{SERVING, read_serving, verifier_lock},
    },
};

/// Those who deploy or revoke a verifier take turns; runs of it go on beginning.
const BY_ID_LOCKED: &str = concat!(verifier_by_id!(), " for no key update");
const BY_NAME_LOCKED: &str = concat!(verifier_by_name!(), " for no key update");
const BY_FULL_NAME_LOCKED: &str = concat!(verifier_by_full_name!(), " for no key update");
/// Nothing that belongs to the verifier can be added any more.
const BY_ID_GOING: &str = concat!(verifier_by_id!(), " for update");
const BY_NAME_GOING: &str = concat!(verifier_by_name!(), " for update");
const BY_FULL_NAME_GOING: &str = concat!(verifier_by_full_name!(), " for update");

/// A verdict that somebody else is about to change or to remove is passed over: whoever removes
/// several rows at once must not wait for others who do.
const VERDICTS_OLD: &str = verdicts_gone!(verdicts_old!(), " for update skip locked");
const VERDICTS_MANY: &str = verdicts_gone!(verdicts_many!(), " for update skip locked");

/// A replica without what is said beside its output.
macro_rules! wordless {
    () => {
        concat!(
            "jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(jsonb_set(",
            readable!("document"),
            "::jsonb, '{answer,vote,notes}', '[]', false), \
             '{answer,vote,evidence_inline}', '[]', false), \
             '{answer,abstained,notes}', '[]', false), \
             '{answer,abstained,evidence_inline}', '[]', false), \
             '{answer,nothing,detail}', '\"erased\"', false), \
             '{answer,nothing,said,notes}', '[]', false), \
             '{answer,nothing,said,evidence_inline}', '[]', false)::text"
        )
    };
}

/// The rounds in which judges of a verifier had a say, also those under way: they are scrubbed when
/// they end. They come before the replicas, so that a round that ends at this moment is seen by both
/// statements. What executors answered in a delegate stays.
const ERASE_ROUNDS: &str = concat!(
    "update rounds set erased_at = $1, run = null, consensus = case when kind = 'validate' then ( \
     select json_object_agg(key, value)::text from json_each(",
    readable!("rounds.consensus"),
    ") where key <> 'output') else consensus end where (account_id, id) in (",
    judged_rounds!("$2"),
    ")"
);
const ERASE_REPLICAS: &str = concat!(
    "update replicas set document = case when exists (select 1 from rounds \
     where rounds.account_id = replicas.account_id and rounds.id = replicas.round_id \
     and rounds.kind = 'validate') then ( \
     select json_object_agg(key, case when key = 'answer' then (",
    erased_answer!(),
    ")::json else value end)::text from json_each(",
    readable!("document"),
    ")) else ",
    wordless!(),
    " end where (account_id, round_id) in (",
    judged_rounds!("$1"),
    ")"
);

pub(super) async fn deploy(
    db: &mut PgConnection,
    row: &DeployRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<DeployOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(DeployOutcome::Repeated);
    }
    let verifier = match next(&mut tx, row).await? {
        Ok(verifier) => verifier,
        Err(refused) => {
            tx.rollback().await?;
            return Ok(*refused);
        }
    };
    sqlx::query(sql::VERSION_ADD)
        .bind(verifier.account.as_str())
        .bind(&verifier.id)
        .bind(i64::from(verifier.current_version))
        .bind(&verifier.description)
        .bind(&row.config)
        .bind(&row.config_hash)
        .bind(row.deploy.at.micros())
        .execute(&mut *tx)
        .await?;
    let deployment = DeployedVersion { verifier, config_hash: row.config_hash.clone() };
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_deployment(&deployment))
        .await?;
    tx.commit().await?;
    Ok(DeployOutcome::Done(deployment))
}

/// Writes the verifier as it is after the deploy, or says why it is not.
async fn next(
    tx: &mut PgConnection,
    row: &DeployRow,
) -> Result<Result<Verifier, Box<DeployOutcome>>> {
    let (account, name) = (row.deploy.account.as_str(), row.deploy.name.as_str());
    let mut found = find(tx, BY_NAME_LOCKED, account, name).await?;
    if let (None, Some(token)) = (&found, &row.deploy.expected_token) {
        found = match shared(tx, row, token).await? {
            Ok(found) => found,
            Err(refused) => return Ok(Err(refused)),
        };
    }
    let verifier = match row.next(found) {
        Ok(verifier) => verifier,
        Err(refused) => return Ok(Err(refused)),
    };
    let quota = row.deploy.quota_bytes;
    if let Err(full) = room(&mut PgTx(&mut *tx), &verifier.account, quota).await? {
        return Ok(Err(Box::new(DeployOutcome::Full(full))));
    }
    if verifier.current_version > 1 {
        sqlx::query(sql::VERIFIER_DEPLOYED)
            .bind(&verifier.description)
            .bind(i64::from(verifier.current_version))
            .bind(&verifier.version_token)
            .bind(verifier.updated_at.micros())
            .bind(verifier.account.as_str())
            .bind(&verifier.id)
            .execute(tx)
            .await?;
        return Ok(Ok(verifier));
    }
    if add(tx, &verifier).await? {
        return Ok(Ok(verifier));
    }
    // Somebody else was first, and is visible now.
    let found = find(tx, BY_NAME_LOCKED, account, name).await?;
    Ok(match row.next(found) {
        Err(refused) => Err(refused),
        // Deployed and deleted within this moment.
        Ok(_) => return Err(verifier_gone()),
    })
}

/// A verifier of another that the deploy means.
async fn shared(
    tx: &mut PgConnection,
    row: &DeployRow,
    token: &str,
) -> Result<Result<Option<Verifier>, Box<DeployOutcome>>> {
    let query = sqlx::query(sql::TUNED_BY_NAME).bind(row.deploy.account.as_str());
    let rows = query.bind(&row.deploy.name).fetch_all(&mut *tx).await?;
    let shared = rows.iter().map(read_tuned).collect::<Result<Vec<_>>>()?;
    let meant = match tuned(shared, token) {
        Ok(Some(meant)) => meant,
        Ok(None) => return Ok(Ok(None)),
        Err(refused) => return Ok(Err(refused)),
    };
    find(tx, BY_ID_LOCKED, meant.account.as_str(), &meant.id).await.map(Ok)
}

async fn add(tx: &mut PgConnection, verifier: &Verifier) -> Result<bool> {
    let added = sqlx::query(sql::VERIFIER_ADD)
        .bind(verifier.account.as_str())
        .bind(&verifier.id)
        .bind(&verifier.name)
        .bind(&verifier.description)
        .bind(i64::from(verifier.current_version))
        .bind(&verifier.version_token)
        .bind(verifier.standing.as_str())
        .bind(verifier.created_at.micros())
        .bind(verifier.updated_at.micros())
        .execute(tx)
        .await?;
    Ok(added.rows_affected() == 1)
}

async fn find(
    tx: &mut PgConnection,
    text: &'static str,
    account: &str,
    key: &str,
) -> Result<Option<Verifier>> {
    let row = sqlx::query(text).bind(account).bind(key).fetch_optional(tx).await?;
    row.as_ref().map(read_verifier).transpose()
}

async fn find_of(
    tx: &mut PgConnection,
    text: &'static str,
    account: &str,
    (owner, name): (&AccountName, &str),
) -> Result<Option<Verifier>> {
    let query = sqlx::query(text).bind(account).bind(name).bind(owner.as_str());
    query.fetch_optional(tx).await?.as_ref().map(read_verifier).transpose()
}

pub(super) async fn revoke(
    db: &mut PgConnection,
    removal: &VerifierRemoval,
    idempotency: Option<&IdempotencyRow>,
) -> Result<VerifierRemoveOutcome> {
    let account = removal.account.as_str();
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(VerifierRemoveOutcome::Repeated);
    }
    let found = match &removal.which {
        VerifierSelector::Id(id) => find(&mut tx, BY_ID_LOCKED, account, id).await?,
        VerifierSelector::Name(name) => find(&mut tx, BY_NAME_LOCKED, account, name).await?,
        VerifierSelector::Of { owner, name } => {
            find_of(&mut tx, BY_FULL_NAME_LOCKED, account, (owner, name)).await?
        }
        VerifierSelector::System(_) => None,
    };
    let Some(verifier) = found else {
        tx.rollback().await?;
        return Ok(VerifierRemoveOutcome::Unknown);
    };
    let revoke = sqlx::query(sql::VERIFIER_REVOKE).bind(removal.at.micros());
    revoke.bind(account).bind(&verifier.id).execute(&mut *tx).await?;
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_verifier(&verifier)).await?;
    tx.commit().await?;
    Ok(VerifierRemoveOutcome::Gone(Box::new(verifier)))
}

pub(super) async fn delete(
    db: &mut PgConnection,
    removal: &VerifierRemoval,
    idempotency: Option<&IdempotencyRow>,
) -> Result<VerifierRemoveOutcome> {
    let account = removal.account.as_str();
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(VerifierRemoveOutcome::Repeated);
    }
    if let VerifierSelector::Id(id) = &removal.which {
        PgTx(&mut tx).lock(&verifier_lock(id)).await?;
    }
    let found = match &removal.which {
        VerifierSelector::Id(id) => find(&mut tx, BY_ID_GOING, account, id).await?,
        VerifierSelector::Name(name) => find(&mut tx, BY_NAME_GOING, account, name).await?,
        VerifierSelector::Of { owner, name } => {
            find_of(&mut tx, BY_FULL_NAME_GOING, account, (owner, name)).await?
        }
        VerifierSelector::System(_) => None,
    };
    let Some(verifier) = found else {
        tx.rollback().await?;
        return Ok(VerifierRemoveOutcome::Unknown);
    };
    let serving = PgTx(&mut tx).all(SERVING, args![&verifier.id], read_serving).await?;
    if !serving.is_empty() {
        tx.rollback().await?;
        return Ok(VerifierRemoveOutcome::Serving(serving));
    }
    // A verifier may have had very many runs.
    sqlx::query(LONG_STATEMENT_TIMEOUT).execute(&mut *tx).await?;
    let rounds = sqlx::query(ERASE_ROUNDS).bind(removal.at.micros());
    rounds.bind(&verifier.id).execute(&mut *tx).await?;
    for text in [ERASE_REPLICAS].into_iter().chain(sql::DELETIONS_OF_ALL) {
        sqlx::query(text).bind(&verifier.id).execute(&mut *tx).await?;
    }
    for text in sql::DELETIONS {
        sqlx::query(text).bind(account).bind(&verifier.id).execute(&mut *tx).await?;
    }
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_verifier(&verifier)).await?;
    tx.commit().await?;
    Ok(VerifierRemoveOutcome::Gone(Box::new(verifier)))
}

pub(super) async fn measurement_add(
    db: &mut PgConnection,
    account: &AccountId,
    measurement: &Measurement,
) -> Result<()> {
    let is_system = is_system(&measurement.verifier_id);
    let text = if is_system { sql::SYSTEM_MEASUREMENT_ADD } else { sql::MEASUREMENT_ADD_LOCKING };
    let added = sqlx::query(text)
        .bind(account.as_str())
        .bind(&measurement.verifier_id)
        .bind(&measurement.id)
        .bind(i64::from(measurement.version))
        .bind(measurement.purpose.as_str())
        .bind(&measurement.data_digest)
        .bind(json(&measurement.document)?)
        .bind(json(&measurement.cases)?)
        .bind(measurement.at.micros())
        .execute(&mut *db)
        .await?;
    if added.rows_affected() == 0 { Err(verifier_gone()) } else { Ok(()) }
}

pub(super) async fn measurement_get(
    db: &mut PgConnection,
    account: &AccountId,
    (verifier_id, version): (&str, u32),
    purpose: VerifierRunPurpose,
) -> Result<Option<Measurement>> {
    let query = sqlx::query(sql::MEASUREMENT_GET)
        .bind(account.as_str())
        .bind(verifier_id)
        .bind(i64::from(version))
        .bind(purpose.as_str());
    query.fetch_optional(&mut *db).await?.as_ref().map(read_measured).transpose()
}

pub(super) async fn measurements(
    db: &mut PgConnection,
    account: &AccountId,
    verifier_id: &str,
    version: u32,
) -> Result<Vec<Measurement>> {
    let query = sqlx::query(sql::MEASUREMENTS)
        .bind(account.as_str())
        .bind(verifier_id)
        .bind(i64::from(version));
    query.fetch_all(&mut *db).await?.iter().map(read_measurement).collect()
}

pub(super) async fn verdict_get(
    db: &mut PgConnection,
    account: &AccountId,
    digest: &str,
    since: Timestamp,
) -> Result<Option<CachedVerdict>> {
    let query = sqlx::query(sql::VERDICT_GET).bind(account.as_str()).bind(digest);
    let row = query.bind(since.micros()).fetch_optional(&mut *db).await?;
    row.as_ref().map(read_cached_verdict).transpose()
}

pub(super) async fn verdict_put(
    db: &mut PgConnection,
    account: &AccountId,
    verifier_id: &str,
    verdict: &CachedVerdict,
) -> Result<()> {
    let is_system = is_system(verifier_id);
    // Nothing is kept for a verifier that is gone.
    let text = if is_system { sql::SYSTEM_VERDICT_PUT } else { sql::VERDICT_PUT_LOCKING };
    sqlx::query(text)
        .bind(account.as_str())
        .bind(verifier_id)
        .bind(&verdict.digest)
        .bind(json(&verdict.document)?)
        .bind(verdict.at.micros())
        .execute(&mut *db)
        .await?;
    Ok(())
}

pub(super) async fn verdicts_prune(db: &mut PgConnection, pruning: VerdictPruning) -> Result<u64> {
    let VerdictPruning { before, most, limit } = pruning;
    let mut tx = db.begin().await?;
    let old = sqlx::query(VERDICTS_OLD).bind(before.micros()).bind(i64::from(limit));
    let old = old.execute(&mut *tx).await?.rows_affected();
    let left = i64::from(limit).saturating_sub_unsigned(old);
    let many = sqlx::query(VERDICTS_MANY).bind(i64::from(most)).bind(left);
    let many = many.execute(&mut *tx).await?.rows_affected();
    tx.commit().await?;
    Ok(old.saturating_add(many))
}

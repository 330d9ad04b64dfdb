//! Migrations of PostgreSQL, and the rights of the serving role.

use jurat_core::canonical::digest;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, postgres::PgConnectOptions};

use crate::{
    Result, StoreError,
    db::migrations::{self, Migration},
    error::DatabaseRefusal,
};

/// Nodes that start at the same time migrate in sequence; the second number identifies the schema.
const LOCK: &str = "select pg_advisory_xact_lock(1785036916, hashtext(current_schema()::text))";

const MIGRATIONS: &str = "\
    create table if not exists migrations ( \
    version bigint not null primary key, \
    name text not null, \
    digest text not null, \
    applied_at bigint not null)";

/// Tables that the serving role may read and write freely.
const SERVED: &str = "\
    installation, executors, sessions, accounts, api_keys, rounds, replicas, idempotency, \
    verifiers, verifier_measurements, verifier_runs, known_verdicts, credit_balances, \
    handles, team_members, invitations, login_codes, device_logins, workflows, workflow_files, \
    workflow_blobs, workflow_bindings, workflow_grants, templates, template_versions, \
    template_moves, template_files, template_pins, anonymous_days, anonymous_grants, tasks, \
    task_candidates, task_ballots, evidence_blobs, knowledge, task_runs, task_run_steps, \
    agent_events, judge_history, round_payloads, account_storage, named_grants, share_blocks, \
    grant_days, webhooks, webhook_deliveries, payments, peers, peer_invitations";
/// Tables whose rows are never changed once they are written.
const APPENDED: &str = "entries, credit_transfers, execution_captures, peer_bookings";
/// Tables of the same kind, except that a trigger allows the removal of rows after their task or
/// agent run was marked as pruned.
const PRUNED: &str = "task_events, task_run_events";

pub(super) async fn run(options: &PgConnectOptions, serving_role: Option<&str>) -> Result<()> {
    let mut connection = PgConnection::connect_with(options).await?;
    let mut tx = connection.begin().await?;
    sqlx::query(LOCK).execute(&mut *tx).await?;
    if !exists(&mut tx).await? {
        sqlx::query(MIGRATIONS).execute(&mut *tx).await?;
    }
    for migration in migrations::ALL {
        apply(&mut tx, migration).await?;
    }
    if let Some(role) = serving_role {
        grant(&mut tx, role).await?;
    }
    tx.commit().await?;
    connection.close().await?;
    Ok(())
}

/// The newest migration that was applied; zero if there are no tables.
pub(crate) async fn version(db: &mut PgConnection) -> Result<i64> {
    if !exists(&mut *db).await? {
        return Ok(0);
    }
    let version = sqlx::query_scalar("select coalesce(max(version), 0) from migrations");
    Ok(version.fetch_one(db).await?)
}

async fn exists(connection: &mut PgConnection) -> Result<bool> {
    let found = sqlx::query_scalar("select to_regclass('migrations') is not null");
    Ok(found.fetch_one(connection).await?)
}

async fn apply(tx: &mut PgConnection, migration: &Migration) -> Result<()> {
    let ours = digest(migration.postgres.as_bytes());
    let applied: Option<String> =
        sqlx::query_scalar("select digest from migrations where version = $1")
            .bind(migration.version)
            .fetch_optional(&mut *tx)
            .await?;
    match applied {
        Some(theirs) if theirs == ours => Ok(()),
        Some(_) => {
            let name = migration.name.to_owned();
            Err(StoreError::unavailable(DatabaseRefusal::MigrationChanged { name }))
        }
        None => {
            sqlx::raw_sql(migration.postgres).execute(&mut *tx).await?;
            sqlx::query(
                "insert into migrations (version, name, digest, applied_at) \
                 values ($1, $2, $3, (extract(epoch from now()) * 1000000)::bigint)",
            )
            .bind(migration.version)
            .bind(migration.name)
            .bind(ours)
            .execute(&mut *tx)
            .await?;
            Ok(())
        }
    }
}

/// Grants the role the rights that serving needs, and no more: the role cannot change the schema,
/// nor change an entry, a version or a transfer after it is written.
async fn grant(tx: &mut PgConnection, role: &str) -> Result<()> {
    let (schema, quoted, is_owner): (String, String, bool) = sqlx::query_as(
        "select quote_ident(current_schema()::text), quote_ident($1), $1 = current_user::text",
    )
    .bind(role)
    .fetch_one(&mut *tx)
    .await?;
    if is_owner {
        // The owner may do everything anyway; revoking rights from it would only hide that.
        return Ok(());
    }
    let grants = format!(
        "grant usage on schema {schema} to {quoted}; \
         grant select, insert, update, delete on {SERVED} to {quoted}; \
         grant select, insert on {APPENDED} to {quoted}; \
         grant select, insert, delete on {PRUNED}, verifier_versions, workflow_versions to {quoted}; \
         grant select on migrations to {quoted};"
    );
    // The only parts that vary were quoted by the database itself.
    sqlx::raw_sql(AssertSqlSafe(grants)).execute(tx).await?;
    Ok(())
}

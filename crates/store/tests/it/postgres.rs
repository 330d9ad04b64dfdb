//! The suite on PostgreSQL, and tests of roles, several nodes and the clock of the server.

mod policies;

use std::error::Error as _;

use futures::future::join_all;
use jurat_core::verifier::{VerifierSelector, run::VerifierRunVerdict};
use jurat_store::{
    Behalf, RoundCharge, RoundOpening, RoundTakeover, Store, StoreErrorKind, StoreLocation,
    TakeoverScope, VerifierRemoval, WriteOutcome,
};

use crate::{
    backend::{self, Backend, TestSchema},
    conformance::{
        agent_runs, conformance, evidence, payments, peer_books, storage, tasks,
        verifiers::deployed, webhooks,
    },
    migrated::{everything_is_there, fixtures, the_earlier_program_was_understood, work_goes_on},
    samples::{
        HOUR_MS, account, at, claim, close_round, closing, deploy, executor, grant, holding,
        judged, open_round, round, run, session,
    },
};

conformance!(Backend::postgres());

#[tokio::test]
async fn the_serving_role_writes_rounds_and_cannot_change_entries() {
    let schema = TestSchema::new().await;
    // A name that has to be quoted.
    let role = format!("Serving-{}", schema.name);
    schema.execute(&format!("create role \"{role}\" login")).await.unwrap();
    let serving = schema.url_of(&role);
    let location =
        StoreLocation::Postgres { url: serving.clone(), migrate_url: Some(schema.url()) };
    let store = jurat_store::open(&location).await.unwrap();

    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    assert_eq!(
        store.sessions().remove(&Behalf::Platform, "s1", None).await.unwrap(),
        WriteOutcome::Done(())
    );
    let open = round(&account("alice"), 1);
    open_round(&store, &open).await;
    assert_eq!(
        close_round(&store, &open, &closing(&open)).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    a_run_is_paid_and_erased(&store).await;
    for sql in [
        "update entries set entry = '{}'",
        "delete from entries",
        "truncate entries",
        "update credit_transfers set micros = 1",
        "delete from credit_transfers",
        "truncate credit_transfers",
        "update verifier_versions set config = '{}'",
        "truncate verifier_versions",
        "drop trigger entries_never_change on entries",
        "alter table entries disable trigger all",
        "update migrations set version = 2",
        "create table mine (id text)",
    ] {
        let refusal = backend::execute(&serving, sql).await.unwrap_err();
        assert!(
            refusal.contains("permission denied") || refusal.contains("must be owner"),
            "{sql}: {refusal}"
        );
    }
    // Migrating again changes nothing.
    jurat_store::migrate_postgres(&schema.url(), Some(&role)).await.unwrap();
    store.ping().await.unwrap();
    store.close().await;
    schema.execute(&format!("drop owned by \"{role}\"; drop role \"{role}\"")).await.unwrap();
    schema.drop().await;
}

/// All that is done to the tables of the registry and the ledger.
async fn a_run_is_paid_and_erased(store: &Store) {
    let alice = account("alice");
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&alice, 100), None).await.unwrap();
    let verifier = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let open = holding(run(&alice, &verifier.id, 2), 40, true);
    assert_eq!(open_round(store, &open).await, WriteOutcome::Done(RoundOpening::Whole));
    let end = judged(&open, VerifierRunVerdict::Passed, 15);
    assert_eq!(close_round(store, &open, &end).await, WriteOutcome::Done(RoundCharge::Own));
    let removal =
        VerifierRemoval { account: alice, which: VerifierSelector::Id(verifier.id), at: at(9) };
    let gone = store.verifiers().delete(&Behalf::Platform, &removal, None).await.unwrap();
    assert!(matches!(gone, WriteOutcome::Done(_)));
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
}

#[tokio::test]
async fn nodes_that_start_concurrently_migrate_once() {
    let schema = TestSchema::new().await;
    let location = schema.location();
    let stores = join_all((0..6).map(|_| jurat_store::open(&location))).await;
    for store in stores {
        let store = store.unwrap();
        store.ping().await.unwrap();
        store.close().await;
    }
    schema.drop().await;
}

/// Row security would not protect them.
#[tokio::test]
async fn a_role_that_bypasses_row_security_cannot_serve() {
    let schema = TestSchema::served().await;
    let refusal = async |url: String| {
        let error = Store::postgres(&url).await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        error.source().unwrap().to_string()
    };
    let superuser = refusal(schema.url()).await;
    assert!(superuser.contains("is a superuser or bypasses row security"), "{superuser}");
    assert!(superuser.contains("`--migrate-url`"), "{superuser}");
    let role = format!("{}_strong", schema.name);
    schema
        .execute(&format!("create role {role} login; grant jurat_serving to {role}"))
        .await
        .unwrap();
    Store::postgres(&schema.url_of(&role)).await.unwrap().close().await;
    for (change, why) in [
        (format!("alter table rounds owner to {role}"), "owns the tables"),
        (format!("alter role {role} bypassrls"), "bypasses row security"),
    ] {
        schema.execute(&change).await.unwrap();
        let refused = refusal(schema.url_of(&role)).await;
        assert!(refused.contains(why), "{change}: {refused}");
    }
    schema.execute(&format!("drop owned by {role} cascade; drop role {role}")).await.unwrap();
    schema.drop().await;
}

/// A forgotten table would be open to every account.
#[tokio::test]
async fn every_table_of_accounts_has_row_security() {
    let schema = TestSchema::served().await;
    let open = "select 1 / (case when count(*) = 0 then 1 else 0 end) from ( \
        select distinct table_name from information_schema.columns \
        where table_schema = current_schema() and column_name = 'account_id') as tables \
        join pg_class on relname = table_name and relnamespace = current_schema()::regnamespace \
        where not relrowsecurity and relname not in \
        ('handles', 'team_members', 'device_logins', 'template_pins')";
    schema.execute(open).await.unwrap();
    schema.drop().await;
}

/// A query without an account condition finds nothing of other accounts, and nothing at all before
/// the account is set.
#[tokio::test]
async fn a_connection_sees_the_rows_of_one_account() {
    let schema = TestSchema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    for name in ["alice", "bob"] {
        deployed(&store, &deploy(&account(name), "cites", 1)).await;
    }
    store.close().await;
    for (whose, count) in [("acct_alice", 1), ("acct_bob", 1), ("acct_eve", 0), ("", 0), ("*", 2)] {
        for table in ["verifiers", "verifier_versions"] {
            let look = format!(
                "set jurat.account = '{whose}'; \
                 select 1 / (case when count(*) = {count} then 1 else 0 end) from {table}"
            );
            backend::execute(&schema.serving_url(), &look).await.unwrap();
        }
    }
    let steal = "set jurat.account = 'acct_bob'; \
        update verifiers set account_id = 'acct_bob' where account_id = 'acct_alice'";
    backend::execute(&schema.serving_url(), steal).await.unwrap();
    let give = "set jurat.account = 'acct_bob'; update verifiers set account_id = 'acct_alice'";
    let refused = backend::execute(&schema.serving_url(), give).await.unwrap_err();
    assert!(refused.contains("row-level security"), "{refused}");
    schema.drop().await;
}

/// The same for everything that belongs to tasks and runs.
#[tokio::test]
async fn a_connection_sees_the_tasks_of_one_account() {
    const TABLES: [&str; 14] = [
        "tasks",
        "task_events",
        "task_candidates",
        "task_ballots",
        "evidence_blobs",
        "knowledge",
        "task_runs",
        "task_run_steps",
        "task_run_events",
        "agent_events",
        "webhooks",
        "webhook_deliveries",
        "payments",
        "peer_bookings",
    ];
    let schema = TestSchema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    for name in ["alice", "bob"] {
        tasks::with_everything(&store, &account(name)).await;
        agent_runs::with_everything(&store, &account(name)).await;
        evidence::with_everything(&store, &account(name)).await;
        webhooks::with_everything(&store, &account(name)).await;
        payments::with_everything(&store, &account(name)).await;
        peer_books::with_everything(&store, &account(name)).await;
    }
    store.close().await;
    for table in TABLES {
        for whose in ["acct_alice", "acct_bob", "acct_eve", "", "*"] {
            // Each account sees all its own rows and no others.
            let look = format!(
                "set jurat.account = '{whose}'; select 1 / (case when \
                 count(*) filter (where account_id <> '{whose}' and '{whose}' <> '*') = 0 \
                 and (count(*) > 0) = ('{whose}' in ('acct_alice', 'acct_bob', '*')) \
                 then 1 else 0 end) from {table}"
            );
            let seen = backend::execute(&schema.serving_url(), &look).await;
            assert_eq!(seen, Ok(()), "{table} as `{whose}`");
        }
    }
    let forge = "set jurat.account = 'acct_bob'; insert into task_events \
        (account_id, task_id, seq, kind, body, at) values ('acct_alice', 't-1', 9, 'x', '{}', 1)";
    let refused = backend::execute(&schema.serving_url(), forge).await.unwrap_err();
    assert!(refused.contains("row-level security"), "{refused}");
    for table in ["task_events", "task_run_events"] {
        let change = format!("set jurat.account = '*'; update {table} set kind = 'x'");
        let refused = backend::execute(&schema.serving_url(), &change).await.unwrap_err();
        assert!(refused.contains("permission denied"), "{refused}");
    }
    schema.drop().await;
}

#[tokio::test]
async fn a_schema_without_tables_is_refused() {
    let schema = TestSchema::new().await;
    let error = Store::postgres(&schema.url()).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert_eq!(
        error.source().unwrap().to_string(),
        "the database has schema version 0, but this program needs 12; start `jurat serve` with `--migrate-url`, the URL for the role that owns the tables"
    );
    schema.drop().await;
}

#[tokio::test]
async fn a_schema_of_a_far_newer_program_is_refused() {
    let schema = TestSchema::new().await;
    jurat_store::migrate_postgres(&schema.url(), None).await.unwrap();
    schema.execute("insert into migrations values (99, '0099', '', 0)").await.unwrap();
    let error = Store::postgres(&schema.url()).await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    assert_eq!(
        error.source().unwrap().to_string(),
        "the database has schema version 99, but this program knows versions up to 13; use a newer program"
    );
    schema.drop().await;
}

#[tokio::test]
async fn a_migration_that_was_edited_is_refused() {
    let schema = TestSchema::new().await;
    jurat_store::migrate_postgres(&schema.url(), None).await.unwrap();
    schema.execute("update migrations set digest = 'sha256:00'").await.unwrap();
    let error = jurat_store::migrate_postgres(&schema.url(), None).await.unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "migration `0001_first` was applied in a different form than this program's"
    );
    schema.drop().await;
}

#[tokio::test]
async fn the_search_path_may_come_as_a_command_line_option() {
    let schema = TestSchema::new().await;
    let other = |url: String| {
        let other = url.replace(
            &format!("options%5Bsearch_path%5D={}", schema.name),
            &format!("options=-csearch_path%3D{}", schema.name),
        );
        assert_ne!(url, other);
        other
    };
    let migrate_url = Some(other(schema.url()));
    let location = StoreLocation::Postgres { url: other(schema.serving_url()), migrate_url };
    let store = jurat_store::open(&location).await.unwrap();
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    store.close().await;
    schema.execute(&format!("select name from {}.executors", schema.name)).await.unwrap();
    schema.drop().await;
}

#[tokio::test]
async fn the_clock_of_a_node_does_not_matter_to_leases() {
    let backend = Backend::postgres().await;
    // Opened by a node whose clock is off by years, with a lease of one hour.
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    for orphans in [TakeoverScope::LeaseOver, TakeoverScope::All] {
        for now in [at(-1_000_000_000_000), at(1_000_000_000_000)] {
            let claim = RoundTakeover {
                now,
                lease_until: now.plus_millis(HOUR_MS),
                ..claim("second", orphans)
            };
            assert_eq!(
                backend.store.rounds().take_over(&Behalf::Platform, &claim).await.unwrap(),
                []
            );
        }
    }
    assert_eq!(
        close_round(&backend.store, &open, &closing(&open)).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
    backend.end().await;
}

#[tokio::test]
async fn a_missing_server_is_unavailable() {
    let error = Store::postgres("postgres://jurat@127.0.0.1:1/none").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
    let error = Store::postgres("no address").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn data_of_every_earlier_version_is_migrated_and_usable() {
    for fixture in fixtures("postgres") {
        let schema = TestSchema::new().await;
        let mut made = "create table migrations (version bigint not null primary key, \
            name text not null, digest text not null, applied_at bigint not null);"
            .to_owned();
        for (index, (name, text)) in fixture.migrations.iter().enumerate() {
            let digest = jurat_core::canonical::digest(text.as_bytes());
            let applied = index + 1;
            let noted =
                format!("insert into migrations values ({applied}, '{name}', '{digest}', 0);");
            made.push_str(text);
            made.push_str(&noted);
        }
        schema.execute(&made).await.unwrap();
        schema.execute(&fixture.rows).await.unwrap();

        let store = jurat_store::open(&schema.location()).await.unwrap();
        everything_is_there(&fixture, &store).await;
        work_goes_on(&fixture, &store).await;
        assert_eq!(schema.texts(&storage::miscounted()).await, [""; 0], "{}", fixture.name);
        store.close().await;
        schema.drop().await;
    }
}

#[tokio::test]
async fn the_previous_version_keeps_working_after_the_migration() {
    let schema = TestSchema::new().await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let previous = fixtures("postgres").pop().unwrap();
    schema.execute(&previous.program).await.unwrap();
    the_earlier_program_was_understood(&store).await;
    assert_eq!(schema.texts(&storage::miscounted()).await, [""; 0]);
    store.close().await;
    schema.drop().await;
}

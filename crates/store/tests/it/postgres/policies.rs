//! The row policies alone, with statements that name no account: what each account sees and changes
//! if every query forgets to filter.

use jurat_core::{verifier::VerifierSelector, workflow::VerifierRole};
use jurat_store::{Behalf, NameMatch};
use jurat_testkit::postgres::TestSchema;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use crate::{
    backend::Backend,
    conformance::verifiers::deployed,
    samples::{
        account, at, close_round, closing, deploy, find_round, grant, holding, key, newest,
        open_round, page, reached, round, run, verifiers,
    },
};

/// A row of a table that is empty except for what is given.
const FILL: &str =
    "create function fill(named text, given jsonb) returns void language plpgsql as $$
    declare empty jsonb; filled text;
    begin
        select string_agg(quote_ident(column_name), ', ') into filled
        from information_schema.columns where table_schema = current_schema()
        and table_name = named and is_generated = 'NEVER';
        select coalesce(jsonb_object_agg(column_name, case when data_type in ('text', 'bytea')
            then to_jsonb(''::text) else to_jsonb(0) end), '{}') into empty
        from information_schema.columns where table_schema = current_schema()
        and table_name = named and is_nullable = 'NO';
        execute format('insert into %I (%s) select %s from jsonb_populate_record(null::%I, $1)',
            named, filled, filled, named) using empty || given;
    end $$";

/// Tables that only their owner sees. Alice and Bob have a row in each.
const OWN: [&str; 11] = [
    "api_keys",
    "rounds",
    "replicas",
    "entries",
    "idempotency",
    "verifier_runs",
    "known_verdicts",
    "credit_balances",
    "credit_transfers",
    "anonymous_grants",
    "peer_bookings",
];

/// Alice's objects. She shares the workflow `w1` with Bob and with a team of Cat, and `w2` with
/// another account; `w3` was shared with Bob before it was archived. The verifier `v3` is in a live
/// template and `v4` in a version that is no longer live; `v5` is in nothing, and `v6` in an
/// archived template.
const ALICES: &[(&str, &str)] = &[
    ("workflows", r#"{"id": "w1", "slug": "w1"}"#),
    ("workflows", r#"{"id": "w2", "slug": "w2"}"#),
    ("workflows", r#"{"id": "w3", "slug": "w3", "archived_at": 9}"#),
    ("workflow_versions", r#"{"workflow_id": "w1"}"#),
    ("workflow_versions", r#"{"workflow_id": "w2"}"#),
    ("workflow_files", r#"{"workflow_id": "w1", "sha256": "b1"}"#),
    ("workflow_files", r#"{"workflow_id": "w2", "sha256": "b2"}"#),
    ("workflow_blobs", r#"{"sha256": "b1"}"#),
    ("workflow_blobs", r#"{"sha256": "b2"}"#),
    ("workflow_bindings", r#"{"workflow_id": "w1", "verifier_id": "v1"}"#),
    ("workflow_bindings", r#"{"workflow_id": "w2", "verifier_id": "v2"}"#),
    ("workflow_grants", r#"{"workflow_id": "w1", "grantee_id": "acct_bob"}"#),
    ("workflow_grants", r#"{"workflow_id": "w1", "grantee_id": "acct_team"}"#),
    ("workflow_grants", r#"{"workflow_id": "w2", "grantee_id": "acct_dan"}"#),
    ("workflow_grants", r#"{"workflow_id": "w3", "grantee_id": "acct_bob"}"#),
    ("named_grants", r#"{"workflow_id": "w1", "granted_to": "@bob", "grantee_id": "acct_bob"}"#),
    ("named_grants", r#"{"workflow_id": "w2", "granted_to": "dan@example.com"}"#),
    ("share_blocks", r#"{"blocked_id": "acct_dan"}"#),
    ("grant_days", r#"{"day": 1}"#),
    ("team_members", r#"{"team_id": "acct_team", "account_id": "acct_cat"}"#),
    ("team_members", r#"{"team_id": "acct_other", "account_id": "acct_eve"}"#),
    ("templates", r#"{"id": "t1", "slug": "t1", "workflow_id": "w1"}"#),
    ("templates", r#"{"id": "t2", "slug": "t2", "workflow_id": "w2", "archived_at": 9}"#),
    ("template_moves", r#"{"template_id": "t1"}"#),
    ("template_versions", r#"{"template_id": "t1", "version": 1}"#),
    ("template_versions", r#"{"template_id": "t1", "version": 2, "unpublished_at": 9}"#),
    ("template_versions", r#"{"template_id": "t2", "version": 1}"#),
    ("template_files", r#"{"template_id": "t1", "version": 1, "sha256": "live"}"#),
    ("template_files", r#"{"template_id": "t1", "version": 2, "sha256": "taken back"}"#),
    ("template_files", r#"{"template_id": "t2", "version": 1, "sha256": "put away"}"#),
    ("template_pins", r#"{"template_id": "t1", "version": 1, "verifier_id": "v3"}"#),
    ("template_pins", r#"{"template_id": "t1", "version": 2, "verifier_id": "v4"}"#),
    ("template_pins", r#"{"template_id": "t2", "version": 1, "verifier_id": "v6"}"#),
    ("invitations", r#"{"id": "i1", "from_id": "acct_alice", "to_id": "acct_bob"}"#),
    ("invitations", r#"{"id": "i2", "from_id": "acct_alice", "to_id": "acct_dan"}"#),
];

/// A table, the column that names its rows, and the rows visible to Alice, Bob, Cat and Eve.
const SEEN: [(&str, &str, [&str; 4]); 18] = [
    ("workflows", "id", ["w1 w2 w3", "w1", "w1", ""]),
    ("workflow_versions", "workflow_id", ["w1 w2", "w1", "w1", ""]),
    ("workflow_files", "workflow_id", ["w1 w2", "w1", "w1", ""]),
    ("workflow_bindings", "workflow_id", ["w1 w2", "w1", "w1", ""]),
    ("workflow_grants", "workflow_id", ["w1 w1 w2 w3", "w1 w1", "w1 w1", ""]),
    ("named_grants", "workflow_id", ["w1 w2", "w1", "w1", ""]),
    ("share_blocks", "blocked_id", ["acct_dan", "", "", ""]),
    ("grant_days", "account_id", ["acct_alice", "", "", ""]),
    ("workflow_blobs", "sha256", ["b1 b2", "b1", "b1", ""]),
    ("verifiers", "id", ["v1 v2 v3 v4 v5 v6", "v1 v3", "v1 v3", "v3"]),
    ("verifier_versions", "verifier_id", ["v1 v2 v3 v4 v5 v6", "v1 v3", "v1 v3", "v3"]),
    ("verifier_measurements", "verifier_id", ["v1 v2 v3 v4 v5 v6", "v1 v3", "v1 v3", "v3"]),
    ("invitations", "id", ["i1 i2", "i1", "", ""]),
    ("templates", "id", ["t1 t2", "t1 t2", "t1 t2", "t1 t2"]),
    ("template_versions", "template_id", ["t1 t1 t2", "t1", "t1", "t1"]),
    ("template_files", "sha256", ["live put away taken back", "live", "live", "live"]),
    ("template_pins", "verifier_id", ["v3 v4 v6", "v3", "v3", "v3"]),
    ("template_moves", "template_id", ["t1", "t1", "t1", "t1"]),
];
const VIEWERS: [&str; 4] = ["acct_alice", "acct_bob", "acct_cat", "acct_eve"];

async fn filled() -> TestSchema {
    let schema = TestSchema::served().await;
    let mut rows = format!("{FILL}; set session_replication_role = replica;");
    let mut add = |table: &str, owner: &str, given: &str| {
        let all = format!("'{{\"account_id\": \"{owner}\"}}'::jsonb || '{given}'");
        rows.extend(["select fill('", table, "', ", &all, ");"]);
    };
    for table in OWN {
        add(table, "acct_alice", r#"{"id": "1", "execution_id": "1"}"#);
        add(table, "acct_bob", r#"{"id": "2", "execution_id": "2"}"#);
    }
    for (table, given) in ALICES {
        add(table, "acct_alice", given);
    }
    for id in ["v1", "v2", "v3", "v4", "v5", "v6"] {
        add("verifiers", "acct_alice", &format!(r#"{{"id": "{id}", "name": "{id}"}}"#));
        for table in ["verifier_versions", "verifier_measurements"] {
            let given = format!(r#"{{"id": "{id}", "verifier_id": "{id}"}}"#);
            add(table, "acct_alice", &given);
        }
    }
    schema.execute(&rows).await.unwrap();
    schema
}

/// A connection of the serving role on behalf of an account.
async fn serving(schema: &TestSchema, whose: &str) -> PgConnection {
    let mut connection = PgConnection::connect(&schema.serving_url()).await.unwrap();
    let say = format!("set jurat.account = '{whose}'");
    sqlx::raw_sql(AssertSqlSafe(say)).execute(&mut connection).await.unwrap();
    connection
}

async fn seen(db: &mut PgConnection, table: &str, column: &str) -> String {
    let text = format!(
        "select coalesce(string_agg({column}, ' ' order by {column}), '') as seen from {table}"
    );
    let row = sqlx::query(AssertSqlSafe(text)).fetch_one(db).await.unwrap();
    row.try_get("seen").unwrap()
}

/// How many rows a change reached; zero if the role may not make it at all.
async fn reached_by(db: &mut PgConnection, text: String) -> u64 {
    match sqlx::raw_sql(AssertSqlSafe(text)).execute(db).await {
        Ok(done) => done.rows_affected(),
        Err(refused) => {
            assert!(refused.to_string().contains("permission denied"), "{refused}");
            0
        }
    }
}

#[tokio::test]
async fn an_account_sees_its_own_rows_and_shared_ones() {
    let schema = filled().await;
    let sights =
        [("acct_alice", "acct_alice"), ("acct_bob", "acct_bob"), ("acct_eve", ""), ("", "")];
    for (whose, expected) in sights {
        let mut db = serving(&schema, whose).await;
        for table in OWN {
            assert_eq!(seen(&mut db, table, "account_id").await, expected, "{table} of {whose}");
        }
        db.close().await.unwrap();
    }
    for (place, whose) in VIEWERS.iter().enumerate() {
        let mut db = serving(&schema, whose).await;
        for (table, column, expected) in SEEN {
            let found = seen(&mut db, table, column).await;
            assert_eq!(found, expected[place], "{table} as {whose} sees it");
        }
        db.close().await.unwrap();
    }
    schema.drop().await;
}

/// A connection without an account, such as one of another program.
#[tokio::test]
async fn a_connection_without_an_account_sees_nothing() {
    let schema = filled().await;
    let mut db = PgConnection::connect(&schema.serving_url()).await.unwrap();
    for table in OWN {
        assert_eq!(seen(&mut db, table, "account_id").await, "", "{table}");
    }
    db.close().await.unwrap();
    schema.drop().await;
}

#[tokio::test]
async fn a_stranger_changes_nothing() {
    let schema = filled().await;
    let mut db = serving(&schema, "acct_eve").await;
    for table in OWN.into_iter().chain(SEEN.map(|(table, ..)| table)) {
        let column = match table {
            "invitations" => "from_id",
            "template_versions" | "template_files" => "template_id",
            _ => "account_id",
        };
        // Everybody can see the verifiers of a live template, and so reach them.
        let is_shared = table.starts_with("verifier") && table != "verifier_runs";
        let rest = if is_shared { "id <> 'v3'" } else { "true" };
        let rest = if table == "verifier_versions" { "verifier_id <> 'v3'" } else { rest };
        let steal = format!("update {table} set {column} = 'acct_eve' where {rest}");
        assert_eq!(reached_by(&mut db, steal).await, 0, "{table} was stolen");
        let erase = format!("delete from {table} where {rest}");
        assert_eq!(reached_by(&mut db, erase).await, 0, "{table} was erased");
        let forged = format!(
            "select fill('{table}', '{{\"account_id\": \"acct_alice\", \"id\": \"3\", \
             \"template_id\": \"t1\", \"version\": 7, \
             \"from_id\": \"acct_alice\", \"to_id\": \"acct_dan\", \"slug\": \"s\"}}')"
        );
        let refused = sqlx::raw_sql(AssertSqlSafe(forged)).execute(&mut db).await.unwrap_err();
        assert!(refused.to_string().contains("row-level security"), "{table}: {refused}");
    }
    db.close().await.unwrap();
    schema.drop().await;
}

/// Everybody may write own rows, which can name objects of others: they open nothing.
#[tokio::test]
async fn an_own_row_does_not_open_the_rows_of_others() {
    let schema = filled().await;
    for (whose, table, forged, hidden) in [
        ("eve", "workflow_grants", r#""workflow_id": "w1", "grantee_id": "acct_eve""#, "workflows"),
        ("bob", "workflow_bindings", r#""workflow_id": "w1", "verifier_id": "v5""#, "verifiers"),
        ("bob", "workflow_files", r#""workflow_id": "w1", "sha256": "b2""#, "workflow_blobs"),
    ] {
        let mut db = serving(&schema, &format!("acct_{whose}")).await;
        let column = if hidden == "workflow_blobs" { "sha256" } else { "id" };
        let before = seen(&mut db, hidden, column).await;
        let fill =
            format!("select fill('{table}', '{{\"account_id\": \"acct_{whose}\", {forged}}}')");
        sqlx::raw_sql(AssertSqlSafe(fill)).execute(&mut db).await.unwrap();
        assert_eq!(seen(&mut db, hidden, column).await, before, "{table}");
        db.close().await.unwrap();
    }
    // Nor does a table of the same name that comes first in the session.
    let mut db = serving(&schema, "acct_eve").await;
    let shadow = "create temporary table workflow_grants as \
        select 'acct_alice' as account_id, 'w1' as workflow_id, 'acct_eve' as grantee_id";
    sqlx::raw_sql(shadow).execute(&mut db).await.unwrap();
    assert_eq!(seen(&mut db, "workflows", "id").await, "");
    db.close().await.unwrap();
    schema.drop().await;
}

/// Row security helps only if the store names the account on whose behalf it asks.
#[tokio::test]
async fn the_store_reads_on_behalf_of_the_account() {
    let backend = Backend::postgres().await;
    let (store, alice) = (&*backend.store, account("alice"));
    store.accounts().ensure(&Behalf::Platform, &alice, &at(0)).await.unwrap();
    store.keys().put(&Behalf::Platform, &key("k1", &alice)).await.unwrap();
    store.ledger().grant(&Behalf::Platform, &grant(&alice, 100), None).await.unwrap();
    let verifier = deployed(store, &deploy(&alice, "cites", 1)).await.verifier;
    let open = holding(run(&alice, &verifier.id, 1), 40, true);
    open_round(store, &open).await;
    let other = round(&alice, 2);
    open_round(store, &other).await;
    let end = closing(&other);
    close_round(store, &other, &end).await;
    // From here on nobody who asks for everybody sees a row.
    for table in OWN.into_iter().chain(["verifiers", "verifier_versions"]) {
        let blind = format!(
            "create policy blind on {table} as restrictive \
             using (current_setting('jurat.account') <> '*')"
        );
        backend.tamper(&blind).await.unwrap();
    }
    assert!(find_round(store, &alice, &other.id).await.is_some());
    assert_eq!(
        store.rounds().list(&Behalf::from(&alice), &alice, &newest(10)).await.unwrap().len(),
        2
    );
    assert!(
        store
            .rounds()
            .entry(&Behalf::from(&alice), &alice, &end.receipt_id)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        store
            .verifier_runs()
            .get(&Behalf::from(&alice), &alice, &open.run.as_ref().unwrap().id)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        store.ledger().transfers(&Behalf::from(&alice), &alice, None, 10).await.unwrap().len(),
        2
    );
    assert_eq!(verifiers(store, &alice, &page(None, 10)).await.len(), 1);
    let which = VerifierSelector::Id(verifier.id);
    let found = reached(store, &alice, (&which, None), VerifierRole::Exec).await;
    assert!(matches!(found, NameMatch::One(_)), "{found:?}");
    backend.end().await;
}

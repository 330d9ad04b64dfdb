//! Tests that both databases read even large tables of tasks through an index.

use jurat_testkit::postgres::TestSchema;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::sqlite::setup;
use crate::ops::{
    agent_events, agent_runs, evidence, idempotency, knowledge, open_work, payments, peers,
    storage, tasks, webhooks,
};

/// The number of rows in each table. A database rightly scans a table with few rows.
const SQLITE_ROWS: u32 = 100_000;
const POSTGRES_ROWS: u32 = 25_000;

/// Mostly old rows, as in a store that has been used for a long time.
const FILL: [&str; 19] = [
    "insert into tasks (account_id, id, task_type, phase, contract, contract_digest, panel, state, \
     seq, due_at, created_at, updated_at, ended_at) \
     select 'acct_' || (n % 100), 't-' || n, 'type-' || (n % 7), \
     case when n % 100 = 0 then 'claimed' else 'finalized' end, '{}', 'd', '{}', '{}', 9, \
     case when n % 100 = 0 then n end, n, n, case when n % 100 <> 0 then n end from numbers",
    "insert into task_events (account_id, task_id, seq, kind, body, at) \
     select 'acct_' || (n / 10 % 100), 't-' || (n / 10), n % 10 + 1, 'x', '{}', n from numbers",
    "insert into task_candidates (account_id, task_id, candidate_id, execution_id, executor, \
     output, evidence_inline, evidence_refs, digest, created_at) \
     select 'acct_' || (n % 100), 't-' || n, 'c', 'e', 'x', '{}', '[]', '[]', 'd', n from numbers",
    "insert into task_ballots (account_id, task_id, candidate_id, turn, voter, ballot, salt, \
     created_at) select 'acct_' || (n % 100), 't-' || n, 'c', 1, 'v', '{}', 's', n from numbers",
    "insert into knowledge (account_id, task_id, epoch, task_type, policy_id, input_digest, \
     schema_digest, params_digest, words, candidate_id, output, output_digest, profile, proposers, \
     reason_codes, confidence, quorum, final_hash, created_at) \
     select 'acct_' || (n % 100), 't-' || n, 1, 'type-' || (n % 7), 'p', 'i-' || n, 's', 'p', 'w', 'c', \
     '{}', 'o', 'default', '[]', '[]', '1', '{}', 'h', n from numbers",
    "insert into task_runs (account_id, id, task_type, status, spec, spec_digest, seq, \
     iteration, explored, created_at, updated_at, finished_at) \
     select 'acct_' || (n % 100), 'r-' || n, 't', \
     case when n % 100 = 0 then 'RUNNING' else 'FINALIZED' end, '{}', 'd', 9, 0, '{}', n, n, \
     case when n % 100 <> 0 then n end from numbers",
    "insert into task_run_steps (account_id, run_id, id, position, executor, priority, status, \
     attempt, last_attempt, run_at, lease_token, lease_until, worker, updated_at) \
     select 'acct_' || (n % 100), 'r-' || n, 'a', 0, 'e-' || (n % 20), n % 5, \
     case n % 50 when 0 then 'QUEUED' when 1 then 'LEASED' when 2 then 'RETRY_WAIT' \
     else 'SUCCEEDED' end, 1, 2, n, case when n % 50 = 1 then 't' end, \
     case when n % 50 = 1 then n end, case when n % 50 = 1 then 'w' end, n from numbers",
    "insert into task_run_events (account_id, run_id, seq, kind, body, at) \
     select 'acct_' || (n / 10 % 100), 'r-' || (n / 10), n % 10 + 1, 'x', '{}', n from numbers",
    "insert into agent_events (account_id, id, direction, executor, event_type, source_kind, \
     dedupe_key, body, state, attempts, next_at, created_at, updated_at) \
     select 'acct_' || (n % 100), 'e-' || n, 'out', 'x-' || (n % 20), 't', 's', 'k-' || n, '{}', \
     case when n % 100 = 0 then 'pending' else 'acked' end, 1, case when n % 100 = 0 then n end, \
     n, n from numbers",
    "insert into webhooks (account_id, id, url, events, scheme, secret, state, created_at, \
     updated_at) select 'acct_' || (n % 100), 'whk_' || n, 'u', '*', 'standard', 's', 'enabled', \
     n, n from numbers",
    "insert into webhook_deliveries (account_id, id, webhook_id, event_id, event_type, body, \
     state, attempts, attempts_before, next_at, created_at, updated_at) \
     select 'acct_' || (n % 100), 'd-' || n, 'whk_' || (n % 200), 'e-' || n, 't', '{}', \
     case when n % 100 = 0 then 'pending' else 'delivered' end, 1, 0, \
     case when n % 100 = 0 then n end, n, n from numbers",
    "insert into rounds (account_id, id, kind, state, node_id, lease_token, lease_until, \
     request_digest, policy_id, policy_hash, disagreement, traces, seats, opened_at, deadline_at, \
     closed_at, consensus) select 'acct_' || (n % 100), 'rnd_' || n, 'validate', 'closed', 'n', 1, \
     1, 'd', 'p', 'h', 'return_all', 0, '[]', n, n, n, '{}' from numbers",
    "insert into round_payloads (account_id, round_id, asked, created_at) \
     select 'acct_' || (n % 100), 'rnd_' || n, 'a', n from numbers",
    "insert into idempotency (account_id, key, operation, request_digest, created_at) \
     select 'acct_' || (n % 100), 'k-' || n, 'o', 'd', n from numbers",
    "insert into payments (account_id, id, network, asset, payer, nonce, protocol, amount, \
     request_digest, payment_digest, identifier, state, settle_request, valid_before, attempts, \
     next_at, created_at, updated_at) select 'acct_' || (n % 100), 'pay_' || n, 'base', 'a', \
     'p' || n, 'n', '2', 1, 'd', 'd', 'i-' || n, case when n % 100 = 0 then 'unknown' \
     else 'settled' end, '{}', n, 1, case when n % 100 = 0 then n end, n, n from numbers",
    "insert into peers (id, standing, direct, relays, terms, added_at, changed_at) \
     select 'p-' || n, 'trusted', '[]', '[]', '{}', n, n from numbers",
    "insert into peer_invitations (secret_digest, terms, created_at, expires_at) \
     select 's-' || n, '{}', n, n from numbers",
    "insert into peer_bookings (peer, side, origin, execution_id, price_micros, account_id, \
     round_id, booked_at) select 'p-' || (n % 100), 'owed', 'us', 'x-' || n, 1, \
     'acct_' || (n % 7), 'rnd_' || n, n from numbers",
    "insert into evidence_blobs (account_id, digest, size, mime, bytes, fetched_at) \
     select 'acct_' || (n % 100), 'd-' || n, 1, 'm', BYTES, n from numbers",
];

fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = [
        tasks::read::TEXTS,
        tasks::write::TEXTS,
        tasks::take::TEXTS,
        knowledge::TEXTS,
        evidence::TEXTS,
        idempotency::TEXTS,
        agent_events::TEXTS,
        webhooks::TEXTS,
        open_work::TEXTS,
        payments::TEXTS,
        peers::TEXTS,
        peers::book::TEXTS,
        peers::invite::TEXTS,
        storage::TEXTS,
        storage::gone::TEXTS,
        agent_runs::read::TEXTS,
        agent_runs::write::TEXTS,
        agent_runs::take::TEXTS,
    ];
    all.into_iter().flatten().copied()
}

#[test]
fn sqlite_reads_tasks_along_indexes() {
    let connection = setup::open_memory().unwrap();
    let numbers = format!(
        "create temp table numbers as with recursive counted (n) as (\
         select 1 union all select n + 1 from counted where n < {SQLITE_ROWS}) select n from counted"
    );
    connection.execute_batch(&numbers).unwrap();
    for fill in FILL {
        connection.execute_batch(&fill.replace("BYTES", "x'61'")).unwrap();
    }
    for is_analyzed in [false, true] {
        if is_analyzed {
            connection.execute_batch("analyze").unwrap();
        }
        for (text, _) in texts() {
            let mut statement = connection.prepare(&format!("explain query plan {text}")).unwrap();
            let lines = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
            for line in lines.map(Result::unwrap) {
                let is_whole = line.starts_with("SCAN ") && !line.contains(" INDEX ");
                let is_table =
                    ["task", "knowledge", "evidence", "agent", "webhook", "payments", "peer"];
                let is_table = is_table.iter().any(|name| line.contains(&format!("SCAN {name}")));
                assert!(!(is_whole && is_table), "{line}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn postgres_reads_tasks_along_indexes() {
    let schema = TestSchema::served().await;
    let numbers =
        format!("create table numbers as select n from generate_series(1, {POSTGRES_ROWS}) as n");
    schema.execute(&numbers).await.unwrap();
    for fill in FILL {
        schema.execute(&fill.replace("BYTES", "'\\x61'")).await.unwrap();
    }
    schema.execute("analyze").await.unwrap();
    let mut connection = PgConnection::connect(&schema.serving_url()).await.unwrap();
    let run = async |connection: &mut PgConnection, text: String| {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(connection).await.map(drop)
    };
    // The generic plan, which PostgreSQL keeps for a frequently used statement.
    run(&mut connection, "set plan_cache_mode = force_generic_plan".to_owned()).await.unwrap();
    for whose in ["acct_7", "*"] {
        run(&mut connection, format!("set jurat.account = '{whose}'")).await.unwrap();
        for (_, text) in texts() {
            let types = ["text", "text", "int8", "int8", "text"];
            let types = types[..parameters(text).min(types.len())].join(", ");
            // A list is passed as text, a type that PostgreSQL cannot infer from its use.
            let types =
                if text.contains("json_array") { format!("({types})") } else { String::new() };
            let prepare = format!("prepare looked {types} as {text}");
            run(&mut connection, prepare).await.unwrap_or_else(|why| panic!("{text}: {why}"));
            let lines: Vec<String> = sqlx::query_scalar(AssertSqlSafe(execute(text)))
                .persistent(false)
                .fetch_all(&mut connection)
                .await
                .unwrap();
            let is_whole = |line: &String| line.contains("Seq Scan on ");
            assert!(!lines.iter().any(is_whole), "{text}\n{}", lines.join("\n"));
            run(&mut connection, "deallocate looked".to_owned()).await.unwrap();
        }
    }
    connection.close().await.unwrap();
    schema.drop().await;
}

/// The statement that asks for the plan of a prepared statement, with null for each parameter.
fn execute(text: &str) -> String {
    let count = parameters(text);
    let nulls = vec!["null"; count].join(", ");
    if count == 0 {
        return "explain execute looked".to_owned();
    }
    format!("explain execute looked ({nulls})")
}

fn parameters(text: &str) -> usize {
    (1..99).take_while(|number| text.contains(&format!("${number}"))).count()
}

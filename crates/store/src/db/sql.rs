//! The SQL that both databases understand. In each text `$1`, `$2`, … first appear in ascending
//! order, because SQLite numbers them by appearance.

pub(crate) mod checkup;
pub(crate) mod keys;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod registry;
pub(crate) mod verifier_runs;

/// Columns are listed one by one: a `*` would break prepared statements of PostgreSQL when a
/// migration adds a column.
macro_rules! executor_columns {
    () => {
        "name, url, token_env, agent_events_url, created_at, probe"
    };
}

macro_rules! session_columns {
    () => {
        "id, executor, profile, tier, labels, task_types, reliability_permille, price_micros, created_at"
    };
}

/// The columns of an open round.
macro_rules! open_columns {
    () => {
        "rounds.account_id, rounds.id, rounds.kind, rounds.node_id, rounds.lease_token, \
         rounds.lease_until, rounds.request_digest, rounds.policy_id, rounds.policy_hash, \
         rounds.disagreement, rounds.traces, rounds.seats, rounds.opened_at, rounds.deadline_at, \
         rounds.run, rounds.verifier_id, rounds.step, rounds.held_micros, rounds.most_micros, \
         rounds.is_limited, rounds.day_cap_micros"
    };
}
pub(crate) use open_columns;

macro_rules! replica_columns {
    () => {
        "round_id, position, session_id, executor, label, failure, latency_ms, cost_micros, document"
    };
}
pub(crate) use replica_columns;

pub(crate) const POOL_CHANGED: &str =
    "update installation set pool_version = pool_version + 1 where id = 1";
pub(crate) const POOL_VERSION: &str = "select pool_version from installation where id = 1";

pub(crate) const EXECUTOR_ADD: &str = "\
    insert into executors (name, url, token_env, agent_events_url, created_at, probe) \
    values ($1, $2, $3, $4, $5, $6) on conflict do nothing";
pub(crate) const EXECUTOR_GET: &str =
    concat!("select ", executor_columns!(), " from executors where name = $1");
pub(crate) const EXECUTOR_LIST: &str = concat!(
    "select ",
    executor_columns!(),
    " from executors where name > $1 order by name limit $2"
);
pub(crate) const EXECUTOR_ALL: &str = concat!("select ", executor_columns!(), " from executors");
pub(crate) const EXECUTOR_PROBED: &str = "update executors set probe = $1 where name = $2";
pub(crate) const EXECUTOR_REMOVE: &str = "delete from executors where name = $1";

pub(crate) const SESSION_ADD: &str = "\
    insert into sessions (\
        id, executor, profile, tier, labels, task_types, reliability_permille, price_micros, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing";
pub(crate) const SESSION_GET: &str =
    concat!("select ", session_columns!(), " from sessions where id = $1");
pub(crate) const SESSION_LIST: &str =
    concat!("select ", session_columns!(), " from sessions where id > $1 order by id limit $2");
pub(crate) const SESSION_ALL: &str = concat!("select ", session_columns!(), " from sessions");
pub(crate) const SESSION_REMOVE: &str = "delete from sessions where id = $1";
pub(crate) const SESSIONS_REMOVE: &str = "delete from sessions where executor = $1 returning id";

pub(crate) const IDEMPOTENCY_GET: &str = "\
    select key, operation, request_digest, round_id, status, answer, created_at \
    from idempotency where account_id = $1 and key = $2";
pub(crate) const IDEMPOTENCY_ADD: &str = "\
    insert into idempotency (\
        account_id, key, operation, request_digest, round_id, status, answer, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing";
/// Replaces an abandoned round by another.
pub(crate) const IDEMPOTENCY_REPLACE: &str = "\
    update idempotency set round_id = $1 where account_id = $2 and key = $3 and round_id = $4";
pub(crate) const IDEMPOTENCY_ANSWER: &str =
    "update idempotency set status = $1, answer = $2 where account_id = $3 and key = $4";

/// Asks the node of an open round to cancel it.
pub(crate) const ROUND_CANCEL: &str = "\
    update rounds set cancel_requested_at = $1 \
    where account_id = $2 and id = $3 and state = 'open'";
pub(crate) const ROUNDS_CANCELLED: &str = "\
    select account_id, id from rounds \
    where node_id = $1 and state = 'open' and cancel_requested_at is not null";

/// With the closing; the replicas are read separately.
pub(crate) const ROUND_GET: &str = concat!(
    "select ",
    open_columns!(),
    ", rounds.state, rounds.closed_at, rounds.outcome, rounds.consensus, rounds.receipt_id, \
     entries.entry from rounds left join entries \
     on entries.account_id = rounds.account_id and entries.round_id = rounds.id \
     where rounds.account_id = $1 and rounds.id = $2"
);
pub(crate) const ROUND_REPLICAS: &str = concat!(
    "select ",
    replica_columns!(),
    " from replicas where account_id = $1 and round_id = $2 order by position"
);
/// Whether the cost of an execution was captured.
pub(crate) const CAPTURE_GET: &str =
    "select round_id from execution_captures where account_id = $1 and execution_id = $2";
/// The round that writes the row captures the cost; no other does.
pub(crate) const CAPTURE_ADD: &str = "\
    insert into execution_captures (account_id, execution_id, round_id, captured_at) \
    values ($1, $2, $3, $4) on conflict do nothing";
pub(crate) const ENTRY_GET: &str =
    "select entry from entries where account_id = $1 and receipt_id = $2";

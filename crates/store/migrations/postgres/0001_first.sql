-- The first tables. Identifiers are text, times are microseconds since 1970, documents are text that holds JSON.
-- Identifiers have the collation `C`, so that lists have the same order as in SQLite.

create table installation (
    id smallint not null primary key check (id = 1),
    -- Grows with every change of executors or sessions, so that a cached pool is refreshed cheaply.
    pool_version bigint not null
);

insert into installation (id, pool_version) values (1, 0);

create table executors (
    name text collate "C" not null primary key,
    url text not null,
    token_env text,
    agent_events_url text,
    created_at bigint not null,
    probe text
);

create table sessions (
    id text collate "C" not null primary key,
    executor text collate "C" not null references executors (name),
    profile text not null,
    tier text,
    labels text not null,
    task_types text not null,
    reliability_permille bigint,
    price_micros bigint not null,
    created_at bigint not null
);

create index sessions_by_executor on sessions (executor);

create table accounts (
    id text collate "C" not null primary key,
    created_at bigint not null
);

create table api_keys (
    id text collate "C" not null primary key,
    account_id text collate "C" not null references accounts (id),
    secret_hash text not null,
    scopes text not null,
    name text collate "C" not null,
    created_at bigint not null,
    revoked_at bigint
);

create index api_keys_by_account on api_keys (account_id, id);

-- No reference to accounts: every round of an account would lock that account's row.
create table rounds (
    account_id text collate "C" not null,
    id text collate "C" not null,
    kind text not null,
    -- `open` until the round ends, then how it ended.
    state text not null,
    node_id text not null,
    lease_token bigint not null,
    lease_until bigint not null,
    request_digest text not null,
    policy_id text not null,
    policy_hash text not null,
    disagreement text not null,
    traces smallint not null,
    seats text not null,
    opened_at bigint not null,
    deadline_at bigint not null,
    closed_at bigint,
    outcome text,
    -- What a list shows of the consensus, so that it need not read the document. Shares are in ten-thousandths.
    verdict text,
    agreement_bp smallint,
    confidence_bp smallint,
    consensus text,
    receipt_id text collate "C",
    primary key (account_id, id)
);

create index rounds_open on rounds (lease_until) where state = 'open';

create table replicas (
    account_id text collate "C" not null,
    round_id text collate "C" not null,
    position smallint not null,
    session_id text not null,
    executor text collate "C" not null,
    label text not null,
    failure text,
    latency_ms bigint not null,
    cost_micros bigint not null,
    document text not null,
    primary key (account_id, round_id, position)
);

-- The decision entries. The primary key lets a round end only once.
create table entries (
    account_id text collate "C" not null,
    round_id text collate "C" not null,
    receipt_id text collate "C" not null,
    entry text not null,
    recorded_at bigint not null,
    primary key (account_id, round_id)
);

create unique index entries_by_receipt on entries (account_id, receipt_id);

create function entries_refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'entries are append-only';
end
$$;

create trigger entries_never_change before update or delete or truncate on entries
for each statement execute function entries_refuse_change();

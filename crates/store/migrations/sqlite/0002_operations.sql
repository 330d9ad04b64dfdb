-- What operators need: limits and ends of keys, writes that happen once, rounds that can be called off.

-- Null means the default of the installation, or no end.
alter table api_keys add column rate_per_minute bigint;
alter table api_keys add column concurrent_rounds bigint;
alter table api_keys add column expires_at bigint;
-- Written now and then, not with every request.
alter table api_keys add column last_used_at bigint;

alter table rounds add column cancel_requested_at bigint;

create index rounds_called_off on rounds (node_id) where state = 'open' and cancel_requested_at is not null;

-- Lists by kind and outcome read no more rows than they show, however many there are.
create index rounds_by_answer on rounds (account_id, kind, outcome, id) where outcome is not null;

-- The few rounds that ended otherwise than most.
create index rounds_not_closed on rounds (account_id, state, id) where state in ('expired', 'cancelled');

-- What was done under an idempotency key, recorded in the transaction that did it.
create table idempotency (
    account_id text not null,
    key text not null,
    operation text not null,
    request_digest text not null,
    -- A round is its own answer; other writes keep the text that they answered.
    round_id text,
    status smallint,
    answer text,
    created_at bigint not null,
    primary key (account_id, key)
) without rowid;

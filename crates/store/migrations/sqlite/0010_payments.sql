-- Requests that are paid one by one need a record of each payment: the authorization that was used, so
-- that it is used once, the reply that was paid for, so that it can be fetched again, and how far the
-- settlement got, so that another process can finish it.
create table payments (
    account_id text not null,
    id text not null,
    network text not null,
    asset text not null,
    payer text not null,
    nonce text not null,
    protocol text not null,
    amount bigint not null,
    request_digest text not null,
    payment_digest text not null,
    identifier text,
    state text not null,
    settle_request text not null,
    valid_before bigint not null,
    round_id text,
    status bigint,
    answer text,
    transaction_id text,
    reason text,
    -- Attempts to settle that may have reached the facilitator.
    attempts bigint not null,
    -- Whose turn it is to settle, and when another may try.
    lease_token bigint,
    next_at bigint,
    created_at bigint not null,
    updated_at bigint not null,
    primary key (account_id, id)
);
create unique index payments_by_id on payments (id);
create unique index payments_once on payments (network, asset, payer, nonce);
-- A payment that failed for good leaves its name to the next one.
create unique index payments_by_identifier on payments (account_id, identifier)
where identifier is not null and state <> 'failed_final';
create index payments_due on payments (next_at) where next_at is not null;
create index payments_by_state on payments (state, updated_at);
